package ledgertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// finds demands that the ledger knows the slots as those of these payments.
func (w *world) finds(s ledger.Store, slots []payment.Slot, want ...payment.ID) {
	w.Helper()
	f, ok := s.(ledger.SlotFinder)
	if !ok {
		w.Fatalf("the store is no ledger.SlotFinder")
	}
	got, err := f.FindSlots(w.ctx, slots)
	if err != nil || !slices.Equal(got, want) {
		w.Errorf("FindSlots gives %q, %v, want %q", got, err, want)
	}
}

// testFindSlots knows whose every slot is or was, and of no other.
func testFindSlots(w *world) {
	var slots []payment.Slot
	var ids []payment.ID
	for _, s := range states {
		e := w.in(s)
		if e.Slot.IsZero() {
			continue
		}
		slots, ids = append(slots, e.Slot), append(ids, e.ID)
	}
	stranger := slots[0]
	stranger.NonceID[0]++
	slots, ids = append(slots, stranger, payment.Slot{}), append(ids, "", "")
	w.finds(w.s, slots, ids...)
	w.finds(w.s, nil)

	// A slot that was given again is the latest one's, live or not.
	given := payment.Slot{Kind: payment.SlotLane, NonceID: [32]byte{7}}
	use := func(r *ledger.Request) { r.Slot = given }
	first := w.move(w.allow(w.fetch(path("/one"), use)), ledger.InDoubt, ledger.ByClient)
	w.finds(w.s, []payment.Slot{first.Slot}, first.ID)
	w.move(first, ledger.ExpiredUnused, ledger.ByChain)
	w.finds(w.s, []payment.Slot{first.Slot}, first.ID)
	second := w.move(w.allow(w.fetch(path("/two"), use)), ledger.InDoubt, ledger.ByClient)
	w.finds(w.s, []payment.Slot{first.Slot}, second.ID)
	w.move(second, ledger.Settled, ledger.ByChain)
	w.finds(w.s, []payment.Slot{first.Slot}, second.ID)

	if w.o.Shared {
		w.finds(w.open(), slots, ids...)
	}
	if w.o.Durable {
		if err := w.s.Close(); err != nil {
			w.Fatal(err)
		}
		w.s = w.open()
		w.finds(w.s, slots, ids...)
	}
	w.verify()
}

// testCursors keeps what was read so far, and never goes back.
func testCursors(w *world) {
	c, ok := w.s.(ledger.Cursors)
	if !ok {
		w.Fatalf("the store is no ledger.Cursors")
	}
	stands := func(c ledger.Cursors, name string, want uint64, there bool) {
		w.Helper()
		if at, ok, err := c.Cursor(w.ctx, name); at != want || ok != there || err != nil {
			w.Errorf("cursor %q is at %d, %v, %v, want %d, %v", name, at, ok, err, want, there)
		}
	}
	move := func(name string, at uint64) {
		w.Helper()
		if err := c.MoveCursor(w.ctx, name, at); err != nil {
			w.Errorf("cursor %q to %d: %v", name, at, err)
		}
	}
	stands(c, "a", 0, false)
	move("a", 0)
	stands(c, "a", 0, true)
	move("a", 7)
	move("a", 3)
	stands(c, "a", 7, true)
	move("it's; --", 1<<63-1)
	stands(c, "it's; --", 1<<63-1, true)
	stands(c, "b", 0, false)
	for _, bad := range []error{c.MoveCursor(w.ctx, "", 1), c.MoveCursor(w.ctx, "a", 1<<63), c.MoveCursor(w.ctx, string(make([]byte, 4096)), 1)} {
		if bad == nil {
			w.Errorf("a cursor that cannot be kept is moved")
		}
	}
	stands(c, "a", 7, true)
	if w.o.Shared {
		stands(w.open().(ledger.Cursors), "a", 7, true)
	}
	if w.o.Durable {
		if err := w.s.Close(); err != nil {
			w.Fatal(err)
		}
		w.s = w.open()
		stands(w.s.(ledger.Cursors), "a", 7, true)
	}
}

// testRecover puts in doubt what the dead left, and nothing of the living.
func testRecover(w *world) {
	recovered := func(s ledger.Store, want int) {
		w.Helper()
		if n, err := s.(ledger.Recoverer).Recover(w.ctx); n != want || err != nil {
			w.Errorf("recovered %d, %v, want %d", n, err, want)
		}
	}
	mine := w.allow(w.fetch(path("/mine")))
	recovered(w.s, 0)
	if !w.o.Shared || w.o.Kill == nil {
		w.want(w.entry(mine.ID), ledger.Authorized)
		return
	}
	other := w.open()
	theirs, _, err := other.Reserve(w.ctx, w.fetch(path("/theirs")))
	if err != nil {
		w.Fatal(err)
	}
	recovered(w.s, 0)
	w.o.Kill(w, other)
	recovered(w.s, 1)
	recovered(w.s, 0)
	if e := w.want(w.entry(theirs.ID), ledger.InDoubt); !e.Recovered {
		w.Errorf("it does not say that it was recovered")
	}
	w.want(w.entry(mine.ID), ledger.Authorized)
	w.verify()
}

// testOnly carries out the one payment that a call names, once, and makes no
// other.
func testOnly(w *world) {
	only := func(id payment.ID) with { return func(r *ledger.Request) { r.Only = id } }
	count := func(want int) {
		w.Helper()
		n := 0
		for range w.s.Entries(w.ctx, ledger.Query{}) {
			n++
		}
		if n != want {
			w.Errorf("there are %d payments, want %d", n, want)
		}
	}
	a, b := w.ask(w.pay(asks(), key("a"))), w.ask(w.pay(asks(), key("b"))) // equal but for the key
	w.join(w.pay(only(a.ID)), a.ID, ledger.JoinItself)
	w.decide(a, true)
	w.decide(b, true)
	w.join(w.pay(usd(2), func(r *ledger.Request) { r.Fingerprint = a.Fingerprint }, only(a.ID)), a.ID, ledger.JoinItself) // other terms
	if e := w.allow(w.pay(only(a.ID), asks())); e.ID != a.ID || e.Key != "a" {
		w.Errorf("carried out %s (%s), want %s", e.ID, e.Key, a.ID)
	}
	w.join(w.pay(only(a.ID)), a.ID, ledger.JoinItself)
	w.move(w.entry(a.ID), ledger.InDoubt, ledger.ByClient)
	w.join(w.pay(only(a.ID)), a.ID, ledger.JoinItself)
	count(2)
	if e := w.allow(w.pay(only(b.ID))); e.ID != b.ID {
		w.Errorf("carried out %s, want %s", e.ID, b.ID)
	}
	for name, r := range map[string]ledger.Request{
		"unknown":       w.pay(only(payment.NewID(w.now()))),
		"another agent": w.pay(only(b.ID), agent("other")),
		"another call":  w.pay(usd(3), only(b.ID)),
	} {
		if e, _, err := w.s.Reserve(w.ctx, r); !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("%s: %s %s, %v", name, e.State, e.ID, err)
		}
	}

	// A cap that is full, a freeze and an expiry leave no new payment either.
	c := w.ask(w.pay(usd(5*payment.Dollar), asks()))
	w.decide(c, true)
	full := caps(atMost(payment.Dollar, ever))
	if e := w.want(w.reserve(w.pay(usd(5*payment.Dollar), only(c.ID), full)), ledger.Approved); e.ID != c.ID || len(e.Reasons) == 0 {
		w.Errorf("a full cap gives %s, %v", e.ID, codes(e.Reasons))
	}
	if f, ok := w.s.(ledger.Freezer); ok {
		must(w, f.Freeze(w.ctx, "", "ana", "stop"))
		w.reason(w.want(w.reserve(w.pay(usd(5*payment.Dollar), only(c.ID))), ledger.Approved), ledger.CodeFrozen)
		must(w, f.Unfreeze(w.ctx, "", "ana", "go on"))
	}
	w.clock.Advance(25 * 60 * 60 * 1e9)
	if e := w.join(w.pay(usd(5*payment.Dollar), only(c.ID)), c.ID, ledger.JoinItself); e.State != ledger.ApprovalExpired {
		w.Errorf("an expired approval leaves it %s", e.State)
	}
	count(3)
	w.verify()
}

func must(w *world, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(fmt.Errorf("unexpected: %w", err))
	}
}
