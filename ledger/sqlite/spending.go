package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

var _ ledger.Historian = (*Store)(nil)

// spendingKey names a row of the table spending.
type spendingKey struct {
	day         int64
	agent, host string
}

// spent is a row of it, or what is added to one.
type spent struct{ dollars, micros, count int64 }

func (s spent) plus(o spent) spent {
	return spent{s.dollars + o.dollars, s.micros + o.micros, s.count + o.count}
}

func (s spent) less(o spent) spent {
	return spent{s.dollars - o.dollars, s.micros - o.micros, s.count - o.count}
}

// spentOf is what e is in the sum of its day.
func spentOf(e *ledger.Entry) spent {
	if _, _, counts := e.CountedUntil(); !counts {
		return spent{}
	}
	return spent{int64(e.Spent / payment.Dollar), int64(e.Spent % payment.Dollar), 1}
}

func spendingKeyOf(e *ledger.Entry) spendingKey {
	return spendingKey{ledger.SpendingDay(e.CreatedAt), e.Agent, e.Host}
}

// spend puts what changed of a payment into the sum of its day; was is nil for
// a new one.
func (t *tx) spend(was, is *ledger.Entry) {
	change := spentOf(is)
	if was != nil {
		change = change.less(spentOf(was))
	}
	if change == (spent{}) {
		return
	}
	if t.mem.spending == nil {
		t.mem.spending = map[spendingKey]spent{}
	}
	k := spendingKeyOf(is)
	t.mem.spending[k] = t.mem.spending[k].plus(change)
}

func (t *tx) writeSpending() error {
	for k, s := range t.mem.spending {
		_, _, err := t.c.exec(`INSERT INTO spending (day, agent, host, dollars, micros, count) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (day, agent, host) DO UPDATE SET dollars = dollars + excluded.dollars, micros = micros + excluded.micros, count = count + excluded.count`,
			k.day, k.agent, k.host, s.dollars, s.micros, s.count)
		if err != nil {
			return err
		}
	}
	clear(t.mem.spending)
	return nil
}

// Spending implements ledger.Historian.
func (s *Store) Spending(ctx context.Context, q ledger.SpendingQuery) (out []ledger.Spending, err error) {
	sql, group := `SELECT `, ``
	for _, c := range []struct {
		on          bool
		name, empty string
	}{{q.Days, `day`, `0`}, {q.Agents, `agent`, `''`}, {q.Hosts, `host`, `''`}} {
		if !c.on {
			sql += c.empty + `, `
			continue
		}
		sql += c.name + `, `
		if group != `` {
			group += `, `
		}
		group += c.name
	}
	first, last := q.SpendingDays()
	args := []driver.Value{first, last}
	sql += `sum(dollars) + sum(micros) / 1000000 AS d, sum(micros) % 1000000, sum(count) AS c FROM spending WHERE day >= ? AND day <= ?`
	if q.Agent != "" {
		sql += ` AND agent = ?`
		args = append(args, q.Agent)
	}
	if group != `` {
		sql += ` GROUP BY ` + group
	}
	sql += ` HAVING sum(count) > 0 ORDER BY 4 DESC, 5 DESC, 6 DESC, 1, 2, 3`
	if q.Limit > 0 {
		sql += ` LIMIT ?`
		args = append(args, int64(q.Limit))
	}
	err = s.read(ctx, func(t *tx) error {
		return t.c.query(sql, args, func(row []driver.Value) error {
			var day, dollars, micros int64
			var sum ledger.Spending
			if err := scan(row, &day, &sum.Agent, &sum.Host, &dollars, &micros, &sum.Count); err != nil {
				return err
			}
			if sum.USD = payment.MaxUSD; dollars < int64(payment.MaxUSD/payment.Dollar) {
				sum.USD = payment.USD(dollars)*payment.Dollar + payment.USD(micros)
			}
			if q.Days {
				sum.Day = ledger.DayOf(day)
			}
			out = append(out, sum)
			return nil
		})
	})
	return out, err
}

// PaidHost implements ledger.Historian.
func (s *Store) PaidHost(ctx context.Context, agent, host string, limit int) ([]ledger.Entry, error) {
	var out []ledger.Entry
	err := s.read(ctx, func(t *tx) (err error) {
		out, err = t.paidHost(agent, host, limit)
		return err
	})
	return out, err
}

func (t *tx) paidHost(agent, host string, limit int) ([]ledger.Entry, error) {
	return committed(t.all(`SELECT `+entryColumns+` FROM payments INDEXED BY payments_host
		WHERE agent = ? AND host = ? AND counts IS NOT NULL ORDER BY counts DESC LIMIT ?`, agent, host, int64(limit)))
}

// PaidPayee implements ledger.Historian.
func (s *Store) PaidPayee(ctx context.Context, payee payment.Address, limit int) ([]ledger.Entry, error) {
	var out []ledger.Entry
	err := s.read(ctx, func(t *tx) (err error) {
		out, err = t.paidPayee(payee, limit)
		return err
	})
	return out, err
}

func (t *tx) paidPayee(payee payment.Address, limit int) ([]ledger.Entry, error) {
	first, err := t.all(`SELECT `+entryColumns+` FROM payments INDEXED BY payments_payee
		WHERE payee = ? AND counts IS NOT NULL ORDER BY counts DESC LIMIT ?`, payee[:], int64(limit))
	if err != nil {
		return nil, err
	}
	// The newest of those that it was a further payee of.
	further, err := t.look(`SELECT p.id FROM splits s CROSS JOIN payments p ON p.n = s.n
		WHERE s.payee = ? AND p.counts IS NOT NULL ORDER BY s.n DESC LIMIT ?`, payee[:], int64(limit))
	all := append(first, further...)
	if len(further) > 0 {
		slices.SortStableFunc(all, func(a, b *paymentRow) int { return ledger.LongestFirst(a.e, b.e) })
	}
	return committed(all[:min(limit, len(all))], err)
}

func committed(rows []*paymentRow, err error) ([]ledger.Entry, error) {
	if err != nil {
		return nil, err
	}
	var out []ledger.Entry
	for _, r := range rows {
		out = append(out, ledger.Committed(r.e))
	}
	return out, nil
}

// verifySpending holds the table against what its payments come to.
func (t *tx) verifySpending(v *ledger.Verification, want map[spendingKey]spent) error {
	err := t.c.query(`SELECT day, agent, host, dollars, micros, count FROM spending`, nil, func(row []driver.Value) error {
		var k spendingKey
		var s spent
		if err := scan(row, &k.day, &k.agent, &k.host, &s.dollars, &s.micros, &s.count); err != nil {
			v.Problem("a sum of a day: %v", err)
			return nil
		}
		if s != want[k] {
			v.Problem("the sum of %s of %q at %q is not that of its payments", ledger.DayOf(k.day).Format("2006-01-02"), k.agent, k.host)
		}
		delete(want, k)
		return nil
	})
	for k, s := range want {
		if s != (spent{}) {
			v.Problem("there is no sum of %s of %q at %q", ledger.DayOf(k.day).Format("2006-01-02"), k.agent, k.host)
		}
	}
	return err
}
