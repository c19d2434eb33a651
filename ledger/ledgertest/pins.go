package ledgertest

import (
	"slices"
	"strings"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// testPins denies what another policy judged than the pinned one, in every
// process, and keeps what was pinned.
func testPins(w *world) {
	pinner, ok := w.s.(ledger.Pinner)
	if !ok {
		w.Fatalf("the store is no ledger.Pinner")
	}
	judged := func(by byte) with {
		return func(r *ledger.Request) { r.Verdict.Policy = payment.Hash{by} }
	}
	pin := func(by byte, document string) {
		w.Helper()
		if err := pinner.Pin(w.ctx, ledger.Pin{Policy: payment.Hash{by}, Document: document, By: "ana", Reason: "it's; --"}); err != nil {
			w.Fatal(err)
		}
	}
	pinned := func(s ledger.Store, by byte) {
		w.Helper()
		if p, err := s.(ledger.Pinner).Pinned(w.ctx); err != nil || p.Policy != (payment.Hash{by}) {
			w.Errorf("pinned is %v, %v, want %d", p, err, by)
		}
	}
	pinned(w.s, 0)
	w.allow(w.fetch(judged(1), path("/free")))
	other := w.s
	if w.o.Shared {
		other = w.open()
		if _, _, err := other.Reserve(w.ctx, w.fetch(judged(2), path("/before"))); err != nil {
			w.Fatal(err)
		}
	}
	waits := w.ask(w.fetch(judged(2), asks(), path("/asked")))
	pin(1, "the first")
	pinned(other, 1)
	w.allow(w.fetch(judged(1), path("/a")))
	w.deny(w.fetch(judged(2), path("/b")), ledger.CodePolicyNotPinned)
	w.deny(w.fetch(judged(0), path("/c")), ledger.CodePolicyNotPinned)
	e, _, err := other.Reserve(w.ctx, w.fetch(judged(2), path("/d")))
	if err != nil || e.State != ledger.Denied {
		w.Errorf("another handle: %s, %v", e.State, err)
	}
	// What waits for a person is carried out under the pinned policy alone.
	w.decide(waits, true)
	if e, _, err := w.s.Reserve(w.ctx, w.fetch(judged(2), asks(), path("/asked"))); err != nil || e.State != ledger.Approved || !hasCode(e, ledger.CodePolicyNotPinned) {
		w.Errorf("approved, and judged by another: %s, %+v, %v", e.State, e.Reasons, err)
	}
	w.clock.Advance(1)
	pin(2, "the second")
	if e, _, err := w.s.Reserve(w.ctx, w.fetch(judged(2), asks(), path("/asked"))); err != nil || e.State != ledger.Authorized || e.ID != waits.ID {
		w.Errorf("approved, and judged by the pinned one: %s, %v", e.State, err)
	}
	pin(0, "")
	pinned(other, 0)
	w.allow(w.fetch(judged(3), path("/e")))
	if w.o.Durable {
		if err := w.s.Close(); err != nil {
			w.Fatal(err)
		}
		w.s = w.open()
		pinner = w.s.(ledger.Pinner)
	}
	all, err := pinner.Pins(w.ctx)
	if err != nil || len(all) != 3 || all[2].Document != "the first" || all[1].Document != "the second" || !all[0].Policy.IsZero() ||
		all[2].By != "ana" || all[2].Reason != "it's; --" || !all[2].At.Equal(noon) {
		w.Errorf("pins: %+v, %v", all, err)
	}
	for name, bad := range map[string]ledger.Pin{
		"nobody": {}, "a long document": {By: "ana", Document: strings.Repeat("x", ledger.MaxPinned+1)}, "a long reason": {By: "ana", Reason: strings.Repeat("x", 1001)},
	} {
		if err := pinner.Pin(w.ctx, bad); err == nil {
			w.Errorf("%s is pinned", name)
		}
	}
	w.verify()
}

func hasCode(e ledger.Entry, code string) bool {
	return slices.ContainsFunc(e.Reasons, func(r policy.Reason) bool { return r.Code == code })
}
