package ledger

import (
	"iter"
	"time"

	"github.com/canopy-go/canopy/policy"
)

// Marks is that of CountTx.
func (t *memoryTx) Marks() ([]Mark, error) { return t.marks, nil }

// PutMark is that of CountTx.
func (t *memoryTx) PutMark(m Mark) error {
	for i := range t.marks {
		if t.marks[i].Window == m.Window {
			t.marks[i] = m
			return nil
		}
	}
	t.marks = append(t.marks, m)
	return nil
}

// DropMark is that of CountTx.
func (t *memoryTx) DropMark(w policy.Window) error {
	kept := make([]Mark, 0, len(t.marks))
	for _, m := range t.marks {
		if m.Window != w {
			kept = append(kept, m)
		}
	}
	t.marks = kept
	clear(t.recent.it[:])
	for key := range t.counters {
		if key.Window == w {
			delete(t.counters, key)
		}
	}
	return nil
}

// Counter is that of CountTx.
func (t *memoryTx) Counter(key CounterKey) (Counter, bool, error) {
	if n := t.recall(&key).n; n != nil {
		return *n, true, nil
	}
	return Counter{}, false, nil
}

// PutCounter is that of CountTx.
func (t *memoryTx) PutCounter(key CounterKey, n Counter) error {
	it := t.recall(&key)
	switch {
	case n.Count == 0:
		it.n = nil
		delete(t.counters, key)
	case it.n != nil:
		*it.n = n
	default:
		it.n = &Counter{n.USD, n.Count}
		t.counters[key] = it.n
	}
	return nil
}

// recentCounters are the keys that were asked for last: a payment reads some
// and writes them, and the next one often the same, in the same order.
type recentCounters struct {
	it   [16]recentCounter
	next int // where the search begins, and the next miss is put
}

type recentCounter struct {
	key CounterKey // the zero key for none
	n   *Counter   // nil where there is no such counter
}

// recall finds a counter.
func (t *memoryTx) recall(key *CounterKey) *recentCounter {
	c := &t.recent
	for i := range c.it {
		at := (c.next + i) % len(c.it)
		if it := &c.it[at]; it.key == *key {
			c.next = (at + 1) % len(c.it)
			return it
		}
	}
	it := &c.it[c.next]
	it.key, it.n = *key, t.counters[*key]
	c.next = (c.next + 1) % len(c.it)
	return it
}

// Due is that of CountTx. What it returned before is overwritten.
func (t *memoryTx) Due(after Point, limit int) ([]Spent, error) {
	t.due = t.due[:0]
	for p, r := range t.closed.after(after) {
		if len(t.due) == limit {
			break
		}
		t.due = append(t.due, Spent{At: p, Facts: r.facts(), Cost: r.e.Spent})
	}
	return t.due, nil
}

// fewRows is up to how many payments of one host, payee or run are read rather than
// those of everybody after a point.
const fewRows = 4096

// counted yields the rows in s that count and are open or after the point, and
// their points; those that are open first.
func (t *memoryTx) counted(s policy.Scope, after Point) iter.Seq2[span, *row] {
	return func(yield func(span, *row) bool) {
		if rows, narrow := t.place(s); narrow && (len(rows) <= fewRows || after == Point{}) {
			for _, r := range rows {
				if sp := spanOf(r.e); sp.counted(after) && s.Covers(r.facts()) && !yield(sp, r) {
					return
				}
			}
			return
		}
		for _, r := range t.open.rows {
			if s.Covers(r.facts()) && !yield(span{open: true, counts: true}, r) {
				return
			}
		}
		for p, r := range t.closed.after(after) {
			if s.Covers(r.facts()) && !yield(span{at: p, counts: true}, r) {
				return
			}
		}
	}
}

// place are the authorized payments to the host or payee of s, or of its run or
// budget, whoever made them.
func (t *memoryTx) place(s policy.Scope) (rows []*row, narrow bool) {
	var found *[]*row
	switch s.Kind {
	case policy.ScopeHost:
		found = t.hosts[s.Host]
	case policy.ScopePayee:
		found = t.payees[s.Payee]
	case policy.ScopeRun, policy.ScopeBudget:
		found = t.works[work{s.Kind, s.Name}]
	default:
		return nil, false
	}
	if found != nil {
		rows = *found
	}
	return rows, true
}

// Tally is that of CountTx.
func (t *memoryTx) Tally(s policy.Scope, after Point, now time.Time) (Tally, error) {
	var sum Tally
	for sp, r := range t.counted(s, after) {
		sum.USD, _ = sum.USD.Add(r.e.Spent)
		sum.Count++
		if r.e.State.Live() && (sp.open || !sp.at.Until.Before(now)) {
			sum.Held, _ = sum.Held.Add(r.e.Spent)
		}
	}
	return sum, nil
}

// Oldest is that of CountTx.
func (t *memoryTx) Oldest(s policy.Scope, after Point) (time.Time, error) {
	if rows, narrow := t.place(s); narrow && len(rows) <= fewRows {
		var oldest time.Time
		for sp := range t.counted(s, after) {
			if !sp.open && (oldest.IsZero() || sp.at.Until.Before(oldest)) {
				oldest = sp.at.Until
			}
		}
		return oldest, nil
	}
	for p, r := range t.closed.after(after) {
		if s.Covers(r.facts()) {
			return p.Until, nil
		}
	}
	return time.Time{}, nil
}
