package ledger

import (
	"time"

	"github.com/canopy-go/canopy/policy"
)

// ageStep bounds how many entries one step ages out of a window while nothing
// depends on it.
const ageStep = 64

// sound reports whether m is no further than its window's edge at now, and of a
// calendar period that began.
func (m *Mark) sound(now time.Time) bool {
	to, end, err := edge(m.Window, now)
	switch {
	case err != nil:
		return false
	case end.IsZero():
		return m.End.IsZero() && !m.At.After(to)
	case now.Before(m.End):
		return m.End.Equal(end) && m.At.Until.Equal(to.Until) && m.At.ID == ""
	}
	return !m.At.After(to)
}

// edge is the point that an entry must be after to count in w at now, and the
// end of the calendar period that begins there.
func edge(w policy.Window, now time.Time) (p Point, end time.Time, err error) {
	start, end, err := w.Bounds(now)
	if err != nil || w.Kind == policy.Ever {
		return Point{}, time.Time{}, err
	}
	if w.Kind == policy.Rolling {
		return Point{Until: instant(start).Add(time.Microsecond)}, time.Time{}, nil
	}
	return Point{Until: start.UTC()}, end.UTC(), nil
}

// edge is that of m's window; within one calendar period it stays.
func (m *Mark) edge(now time.Time) (Point, time.Time, error) {
	if !m.End.IsZero() && now.Before(m.End) {
		return m.At, m.End, nil
	}
	return edge(m.Window, now)
}

// mark is the place of a window's mark, or -1.
func (c *counting) mark(w *policy.Window) int {
	for i := range c.marks {
		if c.marks[i].Window == *w {
			return i
		}
	}
	return -1
}

// markNew is the place of the mark of a window that is not spelled as any
// mark's is, added where there is none.
func (c *counting) markNew(w policy.Window) (int, error) {
	normalWindow(&w)
	if i := c.mark(&w); i >= 0 {
		return i, nil
	}
	at, end, err := edge(w, c.now)
	if err != nil {
		return 0, err
	}
	c.marks = append(c.marks, Mark{Window: w, At: at, End: end})
	return len(c.marks) - 1, nil
}

// current reports whether m is plainly not behind: it is in its calendar
// period, or nothing is due.
func (m *Mark) current(now time.Time) bool {
	if m.Window.Kind == policy.Rolling {
		return !m.Next.Before(now.Add(time.Microsecond - m.Window.Length))
	}
	return now.Before(m.End)
}

// age brings m towards now: all the way, or by about ageStep entries.
func (c *counting) age(m *Mark, all bool) error {
	if m.current(c.now) {
		return nil
	}
	to, end, err := m.edge(c.now)
	if err != nil {
		return err
	}
	if !to.After(m.At) || end.IsZero() && !m.Next.Before(to.Until) {
		return nil
	}
	c.found = c.found[:0] // what follows may change them
	if !end.IsZero() {
		// A new period: little counts in it yet, so its counters are made
		// again rather than walked down.
		if err := c.tx.DropMark(m.Window); err != nil {
			return err
		}
		*m = Mark{Window: m.Window, At: to, End: end}
		return c.tx.PutMark(*m)
	}
	for m.Next.Before(to.Until) {
		due, err := c.tx.Due(m.At, ageStep)
		if err != nil {
			return err
		}
		m.Next = farAway
		for i := range due {
			if until := due[i].At.Until; !until.Before(to.Until) {
				m.Next = until
				break
			}
			if err := c.adjust(m, due[i].Facts, Counter{due[i].Cost, 1}, Counter{}); err != nil {
				return err
			}
			m.At = due[i].At
		}
		if m.Next == farAway && len(due) == ageStep {
			m.Next = m.At.Until
		}
		if err := c.tx.PutMark(*m); err != nil {
			return err
		}
		if !all {
			return nil
		}
	}
	return nil
}

// adjust takes less from every counter of m that covers an entry with facts f,
// and adds more to it.
func (c *counting) adjust(m *Mark, f policy.Facts, less, more Counter) error {
	var buf [8]policy.Scope
	for _, s := range scopesOf(buf[:0], f, m.Kinds) {
		key := CounterKey{s, m.Window}
		n, ok, err := c.tx.Counter(key)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if n, ok = n.change(less, more); !ok {
			return c.forget(m)
		}
		if err := c.tx.PutCounter(key, n); err != nil {
			return err
		}
	}
	return nil
}

// forget drops counters that can no longer be right: they are made again from
// the entries.
func (c *counting) forget(m *Mark) error {
	m.Kinds, m.Next = 0, time.Time{}
	if err := c.tx.DropMark(m.Window); err != nil {
		return err
	}
	return c.tx.PutMark(*m)
}
