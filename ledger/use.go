package ledger

import (
	"time"

	"github.com/canopy-go/canopy/policy"
)

// UseTx is Store.Use. It writes nothing, so it may run on a snapshot; every
// figure is exact.
func UseTx(tx Tx, limits []policy.Limit, now time.Time) ([]policy.Use, error) {
	seen, err := tx.Seen()
	if err != nil {
		return nil, err
	}
	now = latest(instant(now), seen.At)
	marks, err := tx.Marks()
	if err != nil {
		return nil, err
	}
	c := &counting{tx: tx, now: now, marks: marks}
	uses := make([]policy.Use, len(limits))
	for i, l := range limits {
		if uses[i], err = c.report(l); err != nil {
			return nil, err
		}
	}
	return uses, nil
}

func (c *counting) report(l policy.Limit) (policy.Use, error) {
	u := policy.Use{Limit: l}
	key := NewCounterKey(l.Scope, l.Window)
	at, end, err := edge(key.Window, c.now)
	if err != nil {
		return u, err
	}
	n, err := c.exact(key, at)
	if err != nil {
		return u, err
	}
	held, err := c.tx.Tally(key.Scope, Point{Until: c.now}, c.now)
	if err != nil {
		return u, err
	}
	u.USD, u.Count, u.Held = n.USD, n.Count, held.Held
	u.ResetsAt, err = resets(c.tx, key.Scope, &Mark{Window: key.Window, At: at, End: end}, c.now)
	return u, err
}

// exact is what counts after at: the counter without what it lags behind, or a
// new sum where there is no counter that reaches so far.
func (c *counting) exact(key CounterKey, at Point) (Counter, error) {
	var m *Mark
	if i := c.mark(&key.Window); i >= 0 && has(c.marks[i].Kinds, key.Scope.Kind) {
		m = &c.marks[i]
	}
	n, ok, err := c.tx.Counter(key)
	if err != nil {
		return n, err
	}
	if m == nil || !ok || m.At.After(at) || !m.End.IsZero() && m.At != at {
		t, err := c.tx.Tally(key.Scope, at, c.now)
		return t.Counter, err
	}
	for p := m.At; m.Next.Before(at.Until); {
		due, err := c.tx.Due(p, ageStep)
		if err != nil {
			return n, err
		}
		for _, s := range due {
			if !s.At.Until.Before(at.Until) {
				return n, nil
			}
			if key.Scope.Covers(s.Facts) {
				if n, ok = n.add(s.Cost, -1); !ok {
					t, err := c.tx.Tally(key.Scope, at, c.now)
					return t.Counter, err
				}
			}
			p = s.At
		}
		if len(due) < ageStep {
			break
		}
	}
	return n, nil
}
