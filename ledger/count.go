package ledger

import (
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// ageStep bounds how many entries one step ages out of a window while nothing
// depends on it.
const ageStep = 64

// counting is the counters as one step uses them.
type counting struct {
	tx    Tx
	now   time.Time
	marks []Mark
	fresh []tally // counters made in this step, to be stored if it authorizes
	found []tally // counters that were read; after gather, all of the payment, as they will be

	uses   []policy.Use       // of the limits
	payees [4]payment.Address // room for those of a payment
	scopes []policy.Scope     // room for those that cover it
}

// tally is the counter of a scope in the window of marks[mark].
type tally struct {
	mark  int
	scope policy.Scope // as CounterKey has it
	Counter
}

// start makes c ready for a step, in the memory that it has. A mark that is not
// where ageing could have brought it is dropped with its counters, which are
// made again from the entries.
func (c *counting) start(tx Tx, now time.Time) error {
	marks, err := tx.Marks()
	if err != nil {
		return err
	}
	// What was sound in the step before is sound as long as time goes on.
	before := c.marks
	if now.Before(c.now) {
		before = nil
	}
	dropped := false
	for i := range marks {
		m := &marks[i]
		if i < len(before) && before[i].Window == m.Window && before[i].At == m.At && before[i].End == m.End || m.sound(now) {
			continue
		}
		if err := tx.DropMark(m.Window); err != nil {
			return err
		}
		dropped = true
	}
	if dropped {
		if marks, err = tx.Marks(); err != nil {
			return err
		}
	}
	c.tx, c.now = tx, now
	c.marks, c.fresh, c.found = append(c.marks[:0], marks...), c.fresh[:0], c.found[:0]
	return nil
}

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
			if err := c.adjust(m, due[i].Facts, due[i].Cost, -1); err != nil {
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

// adjust adds an entry to every counter of m that covers it, or takes it away.
func (c *counting) adjust(m *Mark, f policy.Facts, cost payment.USD, sign int64) error {
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
		if n, ok = n.add(cost, sign); !ok {
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

func (n Counter) add(cost payment.USD, sign int64) (Counter, bool) {
	var ok bool
	if sign > 0 {
		n.USD, ok = n.USD.Add(cost)
	} else {
		n.USD, ok = n.USD.Sub(cost)
	}
	n.Count += sign
	return n, ok && n.Count >= 0
}

// scopesOf appends every scope of the given kinds that covers a payment with
// facts f, each as CounterKey has it.
func scopesOf(out []policy.Scope, f policy.Facts, kinds uint16) []policy.Scope {
	if has(kinds, policy.ScopeOrg) {
		out = append(out, policy.Scope{Kind: policy.ScopeOrg})
	}
	for _, shared := range [...]bool{false, true} {
		if shared && !f.Shared {
			continue
		}
		base := policy.Scope{Agent: f.Agent, Shared: shared}
		if shared {
			base.Agent = ""
		}
		if has(kinds, policy.ScopeAgent) {
			s := base
			s.Kind = policy.ScopeAgent
			out = append(out, s)
		}
		if has(kinds, policy.ScopeHost) {
			s := base
			s.Kind, s.Host = policy.ScopeHost, f.Host
			out = append(out, s)
		}
		if has(kinds, policy.ScopePayee) {
			for i, p := range f.Payees {
				if contains(f.Payees[:i], p) {
					continue
				}
				s := base
				s.Kind, s.Payee = policy.ScopePayee, p
				out = append(out, s)
			}
		}
	}
	return out
}

func has(kinds uint16, k policy.ScopeKind) bool { return kinds&(1<<k) != 0 }

func contains(list []payment.Address, a payment.Address) bool {
	for i := range list {
		if list[i] == a {
			return true
		}
	}
	return false
}

// use puts into u what counts against its limit, and reports whether cost fits.
// A figure that lags is brought up to date where cost would not fit.
func (c *counting) use(u *policy.Use, cost payment.USD) (fits bool, err error) {
	scope := u.Limit.Scope
	normalScope(&scope)
	i := c.mark(&u.Limit.Window)
	if i < 0 {
		if i, err = c.markNew(u.Limit.Window); err != nil {
			return false, err
		}
	}
	m := &c.marks[i]
	n, ok, err := c.counter(i, &scope)
	if err != nil {
		return false, err
	}
	if u.USD, u.Count = n.USD, n.Count; ok && u.Fits(cost) {
		return true, nil
	}
	if err := c.age(m, true); err != nil {
		return false, err
	}
	if n, ok, err = c.counter(i, &scope); err != nil {
		return false, err
	}
	if !ok {
		t, err := c.tx.Tally(scope, m.At, c.now)
		if err != nil {
			return false, err
		}
		n = t.Counter
		c.fresh = append(c.fresh, tally{i, scope, n})
	}
	if u.USD, u.Count = n.USD, n.Count; !u.Fits(cost) {
		u.ResetsAt, err = resets(c.tx, scope, m, c.now)
		return false, err
	}
	return true, nil
}

// counter is a counter as the step sees it. What was read is kept: every
// counter that a limit reads is one that the payment changes.
func (c *counting) counter(mark int, s *policy.Scope) (Counter, bool, error) {
	if t := find(c.fresh, mark, s); t != nil {
		return t.Counter, true, nil
	}
	return c.read(mark, s)
}

func (c *counting) read(mark int, s *policy.Scope) (Counter, bool, error) {
	if t := find(c.found, mark, s); t != nil {
		return t.Counter, true, nil
	}
	if !has(c.marks[mark].Kinds, s.Kind) {
		return Counter{}, false, nil // one that is there is not kept up
	}
	n, ok, err := c.tx.Counter(CounterKey{*s, c.marks[mark].Window})
	if ok && err == nil {
		c.found = append(c.found, tally{mark, *s, n})
	}
	return n, ok, err
}

func find(list []tally, mark int, s *policy.Scope) *tally {
	for i := range list {
		if t := &list[i]; t.mark == mark && t.scope.Kind == s.Kind && t.scope == *s {
			return t
		}
	}
	return nil
}

// resets is when the use of a scope falls next by time alone.
func resets(tx Tx, s policy.Scope, m *Mark, now time.Time) (time.Time, error) {
	at, end, err := m.edge(now)
	if err != nil || m.Window.Kind == policy.Ever {
		return time.Time{}, err
	}
	if m.At.After(at) {
		at = m.At
	}
	oldest, err := tx.Oldest(s, at)
	if err != nil || oldest.IsZero() {
		return time.Time{}, err
	}
	if end.IsZero() {
		return oldest.Add(m.Window.Length), nil
	}
	return end, nil
}

// gather reads every counter that covers the payment, whether or not a limit
// of its own verdict reads it, and reports whether all can count its cost.
func (c *counting) gather(f policy.Facts, cost payment.USD) (room bool, err error) {
	for i := range c.marks {
		c.scopes = scopesOf(c.scopes[:0], f, c.marks[i].Kinds)
		for j := range c.scopes {
			if _, _, err := c.read(i, &c.scopes[j]); err != nil {
				return false, err
			}
		}
	}
	c.found = append(c.found, c.fresh...)
	room = cost != payment.MaxUSD
	for i := range c.found {
		var fits bool
		if c.found[i].Counter, fits = c.found[i].add(cost, +1); !fits {
			room = false
		}
	}
	return room, nil
}

// take counts the payment that was gathered for, which is authorized now.
func (c *counting) take(e *Entry) error {
	for i := range c.found {
		t := &c.found[i]
		if err := c.tx.PutCounter(CounterKey{t.scope, c.marks[t.mark].Window}, t.Counter); err != nil {
			return err
		}
	}
	sp := spanOf(e)
	for i := range c.marks {
		m := &c.marks[i]
		changed := false
		for j := range c.fresh {
			if t := &c.fresh[j]; t.mark == i && !has(m.Kinds, t.scope.Kind) {
				m.Kinds |= 1 << t.scope.Kind
				changed = true
			}
		}
		if !sp.open && sp.at.Until.Before(m.Next) {
			m.Next = sp.at.Until
			changed = true
		}
		if !changed {
			continue
		}
		if err := c.tx.PutMark(*m); err != nil {
			return err
		}
	}
	return nil
}

// recount changes the counters from what an entry was to what it is.
func (c *counting) recount(was, is *Entry) error {
	old, now := spanOf(was), spanOf(is)
	if old == now {
		return nil
	}
	facts := is.Facts()
	for i := range c.marks {
		m := &c.marks[i]
		before, after := old.counted(m.At), now.counted(m.At)
		var err error
		switch {
		case before && !after:
			err = c.adjust(m, facts, is.Cost, -1)
		case after && !before:
			err = c.adjust(m, facts, is.Cost, +1)
		}
		if err != nil {
			return err
		}
		if after && !now.open && now.at.Until.Before(m.Next) {
			m.Next = now.at.Until
			if err := c.tx.PutMark(*m); err != nil {
				return err
			}
		}
	}
	return nil
}

// span is the time for which an entry counts.
type span struct {
	at           Point
	open, counts bool
}

func spanOf(e *Entry) span {
	if e == nil {
		return span{}
	}
	until, open, counts := e.CountedUntil()
	if !counts || open {
		return span{open: open, counts: counts}
	}
	return span{Point{until, e.ID}, false, true}
}

func (s span) counted(after Point) bool { return s.counts && (s.open || s.at.After(after)) }
