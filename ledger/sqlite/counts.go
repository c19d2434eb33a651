package sqlite

import (
	"database/sql/driver"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Unresolved implements ledger.EntryTx.
func (t *tx) Unresolved(agent string, fingerprint payment.Hash, now time.Time) ([]*ledger.Entry, error) {
	return entries(t.look(`SELECT id FROM payments INDEXED BY payments_answers
		WHERE agent = ? AND fingerprint = ? AND answers > ? ORDER BY n DESC`, agent, fingerprint[:], now.UnixMicro()))
}

// Owners implements ledger.EntryTx.
func (t *tx) Owners() ([]string, error) {
	if t.mem.owners == nil {
		all := map[string]bool{}
		// One look for each: a distinct would walk all that is authorized.
		for last := ""; ; {
			ok, err := t.c.first(`SELECT owner FROM payments INDEXED BY payments_owner WHERE owner > ? ORDER BY owner LIMIT 1`,
				[]driver.Value{last}, &last)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			all[last] = true
		}
		t.mem.owners = all
	}
	out := make([]string, 0, len(t.mem.owners))
	for o := range t.mem.owners {
		out = append(out, o)
	}
	return out, nil
}

// Approval implements ledger.ApprovalTx.
func (t *tx) Approval(id payment.ApprovalID) (*ledger.Approval, error) {
	var body []byte
	ok, err := t.c.first(`SELECT body FROM approvals WHERE id = ?`, []driver.Value{string(id)}, &body)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ledger.ErrNotFound
	}
	a, err := decodeApproval(string(id), body)
	return a, t.c.fail(err)
}

// Pending implements ledger.ApprovalTx.
func (t *tx) Pending(agent string, now time.Time) (int, error) {
	var n int64
	_, err := t.c.first(`SELECT count(*) FROM approvals INDEXED BY approvals_pending WHERE agent = ? AND status = 0 AND expires > ?`,
		[]driver.Value{agent, now.UnixMicro()}, &n)
	return int(n), err
}

// PutApproval implements ledger.ApprovalTx.
func (t *tx) PutApproval(a *ledger.Approval) error {
	_, _, err := t.c.exec(`INSERT INTO approvals (id, agent, status, expires, body) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, status = excluded.status, expires = excluded.expires, body = excluded.body`,
		string(a.ID), a.Agent, int64(a.Status), a.ExpiresAt.UnixMicro(), encodeApproval(a))
	return err
}

// Marks implements ledger.CountTx.
func (t *tx) Marks() ([]ledger.Mark, error) {
	if err := t.readMarks(); err != nil {
		return nil, err
	}
	out := make([]ledger.Mark, 0, len(t.mem.marks))
	for _, r := range t.mem.marks {
		out = append(out, r.Mark)
	}
	return out, nil
}

func (t *tx) readMarks() error {
	if t.mem.marks != nil {
		return nil
	}
	all := map[policy.Window]*markRow{}
	err := t.c.query(`SELECT win, until, id, next, ends, kinds FROM marks`, nil, func(row []driver.Value) error {
		var win []byte
		var id string
		var until, next, ends, kinds int64
		if err := scan(row, &win, &until, &id, &next, &ends, &kinds); err != nil {
			return err
		}
		w, err := parseWindow(win)
		all[w] = &markRow{Mark: ledger.Mark{
			Window: w, At: ledger.Point{Until: fromMicro(until), ID: payment.ID(id)},
			Next: fromMicro(next), End: fromMicro(ends), Kinds: uint16(kinds),
		}}
		return err
	})
	if err == nil {
		t.mem.marks = all
	}
	return err
}

// PutMark implements ledger.CountTx.
func (t *tx) PutMark(m ledger.Mark) error {
	if err := t.readMarks(); err != nil {
		return err
	}
	r := t.mem.marks[m.Window]
	if r == nil {
		r = &markRow{}
		t.mem.marks[m.Window] = r
	}
	r.Mark = m
	if !r.dirty {
		r.dirty = true
		t.mem.dirtyMarks = append(t.mem.dirtyMarks, r)
	}
	return nil
}

func (t *tx) writeMark(r *markRow) error {
	r.dirty = false
	_, _, err := t.c.exec(`INSERT INTO marks (win, until, id, next, ends, kinds) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (win) DO UPDATE SET until = excluded.until, id = excluded.id, next = excluded.next, ends = excluded.ends, kinds = excluded.kinds`,
		windowKey(r.Window), r.At.Until.UnixMicro(), string(r.At.ID), r.Next.UnixMicro(), r.End.UnixMicro(), int64(r.Kinds))
	return err
}

// DropMark implements ledger.CountTx.
func (t *tx) DropMark(w policy.Window) error {
	if err := t.readMarks(); err != nil {
		return err
	}
	if r := t.mem.marks[w]; r != nil {
		r.dirty = false
		delete(t.mem.marks, w)
	}
	for k, r := range t.mem.counters {
		if k.Window == w {
			*r = counterRow{dirty: r.dirty}
		}
	}
	if _, _, err := t.c.exec(`DELETE FROM counters WHERE win = ?`, windowKey(w)); err != nil {
		return err
	}
	_, _, err := t.c.exec(`DELETE FROM marks WHERE win = ?`, windowKey(w))
	return err
}

// Counter implements ledger.CountTx.
func (t *tx) Counter(k ledger.CounterKey) (ledger.Counter, bool, error) {
	r := t.mem.counters[k]
	if r == nil {
		var usd, count int64
		ok, err := t.c.first(`SELECT usd, count FROM counters WHERE win = ? AND scope = ?`,
			[]driver.Value{windowKey(k.Window), scopeKey(k.Scope)}, &usd, &count)
		if err != nil {
			return ledger.Counter{}, false, err
		}
		r = &counterRow{Counter: ledger.Counter{USD: payment.USD(usd), Count: count}, there: ok}
		t.mem.counters[k] = r
	}
	return r.Counter, r.there, nil
}

// PutCounter implements ledger.CountTx.
func (t *tx) PutCounter(k ledger.CounterKey, c ledger.Counter) error {
	r := t.mem.counters[k]
	if r == nil {
		r = &counterRow{}
		t.mem.counters[k] = r
	}
	r.Counter, r.there = c, true
	if !r.dirty {
		r.dirty = true
		t.mem.dirtyCounters = append(t.mem.dirtyCounters, k)
	}
	return nil
}

func (t *tx) writeCounter(k ledger.CounterKey, r *counterRow) error {
	r.dirty = false
	win, scope := windowKey(k.Window), scopeKey(k.Scope)
	var err error
	// An empty counter of a host or payee is made again at the cost of a look.
	if !r.there || r.Count == 0 && k.Scope.Kind >= policy.ScopeHost {
		_, _, err = t.c.exec(`DELETE FROM counters WHERE win = ? AND scope = ?`, win, scope)
	} else {
		_, _, err = t.c.exec(`INSERT INTO counters (win, scope, usd, count) VALUES (?, ?, ?, ?)
			ON CONFLICT (win, scope) DO UPDATE SET usd = excluded.usd, count = excluded.count`, win, scope, int64(r.USD), r.Count)
	}
	return err
}

// Due implements ledger.CountTx.
func (t *tx) Due(after ledger.Point, limit int) ([]ledger.Spent, error) {
	var out []ledger.Spent
	err := t.c.query(`SELECT counts, id, cost, shared, agent, host, payee, others, ifnull(run, '') FROM payments INDEXED BY payments_counts
		WHERE (counts, id) > (?, ?) AND counts < ? ORDER BY counts, id LIMIT ?`,
		[]driver.Value{after.Until.UnixMicro(), string(after.ID), int64(openUntil), int64(limit)},
		func(row []driver.Value) error {
			var until, cost int64
			var id string
			var payee, others []byte
			var s ledger.Spent
			if err := scan(row, &until, &id, &cost, &s.Facts.Shared, &s.Facts.Agent, &s.Facts.Host, &payee, &others, &s.Facts.Run); err != nil {
				return err
			}
			s.At, s.Cost = ledger.Point{Until: fromMicro(until), ID: payment.ID(id)}, payment.USD(cost)
			for _, all := range [][]byte{payee, others} {
				for ; len(all) >= len(payment.Address{}); all = all[len(payment.Address{}):] {
					s.Facts.Payees = append(s.Facts.Payees, payment.Address(all))
				}
			}
			out = append(out, s)
			return nil
		})
	return out, err
}
