package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// GasUsers implements ledger.GasTx.
func (t *tx) GasUsers(chain payment.ChainID, from payment.Address, after time.Time) ([]*ledger.Entry, error) {
	return entries(t.look(`SELECT p.id FROM gas g INDEXED BY gas_until CROSS JOIN payments p ON p.n = g.n
		WHERE g.chain = ? AND g.account = ? AND g.until > ?`, string(chain), from[:], after.UnixMicro()))
}

// gasUntil is what gas.until holds for e; nil where e is not there.
func gasUntil(e *ledger.Entry) driver.Value {
	switch until, open, counts := e.GasUntil(); {
	case !counts:
		return nil
	case open:
		return int64(openUntil)
	default:
		return until.UnixMicro()
	}
}

// putGas brings the row of gas up to what the payment n has become.
func (t *tx) putGas(n int64, was, is *ledger.Entry) (err error) {
	before, after := gasUntil(was), gasUntil(is)
	switch {
	case before == after:
	case after == nil:
		_, _, err = t.c.exec(`DELETE FROM gas WHERE n = ?`, n)
	default:
		_, _, err = t.c.exec(`INSERT OR REPLACE INTO gas (n, chain, account, until) VALUES (?, ?, ?, ?)`,
			n, string(is.Slot.Chain), is.Slot.From[:], after)
	}
	return err
}

// gasRow is a row of gas; the zero one is none.
type gasRow struct {
	found          bool
	chain, account string
	until          int64
	err            error // of reading it
}

// findGas reads the rows of gas of a page.
func (t *tx) findGas(page []found) {
	i := 0
	err := t.c.query(`SELECT n, chain, account, until FROM gas WHERE n BETWEEN ? AND ? ORDER BY n`,
		[]driver.Value{page[0].n, page[len(page)-1].n}, func(row []driver.Value) error {
			var n int64
			if err := scan(row[:1], &n); err != nil {
				return err
			}
			for i < len(page) && page[i].n < n {
				i++
			}
			if i == len(page) || page[i].n != n {
				return nil // of a payment that is not there: looked for at the end
			}
			var account []byte
			g := gasRow{found: true}
			g.err = scan(row[1:], &g.chain, &account, &g.until)
			g.account = string(account)
			page[i].gas = g
			return nil
		})
	if err != nil {
		page[0].problem("the gas of payments: %v", err)
	}
}

// verify holds the row of gas against its payment.
func (g *gasRow) verify(e *ledger.Entry) error {
	want := gasUntil(e)
	switch {
	case g.err != nil:
		return g.err
	case g.found != (want != nil):
		return fmt.Errorf("it is counted: %t", g.found)
	case g.found && (want != g.until || g.chain != string(e.Slot.Chain) || g.account != string(e.Slot.From[:])):
		return errors.New("it is counted for another account, or until another time")
	}
	return nil
}

func (w *writer) carries(all []payment.Carry) {
	w.uint(uint64(len(all)))
	for _, c := range all {
		w.uint(c.Nonce)
		w.uint(c.GasLimit)
		w.uint(c.MaxFee)
		w.uint(c.MaxTip)
		w.units(c.DataFee)
	}
}

func (r *reader) carries() []payment.Carry {
	n := r.count(5)
	if n == 0 {
		return nil
	}
	all := make([]payment.Carry, n)
	for i := range all {
		all[i] = payment.Carry{Nonce: r.uint(), GasLimit: r.uint(), MaxFee: r.uint(), MaxTip: r.uint(), DataFee: r.units()}
	}
	return all
}
