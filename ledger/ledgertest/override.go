package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// overs lets ana, who was hired, let e go over its caps.
func (w *world) overs(e ledger.Entry, opts ...func(*ledger.Override)) (ledger.Approval, error) {
	w.Helper()
	s, ok := w.s.(ledger.Overrider)
	if !ok {
		w.Fatalf("the store is no ledger.Overrider")
	}
	o := ledger.Override{
		Payment: e.ID, TermsHash: e.TermsHash, Approvers: []string{"ben", "Ana"}, By: "ana", Credential: "secret of ana",
		Via: "cli", Reason: "the server room is on fire", Now: w.now(),
	}
	for _, opt := range opts {
		opt(&o)
	}
	return s.Override(w.ctx, o)
}

// full spends most of a cap of $10 and returns it.
func (w *world) full() policy.Limit {
	w.Helper()
	l := atMost(10*payment.Dollar, day24)
	w.allow(w.fetch(path("/full"), usd(8*payment.Dollar), caps(l)))
	return l
}

// testOverride lets one payment go over a cap, once, and counts it like any other.
func testOverride(w *world) {
	w.hire("ana")
	l := w.full()
	request := func(opts ...with) ledger.Request {
		return w.fetch(append([]with{path("/dear"), usd(5 * payment.Dollar), caps(l), key("k"), func(r *ledger.Request) { r.Payment.Purpose = "help" }}, opts...)...)
	}
	denied := w.want(w.reserve(request()), ledger.Denied)
	w.clock.Advance(time.Minute)
	a, err := w.overs(denied)
	if err != nil {
		w.Fatalf("Override: %v", err)
	}
	if !a.Override || a.Status != ledger.ApprovalGranted || a.Payment == denied.ID || a.By != "ana" || a.Via != "cli" || a.Comment != "the server room is on fire" ||
		a.TermsHash != denied.TermsHash || a.Cost != denied.Cost || a.Quorum != 1 || len(a.Votes) != 1 || a.Purpose != "help" || a.Reason != "Spend cap exceeded: $8.00 + $5.00 > $10 / 24h" ||
		!a.ExpiresAt.Equal(w.now().Add(time.Hour)) || !a.DecidedAt.Equal(w.now()) {
		w.Errorf("the approval is %+v", a)
	}
	e := w.want(w.entry(a.Payment), ledger.Approved)
	if e.Version != 2 || e.ApprovalID != a.ID || e.Agent != denied.Agent || !e.Slot.IsZero() || e.Permit.Slot() != "" {
		w.Errorf("the payment is %+v", e)
	}
	w.want(w.entry(denied.ID), ledger.Denied)
	w.uses(l, 8*payment.Dollar, 1)

	// It serves these terms of this agent, whatever the policy has evaluated.
	for name, r := range map[string]ledger.Request{
		"another price": request(usd(5*payment.Dollar + 1)), "another path": request(path("/other"), key("")), "another payee": request(payees(payment.Address{5}, payment.Address{6})),
	} {
		if got, _, err := w.s.Reserve(w.ctx, r); got.State != ledger.Denied {
			w.Errorf("%s: %s, %v", name, got.State, err)
		}
	}
	if got := w.reserve(request(agent("other"), func(r *ledger.Request) { r.Verdict.Limits = nil }, asks())); got.ID == e.ID {
		w.Errorf("another agent used it")
	}
	w.clock.Advance(30 * time.Minute)
	r := request()
	r.Verdict = r.Verdict.Apply([]policy.Use{{Limit: l, USD: 8 * payment.Dollar, Count: 1}}) // judged beforehand, too
	if r.Verdict.Status != payment.Denied {
		w.Fatalf("the verdict is %+v", r.Verdict)
	}
	paid := w.allow(r)
	if paid.ID != e.ID || paid.Cost != 5*payment.Dollar || paid.Key != "k" {
		w.Errorf("carried out %s at %s, want %s", paid.ID, paid.Cost, e.ID)
	}
	over := slices.IndexFunc(paid.Reasons, func(r policy.Reason) bool { return r.Code == ledger.CodeOverridden })
	if over < 0 || paid.Reasons[over].Status != payment.Allowed || paid.Reasons[over].Used != 8*payment.Dollar || !strings.Contains(paid.Reasons[over].Text, "$8.00 + $5.00 > $10 / 24h") {
		w.Errorf("the reasons are %+v", paid.Reasons)
	}
	w.uses(l, 13*payment.Dollar, 2)
	if a := w.approval(a.ID); !a.UsedAt.Equal(w.now()) {
		w.Errorf("the approval is %+v, want it used", a)
	}
	// Once, and the cap holds for all others.
	w.move(paid, ledger.Claimed, ledger.ByClient, delivered)
	w.deny(request(key("")), policy.CodeCapExceeded)
	w.deny(w.fetch(path("/cent"), usd(payment.Cent), caps(l)), policy.CodeCapExceeded)
	w.verify()
	w.clock.Advance(25 * time.Hour)
	w.allow(w.fetch(path("/cent"), usd(payment.Cent), caps(l)))

	// Unused it ends after an hour, or sooner where that is said.
	w.allow(w.fetch(path("/more"), usd(9*payment.Dollar), caps(l)))
	for _, ttl := range []time.Duration{0, time.Minute, 100 * time.Hour} {
		denied := w.want(w.reserve(request(key(""))), ledger.Denied)
		a, err := w.overs(denied, func(o *ledger.Override) { o.TTL = ttl })
		if err != nil {
			w.Fatalf("Override: %v", err)
		}
		w.until(a.ExpiresAt)
		if took := a.ExpiresAt.Sub(a.CreatedAt); took > time.Hour || ttl == time.Minute && took != ttl {
			w.Errorf("asked for %s it holds for %s", ttl, took)
		}
		w.deny(request(key("")), policy.CodeCapExceeded)
		w.want(w.entry(a.Payment), ledger.ApprovalExpired)
	}
	w.verify()
}

// testOverrideRules lets nobody go over anything else, and nobody else over a cap.
func testOverrideRules(w *world) {
	w.hire("ana", "dan", "eve")
	l := w.full()
	org := policy.Limit{Scope: policy.Scope{Kind: policy.ScopeOrg}, Window: day24, USD: 100 * payment.Dollar, Text: "$100 / 24h"}
	n := 0
	refused := func(opts ...with) ledger.Entry {
		w.Helper()
		n++
		return w.want(w.reserve(w.fetch(append([]with{path(fmt.Sprint("/refused/", n)), usd(5 * payment.Dollar), caps(l, org)}, opts...)...)), ledger.Denied)
	}
	plain := refused()
	for name, tt := range map[string]struct {
		e    ledger.Entry
		with func(*ledger.Override)
		want error
	}{
		"nobody named":       {plain, func(o *ledger.Override) { o.Approvers = nil }, ledger.ErrNoApprovers},
		"not named":          {plain, func(o *ledger.Override) { o.By, o.Credential = "dan", "secret of dan" }, ledger.ErrNotNamed},
		"no credential":      {plain, func(o *ledger.Override) { o.Credential = "" }, ledger.ErrCredential},
		"a wrong one":        {plain, func(o *ledger.Override) { o.Credential = "secret of dan" }, ledger.ErrCredential},
		"never added":        {plain, func(o *ledger.Override) { o.By = "ben" }, ledger.ErrCredential},
		"nobody":             {plain, func(o *ledger.Override) { o.By = "" }, nil},
		"the requester":      {plain, func(o *ledger.Override) { o.By, o.Approvers = "trader", []string{"trader"} }, ledger.ErrSelf},
		"no reason":          {plain, func(o *ledger.Override) { o.Reason = " " }, nil},
		"other terms":        {plain, func(o *ledger.Override) { o.TermsHash = payment.Hash{1} }, ledger.ErrTermsChanged},
		"unknown":            {ledger.Entry{ID: payment.NewID(noon)}, func(o *ledger.Override) { o.TermsHash = payment.Hash{} }, ledger.ErrNotFound},
		"a clock ahead":      {plain, func(o *ledger.Override) { o.Now = o.Now.Add(time.Hour) }, ledger.ErrClockSkew},
		"denied by a list":   {refused(func(r *ledger.Request) { r.Verdict = denied(r.Verdict) }), nil, ledger.ErrNotOverridable},
		"by a list alone":    {w.want(w.reserve(w.fetch(path("/list"), func(r *ledger.Request) { r.Verdict = denied(r.Verdict) })), ledger.Denied), nil, ledger.ErrNotOverridable},
		"over the org's cap": {refused(usd(93 * payment.Dollar)), nil, ledger.ErrNotOverridable},
		"paid":               {w.allow(w.fetch(path("/paid"))), nil, ledger.ErrNotOverridable},
		"waits":              {w.ask(w.fetch(path("/waits"), asks())), nil, ledger.ErrNotOverridable},
	} {
		if tt.with == nil {
			tt.with = func(*ledger.Override) {}
		}
		if a, err := w.overs(tt.e, tt.with); err == nil || tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(fmt.Sprint(err), "secret of") {
			w.Errorf("%s: %+v, %v, want %v", name, a, err, tt.want)
		}
	}
	if list, err := w.s.Approvals().List(w.ctx, "", false, w.now()); err != nil || len(list) != 1 {
		w.Errorf("%d approvals, %v: something was stored", len(list), err)
	}

	if p, ok := w.s.(ledger.Pinner); ok {
		hash := payment.Hash{7}
		if err := p.Pin(w.ctx, ledger.Pin{Policy: hash, By: "ana"}); err != nil {
			w.Fatalf("Pin: %v", err)
		}
		if _, err := w.overs(plain); !errors.Is(err, ledger.ErrNotOverridable) {
			w.Errorf("by another policy than the pinned one: %v", err)
		}
		if err := p.Pin(w.ctx, ledger.Pin{By: "ana"}); err != nil {
			w.Fatalf("Pin: %v", err)
		}
	}

	// What comes in the way later is in the way: a freeze, a list, the org's cap.
	a, err := w.overs(plain)
	if err != nil {
		w.Fatalf("Override: %v", err)
	}
	if _, err := w.overs(plain); !errors.Is(err, ledger.ErrNotOverridable) {
		w.Errorf("a second time: %v", err)
	}
	again := func(opts ...with) ledger.Request {
		return w.fetch(append([]with{path(plain.Terms.Target), usd(5 * payment.Dollar), caps(l, org)}, opts...)...)
	}
	blocked := func(code string, r ledger.Request) {
		w.Helper()
		got := w.want(w.reserve(r), ledger.Approved)
		w.reason(got, code)
		if got.ID != a.Payment || w.approval(a.ID).UsedAt != (time.Time{}) {
			w.Errorf("%s: %s, want %s", code, got.ID, a.Payment)
		}
	}
	blocked("host_denied", again(func(r *ledger.Request) { r.Verdict = denied(r.Verdict) }))
	blocked("host_denied", again(func(r *ledger.Request) {
		r.Verdict.Cost = 5 * payment.Dollar
		r.Verdict = denied(r.Verdict).Apply([]policy.Use{{Limit: l, USD: 8 * payment.Dollar, Count: 1}}) // judged beforehand, too
	}))
	small := org
	small.USD, small.Text = 10*payment.Dollar, "$10 / 24h of all"
	blocked(policy.CodeCapExceeded, again(caps(small)))
	blocked(ledger.CodeValidityTooShort, again(func(r *ledger.Request) { r.Offer.Expires = w.now().Add(9 * time.Second) }))
	if f, ok := w.s.(ledger.Freezer); ok {
		for _, who := range []string{"trader", ""} {
			if err := f.Freeze(w.ctx, who, "ben", "a look"); err != nil {
				w.Fatalf("Freeze: %v", err)
			}
			blocked(ledger.CodeFrozen, again())
			if _, err := w.overs(refusedAt(w, l)); !errors.Is(err, ledger.ErrNotOverridable) && !errors.Is(err, ledger.ErrFrozen) {
				w.Errorf("while it is frozen: %v", err)
			}
			if err := f.Unfreeze(w.ctx, who, "ben", "looked"); err != nil {
				w.Fatalf("Unfreeze: %v", err)
			}
		}
	}
	if got := w.allow(again()); got.ID != a.Payment {
		w.Errorf("carried out %s, want %s", got.ID, a.Payment)
	}

	// A denial of yesterday is not today's.
	old := refused()
	w.clock.Advance(24*time.Hour + time.Second)
	if _, err := w.overs(old); !errors.Is(err, ledger.ErrNotOverridable) {
		w.Errorf("a denial of yesterday: %v", err)
	}
	w.verify()
}

// refusedAt is a payment that l has no room for, or that a freeze denies.
func refusedAt(w *world, l policy.Limit) ledger.Entry {
	w.serial++
	return w.want(w.reserve(w.fetch(path(fmt.Sprint("/at/", w.serial)), usd(9*payment.Dollar), caps(l))), ledger.Denied)
}

// testOverrideRace lets one of many make it, and one of many carry it out.
func testOverrideRace(w *world) {
	w.hire("ana")
	l := w.full()
	request := func() ledger.Request {
		r := w.fetch(path("/dear"), usd(5*payment.Dollar), caps(l))
		r.Payment.ID = payment.NewID(w.now())
		return r
	}
	refused := w.want(w.reserve(request()), ledger.Denied)
	var made, paid atomic.Int64
	w.together(16, func(int) {
		switch _, err := w.overs(refused); {
		case err == nil:
			made.Add(1)
		case !errors.Is(err, ledger.ErrNotOverridable):
			w.Errorf("Override: %v", err)
		}
	})
	w.together(16, func(int) {
		got, _, err := w.s.Reserve(w.ctx, request())
		if err == nil && got.State == ledger.Authorized {
			paid.Add(1)
		}
	})
	if made.Load() != 1 || paid.Load() != 1 {
		w.Errorf("%d were made and %d paid, want one each", made.Load(), paid.Load())
	}
	w.uses(l, 13*payment.Dollar, 2)
	w.verify()
}
