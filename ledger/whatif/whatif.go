package whatif

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Options are those of Run.
type Options struct {
	Since time.Time // decisions at or after; zero for all
	Until time.Time // decisions before; zero for all
	Agent string    // empty for every agent
	Most  int       // how many of Report.Changed are kept; 100 where 0
}

// Report is what would have been decided otherwise.
type Report struct {
	Since, Until time.Time // of the decisions that were looked at; zero where there were none
	Payments     int       // that were judged again
	Others       int       // that were refused for reasons of no policy, and stay so

	// Moves counts what was decided and what would have been, by both statuses.
	Moves []Move

	// Changed are the payments that would have been decided otherwise, oldest
	// first: Options.Most of them.
	Changed []Change

	Days []Day // each day, in UTC, with a payment that spends in either way
}

// Move is how often one status became another.
type Move struct {
	Was, Now payment.Status
	Payments int
	USD      payment.USD // their cost together; payment.MaxUSD where it is more
}

// Change is one payment that would have been decided otherwise.
type Change struct {
	ID       payment.ID
	At       time.Time
	Agent    string
	Host     string // empty for a direct transfer
	Payee    payment.Address
	Cost     payment.USD
	Was, Now payment.Status
	Reasons  []policy.Reason // of what would have been decided; of what was, where it would be allowed
}

// Day is what was spent on one day, and what would have been.
type Day struct {
	Date     time.Time
	Was, Now payment.USD
}

// Run judges the payments of store again by p.
func Run(ctx context.Context, store ledger.Store, p *policy.Policy, o Options) (Report, error) {
	if p == nil {
		return Report{}, errors.New("whatif: there is no policy")
	}
	if o.Most == 0 {
		o.Most = 100
	}
	r := &run{p: p, o: o, counts: counts{}, places: map[ledger.Place]*ledger.Entry{}, moves: map[[2]payment.Status]*Move{}, days: map[time.Time]*Day{}}
	for e, err := range store.Entries(ctx, ledger.Query{Until: o.Until, Oldest: true}) {
		if err != nil {
			return Report{}, fmt.Errorf("whatif: %w", err)
		}
		if err := r.flush(e.CreatedAt); err != nil {
			return Report{}, err
		}
		heap.Push(&r.waiting, decided{at(e), e})
	}
	if err := r.flush(time.Time{}); err != nil {
		return Report{}, err
	}
	return r.report(), nil
}

// at is when a payment was decided for good: that of its authorization, where a
// person was asked before it.
func at(e ledger.Entry) time.Time {
	if !e.AuthorizedAt.IsZero() {
		return e.AuthorizedAt
	}
	return e.CreatedAt
}

// run is one Run.
type run struct {
	p       *policy.Policy
	o       Options
	counts  counts
	places  map[ledger.Place]*ledger.Entry // what was paid last where
	waiting byTime                         // those of which the turn has not come

	out   Report
	moves map[[2]payment.Status]*Move
	days  map[time.Time]*Day
}

// flush judges those that were decided before until, or all where it is zero.
func (r *run) flush(until time.Time) error {
	for len(r.waiting) > 0 && (until.IsZero() || r.waiting[0].at.Before(until)) {
		d := heap.Pop(&r.waiting).(decided)
		if err := r.judge(d.at, &d.e); err != nil {
			return fmt.Errorf("whatif: payment %s: %w", d.e.ID, err)
		}
	}
	return nil
}

// judge judges one payment again.
func (r *run) judge(at time.Time, e *ledger.Entry) error {
	v, err := r.verdict(at, e)
	if err != nil {
		return err
	}
	was := decision(e)
	paid := !e.AuthorizedAt.IsZero()
	if at.Before(r.o.Since) {
		if paid {
			return r.count(e, v.Limits, at)
		}
		return nil
	}
	others := was == payment.Denied && !byPolicy(e.Reasons)
	now := v.Status
	spends := now == payment.Allowed || now == payment.PendingApproval && paid
	if others {
		spends = false
	}
	if spends {
		if err := r.count(e, v.Limits, at); err != nil {
			return err
		}
	}
	if r.o.Agent != "" && e.Agent != r.o.Agent {
		return nil
	}
	if r.out.Since.IsZero() {
		r.out.Since = at
	}
	r.out.Until = at
	if others {
		r.out.Others++
		return nil
	}
	r.out.Payments++
	r.tell(at, e, was, v)
	r.spend(at, e.Cost, paid, spends)
	return nil
}

// verdict is what r.p says of e at an instant, its caps judged by what was
// counted so far.
func (r *run) verdict(at time.Time, e *ledger.Entry) (policy.Verdict, error) {
	p := payment.Payment{ID: e.ID, Agent: e.Agent, Terms: e.Terms, Host: e.Host, Purpose: e.Purpose}
	if o, err := host.ParseOrigin(e.Terms.Origin); err == nil {
		p.Port = o.Port
	}
	var h policy.History
	if scope, asks := r.p.AsksPast(e.Agent); asks {
		past, err := ledger.PastTx(scope, &e.Terms, func(p ledger.Place) (*ledger.Entry, error) { return r.places[p], nil })
		if err != nil {
			return policy.Verdict{}, err
		}
		h.Past = &past
	}
	v := r.p.Evaluate(p, at, h)
	uses := make([]policy.Use, len(v.Limits))
	for i, l := range v.Limits {
		uses[i] = r.counts.use(l, at)
	}
	return v.Apply(uses), nil
}

// count has e count against limits from an instant on.
func (r *run) count(e *ledger.Entry, limits []policy.Limit, at time.Time) error {
	usd, until := e.Cost, at.Add(time.Minute)
	if !e.AuthorizedAt.IsZero() {
		usd, until = e.Spent, e.ValidBefore
		if end, open, counts := e.CountedUntil(); counts && !open {
			until = end
		} else if counts {
			until = time.Time{}
		} else {
			usd = e.Cost // until it was released
		}
	}
	if e.AuthorizedAt.IsZero() || e.Remembered() {
		r.remember(e)
	}
	released := !e.AuthorizedAt.IsZero() && e.Spent == 0 && e.Cost > 0
	for _, l := range limits {
		if err := r.counts.add(l, usd, until, released); err != nil {
			return err
		}
	}
	return nil
}

// remember has e be what was paid last where it goes.
func (r *run) remember(e *ledger.Entry) {
	scope, asks := r.p.AsksPast(e.Agent)
	if !asks || e.Terms.IsProof() {
		return
	}
	for _, to := range e.Terms.Recipients {
		r.places[ledger.PayeePlace(scope, &e.Terms, to.Address)] = e
	}
	if p, ok := ledger.PricePlace(scope, &e.Terms); ok {
		r.places[p] = e
	}
}

// tell reports how e was decided and would have been.
func (r *run) tell(at time.Time, e *ledger.Entry, was payment.Status, v policy.Verdict) {
	key := [2]payment.Status{was, v.Status}
	m := r.moves[key]
	if m == nil {
		m = &Move{Was: was, Now: v.Status}
		r.moves[key] = m
	}
	m.Payments++
	m.USD = sum(m.USD, v.Cost)
	if was == v.Status || len(r.out.Changed) >= r.o.Most {
		return
	}
	c := Change{
		ID: e.ID, At: at, Agent: e.Agent, Host: e.Host, Payee: e.Terms.Payee(), Cost: v.Cost, Was: was, Now: v.Status, Reasons: v.Reasons,
	}
	if v.Status == payment.Allowed {
		c.Reasons = e.Reasons
	}
	r.out.Changed = append(r.out.Changed, c)
}

func (r *run) spend(at time.Time, cost payment.USD, was, now bool) {
	if !was && !now {
		return
	}
	date := at.UTC().Truncate(24 * time.Hour)
	d := r.days[date]
	if d == nil {
		d = &Day{Date: date}
		r.days[date] = d
	}
	if was {
		d.Was = sum(d.Was, cost)
	}
	if now {
		d.Now = sum(d.Now, cost)
	}
}

// sum is a + b, and payment.MaxUSD where that cannot be counted.
func sum(a, b payment.USD) payment.USD {
	s, ok := a.Add(b)
	if !ok {
		return payment.MaxUSD
	}
	return s
}

// decision is what was decided of e when it was decided.
func decision(e *ledger.Entry) payment.Status {
	switch {
	case e.State == ledger.Denied:
		return payment.Denied
	case e.ApprovalID != "":
		return payment.PendingApproval
	}
	return payment.Allowed
}

// byPolicy reports whether a policy's reason denied, or the ledger's figures for
// a policy's cap: another policy may see it otherwise.
func byPolicy(reasons []policy.Reason) bool {
	for _, r := range reasons {
		if r.Status == payment.Denied && (policyCodes[r.Code] || r.Rule != "") {
			return true
		}
	}
	return false
}

// policyCodes are the reasons to deny that a policy gives. A freeze is not among
// them: the ledger's own has the same code.
var policyCodes = map[string]bool{
	policy.CodeNoPolicy: true, policy.CodeDenied: true, policy.CodeNotAllowed: true, policy.CodeSplitNotAllowed: true,
	policy.CodeChainNotAllowed: true, policy.CodeTokenNotAllowed: true, policy.CodeMaxPayment: true, policy.CodeOutsideHours: true,
	policy.CodeNewPayee: true, policy.CodeNoHistory: true, policy.CodeCapExceeded: true, policy.CodeCountExceeded: true,
	policy.CodeRuleFailed: true, policy.CodeRule: true,
}
