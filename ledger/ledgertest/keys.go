package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// testKeys calls again under the key of a payment in every state.
func testKeys(w *world) {
	for i, s := range states {
		k := fmt.Sprint("key ", i)
		e := w.in(s, key(k))
		again := func() ledger.Request { return w.fetch(key(k), path(e.Terms.Target)) }
		if s.Freed() {
			other := w.allow(w.fetch(key(k), path("/another"))) // free again, for anything
			w.join(w.fetch(key(k), path("/another")), other.ID, ledger.JoinKey)
			continue
		}
		w.fails(w.fetch(key(k), path("/another")), ledger.ErrKeyConflict)
		if s == ledger.Approved {
			continue // carried out: testApproval
		}
		got := w.join(again(), e.ID, ledger.JoinKey)
		w.same(got, w.entry(e.ID))
		// A seller's new terms are no conflict.
		dearer := w.fetch(key(k), path(e.Terms.Target), usd(2*payment.Dollar))
		w.join(dearer, e.ID, ledger.JoinKey)
		// Another agent's key is another key.
		w.allow(w.fetch(key(k), agent("other "+k)))
		// No caps and no freeze lie between a call and its own answer.
		w.join(w.fetch(key(k), path(e.Terms.Target), caps(atMost(0, ever))), e.ID, ledger.JoinKey)
	}

	// Kept at least 90 days, whatever became of it.
	paid := w.in(ledger.Settled, key("old"))
	w.clock.Advance(90 * 24 * time.Hour)
	w.join(w.fetch(key("old"), path(paid.Terms.Target)), paid.ID, ledger.JoinKey)
	w.fails(w.fetch(key("old"), path("/another")), ledger.ErrKeyConflict)

	// Keys are text of any content, and differ where their bytes do.
	for i, k := range []string{"K", "k", "k ", " k", "k\x00", "'; DROP TABLE payments; --", "ключ", "k%", "\xff\xfe"} {
		w.allow(w.fetch(key(k), path(fmt.Sprint("/text/", i))))
	}
	long := string(make([]byte, 1<<11))
	if _, _, err := w.s.Reserve(w.ctx, w.fetch(key(long))); err == nil {
		w.Errorf("a key of 2 KiB was accepted")
	}
	w.verify()
}

// testKeyRace is F10: 64 callers with one key get one payment and one slot.
func testKeyRace(w *world) {
	l := atMost(100*payment.Dollar, ever)
	var mu sync.Mutex
	won, joined := map[payment.ID]bool{}, map[payment.ID]int{}
	slots := map[payment.Slot]bool{}
	w.together(64, func(int) {
		e, _, err := w.s.Reserve(w.ctx, w.fetch(key("once"), caps(l)))
		mu.Lock()
		defer mu.Unlock()
		slots[e.Slot] = true
		if err == nil {
			won[e.ID] = true
			return
		}
		j, ok := errors.AsType[*ledger.JoinedError](err)
		if !ok || j.Why != ledger.JoinKey {
			w.Errorf("Reserve: %v", err)
			return
		}
		joined[j.ID]++
	})
	if len(won) != 1 || len(joined) != 1 || len(slots) != 1 {
		w.Errorf("%d won, %d joined, with %d slots; want one each", len(won), len(joined), len(slots))
	}
	for id, n := range joined {
		if !won[id] || n != 63 {
			w.Errorf("%d joined %s", n, id)
		}
	}
	w.uses(l, payment.Dollar, 1)
	w.verify()
}

// testEqualCalls is (a): a call equal to one that waits for a person joins it,
// unless both have keys and they differ.
func testEqualCalls(w *world) {
	w.allow(w.fetch()) // in flight or paid, an equal call is another payment
	w.allow(w.fetch())
	done := w.move(w.allow(w.fetch(path("/done"))), ledger.Claimed, ledger.ByClient, delivered)
	w.clock.Advance(time.Second)
	if again := w.allow(w.fetch(path("/done"))); again.ID == done.ID {
		w.Errorf("a delivered fetch was not bought again")
	}

	for i, tt := range []struct {
		first, second string
		joins         bool
	}{
		{"", "", true}, {"a", "", true}, {"", "b", true}, {"c", "d", false},
	} {
		p := path(fmt.Sprint("/equal/", i))
		first := w.ask(w.fetch(p, key(tt.first), asks()))
		if !tt.joins {
			w.ask(w.fetch(p, key(tt.second), asks()))
			continue
		}
		w.join(w.fetch(p, key(tt.second), asks()), first.ID, ledger.JoinEqual)
		again := ledger.JoinEqual
		if tt.second != "" {
			again = ledger.JoinKey // from now on
		}
		w.join(w.fetch(p, key(tt.second)), first.ID, again)                                // also where it would be allowed now
		w.join(w.fetch(p, key(tt.second), asks(), usd(9*payment.Dollar)), first.ID, again) // and on other terms
		// Denied beats pending; others join nothing.
		w.deny(w.fetch(p, func(r *ledger.Request) { r.Verdict = denied(r.Verdict) }), "host_denied")
		w.ask(w.fetch(p, agent("other"), asks()))
		w.ask(w.fetch(p, asks(), func(r *ledger.Request) { r.Payment.Terms.Method = "POST" }))
		// Until somebody answers no.
		w.decide(first, false)
		w.allow(w.fetch(p))
	}
	w.verify()
}

// testGuard is (b): a call that begins after the outcome of an equal one which
// was not delivered, or of a transfer in doubt, is answered by that one.
func testGuard(w *world) {
	fetch := func(opts ...with) ledger.Request { return w.fetch(append(opts, path("/guarded"))...) }
	early := w.now()
	w.clock.Advance(time.Second)
	e := w.allow(fetch(watched()))
	w.allow(fetch(path("/other")))
	w.clock.Advance(time.Second)
	e = w.move(e, ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(time.Second)

	w.join(fetch(), e.ID, ledger.JoinGuard)
	w.join(fetch(key("new")), e.ID, ledger.JoinGuard)
	w.join(fetch(usd(3*payment.Dollar)), e.ID, ledger.JoinGuard)
	w.join(fetch(began(e.OutcomeAt)), e.ID, ledger.JoinGuard)
	w.join(fetch(began(time.Time{})), e.ID, ledger.JoinGuard)
	w.join(fetch(asks()), e.ID, ledger.JoinGuard)
	w.allow(w.fetch(path("/another")))
	w.allow(fetch(agent("other")))
	// A call that began before the outcome is its own payment.
	concurrent := w.allow(fetch(began(early)))
	concurrent = w.move(concurrent, ledger.Claimed, ledger.ByClient, delivered)

	// A claim without delivery guards too, a delivered one does not.
	e = w.move(e, ledger.Claimed, ledger.ByClient)
	w.join(fetch(), e.ID, ledger.JoinGuard)
	if e.ID == concurrent.ID {
		w.Errorf("one payment for two")
	}

	// Until duplicate_window has passed since the outcome, its bytes dead.
	w.until(e.SafeAfter().Add(-time.Microsecond))
	w.join(fetch(), e.ID, ledger.JoinGuard)
	w.until(e.SafeAfter())
	next := w.allow(fetch())

	// Or until the chain releases it, or it is delivered after all.
	next = w.move(next, ledger.InDoubt, ledger.ByClient)
	w.join(fetch(), next.ID, ledger.JoinGuard)
	w.move(next, ledger.ExpiredUnused, ledger.ByChain)
	next = w.allow(fetch())
	next = w.move(next, ledger.InDoubt, ledger.ByClient)
	w.join(fetch(), next.ID, ledger.JoinGuard)
	next = w.move(next, ledger.InDoubt, ledger.ByClient, delivered)
	w.allow(fetch())

	// Validity that ends after the window holds longer.
	short := func(r *ledger.Request) { r.Verdict.DuplicateWindow = time.Second }
	late := w.move(w.allow(w.fetch(path("/late"), short)), ledger.InDoubt, ledger.ByClient)
	w.until(late.ValidBefore.Add(-time.Microsecond))
	w.join(w.fetch(path("/late"), short), late.ID, ledger.JoinGuard)
	w.until(late.ValidBefore)
	w.allow(w.fetch(path("/late"), short))

	// Transfers: in doubt guards, a claim does not (a key was given).
	t := w.move(w.allow(w.pay(key("one"))), ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(time.Second)
	w.join(w.pay(key("two")), t.ID, ledger.JoinGuard)
	w.move(t, ledger.Claimed, ledger.ByClient)
	w.join(w.pay(key("two")), t.ID, ledger.JoinKey) // it was answered
	w.allow(w.pay(key("three")))
	w.verify()
}

// testRetryStorm is F11: after an answer that was lost, every further call of
// the same purchase, whatever its key, finds the one payment.
func testRetryStorm(w *world) {
	l := atMost(1000*payment.Dollar, ever)
	e := w.move(w.allow(w.fetch(key("0"), caps(l))), ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(time.Millisecond)
	w.together(64, func(i int) {
		_, _, err := w.s.Reserve(w.ctx, w.fetch(key(fmt.Sprint(i)), caps(l)))
		if j, ok := errors.AsType[*ledger.JoinedError](err); !ok || j.ID != e.ID {
			w.Errorf("call %d: %v, want payment %s to answer", i, err, e.ID)
		}
	})
	w.uses(l, payment.Dollar, 1)
	w.verify()
}

// testDuplicateTransfer is (c): a transfer without a key, equal to a recent
// one, is denied and told the earlier ID.
func testDuplicateTransfer(w *world) {
	first := w.allow(w.pay())
	w.clock.Advance(5 * time.Second)
	r := w.deny(w.pay(), ledger.CodeDuplicate)
	if !contains(r.Text, string(first.ID)) || !r.Until.Equal(first.AuthorizedAt.Add(10*time.Minute)) {
		w.Errorf("the reason is %q until %v, want the ID %s", r.Text, r.Until, first.ID)
	}
	w.deny(w.pay(asks()), ledger.CodeDuplicate)
	w.allow(w.pay(usd(2 * payment.Dollar)))
	w.allow(w.pay(payees(payment.Address{19: 0x78})))
	w.allow(w.pay(agent("other")))
	w.allow(w.fetch())
	w.allow(w.fetch())
	keyed := w.allow(w.pay(key("again")))
	r = w.deny(w.pay(), ledger.CodeDuplicate)
	if !contains(r.Text, string(keyed.ID)) {
		w.Errorf("the reason is %q, want the ID %s", r.Text, keyed.ID)
	}
	// Settled ones count for it, released ones do not.
	w.move(w.move(keyed, ledger.InDoubt, ledger.ByClient), ledger.ExpiredUnused, ledger.ByChain)
	r = w.deny(w.pay(), ledger.CodeDuplicate)
	if !contains(r.Text, string(first.ID)) {
		w.Errorf("the reason is %q, want the ID %s", r.Text, first.ID)
	}
	w.move(w.move(first, ledger.Claimed, ledger.ByClient), ledger.Settled, ledger.ByChain)
	w.until(first.AuthorizedAt.Add(10 * time.Minute))
	w.deny(w.pay(), ledger.CodeDuplicate)
	w.clock.Advance(time.Microsecond)
	again := w.allow(w.pay())
	w.move(w.move(again, ledger.InDoubt, ledger.ByClient), ledger.ExpiredUnused, ledger.ByChain)
	again = w.allow(w.pay())
	if again.ID == first.ID {
		w.Errorf("one payment for two")
	}
	w.verify()
}

// testSharedKeys answers calls under keys of their own by a payment that has
// another key or none: from then on those keys stand for it.
func testSharedKeys(w *world) {
	for name, call := range map[string]func(...with) ledger.Request{"fetch": w.fetch, "transfer": w.pay} {
		k := func(s string) with { return key(name + " " + s) }
		e := w.move(w.allow(call(k("a"))), ledger.InDoubt, ledger.ByClient)
		w.clock.Advance(time.Second)
		w.join(call(k("b")), e.ID, ledger.JoinGuard)
		w.join(call(k("b")), e.ID, ledger.JoinKey)
		w.fails(call(k("b"), usd(7), func(r *ledger.Request) { r.Fingerprint = payment.Hash{7} }), ledger.ErrKeyConflict)
		e = w.move(e, ledger.Claimed, ledger.ByClient, delivered)
		w.join(call(k("b")), e.ID, ledger.JoinKey)
		w.allow(call(k("b"), agent("other"))) // another agent's key is another key
		w.until(e.SafeAfter().Add(90 * 24 * time.Hour))
		w.join(call(k("b")), e.ID, ledger.JoinKey)
		w.allow(call(k("c"))) // never answered by it

		// Free again with the payment, and then held by another.
		e = w.move(w.allow(call(k("d"), usd(2*payment.Dollar))), ledger.InDoubt, ledger.ByClient)
		w.clock.Advance(time.Second)
		w.join(call(k("e"), usd(2*payment.Dollar)), e.ID, ledger.JoinGuard)
		w.move(e, ledger.ExpiredUnused, ledger.ByChain)
		next := w.allow(call(k("e"), usd(2*payment.Dollar)))
		w.join(call(k("e"), usd(2*payment.Dollar)), next.ID, ledger.JoinKey)
	}

	// One that waits for a person, paid by the call that has no key.
	waits := w.ask(w.fetch(path("/waits"), asks()))
	w.join(w.fetch(path("/waits"), asks(), key("w")), waits.ID, ledger.JoinEqual)
	w.decide(waits, true)
	if e := w.allow(w.fetch(path("/waits"))); e.ID != waits.ID || e.Key != "" {
		w.Errorf("carried out %s with the key %q, want %s", e.ID, e.Key, waits.ID)
	}
	w.move(w.entry(waits.ID), ledger.Claimed, ledger.ByClient, delivered)
	w.clock.Advance(2 * time.Hour)
	w.join(w.fetch(path("/waits"), key("w")), waits.ID, ledger.JoinKey)

	// What the key stood for ends: the approval is not used on top of the answer.
	old := w.ask(w.fetch(path("/old"), key("o"), asks()))
	w.decide(old, true)
	doubt := w.move(w.allow(w.fetch(path("/old"), key("p"))), ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(time.Second)
	w.join(w.fetch(path("/old"), key("o"), usd(2*payment.Dollar)), doubt.ID, ledger.JoinGuard)
	w.replaced(old)
	w.join(w.fetch(path("/old"), key("o")), doubt.ID, ledger.JoinKey)
	w.verify()
}

// testGuardNewest is answered by the newest of equal payments in doubt, in
// whatever order their outcomes came.
func testGuardNewest(w *world) {
	older, newer := w.allow(w.fetch(key("one"))), w.allow(w.fetch(key("two")))
	w.move(newer, ledger.InDoubt, ledger.ByClient)
	w.move(older, ledger.InDoubt, ledger.ByClient)
	w.join(w.fetch(), newer.ID, ledger.JoinGuard)
}
