package sqlite

import (
	"database/sql/driver"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Lanes implements ledger.LaneTx.
func (t *tx) Lanes(chain payment.ChainID, from payment.Address) ([]ledger.Lane, error) {
	var out []ledger.Lane
	err := t.c.query(`SELECT l.key, l.nonce, p.id FROM lanes l INDEXED BY lanes_pool CROSS JOIN payments p ON p.n = l.n
		WHERE l.chain = ? AND l.account = ? ORDER BY l.place`, []driver.Value{string(chain), from[:]}, func(row []driver.Value) error {
		l := ledger.Lane{Chain: chain, From: from}
		var key []byte
		var nonce int64
		var id string
		err := scan(row, &key, &nonce, &id)
		copy(l.Key[:], key)
		l.Nonce, l.Payment = uint64(nonce), payment.ID(id)
		out = append(out, l)
		return err
	})
	return out, err
}

// PutLane implements ledger.LaneTx.
func (t *tx) PutLane(l ledger.Lane) error {
	r, err := t.row(l.Payment)
	if err != nil {
		return err
	}
	if r == nil {
		return ledger.ErrNotFound
	}
	_, _, err = t.c.exec(`INSERT INTO lanes (chain, account, key, nonce, n) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (chain, account, key) DO UPDATE SET nonce = excluded.nonce, n = excluded.n`,
		string(l.Chain), l.From[:], l.Key[:], int64(l.Nonce), r.n)
	return err
}

// DropLane implements ledger.LaneTx.
func (t *tx) DropLane(l ledger.Lane) error {
	_, _, err := t.c.exec(`DELETE FROM lanes WHERE chain = ? AND account = ? AND key = ?`, string(l.Chain), l.From[:], l.Key[:])
	return err
}

// SlotEver implements ledger.EntryTx.
func (t *tx) SlotEver(slot string) (*ledger.Entry, error) {
	e, err := t.SlotHolder(slot)
	if e != nil || err != nil {
		return e, err
	}
	return t.one(`SELECT p.id FROM slots s CROSS JOIN payments p ON p.n = s.n WHERE s.slot = ?`, slotKey(slot))
}
