package sqlite

import (
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// tx is one step, or several that share a commit, on one connection inside a
// transaction. It reads through its memory.
type tx struct {
	c   *conn
	mem *memory
}

var _ ledger.Tx = (*tx)(nil)

// row returns the payment with id, or nil.
func (t *tx) row(id payment.ID) (*paymentRow, error) {
	if r := t.mem.rows[id]; r != nil {
		return r, nil
	}
	all, err := t.all(`SELECT `+entryColumns+` FROM payments WHERE id = ?`, string(id))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// all returns the payments that a query over entryColumns finds.
func (t *tx) all(sql string, args ...driver.Value) ([]*paymentRow, error) {
	var out []*paymentRow
	err := t.c.query(sql, args, func(row []driver.Value) error {
		n, e, err := entryOf(row)
		if err != nil {
			return err
		}
		r := t.mem.rows[e.ID]
		if r == nil {
			r = &paymentRow{n, e}
			t.mem.rows[e.ID] = r
		}
		out = append(out, r)
		return nil
	})
	return out, err
}

// look returns the payments whose ids a query finds. Most looks find none, and
// then cost one column of an index.
func (t *tx) look(sql string, args ...driver.Value) ([]*paymentRow, error) {
	var ids []payment.ID
	err := t.c.query(sql, args, func(row []driver.Value) error {
		var id string
		err := scan(row, &id)
		ids = append(ids, payment.ID(id))
		return err
	})
	var out []*paymentRow
	for _, id := range ids {
		r, err := t.row(id)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, t.c.fail(ErrDamaged)
		}
		out = append(out, r)
	}
	return out, err
}

// one is look for a query that finds one payment at most; nil where it finds
// none.
func (t *tx) one(sql string, args ...driver.Value) (*ledger.Entry, error) {
	all, err := t.look(sql, args...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0].e, nil
}

func entries(rows []*paymentRow, err error) ([]*ledger.Entry, error) {
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	out := make([]*ledger.Entry, len(rows))
	for i, r := range rows {
		out[i] = r.e
	}
	return out, nil
}

// Entry implements ledger.EntryTx.
func (t *tx) Entry(id payment.ID) (*ledger.Entry, error) {
	r, err := t.row(id)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, ledger.ErrNotFound
	}
	return r.e, nil
}

// Keyed implements ledger.EntryTx.
func (t *tx) Keyed(agent, key string) (*ledger.Entry, error) {
	e, err := t.one(`SELECT id FROM payments WHERE agent = ? AND held = ?`, agent, key)
	if e != nil || err != nil {
		return e, err
	}
	e, err = t.one(`SELECT p.id FROM shared_keys s CROSS JOIN payments p ON p.n = s.n WHERE s.agent = ? AND s.key = ?`, agent, key)
	if e == nil || err != nil || e.State.Freed() {
		return nil, err
	}
	return e, nil
}

// ShareKey implements ledger.EntryTx.
func (t *tx) ShareKey(agent, key string, id payment.ID) error {
	r, err := t.row(id)
	if err != nil {
		return err
	}
	if r == nil {
		return ledger.ErrNotFound
	}
	_, _, err = t.c.exec(`INSERT OR REPLACE INTO shared_keys (agent, key, n) VALUES (?, ?, ?)`, agent, key, r.n)
	return err
}

// SlotHolder implements ledger.EntryTx.
func (t *tx) SlotHolder(slot string) (*ledger.Entry, error) {
	return t.one(`SELECT id FROM payments WHERE slot = ?`, slotKey(slot))
}

// LastTransfer implements ledger.EntryTx.
func (t *tx) LastTransfer(agent string, fingerprint payment.Hash) (*ledger.Entry, error) {
	return t.one(`SELECT id FROM payments INDEXED BY payments_transfer
		WHERE agent = ? AND fingerprint = ? AND transfer IS NOT NULL ORDER BY transfer DESC LIMIT 1`, agent, fingerprint[:])
}

// Owned implements ledger.EntryTx.
func (t *tx) Owned(owner string) ([]*ledger.Entry, error) {
	delete(t.mem.owners, owner) // Insert and Update put it back
	return entries(t.look(`SELECT id FROM payments INDEXED BY payments_owner WHERE owner = ?`, owner))
}

// Insert implements ledger.EntryTx.
func (t *tx) Insert(e *ledger.Entry, ev *ledger.Event) error {
	d := derive(e)
	payee, others := payees(e)
	_, n, err := t.c.try(`INSERT INTO payments (id, state, version, created, cost, shared, agent, host, fingerprint, payee, others,
		held, slot, owner, answers, transfer, counts, run, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(e.ID), int64(e.State), e.Version, e.CreatedAt.UnixMicro(), int64(e.Spent), e.Shared, e.Agent, e.Host, e.Fingerprint[:],
		payee, others, d.held, blob(d.slot), d.owner, d.answers, d.transfer, d.counts, d.run, encodeEntry(e))
	if err != nil {
		return t.taken(err)
	}
	if err := t.putGas(n, &ledger.Entry{}, e); err != nil {
		return err
	}
	if err := t.putPlaces(n, nil, e); err != nil {
		return err
	}
	if err := t.putWorks(n, &ledger.Entry{}, e); err != nil {
		return err
	}
	for i := 1; i < len(e.Terms.Recipients); i++ {
		a := e.Terms.Recipients[i].Address
		if a == e.Terms.Payee() {
			continue
		}
		if _, _, err := t.c.exec(`INSERT OR IGNORE INTO splits (payee, n) VALUES (?, ?)`, a[:], n); err != nil {
			return err
		}
	}
	t.spend(nil, e)
	return t.stored(&paymentRow{n, e}, ev)
}

// payees are the columns payee and others of e.
func payees(e *ledger.Entry) (first, rest []byte) {
	for i, r := range e.Terms.Recipients {
		if i == 0 {
			first = r.Address[:]
		} else {
			rest = append(rest, r.Address[:]...)
		}
	}
	return first, rest
}

// Update implements ledger.EntryTx.
func (t *tx) Update(e *ledger.Entry, ev *ledger.Event) error {
	was, err := t.row(e.ID)
	if err != nil {
		return err
	}
	if was == nil {
		return ledger.ErrNotFound
	}
	before, after := derive(was.e), derive(e)
	sql, args := update(before, after)
	args = append(args, int64(e.State), e.Version, int64(e.Spent), encodeEntry(e), was.n)
	changed, _, err := t.c.try(sql, args...)
	switch {
	case err != nil:
		return t.taken(err)
	case changed != 1:
		return t.c.fail(ErrDamaged)
	}
	if err := t.putGas(was.n, was.e, e); err != nil {
		return err
	}
	if err := t.putPlaces(was.n, was.e, e); err != nil {
		return err
	}
	if err := t.putWorks(was.n, was.e, e); err != nil {
		return err
	}
	if before.slot != nil && after.slot == nil {
		if err := t.ended(before.slot, was.n); err != nil {
			return err
		}
	}
	t.spend(was.e, e)
	return t.stored(&paymentRow{was.n, e}, ev)
}

// update returns the statement that sets what changed among the derived
// columns, so that the indexes of the others are left alone.
func update(was, is derived) (string, []driver.Value) {
	var args []driver.Value
	sql := `UPDATE payments SET `
	set := func(column string, was, is driver.Value) {
		if was != is {
			sql += column
			args = append(args, is)
		}
	}
	if was.slot != is.slot {
		sql += `slot = ?, `
		args = append(args, blob(is.slot))
	}
	set(`held = ?, `, was.held, is.held)
	set(`owner = ?, `, was.owner, is.owner)
	set(`answers = ?, `, was.answers, is.answers)
	set(`transfer = ?, `, was.transfer, is.transfer)
	set(`counts = ?, `, was.counts, is.counts)
	set(`shared = ?, `, was.shared, is.shared)
	set(`run = ?, `, was.run, is.run)
	return sql + `state = ?, version = ?, cost = ?, body = ? WHERE n = ?`, args
}

// stored appends the event and remembers what was written.
func (t *tx) stored(r *paymentRow, ev *ledger.Event) error {
	m, err := t.readMeta()
	if err != nil {
		return err
	}
	_, _, err = t.c.exec(`INSERT INTO events (n, seq, at, was, became, by, data, hash) VALUES (?, ?, ?, ?, ?, ?, ifnull(?, x''), ?)`,
		r.n, ev.Seq, ev.At.UnixMicro(), int64(ev.From), int64(ev.To), int64(ev.By), ev.Data, ev.Hash[:])
	if err != nil {
		return err
	}
	m.events++
	t.mem.dirtyMeta = true
	t.mem.rows[r.e.ID] = r
	if t.mem.owners != nil && r.e.State == ledger.Authorized {
		t.mem.owners[r.e.Owner] = true
	}
	return nil
}

// Extended result codes of a UNIQUE index and of a primary key.
const (
	codeUnique     = 2067
	codePrimaryKey = 1555
)

// taken turns a broken uniqueness of the table payments into ErrTaken: the
// statement has undone itself then, and was the first of its step.
func (t *tx) taken(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code() == codeUnique || e.Code() == codePrimaryKey) {
		return ledger.ErrTaken
	}
	return t.c.fail(err)
}
