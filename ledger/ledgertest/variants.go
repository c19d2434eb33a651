package ledgertest

import (
	"bytes"
	"errors"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// variant asks for a permit to sign for a further challenge.
func variant(id string, validity time.Duration) func(*ledger.Change) {
	return func(c *ledger.Change) {
		c.Variant = &ledger.Variant{ChallengeID: id, Realm: "realm " + id, Version: 7, Echo: []byte("echo " + id), Validity: validity}
	}
}

// vary permits e a further challenge.
func (w *world) vary(e ledger.Entry, opts ...func(*ledger.Change)) ledger.Entry {
	w.Helper()
	return w.move(e, e.State, ledger.ByClient, opts...)
}

// varyFails demands that e gets none, and stays as it is.
func (w *world) varyFails(e ledger.Entry, want error, opts ...func(*ledger.Change)) {
	w.Helper()
	c := ledger.Change{ID: e.ID, Version: e.Version, To: e.State, By: ledger.ByClient, Now: w.now(), Sent: 1, Note: "not stored"}
	variant("refused", time.Minute)(&c)
	for _, o := range opts {
		o(&c)
	}
	got, err := w.s.Advance(w.ctx, c)
	if err == nil || want != nil && !errors.Is(err, want) || got.Permit.Slot() != "" {
		w.Errorf("a variant of a payment that is %s: %v, permit %q; want %v", e.State, err, got.Permit.Slot(), want)
	}
	w.same(w.entry(e.ID), e)
}

// testVariants signs the same terms in the same slot for further challenges.
func testVariants(w *world) {
	e := w.allow(w.onLane(4, func(r *ledger.Request) {
		r.Offer = payment.Offer{ChallengeID: "one", Realm: "realm one", Version: 3, Echo: []byte("echo one"), Expires: noon.Add(20 * time.Second)}
	}))
	first := e
	if g := e.Grant(); !e.SignBefore.Equal(noon.Add(20*time.Second)) || !e.ValidBefore.Equal(e.SignBefore) || !g.ValidBefore.Equal(e.SignBefore) || e.Variants != 0 {
		w.Fatalf("valid before %v, signed before %v", e.ValidBefore, e.SignBefore)
	}
	w.clock.Advance(1500 * time.Millisecond)
	e = w.vary(e, variant("two", time.Hour))
	whole := w.now().Truncate(time.Second)
	check := func(sign, valid time.Time, id string, n int) {
		w.Helper()
		g := e.Grant()
		switch {
		case !e.SignBefore.Equal(sign) || !e.ValidBefore.Equal(valid) || !g.ValidBefore.Equal(sign):
			w.Errorf("variant %s: signed before %v, valid before %v, grant %v; want %v, %v", id, e.SignBefore, e.ValidBefore, g.ValidBefore, sign, valid)
		case e.Slot != first.Slot || e.TermsHash != first.TermsHash || e.State != first.State || e.Cost != first.Cost || e.Spent != first.Cost:
			w.Errorf("variant %s: another slot, terms, state or cost", id)
		case g.ChallengeID != id || g.Realm != "realm "+id || g.Version != 7 || !bytes.Equal(g.Echo, []byte("echo "+id)) || e.Variants != n:
			w.Errorf("variant %s, the %dth: %+v", id, n, g)
		case e.Permit.Slot() != e.Slot.String() || !e.Permit.Deadline().Equal(sign):
			w.Errorf("variant %s: a permit for %q until %v", id, e.Permit.Slot(), e.Permit.Deadline())
		}
		if err := e.Permit.Use([32]byte{byte(n)}, w.now()); err != nil {
			w.Errorf("variant %s: %v", id, err) // another digest than any before
		}
		w.same(w.entry(e.ID), e)
	}
	check(whole.Add(time.Minute), whole.Add(time.Minute), "two", 1) // no longer than the terms allow
	latest := e.ValidBefore
	e = w.vary(e, variant("three", time.Minute), func(c *ledger.Change) { c.Variant.Expires = w.now().Add(12500 * time.Millisecond); c.Sent = 1 })
	check(whole.Add(13*time.Second), latest, "three", 2) // the hold outlives what is signed
	if e.Sends != 1 {
		w.Errorf("sent %d times", e.Sends)
	}
	first = w.move(e, ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(30 * time.Second)
	whole = w.now().Truncate(time.Second)
	e = w.vary(first, variant("four", 50*time.Second))
	check(whole.Add(50*time.Second), whole.Add(50*time.Second), "four", 3)
	w.varyFails(e, ledger.ErrIllegal) // that were three

	events, err := w.s.Events(w.ctx, e.ID)
	if err != nil || int64(len(events)) != e.Version {
		w.Fatalf("%d events, %v", len(events), err)
	}
	told, err := ledger.Replay(events)
	if err != nil || told.Variants != 3 || !told.SignBefore.Equal(e.SignBefore) || !told.ValidBefore.Equal(e.ValidBefore) || told.ChallengeID != "four" {
		w.Errorf("the events tell %d variants, %v, %v, %q, %v", told.Variants, told.SignBefore, told.ValidBefore, told.ChallengeID, err)
	}
	if w.o.Durable {
		if err := w.s.Close(); err != nil {
			w.Fatal(err)
		}
		w.s = w.open()
		got := w.entry(e.ID)
		if got.SignBefore != e.SignBefore || got.Variants != 3 || got.Permit.Deadline() != e.SignBefore {
			w.Errorf("opened again: signed before %v, %d variants", got.SignBefore, got.Variants)
		}
	}
	w.verify()
}

// testVariantRules permits no signature that Reserve would not.
func testVariantRules(w *world) {
	e := w.allow(w.onLane(20))
	w.varyFails(e, ledger.ErrStale, func(c *ledger.Change) { c.Version++ })
	w.varyFails(e, ledger.ErrIllegal, func(c *ledger.Change) { c.To = ledger.InDoubt })
	w.varyFails(e, ledger.ErrIllegal, func(c *ledger.Change) { c.To = ledger.Claimed })
	for _, by := range actors {
		if by != ledger.ByClient {
			w.varyFails(e, ledger.ErrIllegal, func(c *ledger.Change) { c.By = by })
		}
	}
	for _, s := range states {
		if s != ledger.Authorized && s != ledger.InDoubt {
			w.varyFails(w.in(s, lanes(20)), ledger.ErrIllegal)
		}
	}
	for _, kind := range []payment.SlotKind{payment.SlotEVM, payment.SlotExpiring, payment.SlotProof} {
		other := w.allow(w.fetch(path("/other"), func(r *ledger.Request) { r.Slot = payment.Slot{Kind: kind, NonceID: [32]byte{9}} }))
		w.varyFails(other, ledger.ErrIllegal)
		w.end(other, ledger.ExpiredUnused)
	}
	e = w.allow(w.onLane(20))
	w.varyFails(e, nil, func(c *ledger.Change) { c.Variant.Echo = make([]byte, payment.MaxEcho+1) })
	w.varyFails(e, ledger.ErrTooShort, func(c *ledger.Change) { c.Variant.Validity = 9 * time.Second })
	w.varyFails(e, ledger.ErrTooShort, func(c *ledger.Change) { c.Variant.Validity = 0 })
	w.varyFails(e, ledger.ErrTooShort, func(c *ledger.Change) { c.Variant.Validity = -time.Hour })
	w.varyFails(e, ledger.ErrTooShort, func(c *ledger.Change) { c.Variant.Expires = w.now().Add(9 * time.Second) })
	w.varyFails(e, ledger.ErrTooShort, func(c *ledger.Change) { c.Variant.Expires = w.now().Add(-time.Hour) })
	w.varyFails(e, ledger.ErrClockSkew, func(c *ledger.Change) { c.Now = w.now().Add(31 * time.Second) })
	w.varyFails(e, ledger.ErrClockSkew, func(c *ledger.Change) { c.Now = w.now().Add(-31 * time.Second) })
	f := w.s.(ledger.Freezer)
	for _, who := range []string{"trader", ""} {
		flying := w.allow(w.onLane(20))
		if err := f.Freeze(w.ctx, who, "ana", "stop"); err != nil {
			w.Fatal(err)
		}
		w.varyFails(e, ledger.ErrFrozen)
		w.move(flying, ledger.InDoubt, ledger.ByClient) // an outcome is recorded nevertheless
		if err := f.Unfreeze(w.ctx, who, "ana", "go on"); err != nil {
			w.Fatal(err)
		}
	}
	w.clock.Step(2 * time.Hour)
	w.varyFails(e, ledger.ErrClockSkew)
	w.clock.Step(-2 * time.Hour)
	w.clock.Advance(59 * time.Second)
	e = w.vary(e, variant("late", time.Minute))
	w.clock.Advance(time.Minute)
	w.varyFails(e, ledger.ErrTooShort) // dead: what is signed next is a new payment
	w.verify()
}

// testVariantCounts lets a payment count for as long as the longest of its
// variants does, with a chain to ask and without.
func testVariantCounts(w *world) {
	for i, watch := range []bool{true, false} {
		who := agent([]string{"one", "two"}[i])
		scope := policy.Scope{Kind: policy.ScopeAgent, Agent: []string{"one", "two"}[i]}
		l := scoped(atMost(payment.Dollar, rolling(time.Hour)), scope)
		day := scoped(atMost(payment.Dollar, policy.Window{Kind: policy.Day}), scope)
		w.clock.Advance(24*time.Hour - w.now().Sub(w.now().Truncate(24*time.Hour)) - 15*time.Second) // to just before midnight
		e := w.allow(w.onLane(4, who, caps(l, day), func(r *ledger.Request) { r.Watched, r.Validity = watch, 10*time.Second }))
		w.clock.Advance(9 * time.Second)
		e = w.vary(e, variant("long", 50*time.Second))
		if watch {
			e = w.end(e, ledger.Settled)
		}
		full := func(limits ...policy.Limit) {
			w.Helper()
			w.deny(w.onLane(4, who, caps(limits...)), policy.CodeCapExceeded)
		}
		w.clock.Advance(time.Minute)
		full(day) // the variant may settle on either side of midnight
		full(l)
		w.clock.Advance(e.ValidBefore.Add(time.Hour - time.Microsecond).Sub(w.now()))
		w.uses(l, payment.Dollar, 1)
		full(l)
		w.verify()
		w.clock.Advance(time.Microsecond)
		w.uses(l, 0, 0)
		w.allow(w.onLane(4, who, caps(l)))
		w.verify()
	}
}
