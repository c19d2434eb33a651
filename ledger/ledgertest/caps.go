package ledgertest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// testCaps fills caps one payment at a time, up to the last millionth.
func testCaps(w *world) {
	l := atMost(10*payment.Dollar, day24)
	for i, cost := range []payment.USD{4 * payment.Dollar, 5 * payment.Dollar, payment.Dollar - 1, 1} {
		e := w.reserve(w.fetch(path(fmt.Sprint(i)), usd(cost), caps(l)))
		w.want(e, ledger.Authorized)
	}
	w.deny(w.fetch(usd(1), caps(l)), policy.CodeCapExceeded)
	w.allow(w.fetch(usd(0), caps(l)))
	w.uses(l, 10*payment.Dollar, 5)

	zero := atMost(0, rolling(time.Hour))
	w.deny(w.fetch(usd(1), caps(zero)), policy.CodeCapExceeded)
	none := atMostCount(0, rolling(time.Hour))
	w.deny(w.fetch(usd(0), caps(none)), policy.CodeCountExceeded)
	w.verify()
}

// testCapRace is 64 payers at every cap at once: exactly as many win as fit
// under the tightest.
func testCapRace(w *world) {
	limits := caps(
		atMost(20*payment.Dollar, day24), atMost(100*payment.Dollar, ever),
		atMostCount(17, rolling(time.Hour)),
		scoped(atMost(50*payment.Dollar, day24), policy.Scope{Kind: policy.ScopeOrg}),
		scoped(atMost(40*payment.Dollar, day24), policy.Scope{Kind: policy.ScopeHost, Agent: "trader", Host: "feed.example"}),
	)
	var wins, denials atomic.Int64
	w.together(64, func(i int) {
		e, _, err := w.s.Reserve(w.ctx, w.fetch(path(fmt.Sprint(i)), limits))
		switch {
		case err != nil:
			w.Errorf("Reserve: %v", err)
		case e.State == ledger.Authorized:
			wins.Add(1)
		case e.State == ledger.Denied:
			denials.Add(1)
		}
	})
	if wins.Load() != 17 || denials.Load() != 47 {
		w.Errorf("%d won and %d were denied, want 17 and 47", wins.Load(), denials.Load())
	}
	w.verify()
}

// testCapForms holds the two forms of a full cap to the letter, with their
// numbers, and every full cap is named.
func testCapForms(w *world) {
	sum, count := atMost(10*payment.Dollar, day24), atMostCount(1, rolling(time.Hour))
	first := w.allow(w.fetch(usd(8*payment.Dollar), caps(sum, count)))
	w.clock.Advance(10 * time.Minute)
	e := w.want(w.reserve(w.fetch(usd(5*payment.Dollar), caps(sum, count))), ledger.Denied)
	r := w.reason(e, policy.CodeCapExceeded)
	if want := "Spend cap exceeded: $8.00 + $5.00 > $10 / 24h"; r.Text != want {
		w.Errorf("the reason is %q, want %q", r.Text, want)
	}
	if r.Used != 8*payment.Dollar || r.Cost != 5*payment.Dollar || r.Limit != 10*payment.Dollar || r.Rule != sum.Text {
		w.Errorf("the reason's numbers are %v + %v > %v (%s)", r.Used, r.Cost, r.Limit, r.Rule)
	}
	if want := first.ValidBefore.Add(24 * time.Hour); !r.Until.Equal(want) {
		w.Errorf("the cap has room again at %v, want %v", r.Until, want)
	}
	c := w.reason(e, policy.CodeCountExceeded)
	if want := "Payment count exceeded: 1 + 1 > 1 payments / 1h"; c.Text != want {
		w.Errorf("the reason is %q, want %q", c.Text, want)
	}
	if c.Count != 1 || c.MaxCount != 1 {
		w.Errorf("the reason counts %d of %d", c.Count, c.MaxCount)
	}
	_, uses, err := w.s.Reserve(w.ctx, w.fetch(path("/uses"), usd(payment.Dollar), caps(sum), func(r *ledger.Request) { r.Uses = true }))
	if err != nil || len(uses) != 1 || uses[0].Limit != sum || uses[0].USD != 8*payment.Dollar || uses[0].Count != 1 {
		w.Errorf("the uses before the payment are %+v, %v", uses, err)
	}

	// A denial of the policy's own stays, and a payment that would be pending
	// is refused at once.
	w.deny(w.fetch(usd(5*payment.Dollar), asks(), caps(sum), path("/pending")), policy.CodeCapExceeded)
	e = w.want(w.reserve(w.fetch(usd(5*payment.Dollar), caps(sum), func(r *ledger.Request) {
		r.Verdict.Status = payment.Denied
		r.Verdict.Reasons = []policy.Reason{{Status: payment.Denied, Code: "host_denied", Text: "no"}}
	})), ledger.Denied)
	w.reason(e, "host_denied")
	w.reason(e, policy.CodeCapExceeded)

	// The terms cost what they cost, whatever the verdict says; and the fee
	// bound is part of it.
	cheap := w.fetch(usd(2*payment.Dollar), caps(sum), path("/cheap"))
	cheap.Verdict.Cost = 1
	if r := w.deny(cheap, policy.CodeCapExceeded); r.Cost != 2*payment.Dollar {
		w.Errorf("the cost is %v", r.Cost)
	}
	w.deny(w.fetch(usd(payment.Dollar), caps(sum), path("/fee"), func(r *ledger.Request) { r.Payment.Terms.FeeBound = payment.Dollar }), policy.CodeCapExceeded)

	// A limit of another agent is a mistake of the caller.
	r2 := w.fetch(caps(scoped(sum, policy.Scope{Kind: policy.ScopeAgent, Agent: "other"})))
	if _, _, err := w.s.Reserve(w.ctx, r2); err == nil {
		w.Errorf("a limit that does not cover the payment was accepted")
	}
	w.verify()
}

// testCapScopes pays as two agents, by two tables, to two hosts and two
// payees, and sees each scope count its own.
func testCapScopes(w *world) {
	a, b := payment.Address{19: 1}, payment.Address{19: 2}
	big := atMost(1000*payment.Dollar, day24)
	in := func(s policy.Scope) policy.Limit { return scoped(big, s) }
	pay := func(cost payment.USD, opts ...with) {
		w.Helper()
		w.serial++
		w.allow(w.fetch(append([]with{usd(cost * payment.Dollar), path(fmt.Sprint(w.serial))}, opts...)...))
	}
	pay(1, host("one.example"), payees(a))
	pay(2, host("two.example"), payees(b))
	pay(4, agent("other"), shared, host("one.example"), payees(b, a, a))
	pay(8, agent("third"), shared, host("two.example"), payees(a))
	for _, tt := range []struct {
		scope policy.Scope
		sum   payment.USD
	}{
		{policy.Scope{Kind: policy.ScopeOrg}, 15},
		{policy.Scope{Kind: policy.ScopeAgent, Agent: "trader"}, 3},
		{policy.Scope{Kind: policy.ScopeAgent, Agent: "other"}, 4},
		{policy.Scope{Kind: policy.ScopeAgent, Agent: "nobody"}, 0},
		{policy.Scope{Kind: policy.ScopeAgent, Agent: "default", Shared: true}, 12},
		{policy.Scope{Kind: policy.ScopeHost, Agent: "trader", Host: "one.example"}, 1},
		{policy.Scope{Kind: policy.ScopeHost, Agent: "trader", Host: "two.example"}, 2},
		{policy.Scope{Kind: policy.ScopeHost, Agent: "trader", Host: "example"}, 0},
		{policy.Scope{Kind: policy.ScopeHost, Agent: "default", Shared: true, Host: "two.example"}, 8},
		{policy.Scope{Kind: policy.ScopePayee, Agent: "trader", Payee: a}, 1},
		{policy.Scope{Kind: policy.ScopePayee, Agent: "default", Shared: true, Payee: a}, 12},
		{policy.Scope{Kind: policy.ScopePayee, Agent: "default", Shared: true, Payee: b}, 4},
		{policy.Scope{Kind: policy.ScopePayee, Agent: "other", Payee: a}, 4},
	} {
		l := in(tt.scope)
		if u := w.use(l); u.USD != tt.sum*payment.Dollar || u.Held != u.USD {
			w.Errorf("%s counts %v, %v held, want %v", tt.scope.Key(), u.USD, u.Held, tt.sum*payment.Dollar)
		}
	}
	// And the same when Reserve keeps the counters, with the payment on top.
	for range 2 {
		l := []policy.Limit{
			in(policy.Scope{Kind: policy.ScopeOrg}),
			in(policy.Scope{Kind: policy.ScopeAgent, Agent: "default", Shared: true}),
			in(policy.Scope{Kind: policy.ScopeAgent, Agent: "other"}),
			in(policy.Scope{Kind: policy.ScopeHost, Agent: "default", Shared: true, Host: "one.example"}),
			in(policy.Scope{Kind: policy.ScopePayee, Agent: "default", Shared: true, Payee: a}),
		}
		pay(16, agent("other"), shared, host("one.example"), payees(a), caps(l...))
	}
	for _, tt := range []struct {
		scope policy.Scope
		sum   payment.USD
	}{
		{policy.Scope{Kind: policy.ScopeOrg}, 47},
		{policy.Scope{Kind: policy.ScopeAgent, Agent: "other"}, 36},
		{policy.Scope{Kind: policy.ScopeAgent, Agent: "default", Shared: true}, 44},
		{policy.Scope{Kind: policy.ScopeHost, Agent: "default", Shared: true, Host: "one.example"}, 36},
		{policy.Scope{Kind: policy.ScopePayee, Agent: "default", Shared: true, Payee: a}, 44},
		{policy.Scope{Kind: policy.ScopePayee, Agent: "default", Shared: true, Payee: b}, 4},
	} {
		if u := w.use(in(tt.scope)); u.USD != tt.sum*payment.Dollar {
			w.Errorf("%s counts %v, want %v", tt.scope.Key(), u.USD, tt.sum*payment.Dollar)
		}
	}
	w.verify()
}

// testCapChanges meets caps that are new, changed or back after a while: they
// start from what the ledger holds, never from zero.
func testCapChanges(w *world) {
	hour, two := rolling(time.Hour), rolling(2*time.Hour)
	w.allow(w.fetch(path("/1"), usd(3*payment.Dollar)))
	w.clock.Advance(90 * time.Minute)
	w.allow(w.fetch(path("/2"), usd(4*payment.Dollar), caps(atMost(4*payment.Dollar, hour))))
	w.deny(w.fetch(usd(4*payment.Dollar), caps(atMost(10*payment.Dollar, two))), policy.CodeCapExceeded)
	w.allow(w.fetch(path("/3"), usd(3*payment.Dollar), caps(atMost(10*payment.Dollar, two))))
	// Without the first cap, then with it again and larger.
	w.deny(w.fetch(usd(payment.Dollar), caps(atMost(7*payment.Dollar, hour))), policy.CodeCapExceeded)
	w.allow(w.fetch(path("/4"), usd(payment.Dollar), caps(atMost(8*payment.Dollar, hour))))
	w.deny(w.fetch(usd(payment.Dollar), caps(scoped(atMost(11*payment.Dollar, ever), policy.Scope{Kind: policy.ScopeOrg}))), policy.CodeCapExceeded)
	w.deny(w.fetch(caps(scoped(atMostCount(4, ever), policy.Scope{Kind: policy.ScopeHost, Agent: "trader", Host: "feed.example"}))), policy.CodeCountExceeded)
	w.uses(atMost(0, hour), 8*payment.Dollar, 3)
	w.uses(atMost(0, two), 11*payment.Dollar, 4)
	w.uses(atMost(0, rolling(time.Minute)), 8*payment.Dollar, 3)
	w.verify()
}

// testOverflow pays amounts that cannot be counted.
func testOverflow(w *world) {
	huge := func(r *ledger.Request) {
		u := payment.UnitsFromBytes([32]byte{0: 0xff})
		r.Payment.Terms.Amount = u
		r.Payment.Terms.Recipients = []payment.Recipient{{Address: r.Payment.Terms.Payee(), Amount: u}}
	}
	w.deny(w.fetch(huge), ledger.CodeAmountOverflow)
	w.deny(w.fetch(huge, asks()), ledger.CodeAmountOverflow)
	w.deny(w.fetch(func(r *ledger.Request) { r.Payment.Terms.FeeBound = -1 }), ledger.CodeAmountOverflow)
	l := atMost(payment.MaxUSD-1, ever)
	most := payment.MaxUSD/2 - 1
	w.allow(w.fetch(path("/1"), usd(most), caps(l)))
	w.allow(w.fetch(path("/2"), usd(most), caps(l)))
	w.deny(w.fetch(path("/3"), usd(most), caps(l)), policy.CodeCapExceeded)
	// Also where the caps of the verdict would not see it.
	w.deny(w.fetch(path("/4"), usd(most)), ledger.CodeAmountOverflow)
	w.uses(l, 2*most, 2)
	w.verify()
}
