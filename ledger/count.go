package ledger

import (
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

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

// change is n with less taken away and more added.
func (n Counter) change(less, more Counter) (Counter, bool) {
	usd, fits := n.USD.Sub(less.USD)
	usd, ok := usd.Add(more.USD)
	n = Counter{usd, n.Count - less.Count + more.Count}
	return n, fits && ok && n.Count >= 0
}

// scopesOf appends every scope of the given kinds that covers a payment with
// facts f, each as CounterKey has it.
func scopesOf(out []policy.Scope, f policy.Facts, kinds uint16) []policy.Scope {
	if has(kinds, policy.ScopeOrg) {
		out = append(out, policy.Scope{Kind: policy.ScopeOrg})
	}
	if has(kinds, policy.ScopeBudget) {
		for _, id := range f.Budgets {
			out = append(out, policy.Scope{Kind: policy.ScopeBudget, Name: string(id)})
		}
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
		if has(kinds, policy.ScopeRun) && f.Run != "" {
			s := base
			s.Kind, s.Name = policy.ScopeRun, f.Run
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
	var less, more Counter
	for i := range c.marks {
		m := &c.marks[i]
		before, after := old.counted(m.At), now.counted(m.At)
		if less, more = (Counter{}), (Counter{}); before {
			less = Counter{old.spent, 1}
		}
		if after {
			more = Counter{now.spent, 1}
		}
		if less != more {
			if err := c.adjust(m, facts, less, more); err != nil {
				return err
			}
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

// span is the time for which an entry counts, and for how much.
type span struct {
	at           Point
	open, counts bool
	spent        payment.USD
}

func spanOf(e *Entry) span {
	if e == nil {
		return span{}
	}
	until, open, counts := e.CountedUntil()
	switch {
	case !counts:
		return span{}
	case open:
		return span{open: true, counts: true, spent: e.Spent}
	}
	return span{Point{until, e.ID}, false, true, e.Spent}
}

func (s span) counted(after Point) bool { return s.counts && (s.open || s.at.After(after)) }
