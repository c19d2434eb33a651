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
	for key := range t.counters {
		if key.Window == w {
			delete(t.counters, key)
		}
	}
	return nil
}

// Counter is that of CountTx.
func (t *memoryTx) Counter(key CounterKey) (Counter, bool, error) {
	n, ok := t.counters[key]
	return n, ok, nil
}

// PutCounter is that of CountTx.
func (t *memoryTx) PutCounter(key CounterKey, n Counter) error {
	if n.Count == 0 {
		delete(t.counters, key)
		return nil
	}
	t.counters[key] = n
	return nil
}

// Due is that of CountTx.
func (t *memoryTx) Due(after Point, limit int) ([]Spent, error) {
	out := make([]Spent, 0, limit)
	for p, r := range t.closed.after(after) {
		if len(out) == limit {
			break
		}
		out = append(out, Spent{At: p, Facts: r.facts, Cost: r.e.Cost})
	}
	return out, nil
}

// fewRows is up to how many payments of one host or payee are read rather than
// those of everybody after a point.
const fewRows = 4096

// counted yields the rows in s that count and are open or after the point, and
// their points; those that are open first.
func (t *memoryTx) counted(s policy.Scope, after Point) iter.Seq2[span, *row] {
	s = NewCounterKey(s, policy.Window{}).Scope
	narrow := s.Kind == policy.ScopeHost || s.Kind == policy.ScopePayee
	return func(yield func(span, *row) bool) {
		if rows := t.places[s]; narrow && (len(rows) <= fewRows || after == Point{}) {
			for _, r := range rows {
				if sp := spanOf(r.e); sp.counted(after) && !yield(sp, r) {
					return
				}
			}
			return
		}
		for r := range t.open {
			if s.Covers(r.facts) && !yield(span{open: true, counts: true}, r) {
				return
			}
		}
		for p, r := range t.closed.after(after) {
			if s.Covers(r.facts) && !yield(span{at: p, counts: true}, r) {
				return
			}
		}
	}
}

// Tally is that of CountTx.
func (t *memoryTx) Tally(s policy.Scope, after Point, now time.Time) (Tally, error) {
	var sum Tally
	for sp, r := range t.counted(s, after) {
		sum.USD, _ = sum.USD.Add(r.e.Cost)
		sum.Count++
		if r.e.State.Live() && (sp.open || !sp.at.Until.Before(now)) {
			sum.Held, _ = sum.Held.Add(r.e.Cost)
		}
	}
	return sum, nil
}

// Oldest is that of CountTx.
func (t *memoryTx) Oldest(s policy.Scope, after Point) (time.Time, error) {
	var oldest time.Time
	for sp := range t.counted(s, after) {
		if !sp.open && (oldest.IsZero() || sp.at.Until.Before(oldest)) {
			oldest = sp.at.Until
		}
	}
	return oldest, nil
}
