package ledgertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// past asks the store.
func (w *world) past(s policy.Scope, t payment.Terms) policy.Past {
	w.Helper()
	p, ok := w.s.(ledger.PastStore)
	if !ok {
		w.Fatalf("the store is no ledger.PastStore")
	}
	out, err := p.Past(w.ctx, s, t)
	if err != nil {
		w.Fatalf("Past: %v", err)
	}
	return out
}

// wantPast is what the terms of r should find in s.
func (w *world) wantPast(what string, s policy.Scope, r ledger.Request, price payment.USD, known ...payment.Address) {
	w.Helper()
	want := policy.Past{Payees: known, Price: price, Priced: price > 0}
	if diff := cmp.Diff(want, w.past(s, r.Payment.Terms)); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// testPast pins what is remembered, where and for how long.
func testPast(w *world) {
	a, b := payment.Address{19: 1}, payment.Address{19: 2}
	at := func(opts ...with) ledger.Request {
		return w.fetch(append([]with{host("one.example"), path("/x?n=1"), payees(a)}, opts...)...)
	}
	none := policy.Scope{Kind: policy.ScopeAgent, Agent: "nobody"}
	w.wantPast("an empty ledger", ours, at(), 0)

	w.want(w.reserve(at(func(r *ledger.Request) { r.Verdict = denied(r.Verdict) })), ledger.Denied)
	asked := at(asks(), path("/asked"))
	waits := w.want(w.reserve(asked), ledger.PendingApproval)
	w.wantPast("what was denied or asked for", ours, at(), 0)

	first := w.allow(at())
	w.wantPast("in flight", ours, at(), payment.Dollar, a)
	w.wantPast("another query", ours, at(path("/x?n=2")), payment.Dollar, a)
	w.wantPast("no query", ours, at(path("/x")), payment.Dollar, a)
	w.wantPast("another path", ours, at(path("/x/")), 0, a)
	w.wantPast("another payee", ours, at(payees(b)), payment.Dollar)
	w.wantPast("a further payee", ours, at(payees(a, b)), payment.Dollar, a)
	w.wantPast("another host", ours, at(host("two.example")), 0)
	w.wantPast("another port", ours, at(func(r *ledger.Request) { r.Payment.Terms.Origin += ":8443" }), 0)
	w.wantPast("another method", ours, at(func(r *ledger.Request) { r.Payment.Terms.Method = "POST" }), 0, a)
	w.wantPast("a transfer", ours, w.pay(payees(a)), 0)
	w.wantPast("another agent", none, at(), 0)
	w.wantPast("the default table", policy.Scope{Kind: policy.ScopeAgent, Agent: "default", Shared: true}, at(), 0)

	// The last one counts, and when it is released the one before it.
	second := w.allow(at(usd(3*payment.Dollar), payees(b, a)))
	w.wantPast("the last price", ours, at(payees(a, b)), 3*payment.Dollar, a, b)
	w.end(second, ledger.ExpiredUnused)
	w.wantPast("released", ours, at(payees(a, b)), payment.Dollar, a)
	w.end(first, ledger.Settled)
	w.wantPast("settled", ours, at(payees(a, b)), payment.Dollar, a)

	// An approval counts when it is carried out, and then is the last.
	w.decide(waits, true)
	w.wantPast("approved", ours, at(path("/asked")), 0, a)
	w.want(w.reserve(asked), ledger.Authorized)
	w.wantPast("carried out", ours, at(path("/asked")), payment.Dollar, a)

	// The default table has those of all agents that it judges, and each of
	// them has its own.
	w.allow(at(agent("guest"), shared, host("three.example"), path("/s")))
	probe := at(host("three.example"), path("/s"))
	w.wantPast("shared", policy.Scope{Kind: policy.ScopeAgent, Agent: "default", Shared: true}, probe, payment.Dollar, a)
	w.wantPast("the agent that is judged by it", policy.Scope{Kind: policy.ScopeAgent, Agent: "guest"}, probe, payment.Dollar, a)
	w.wantPast("another one", ours, probe, 0)

	// Transfers are remembered by their payees alone.
	w.allow(w.pay(payees(b)))
	w.wantPast("a transfer again", ours, w.pay(payees(b)), 0, b)

	// A proof makes nobody known.
	proof := w.fetch(host("proof.example"), usd(0), func(r *ledger.Request) {
		r.Payment.Terms.Scheme, r.Slot = payment.SchemeProof, payment.Slot{Kind: payment.SlotProof}
	})
	w.allow(proof)
	w.wantPast("a proof", ours, proof, 0)
	w.verify()
}

// comparePast holds what the store remembers against all that it holds.
func (h *history) comparePast(t *rapid.T) {
	r := h.request(t)
	s := policy.Scope{Kind: policy.ScopeAgent, Agent: r.Payment.Agent}
	want, at := policy.Past{}, time.Time{}
	terms := &r.Payment.Terms
	path := func(t *payment.Terms) string { p, _, _ := strings.Cut(t.Target, "?"); return p }
	for e, err := range h.s.Entries(h.ctx, ledger.Query{Agent: s.Agent, Oldest: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.AuthorizedAt.IsZero() || e.State == ledger.ExpiredUnused || e.State == ledger.Cancelled || e.Terms.Origin != terms.Origin {
			continue
		}
		for _, p := range e.Terms.Recipients {
			named := func(o payment.Recipient) bool { return o.Address == p.Address }
			if slices.ContainsFunc(terms.Recipients, named) && !slices.Contains(want.Payees, p.Address) {
				want.Payees = append(want.Payees, p.Address)
			}
		}
		if !terms.IsTransfer() && e.Terms.Method == terms.Method && path(&e.Terms) == path(terms) && !e.AuthorizedAt.Before(at) {
			want.Price, want.Priced, at = e.Cost, true, e.AuthorizedAt
		}
	}
	got := h.past(s, *terms)
	byAddress := func(a, b payment.Address) int { return strings.Compare(a.Lower(), b.Lower()) }
	slices.SortFunc(got.Payees, byAddress)
	slices.SortFunc(want.Payees, byAddress)
	if got.Priced != want.Priced || !slices.Equal(got.Payees, want.Payees) {
		t.Fatalf("Past: %+v; the ledger says %+v", got, want)
	}
	if got.Price != want.Price && !h.tied(t, terms, at) {
		t.Fatalf("Past: the last price is %v; the ledger says %v", got.Price, want.Price)
	}
}

// tied reports whether several payments for the same request were authorized at
// one instant, so that none is the last.
func (h *history) tied(t *rapid.T, terms *payment.Terms, at time.Time) bool {
	n := 0
	for e, err := range h.s.Entries(h.ctx, ledger.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.AuthorizedAt.Equal(at) && e.Terms.Origin == terms.Origin {
			n++
		}
	}
	return n > 1
}

// asksAbove is a total above which a person is asked.
func asksAbove(u payment.USD, w policy.Window) policy.Limit {
	l := atMost(u, w)
	l.Asks = true
	return l
}

// testTotals pins approve_above_total: above it a person is asked, in the commit
// that counts; what is held counts, and what was approved passes and counts.
func testTotals(w *world) {
	l := asksAbove(3*payment.Dollar, day24)
	n := 0
	next := func(opts ...with) ledger.Request {
		n++
		return w.fetch(append([]with{path(fmt.Sprint("/", n)), caps(l)}, opts...)...)
	}
	held := w.allow(next(usd(2 * payment.Dollar)))
	w.allow(next())
	asked := next()
	e, uses, err := w.s.Reserve(w.ctx, asked)
	if err != nil || e.State != ledger.PendingApproval || len(e.Reasons) != 1 || len(uses) != 1 {
		w.Fatalf("above the total: %s, %v, %v, %v", e.State, e.Reasons, uses, err)
	}
	r := e.Reasons[0]
	if r.Code != policy.CodeApprovalTotal || r.Status != payment.PendingApproval || r.Text != "Approval total exceeded: $3.00 + $1.00 > $3 / 24h" ||
		r.Used != 3*payment.Dollar || r.Limit != 3*payment.Dollar || r.Shadow {
		w.Errorf("the reason: %+v", r)
	}
	a, err := w.s.Approvals().Approval(w.ctx, e.ApprovalID, w.now())
	if err != nil || a.Reason != r.Text {
		w.Errorf("the approval: %q, %v", a.Reason, err)
	}

	// A cap beside it denies, whatever was asked.
	w.deny(next(caps(atMost(2*payment.Dollar, day24))), policy.CodeCapExceeded)

	// What was approved passes, and counts: the next one is asked for again.
	w.decide(e, true)
	if got := w.want(w.reserve(asked), ledger.Authorized); got.ID != e.ID {
		w.Errorf("another payment was carried out: %s, not %s", got.ID, e.ID)
	}
	w.uses(atMost(0, day24), 4*payment.Dollar, 3)
	w.want(w.reserve(next()), ledger.PendingApproval)

	// What is released gives room again.
	w.end(held, ledger.ExpiredUnused)
	w.allow(next())
	w.want(w.reserve(next()), ledger.PendingApproval)

	// A number asks too.
	count := policy.Limit{Scope: ours, Window: ever, Counting: true, Count: 4, Asks: true, Text: "4 payments / ever"}
	w.allow(w.fetch(path("/c1"), caps(count)))
	if e := w.want(w.reserve(w.fetch(path("/c2"), caps(count))), ledger.PendingApproval); e.Reasons[0].Text != "Approval total exceeded: 4 + 1 > 4 payments / ever" {
		w.Errorf("the reason of a number: %q", e.Reasons[0].Text)
	}
	w.verify()
}

// testTotalRace lets many payments run for the room below a total at once: what
// fits is paid, all others wait for a person.
func testTotalRace(w *world) {
	const callers, fit = 40, 7
	l := asksAbove(fit*payment.Dollar, day24)
	states := make(chan ledger.State, callers)
	for i := range callers {
		r := w.fetch(path(fmt.Sprint("/", i)), caps(l), func(r *ledger.Request) { r.Verdict.MaxPending = callers })
		go func() {
			e, _, err := w.s.Reserve(w.ctx, r)
			if err != nil {
				w.Errorf("Reserve: %v", err)
			}
			states <- e.State
		}()
	}
	count := map[ledger.State]int{}
	for range callers {
		count[<-states]++
	}
	if count[ledger.Authorized] != fit || count[ledger.PendingApproval] != callers-fit {
		w.Errorf("%v, want %d authorized and %d pending", count, fit, callers-fit)
	}
	w.verify()
}

// testShadow pins that limits of a table in shadow are told and change nothing,
// and that others beside them still do.
func testShadow(w *world) {
	soft, total := atMost(payment.Dollar, day24), asksAbove(payment.Dollar, day24)
	soft.Shadow, total.Shadow = true, true
	w.allow(w.fetch(path("/1"), caps(soft, total)))
	e := w.allow(w.fetch(path("/2"), caps(soft, total), func(r *ledger.Request) {
		r.Verdict.Shadow = true
		r.Verdict.Reasons = []policy.Reason{{Status: payment.Denied, Code: policy.CodeNotAllowed, Text: "no", Shadow: true}}
	}))
	got, err := w.s.Entry(w.ctx, e.ID)
	if err != nil {
		w.Fatal(err)
	}
	var said []string
	for _, r := range got.Reasons {
		said = append(said, fmt.Sprint(r.Code, " ", r.Status, " ", r.Shadow))
	}
	want := []string{"not_allowed denied true", "cap_exceeded denied true", "approval_total pending_approval true"}
	if diff := cmp.Diff(want, said); diff != "" {
		w.Errorf("the reasons kept (-want +got):\n%s", diff)
	}
	events, err := w.s.Events(w.ctx, e.ID)
	if err != nil || !strings.Contains(string(events[0].Data), `"reasons":["shadow:not_allowed","shadow:cap_exceeded","shadow:approval_total"]`) {
		w.Errorf("the event: %s, %v", events[0].Data, err)
	}
	w.uses(atMost(0, day24), 2*payment.Dollar, 2) // it counts all the same
	w.deny(w.fetch(path("/3"), caps(soft, atMost(2*payment.Dollar, day24))), policy.CodeCapExceeded)
	if f, ok := w.s.(ledger.Freezer); ok {
		if err := f.Freeze(w.ctx, "trader", "ana", "stop"); err != nil {
			w.Fatal(err)
		}
		w.deny(w.fetch(path("/4"), caps(soft)), ledger.CodeFrozen)
	}
	w.verify()
}
