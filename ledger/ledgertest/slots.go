package ledgertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// testValidity stamps validBefore: whole seconds, never later than the policy,
// the terms or the challenge allow, and refused under ten seconds.
func testValidity(w *world) {
	ten := func(r *ledger.Request) { r.Validity = 10 * time.Second }
	if e := w.allow(w.fetch(path("/ten"), ten)); !e.ValidBefore.Equal(noon.Add(10 * time.Second)) {
		w.Errorf("valid before %v", e.ValidBefore)
	}
	w.clock.Advance(400 * time.Millisecond)
	now := w.now()
	whole := now.Truncate(time.Second)
	for i, tt := range []struct {
		ask     time.Duration
		change  with
		want    time.Time // zero: refused
		pending bool      // still asks a person
	}{
		{ask: time.Minute, want: whole.Add(time.Minute)},
		{ask: time.Hour, want: whole.Add(time.Minute)},
		{ask: 11 * time.Second, want: whole.Add(11 * time.Second)},
		{ask: 10 * time.Second},
		{ask: 9 * time.Second},
		{ask: 0},
		{ask: -time.Minute},
		{ask: time.Minute, change: func(r *ledger.Request) { r.Offer.Expires = now.Add(30 * time.Second) }, want: whole.Add(30 * time.Second)},
		{ask: time.Minute, change: func(r *ledger.Request) { r.Offer.Expires = now.Add(9 * time.Second) }, pending: true},
		{ask: time.Minute, change: func(r *ledger.Request) { r.Offer.Expires = now.Add(-time.Second) }, pending: true},
		{ask: time.Minute, change: func(r *ledger.Request) { r.Offer.Expires = now.Add(time.Hour) }, want: whole.Add(time.Minute)},
		{ask: time.Minute, change: func(r *ledger.Request) { r.Payment.Terms.Validity = 20 * time.Second }, want: whole.Add(20 * time.Second)},
		{ask: time.Minute, change: func(r *ledger.Request) { r.Payment.Terms.Validity = 5 * time.Second }},
		{ask: time.Hour, change: func(r *ledger.Request) { r.Verdict.MaxValidity, r.Payment.Terms.Validity = 0, 0 }, want: whole.Add(10 * time.Minute)},
		{ask: time.Hour, change: func(r *ledger.Request) { r.Verdict.MaxValidity, r.Payment.Terms.Validity = time.Hour, 0 }, want: whole.Add(10 * time.Minute)},
		{ask: time.Minute, change: func(r *ledger.Request) { r.Slot = payment.Slot{Kind: payment.SlotExpiring, NonceID: [32]byte{1}} }, want: whole.Add(25 * time.Second)},
	} {
		change := func(r *ledger.Request) {
			r.Validity = tt.ask
			if tt.change != nil {
				tt.change(r)
			}
		}
		e := w.reserve(w.fetch(path(fmt.Sprint("/", i)), change))
		if tt.want.IsZero() {
			w.reason(w.want(e, ledger.Denied), ledger.CodeValidityTooShort)
		} else if w.want(e, ledger.Authorized); !e.ValidBefore.Equal(tt.want) {
			w.Errorf("case %d is valid before %v, want %v", i, e.ValidBefore, tt.want)
		}
		e = w.reserve(w.fetch(path(fmt.Sprint("/asks/", i)), asks(), change))
		if want := tt.pending || !tt.want.IsZero(); (e.State == ledger.PendingApproval) != want {
			w.Errorf("case %d put to a person is %s", i, e.State)
		}
	}
	w.verify()
}

// testSlots fills nonces, holds one live slot a payment, and gives none twice.
func testSlots(w *world) {
	seen := map[payment.Slot]bool{}
	for i := range 50 {
		e := w.allow(w.fetch(path(fmt.Sprint("/", i))))
		s := e.Slot
		if s.Kind != payment.SlotEVM || s.Chain != payment.Base || s.Token != usdc.Address || s.From != payer || s.NonceID == [32]byte{} || seen[s] {
			w.Fatalf("slot %v, or twice", s)
		}
		seen[s] = true
	}
	given := payment.Slot{Kind: payment.SlotEVM, NonceID: [32]byte{1}}
	lane := payment.Slot{Kind: payment.SlotLane, NonceID: [32]byte{2}, Nonce: 3}
	for _, slot := range []payment.Slot{given, lane} {
		use := func(r *ledger.Request) { r.Slot = slot }
		first := w.allow(w.fetch(use))
		if first.Slot.NonceID != slot.NonceID || first.Slot.From != payer {
			w.Errorf("slot %v, want the one given", first.Slot)
		}
		w.fails(w.fetch(path("/again"), use), ledger.ErrTaken)
		w.fails(w.fetch(path("/again"), use, agent("other")), ledger.ErrTaken)
		first = w.move(first, ledger.InDoubt, ledger.ByClient)
		w.fails(w.fetch(path("/again"), use), ledger.ErrTaken)
		w.move(first, ledger.ExpiredUnused, ledger.ByChain)
		if slot.Kind == payment.SlotLane {
			w.allow(w.fetch(path("/again"), use)) // the chain showed it unused
		} else {
			w.fails(w.fetch(path("/again"), use), ledger.ErrTaken) // it binds one payment for ever
		}
	}
	next := lane
	next.Nonce++
	w.allow(w.fetch(path("/next"), func(r *ledger.Request) { r.Slot = next }))

	for _, kind := range []payment.SlotKind{payment.SlotProof} {
		e := w.allow(w.fetch(path("/kind"), func(r *ledger.Request) { r.Slot = payment.Slot{Kind: kind} }))
		if e.Slot != (payment.Slot{Kind: kind, Payment: e.ID}) {
			w.Errorf("slot %v of payment %s", e.Slot, e.ID)
		}
	}
	for name, slot := range map[string]payment.Slot{
		"none":          {},
		"another chain": {Kind: payment.SlotEVM, Chain: payment.Tempo},
		"another token": {Kind: payment.SlotEVM, Token: payment.Address{1}},
		"another payer": {Kind: payment.SlotEVM, From: payment.Address{1}},
		"unknown":       {Kind: 99},
	} {
		if e, _, err := w.s.Reserve(w.ctx, w.fetch(path("/"+name), func(r *ledger.Request) { r.Slot = slot })); err == nil {
			w.Errorf("%s: %s with slot %v", name, e.State, e.Slot)
		}
	}

	// An ID is used once.
	r := w.fetch(path("/id"))
	w.allow(r)
	if _, _, err := w.s.Reserve(w.ctx, r); !errors.Is(err, ledger.ErrTaken) {
		w.Errorf("an ID used twice: %v, want ErrTaken", err)
	}
	w.verify()
}

// signable are the states in which the same bytes may be signed again.
func signable(s ledger.State) bool {
	return s == ledger.Authorized || s == ledger.InDoubt || s == ledger.Claimed || s == ledger.Settled
}

// testPermits looks for a permit where a signature may be made, and only there.
func testPermits(w *world) {
	for _, s := range states {
		e := w.in(s)
		want := signable(s)
		if got := e.Permit.Slot(); (got != "") != want || want && (got != e.Slot.String() || !e.Permit.Deadline().Equal(e.ValidBefore)) {
			w.Errorf("%s has a permit for %q until %v", s, got, e.Permit.Deadline())
		}
	}
	e := w.allow(w.fetch(path("/fresh")))
	if e.Permit.Slot() != e.Slot.String() {
		w.Errorf("Reserve gave a permit for %q", e.Permit.Slot())
	}
	flying := w.allow(w.fetch(path("/flying"), key("k")))
	if got := w.join(w.fetch(path("/flying"), key("k")), flying.ID, ledger.JoinKey); got.Permit.Slot() == "" {
		w.Errorf("a joined payment in flight has no permit")
	}
	e = w.move(e, ledger.InDoubt, ledger.ByClient)
	if e.Permit.Slot() != e.Slot.String() {
		w.Errorf("Advance gave a permit for %q", e.Permit.Slot())
	}
	if e = w.move(e, ledger.ExpiredUnused, ledger.ByChain); e.Permit.Slot() != "" {
		w.Errorf("a released payment has a permit")
	}
	for e, err := range w.s.Entries(w.ctx, ledger.Query{}) {
		if want := signable(e.State); err != nil || (e.Permit.Slot() != "") != want {
			w.Errorf("Entries: %s has a permit for %q, %v", e.State, e.Permit.Slot(), err)
		}
	}
}
