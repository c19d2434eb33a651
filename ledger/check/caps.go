package check

import (
	"container/heap"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// caps is I1: at each authorization, everything that counts in a window and a
// scope is added up again from the payments and their events, with no help of
// the ledger's own counters.
type caps struct {
	c       *checking
	policy  *policy.Policy
	windows []scopeWindow // that any cap of the policy has
	sums    map[ledger.CounterKey]*sum
	late    queue[*counted] // authorized later than they were made, by when
}

type scopeWindow struct {
	kind   policy.ScopeKind
	window policy.Window
}

// counted is what counting needs of a payment.
type counted struct {
	id     payment.ID
	at     time.Time // authorized
	facts  policy.Facts
	cost   payment.USD // of the hold
	kept   payment.USD // what counts of it once the hold has ended
	mine   bool        // decided by the policy that is checked
	ruled  bool        // a person approved it
	over   bool        // and let it go over the caps of its table
	limits []policy.Limit

	open     bool      // its hold has not ended
	released bool      // it ended without money
	ended    time.Time // when the record says that the hold ended
	spent    time.Time // when its money counts as spent
}

// sum is what counts now.
type sum struct {
	usd   payment.USD
	count int64
	ends  queue[ending]
	// periods are the ends of calendar windows, where many end at once.
	periods map[int64]ending
}

// ending is what stops to count at an instant, in microseconds.
type ending struct {
	at    int64
	cost  payment.USD
	count int64
}

func newCaps(c *checking, p *policy.Policy) *caps {
	out := &caps{c: c, policy: p, sums: map[ledger.CounterKey]*sum{}}
	out.late.less = func(a, b *counted) bool {
		if a.at.Equal(b.at) {
			return !a.over && b.over
		}
		return a.at.Before(b.at)
	}
	if len(c.budgets) > 0 {
		out.windows = append(out.windows, scopeWindow{policy.ScopeBudget, policy.Window{Kind: policy.Ever}})
	}
	if p == nil {
		return out
	}
	for _, agent := range append(p.Agents(), "") {
		probe := payment.Payment{Agent: agent, Host: "h", Run: "r", Terms: payment.Terms{
			Method: "GET", Recipients: []payment.Recipient{{Address: payment.Address{1}}},
		}}
		for _, l := range p.Evaluate(probe, time.Unix(0, 0), policy.History{}).Limits {
			w := scopeWindow{l.Scope.Kind, ledger.NewCounterKey(l.Scope, l.Window).Window}
			if !slices.Contains(out.windows, w) {
				out.windows = append(out.windows, w)
			}
		}
	}
	return out
}

// payment takes an authorized payment; they come in the order in which they
// were made, and are counted in that in which they were authorized.
func (k *caps) payment(e *ledger.Entry, events []ledger.Event) {
	p := &counted{id: e.ID, at: e.AuthorizedAt, facts: e.Facts(), cost: e.Cost, kept: e.Spent, mine: k.policy != nil && e.Policy == k.policy.Hash(), ruled: e.ApprovalID != "", over: k.c.over[e.ID]}
	if p.mine {
		pay := payment.Payment{Agent: e.Agent, Terms: e.Terms, Host: e.Host, Run: e.Run}
		p.limits = k.policy.Evaluate(pay, e.AuthorizedAt, policy.History{}).Limits
	}
	p.limits = append(slices.Clip(p.limits), k.c.budgets.limits(k.c, e)...)
	p.lasts(e, events)
	k.flush(e.CreatedAt)
	if p.over || e.AuthorizedAt.After(e.CreatedAt) {
		heap.Push(&k.late, p)
		return
	}
	k.count(p)
}

// slack is how much earlier than its record a hold is taken to have ended. An
// operator who acknowledges clocks may set the ledger's time back by as much as
// clocks may differ, and a payment that was authorized after the record then
// has an instant before it.
const slack = 2 * ledger.MaxSkew

// lasts tells until when e counts.
func (p *counted) lasts(e *ledger.Entry, events []ledger.Event) {
	counts := false
	_, p.open, counts = e.CountedUntil()
	p.released = !counts
	p.spent = e.ValidBefore
	if !e.SpentAt.IsZero() {
		p.spent = e.SpentAt
	}
	for i := range events {
		ev := &events[i]
		if ev.From.Live() && (ev.To == ledger.Settled || ev.To.Freed()) {
			p.ended = ev.At.Add(-slack)
			if !e.Watched && e.ValidBefore.Before(p.ended) {
				p.ended = e.ValidBefore
			}
		}
	}
	if p.released {
		p.kept = p.cost // all of it ends at once
	}
	if p.ended.IsZero() {
		p.cost = p.kept // nobody tells from when on
	}
}

// end is when p stops to count in w.
func (p *counted) end(w policy.Window) time.Time {
	switch {
	case p.open, w.Kind == policy.Ever && !p.released:
		return forever
	case p.released:
		return p.ended
	}
	end := p.spent.Add(w.Length)
	if w.Kind != policy.Rolling {
		var err error
		if _, end, err = w.Bounds(p.spent); err != nil {
			return p.ended
		}
	}
	if p.ended.After(end) {
		return p.ended // the hold counted for longer than the money
	}
	return end
}

var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// flush counts what was authorized up to now. Of one instant, what went over its
// caps comes last: it may have been authorized after all others.
func (k *caps) flush(now time.Time) {
	for len(k.late.list) > 0 {
		if next := k.late.list[0]; next.at.After(now) || next.over && next.at.Equal(now) {
			return
		}
		k.count(heap.Pop(&k.late).(*counted))
	}
}

// finish counts the rest.
func (k *caps) finish() {
	if k != nil {
		k.flush(forever)
	}
}

// count adds p to every sum that covers it, and judges its limits.
func (k *caps) count(p *counted) {
	for _, w := range k.windows {
		for _, s := range scopes(p.facts, w.kind) {
			key := ledger.NewCounterKey(s, w.window)
			n := k.sums[key]
			if n == nil {
				n = &sum{ends: queue[ending]{less: func(a, b ending) bool { return a.at < b.at }}, periods: map[int64]ending{}}
				k.sums[key] = n
			}
			n.age(p.at)
			n.usd, _ = n.usd.Add(p.cost)
			n.count++
			n.until(p, w.window)
		}
	}
	for _, l := range p.limits {
		n := k.sums[ledger.NewCounterKey(l.Scope, l.Window)]
		if n == nil || l.Shadow || l.Asks && p.ruled || p.over && yields(l.Scope.Kind) {
			continue
		}
		n.age(p.at)
		if l.Counting && n.count > l.Count || !l.Counting && n.usd > l.USD {
			what := ": I1: with it "
			if l.Scope.Kind == policy.ScopeBudget {
				what = ": I15: with it "
			}
			k.c.add(string(p.id) + what + n.usd.String() + " counted in " + l.Scope.Key() + ", over " + l.String())
		}
	}
}

// yields reports whether an approver may let one payment go over a cap of this
// kind.
func yields(k policy.ScopeKind) bool {
	return k != policy.ScopeOrg && k != policy.ScopeBudget
}

// until takes note of when p stops to count in w, and of when less of it does.
func (n *sum) until(p *counted, w policy.Window) {
	end := p.end(w)
	if p.kept < p.cost {
		heap.Push(&n.ends, ending{p.ended.UnixMicro(), p.cost - p.kept, 0})
	}
	switch at := end.UnixMicro(); {
	case end.Equal(forever):
	case w.Kind == policy.Rolling || p.released || end.Equal(p.ended):
		heap.Push(&n.ends, ending{at, p.kept, 1})
	default:
		e := n.periods[at]
		e.cost, _ = e.cost.Add(p.kept)
		e.count++
		n.periods[at] = e
	}
}

// age takes away what no longer counts at now.
func (n *sum) age(now time.Time) {
	at := now.UnixMicro()
	for len(n.ends.list) > 0 && n.ends.list[0].at <= at {
		n.drop(heap.Pop(&n.ends).(ending))
	}
	for end, e := range n.periods {
		if end <= at {
			delete(n.periods, end)
			n.drop(e)
		}
	}
}

func (n *sum) drop(e ending) {
	n.usd, _ = n.usd.Sub(e.cost)
	n.count -= e.count
}

// scopes are those of a kind that cover a payment.
func scopes(f policy.Facts, kind policy.ScopeKind) []policy.Scope {
	s := policy.Scope{Kind: kind, Agent: f.Agent, Host: f.Host}
	out := []policy.Scope{s}
	if f.Shared {
		s.Agent, s.Shared = "", true
		out = append(out, s)
	}
	switch kind {
	case policy.ScopeOrg:
		return []policy.Scope{{Kind: kind}}
	case policy.ScopeBudget:
		var each []policy.Scope
		for _, id := range f.Budgets {
			each = append(each, policy.Scope{Kind: kind, Name: string(id)})
		}
		return each
	case policy.ScopeRun:
		if f.Run == "" {
			return nil
		}
		for i := range out {
			out[i].Name = f.Run
		}
	case policy.ScopePayee:
		var each []policy.Scope
		for i, p := range f.Payees {
			if slices.Contains(f.Payees[:i], p) {
				continue
			}
			for _, s := range out {
				s.Payee = p
				each = append(each, s)
			}
		}
		return each
	}
	return out
}

// queue is a heap.
type queue[T any] struct {
	list []T
	less func(a, b T) bool
}

func (q *queue[T]) Len() int           { return len(q.list) }
func (q *queue[T]) Less(i, j int) bool { return q.less(q.list[i], q.list[j]) }
func (q *queue[T]) Swap(i, j int)      { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *queue[T]) Push(x any)         { q.list = append(q.list, x.(T)) }
func (q *queue[T]) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}
