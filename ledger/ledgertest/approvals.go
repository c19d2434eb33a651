package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// denied is a verdict by which the policy says no.
func denied(v policy.Verdict) policy.Verdict {
	v.Status = payment.Denied
	v.Reasons = []policy.Reason{{Status: payment.Denied, Code: "host_denied", Text: "evil.example is denied"}}
	return v
}

// testApproval puts a payment to a person and carries it out, once (F27).
func testApproval(w *world) {
	l := atMost(10*payment.Dollar, day24)
	e := w.ask(w.fetch(usd(8*payment.Dollar), asks(), caps(l), func(r *ledger.Request) { r.Payment.Purpose = "a report" }))
	if !e.ApprovalID.Valid() || !e.Slot.IsZero() || !e.ValidBefore.IsZero() || e.Permit.Slot() != "" {
		w.Errorf("pending: approval %q, slot %v, valid before %v, permit %q", e.ApprovalID, e.Slot, e.ValidBefore, e.Permit.Slot())
	}
	w.uses(l, 0, 0) // a pending payment holds nothing
	a := w.approval(e.ApprovalID)
	if a.Payment != e.ID || a.Agent != "trader" || a.TermsHash != e.TermsHash || a.Terms.Hash() != e.TermsHash || a.Cost != e.Cost ||
		a.Purpose != "a report" || a.Reason != "Amount $7.50 exceeds approval threshold of $5" || a.Status != ledger.ApprovalPending ||
		!a.CreatedAt.Equal(noon) || !a.ExpiresAt.Equal(noon.Add(24*time.Hour)) {
		w.Errorf("the approval is %+v", a)
	}
	w.clock.Advance(time.Minute)
	got := w.decide(e, true)
	if got.Status != ledger.ApprovalGranted || got.By != "ana" || got.Via != "cli" || !got.DecidedAt.Equal(w.now()) {
		w.Errorf("decided: %+v", got)
	}
	approved := w.want(w.entry(e.ID), ledger.Approved)
	w.uses(l, 0, 0)
	if d := (ledger.Decision{ID: a.ID, Approve: false, By: "ben", Now: w.now()}); true {
		if first, err := w.s.Approvals().Decide(w.ctx, d); !errors.Is(err, ledger.ErrDecided) || first.By != "ana" {
			w.Errorf("a second decision: %+v, %v", first, err)
		}
	}

	// Terms that changed ask again; the approval stays unspent.
	other := w.ask(w.fetch(usd(9*payment.Dollar), asks(), caps(l)))
	if other.ID == e.ID {
		w.Errorf("other terms took the approved payment")
	}
	// The equal call carries out the payment under its own ID.
	r := w.fetch(usd(8*payment.Dollar), asks(), caps(l), func(r *ledger.Request) { r.Offer.ChallengeID = "the next 402" })
	paid := w.allow(r)
	if paid.ID != e.ID || paid.ApprovalID != a.ID || paid.Slot.IsZero() || paid.ChallengeID != "the next 402" || !paid.CreatedAt.Equal(e.CreatedAt) {
		w.Errorf("carried out as %s with approval %s, slot %v, challenge %q", paid.ID, paid.ApprovalID, paid.Slot, paid.ChallengeID)
	}
	if paid.Version != approved.Version+1 || !paid.AuthorizedAt.Equal(w.now()) {
		w.Errorf("carried out at version %d after %d, at %v", paid.Version, approved.Version, paid.AuthorizedAt)
	}
	if a = w.approval(a.ID); !a.UsedAt.Equal(w.now()) || a.Status != ledger.ApprovalGranted {
		w.Errorf("the approval is %+v, want it used", a)
	}
	w.uses(l, 8*payment.Dollar, 1)
	// Once. The other terms wait still, and an equal call meets those.
	w.join(w.fetch(usd(8*payment.Dollar), asks()), other.ID, ledger.JoinEqual)
	w.decide(other, false)
	w.ask(w.fetch(usd(8*payment.Dollar), asks(), path("/data")))
	w.clock.Advance(48 * time.Hour)
	if a = w.approval(a.ID); a.Status != ledger.ApprovalGranted {
		w.Errorf("a used approval became %s", a.Status)
	}

	// Under a key, new terms take the key along.
	first := w.ask(w.fetch(path("/keyed"), key("k"), asks()))
	w.decide(first, true)
	second := w.ask(w.fetch(path("/keyed"), key("k"), asks(), usd(2*payment.Dollar)))
	w.join(w.fetch(path("/keyed"), key("k"), asks(), usd(3*payment.Dollar)), second.ID, ledger.JoinKey)
	w.decide(second, true)
	if e := w.allow(w.fetch(path("/keyed"), key("k"), asks(), usd(2*payment.Dollar))); e.ID != second.ID {
		w.Errorf("the key carried out %s, want %s", e.ID, second.ID)
	}
	w.replaced(first)
	w.join(w.fetch(path("/keyed"), key("k")), second.ID, ledger.JoinKey)

	// A keyed call that carries out a payment without a key gives it its key.
	plain := w.ask(w.fetch(path("/plain"), asks()))
	w.decide(plain, true)
	if e := w.allow(w.fetch(path("/plain"), key("late"))); e.ID != plain.ID {
		w.Errorf("carried out %s, want %s", e.ID, plain.ID)
	}
	w.join(w.fetch(path("/plain"), key("late")), plain.ID, ledger.JoinKey)

	// And one that has a key keeps it when a call without one carries it out.
	kept := w.ask(w.fetch(path("/kept"), key("kept"), asks()))
	w.decide(kept, true)
	if e := w.allow(w.fetch(path("/kept"))); e.ID != kept.ID || e.Key != "kept" {
		w.Errorf("carried out %s with key %q, want %s", e.ID, e.Key, kept.ID)
	}
	w.join(w.fetch(path("/kept"), key("kept")), kept.ID, ledger.JoinKey)

	// Of equal calls that waited for one person the first to commit pays, and
	// the others get what it got; a call that begins later asks again.
	waited := w.ask(w.fetch(path("/waited"), asks()))
	start := w.now()
	w.clock.Advance(time.Minute)
	w.decide(waited, true)
	w.allow(w.fetch(path("/waited"), asks(), began(start)))
	w.join(w.fetch(path("/waited"), asks(), began(start)), waited.ID, ledger.JoinEqual)
	w.join(w.fetch(path("/waited"), asks(), began(start), key("waits")), waited.ID, ledger.JoinEqual)
	w.move(w.entry(waited.ID), ledger.Claimed, ledger.ByClient, delivered)
	w.clock.Advance(time.Second)
	w.join(w.fetch(path("/waited"), asks(), began(start)), waited.ID, ledger.JoinEqual)
	w.ask(w.fetch(path("/waited"), asks()))

	// A caller that wants a person asked.
	asked := w.ask(w.fetch(path("/asked"), func(r *ledger.Request) { r.Ask = "the caller asks" }))
	if a := w.approval(asked.ApprovalID); a.Reason != "the caller asks" {
		w.Errorf("the approval's reason is %q", a.Reason)
	}
	w.verify()
}

// testApprovalRules refuses what is no person's answer to these terms.
func testApprovalRules(w *world) {
	e := w.ask(w.fetch(asks()))
	for name, tt := range map[string]struct {
		change func(*ledger.Decision)
		want   error
	}{
		"unknown":           {func(d *ledger.Decision) { d.ID = payment.NewApprovalID(noon) }, ledger.ErrNotFound},
		"the payment's ID":  {func(d *ledger.Decision) { d.ID = payment.ApprovalID(e.ID) }, ledger.ErrNotFound},
		"the requester":     {func(d *ledger.Decision) { d.By = "trader" }, ledger.ErrSelf},
		"its public id":     {func(d *ledger.Decision) { d.By = payment.AgentID("trader") }, ledger.ErrSelf},
		"in other letters":  {func(d *ledger.Decision) { d.By = " Trader " }, ledger.ErrSelf},
		"other terms shown": {func(d *ledger.Decision) { d.TermsHash = payment.Hash{1} }, ledger.ErrTermsChanged},
		"nobody":            {func(d *ledger.Decision) { d.By = "" }, nil},
		"a clock ahead":     {func(d *ledger.Decision) { d.Now = d.Now.Add(time.Hour) }, ledger.ErrClockSkew},
	} {
		for _, approve := range []bool{true, false} {
			if !approve && tt.want == ledger.ErrClockSkew {
				continue
			}
			d := ledger.Decision{ID: e.ApprovalID, Approve: approve, TermsHash: e.TermsHash, By: "ana", Now: w.now()}
			tt.change(&d)
			_, err := w.s.Approvals().Decide(w.ctx, d)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				w.Errorf("%s: %v, want %v", name, err, tt.want)
			}
			if a := w.approval(e.ApprovalID); a.Status != ledger.ApprovalPending {
				w.Fatalf("%s: the approval is %s", name, a.Status)
			}
		}
	}
	w.want(w.entry(e.ID), ledger.PendingApproval)
	if a := w.decide(e, false); a.Status != ledger.ApprovalRefused {
		w.Errorf("refused: %s", a.Status)
	}
	w.want(w.entry(e.ID), ledger.Rejected)

	// Expiry, to the microsecond, read and written.
	for _, grant := range []bool{false, true} {
		e := w.ask(w.fetch(asks(), path(fmt.Sprint("/expires/", grant)), func(r *ledger.Request) { r.Verdict.ApprovalTTL = time.Minute }))
		if grant {
			w.decide(e, true)
		}
		a := w.approval(e.ApprovalID)
		w.until(a.ExpiresAt.Add(-time.Microsecond))
		if got := w.approval(a.ID); got.Status != a.Status {
			w.Errorf("just before the end it is %s", got.Status)
		}
		w.until(a.ExpiresAt)
		if got := w.approval(a.ID); got.Status != ledger.ApprovalLapsed {
			w.Errorf("at its end it is %s", got.Status)
		}
		if !grant {
			late := ledger.Decision{ID: a.ID, Approve: true, By: "ana", Now: w.now()}
			if got, err := w.s.Approvals().Decide(w.ctx, late); !errors.Is(err, ledger.ErrDecided) || got.Status != ledger.ApprovalLapsed {
				w.Errorf("a grant at its end: %s, %v", got.Status, err)
			}
		}
		again := w.ask(w.fetch(asks(), path(e.Terms.Target)))
		if again.ID == e.ID {
			w.Errorf("an expired approval was used")
		}
		w.want(w.entry(e.ID), ledger.ApprovalExpired)
	}

	// The list is newest first.
	all, err := w.s.Approvals().List(w.ctx, "", false, w.now())
	if err != nil || len(all) != 5 {
		w.Fatalf("List gives %d, %v; want 5", len(all), err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].CreatedAt.After(all[i-1].CreatedAt) {
			w.Errorf("the list is not newest first")
		}
	}
	pending, err := w.s.Approvals().List(w.ctx, "trader", true, w.now())
	if err != nil || len(pending) != 2 {
		w.Errorf("List gives %d that are pending, %v; want 2", len(pending), err)
	}
	if none, err := w.s.Approvals().List(w.ctx, "other", false, w.now()); err != nil || len(none) != 0 {
		w.Errorf("List gives %d of another agent, %v", len(none), err)
	}
	w.verify()
}

// testApprovalSwaps is the matrix of agents and terms: an approval serves the
// agent and the terms that it names, and nothing else.
func testApprovalSwaps(w *world) {
	type call struct {
		agent string
		cost  payment.USD
		path  string
	}
	var calls []call
	for _, a := range []string{"one", "two", "three"} {
		for _, c := range []payment.USD{1, 2, 3} {
			calls = append(calls, call{a, c * payment.Dollar, "/a"}, call{a, c * payment.Dollar, "/b"})
		}
	}
	request := func(c call) ledger.Request { return w.fetch(agent(c.agent), usd(c.cost), path(c.path), asks()) }
	for i, granted := range calls {
		w.clock.Advance(25 * time.Hour) // what was asked before is over
		e := w.ask(request(granted))
		w.decide(e, true)
		for j, c := range calls {
			if i == j {
				continue
			}
			got, _, err := w.s.Reserve(w.ctx, request(c))
			if got.ID == e.ID || got.State == ledger.Authorized {
				w.Errorf("the approval of %+v served %+v: %s, %v", granted, c, got.State, err)
			}
		}
		if got := w.allow(request(granted)); got.ID != e.ID {
			w.Errorf("the approval of %+v was not carried out", granted)
		}
	}
	w.verify()
}

// testApprovalRace lets 32 deciders race one another, then 32 callers race for
// the approval: one each.
func testApprovalRace(w *world) {
	e := w.ask(w.fetch(asks()))
	var decided, paid atomic.Int64
	w.together(32, func(i int) {
		_, err := w.s.Approvals().Decide(w.ctx, ledger.Decision{ID: e.ApprovalID, Approve: true, By: fmt.Sprint("person ", i), Now: w.now()})
		if err == nil {
			decided.Add(1)
		} else if !errors.Is(err, ledger.ErrDecided) {
			w.Errorf("Decide: %v", err)
		}
	})
	keyed := w.fetch(asks(), key("carry"))
	w.together(32, func(i int) {
		r := keyed
		r.Payment.ID = payment.NewID(w.now())
		got, _, err := w.s.Reserve(w.ctx, r)
		if err == nil && got.State == ledger.Authorized && got.ID == e.ID {
			paid.Add(1)
		} else if j, ok := errors.AsType[*ledger.JoinedError](err); !ok || j.ID != e.ID {
			w.Errorf("Reserve: %s %s, %v", got.State, got.ID, err)
		}
	})
	if decided.Load() != 1 || paid.Load() != 1 {
		w.Errorf("%d decided and %d paid, want one each", decided.Load(), paid.Load())
	}

	// An answer races the end: whoever wins, both records say the same.
	rounds := 20
	if !w.o.Durable {
		rounds = 2000
	}
	for i := range rounds {
		e := w.ask(w.fetch(asks(), path(fmt.Sprint("/race/", i)), func(r *ledger.Request) { r.Verdict.ApprovalTTL = time.Second }))
		w.clock.Advance(time.Second - time.Microsecond)
		w.together(4, func(j int) {
			if j == 0 {
				w.clock.Advance(time.Microsecond)
				return
			}
			_, _ = w.s.Approvals().Decide(w.ctx, ledger.Decision{ID: e.ApprovalID, Approve: true, By: "ana", Now: w.now()})
		})
		a, got := w.approval(e.ApprovalID), w.entry(e.ID)
		switch {
		case got.State == ledger.Approved && a.Status == ledger.ApprovalLapsed && !a.DecidedAt.IsZero():
		case got.State == ledger.ApprovalExpired && a.Status == ledger.ApprovalLapsed:
		default:
			w.Errorf("the payment is %s and the approval %s", got.State, a.Status)
		}
	}
	w.verify()
}

// testApprovalBlocked meets a cap, a freeze and a policy that stand in the way
// of an approved payment: it stays approved, and its approval unspent.
func testApprovalBlocked(w *world) {
	l := atMost(10*payment.Dollar, day24)
	e := w.ask(w.fetch(usd(8*payment.Dollar), asks(), caps(l)))
	w.decide(e, true)
	full := w.allow(w.fetch(path("/full"), usd(3*payment.Dollar), caps(l), watched()))
	before := w.entry(e.ID)
	blocked := func(code string, opts ...with) {
		w.Helper()
		r := w.fetch(append([]with{usd(8 * payment.Dollar), asks(), caps(l)}, opts...)...)
		got := w.want(w.reserve(r), ledger.Approved)
		w.reason(got, code)
		if got.ID != e.ID || got.Version != before.Version || got.Permit.Slot() != "" {
			w.Errorf("%s: payment %s at version %d, permit %q", code, got.ID, got.Version, got.Permit.Slot())
		}
		w.same(w.entry(e.ID), before)
		if a := w.approval(e.ApprovalID); a.Status != ledger.ApprovalGranted || !a.UsedAt.IsZero() {
			w.Errorf("%s: the approval is %+v", code, a)
		}
		if _, err := w.s.Entry(w.ctx, r.Payment.ID); !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("%s: something was stored: %v", code, err)
		}
	}
	blocked(policy.CodeCapExceeded)
	w.move(w.move(full, ledger.InDoubt, ledger.ByClient), ledger.ExpiredUnused, ledger.ByChain)
	blocked("host_denied", func(r *ledger.Request) { r.Verdict = denied(r.Verdict) })
	blocked(ledger.CodeValidityTooShort, func(r *ledger.Request) { r.Offer.Expires = w.now().Add(9 * time.Second) })
	if f, ok := w.s.(ledger.Freezer); ok {
		if err := f.Freeze(w.ctx, "trader", "ana", "a look first"); err != nil {
			w.Fatalf("Freeze: %v", err)
		}
		blocked(ledger.CodeFrozen)
		if err := f.Unfreeze(w.ctx, "trader", "ana", ""); err != nil {
			w.Fatalf("Unfreeze: %v", err)
		}
	}
	if got := w.allow(w.fetch(usd(8*payment.Dollar), asks(), caps(l))); got.ID != e.ID {
		w.Errorf("carried out %s, want %s", got.ID, e.ID)
	}
	w.verify()
}

// testMaxPending bounds what waits for people, by agent.
func testMaxPending(w *world) {
	few := func(r *ledger.Request) { r.Verdict.MaxPending = 3 }
	var last ledger.Entry
	for i := range 3 {
		last = w.ask(w.fetch(path(fmt.Sprint("/", i)), asks(), few))
	}
	w.deny(w.fetch(path("/3"), asks(), few), ledger.CodeTooManyPending)
	w.ask(w.fetch(path("/3"), asks(), few, agent("other")))
	w.allow(w.fetch(path("/3"), few))
	w.decide(last, false)
	w.ask(w.fetch(path("/4"), asks(), few))
	w.deny(w.fetch(path("/5"), asks(), few), ledger.CodeTooManyPending)
	w.clock.Advance(24 * time.Hour)
	w.ask(w.fetch(path("/6"), asks(), few))
	none := func(r *ledger.Request) { r.Verdict.MaxPending = 0 } // the default of 20
	for i := range 19 {
		w.ask(w.fetch(path(fmt.Sprint("/more/", i)), asks(), none))
	}
	w.deny(w.fetch(path("/7"), asks(), none), ledger.CodeTooManyPending)
	w.verify()
}

// testApprovalCost counts a payment that a person allowed at the most of what
// it was allowed at and what it costs now.
func testApprovalCost(w *world) {
	l := atMost(10*payment.Dollar, day24)
	at := func(cost payment.USD, opts ...with) ledger.Request {
		r := w.fetch(append([]with{usd(3 * payment.Dollar), caps(l)}, opts...)...)
		r.Verdict.Cost = cost // with a bound on fees, say
		return r
	}
	e := w.ask(at(6*payment.Dollar, asks()))
	w.decide(e, true)
	full := w.allow(w.fetch(path("/full"), usd(5*payment.Dollar), caps(l), watched()))
	w.reason(w.want(w.reserve(at(4*payment.Dollar)), ledger.Approved), policy.CodeCapExceeded)
	w.move(w.move(full, ledger.InDoubt, ledger.ByClient), ledger.ExpiredUnused, ledger.ByChain)
	if got := w.allow(at(4 * payment.Dollar)); got.ID != e.ID || got.Cost != 6*payment.Dollar {
		w.Errorf("carried out %s at %s, want %s at $6", got.ID, got.Cost, e.ID)
	}
	w.uses(l, 6*payment.Dollar, 1)

	dearer := w.ask(w.fetch(path("/dearer"), usd(payment.Dollar), asks(), caps(l)))
	w.decide(dearer, true)
	r := w.fetch(path("/dearer"), usd(payment.Dollar), caps(l))
	r.Verdict.Cost = 2 * payment.Dollar
	if got := w.allow(r); got.ID != dearer.ID || got.Cost != 2*payment.Dollar {
		w.Errorf("carried out %s at %s, want %s at $2", got.ID, got.Cost, dearer.ID)
	}
	w.uses(l, 8*payment.Dollar, 2)
	w.verify()
}
