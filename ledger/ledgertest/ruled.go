package ledgertest

import (
	"errors"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// testRuledByNow carries out what was approved only by those whom the policy of
// now wants asked, with credentials that hold now; else it is asked for again.
func testRuledByNow(w *world) {
	w.hire("ana", "ben", "cyd")
	again := func(name string, e ledger.Entry, r ledger.Request) ledger.Entry {
		w.Helper()
		got := w.want(w.reserve(r), ledger.PendingApproval)
		if got.ID == e.ID {
			w.Errorf("%s: the old approval stands", name)
		}
		w.want(w.entry(e.ID), ledger.ApprovalExpired)
		return got
	}
	grant := func(r ledger.Request, by ...string) ledger.Entry {
		w.Helper()
		e := w.ask(r)
		for _, name := range by {
			if _, err := w.rules(e, name, true); err != nil {
				w.Fatal(err)
			}
		}
		return w.want(w.entry(e.ID), ledger.Approved)
	}

	// Another quorum, other people, a credential that is no more.
	e := grant(w.fetch(path("/quorum"), named(1, "ana", "ben")), "ana")
	n := again("a quorum", e, w.fetch(path("/quorum"), named(2, "ana", "ben")))
	if a := w.approval(n.ApprovalID); a.Quorum != 2 || len(a.Votes) != 0 {
		w.Errorf("asked again: %+v", a)
	}
	e = grant(w.fetch(path("/people"), named(1, "ana"), key("k")), "ana")
	if n := again("other people", e, w.fetch(path("/people"), named(1, "ben"), key("k"))); n.Key != "k" {
		w.Errorf("the key is %q", n.Key)
	}
	e = grant(w.fetch(path("/fewer"), named(2, "ana", "ben")), "ana", "ben")
	if got := w.allow(w.fetch(path("/fewer"), named(1, "ben", "cyd"))); got.ID != e.ID {
		w.Errorf("one of them is enough, and %s was made", got.ID)
	}
	e = grant(w.fetch(path("/allowed"), named(1, "ana")), "ana")
	if got := w.allow(w.fetch(path("/allowed"), func(r *ledger.Request) { r.Verdict.Approvers, r.Verdict.Quorum = []string{"ben"}, 1 })); got.ID != e.ID {
		w.Errorf("the policy of now asks nobody, and %s was made", got.ID)
	}
	e = grant(w.fetch(path("/revoked"), named(1, "ana")), "ana")
	only := w.fetch(path("/revoked"), named(1, "ana"), func(r *ledger.Request) { r.Only = e.ID })
	w.clock.Advance(time.Second)
	if err := w.people().RevokeApprover(w.ctx, "ana", w.now()); err != nil {
		w.Fatal(err)
	}
	if got := w.reserve(only); got.ID != e.ID || got.State != ledger.Approved || !hasCode(got, ledger.CodeApprovalOutdated) {
		w.Errorf("by name: %s, %+v", got.State, got.Reasons)
	}
	again("a revocation", e, w.fetch(path("/revoked"), named(1, "ana")))

	// Said in chat, where the policy of now names people, or takes no chat.
	for name, opt := range map[string]with{"/named": named(1, "ben"), "/nochat": asks()} {
		e := w.ask(w.fetch(path(name), asks(), func(r *ledger.Request) { r.Verdict.Chat = true }))
		d := ledger.Decision{ID: e.ApprovalID, Approve: true, By: "somebody", Way: ledger.InChat, Via: ledger.ViaChat, Now: w.now()}
		if _, err := w.s.Approvals().Decide(w.ctx, d); err != nil {
			w.Fatal(err)
		}
		again("in chat, "+name, e, w.fetch(path(name), opt))
	}
	w.verify()
}

// testVotesOfNow counts no vote that was given with a credential which is no more,
// whatever the clocks say, and lets its voter vote again.
func testVotesOfNow(w *world) {
	w.hire("ana", "ben")
	ahead := func(d *ledger.Decision) { d.Now = w.now().Add(25 * time.Second) }
	for name, change := range map[string]func() error{
		"/rotated": func() error {
			return w.people().RotateApprover(w.ctx, "ana", ledger.HashCredential("secret of ana"), w.now())
		},
		"/back": func() error {
			if err := w.people().RevokeApprover(w.ctx, "ana", w.now()); err != nil {
				return err
			}
			w.hire("ana")
			return nil
		},
	} {
		for _, opt := range []func(*ledger.Decision){func(*ledger.Decision) {}, ahead} {
			e := w.ask(w.fetch(path(name+string(payment.NewID(w.now()))), named(2, "ana", "ben")))
			if _, err := w.rules(e, "ana", true, opt); err != nil {
				w.Fatal(err)
			}
			if err := change(); err != nil {
				w.Fatal(err)
			}
			if a, err := w.rules(e, "ben", true); err != nil || a.Status != ledger.ApprovalPending {
				w.Errorf("%s: with ben's it is %s, %v", name, a.Status, err)
			}
			if _, err := w.rules(e, "ben", true); !errors.Is(err, ledger.ErrVoted) {
				w.Errorf("%s: ben again: %v", name, err)
			}
			if a, err := w.rules(e, "ana", true); err != nil || a.Status != ledger.ApprovalGranted {
				w.Errorf("%s: ana again: %s, %v", name, a.Status, err)
			}
			w.clock.Advance(time.Minute)
		}
	}
	w.verify()
}

// testOverrideBounds holds an approver's word to the caps of the denial that they
// saw, once, and to nothing else that the policy wants.
func testOverrideBounds(w *world) {
	w.hire("ana", "ben")
	l := w.full()
	over := func(e ledger.Entry, quorum int, ok bool) {
		w.Helper()
		_, err := w.overs(e, func(o *ledger.Override) { o.Quorum = quorum })
		if (err == nil) != ok || err != nil && !errors.Is(err, ledger.ErrNotOverridable) {
			w.Errorf("override: %v", err)
		}
	}
	// Where two people are wanted besides, one is not enough.
	two := func() ledger.Request {
		return w.fetch(path("/two"), usd(5*payment.Dollar), caps(l), named(2, "ana", "ben"), func(r *ledger.Request) {
			r.Verdict.Reasons = append(r.Verdict.Reasons, policy.Reason{Status: payment.PendingApproval, Code: policy.CodeNewPayee, Text: "Payee was never paid"})
		})
	}
	d := w.want(w.reserve(two()), ledger.Denied)
	over(d, 2, false)
	over(d, 1, true) // a caller that says so is met when it is carried out
	if got := w.reserve(two()); got.State != ledger.Approved || !hasCode(got, ledger.CodeApprovalOutdated) {
		w.Errorf("carried out by one of two: %s, %+v", got.State, got.Reasons)
	}
	// Other caps than those that were seen.
	month := atMost(30*payment.Dollar, rolling(30*24*time.Hour))
	dear := func() ledger.Request { return w.fetch(path("/dear"), usd(5*payment.Dollar), caps(l, month)) }
	over(w.want(w.reserve(dear()), ledger.Denied), 1, true)
	w.allow(w.fetch(path("/month"), usd(18*payment.Dollar), caps(month)))
	if got := w.reserve(dear()); got.State != ledger.Approved || !hasCode(got, policy.CodeCapExceeded) {
		w.Errorf("over another cap: %s, %+v", got.State, got.Reasons)
	}
	// One denial is overridden once.
	once := func() ledger.Request { return w.fetch(path("/once"), usd(4*payment.Dollar), caps(l)) }
	d = w.want(w.reserve(once()), ledger.Denied)
	over(d, 1, true)
	w.move(w.allow(once()), ledger.Claimed, ledger.ByClient, delivered)
	over(d, 1, false)
	w.clock.Advance(time.Second)
	w.deny(once(), policy.CodeCapExceeded)
	// The duplicate guard does not yield.
	pay := func() ledger.Request { return w.pay(usd(3*payment.Dollar), caps(l)) }
	d = w.want(w.reserve(pay()), ledger.Denied)
	w.clock.Advance(23*time.Hour + 59*time.Minute)
	w.clock.Advance(30 * time.Second)
	w.move(w.allow(w.pay(usd(3*payment.Dollar))), ledger.Claimed, ledger.ByClient, delivered)
	over(d, 1, true)
	if got := w.reserve(pay()); got.State != ledger.Approved || !hasCode(got, ledger.CodeDuplicate) {
		w.Errorf("twice: %s, %+v", got.State, got.Reasons)
	}
	w.verify()
}
