package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// lanes pays on a lane of a pool of n, with a chain that is watched.
func lanes(n int) with {
	return func(r *ledger.Request) {
		r.Slot, r.Lanes, r.Watched = payment.Slot{Kind: payment.SlotLane}, n, true
	}
}

// onLane is a payment of its own on a lane of a pool of n.
func (w *world) onLane(n int, opts ...with) ledger.Request {
	w.serial++
	return w.fetch(append([]with{path(fmt.Sprintf("/lane/%d", w.serial)), lanes(n)}, opts...)...)
}

// end lets the chain, or by whom the changes say, end e.
func (w *world) end(e ledger.Entry, to ledger.State, opts ...func(*ledger.Change)) ledger.Entry {
	w.Helper()
	if e.State == ledger.Authorized {
		e = w.move(e, ledger.InDoubt, ledger.ByClient)
	}
	return w.move(e, to, ledger.ByChain, opts...)
}

func assumed(c *ledger.Change) { c.Assumed = true }

// on demands the lane and the nonce of e.
func (w *world) on(e ledger.Entry, key [32]byte, nonce uint64) {
	w.Helper()
	if s := e.Slot; s.Kind != payment.SlotLane || s.NonceID != key || s.Nonce != nonce || s.From != e.Payer || s.Chain != e.Terms.Asset.Chain {
		w.Fatalf("payment %s has %s, want lane %x at %d", e.ID, s, key[:4], nonce)
	}
}

// fresh demands that e has a lane that nobody had.
func (w *world) fresh(e ledger.Entry, seen map[[32]byte]bool) {
	w.Helper()
	if key := e.Slot.NonceID; key == [32]byte{} || key == allOnes || seen[key] {
		w.Fatalf("payment %s has %s, which is not a fresh lane", e.ID, e.Slot)
	}
	w.on(e, e.Slot.NonceID, 0)
	seen[e.Slot.NonceID] = true
}

var allOnes = func() (key [32]byte) {
	for i := range key {
		key[i] = 0xff
	}
	return key
}()

// testLanes gives a lane again when the chain told what became of its payment,
// and never before.
func testLanes(w *world) {
	seen := map[[32]byte]bool{}
	a, b := w.allow(w.onLane(2)), w.allow(w.onLane(2, func(r *ledger.Request) { r.Validity = 20 * time.Second }))
	w.fresh(a, seen)
	w.fresh(b, seen)
	full := func(until time.Time) {
		w.Helper()
		if r := w.deny(w.onLane(2), ledger.CodeNoFreeLane); !r.Until.Equal(until) {
			w.Errorf("a lane frees at %v, want %v", r.Until, until)
		}
	}
	full(b.ValidBefore)
	b = w.move(b, ledger.Claimed, ledger.ByClient)
	a = w.move(a, ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(time.Hour) // by no clock of ours
	full(b.ValidBefore)

	ka, kb := a.Slot.NonceID, b.Slot.NonceID
	w.end(a, ledger.ExpiredUnused)
	a = w.allow(w.onLane(2))
	w.on(a, ka, 0) // its nonce was not used
	full(b.ValidBefore)
	w.end(b, ledger.Settled)
	w.end(a, ledger.ExpiredUnused)
	b = w.allow(w.onLane(2))
	w.on(b, kb, 1) // one that was used costs less
	a = w.allow(w.onLane(2))
	w.on(a, ka, 0)
	w.end(a, ledger.Cancelled)
	w.end(b, ledger.Settled)
	a, b = w.allow(w.onLane(2)), w.allow(w.onLane(2))
	w.on(a, ka, 1) // the first of the pool
	w.on(b, kb, 2)

	// What nobody knows of is not used again, and its place is free.
	b = w.end(b, ledger.NeedsOperator)
	full(a.ValidBefore)
	w.move(b, ledger.Settled, ledger.ByOperator)
	c := w.allow(w.onLane(2))
	w.fresh(c, seen)
	w.end(c, ledger.ExpiredUnused, assumed)
	c = w.allow(w.onLane(2))
	w.fresh(c, seen)
	full(a.ValidBefore)
	d := w.allow(w.onLane(3))
	w.fresh(d, seen)
	w.end(a, ledger.Settled)
	full(c.ValidBefore) // a pool that was made smaller
	w.end(c, ledger.Settled)
	e := w.allow(w.onLane(2))
	w.on(e, ka, 2)

	// Each account has its own on each chain.
	full(d.ValidBefore)
	w.fresh(w.allow(w.onLane(2, func(r *ledger.Request) { r.Payer = payment.Address{19: 0xb2} })), seen)
	w.fresh(w.allow(w.onLane(2, func(r *ledger.Request) { r.Payment.Terms.Asset.Chain = payment.Tempo })), seen)

	for range 5 { // no pool, and no chain that could tell
		w.fresh(w.allow(w.onLane(0)), seen)
		w.fresh(w.allow(w.onLane(2, func(r *ledger.Request) { r.Watched = false })), seen)
	}
	named := func(key [32]byte) with {
		return func(r *ledger.Request) { r.Slot.NonceID, r.Slot.Nonce = key, 99 }
	}
	w.fails(w.onLane(2, named(ka)), ledger.ErrTaken)
	if e, _, err := w.s.Reserve(w.ctx, w.onLane(2, named(allOnes))); err == nil {
		w.Errorf("the expiring nonce is a lane: %s", e.Slot)
	}

	if w.o.Durable {
		if err := w.s.Close(); err != nil {
			w.Fatal(err)
		}
		w.s = w.open()
	}
	full(d.ValidBefore)
	w.end(w.entry(e.ID), ledger.Settled)
	w.on(w.allow(w.onLane(2)), ka, 3)
	full(d.ValidBefore)
	w.verify()
}

// testLaneApproved leaves an approval unspent where no lane is free.
func testLaneApproved(w *world) {
	r := w.onLane(1, asks())
	asked := w.ask(r)
	first := w.allow(w.onLane(1))
	w.decide(asked, true)
	again := func() ledger.Request {
		c := w.fetch(path(r.Payment.Terms.Target), lanes(1), asks())
		return c
	}
	if e := w.reserve(again()); e.ID != asked.ID || e.State != ledger.Approved {
		w.Fatalf("%s %s, want the approved one", e.State, e.ID)
	} else {
		w.reason(e, ledger.CodeNoFreeLane)
	}
	w.end(first, ledger.Settled)
	e := w.allow(again())
	if e.ID != asked.ID {
		w.Errorf("carried out %s, want %s", e.ID, asked.ID)
	}
	w.on(e, first.Slot.NonceID, 1)
	w.verify()
}

// testLaneRace has 64 payers and several handles race for four lanes: no lane
// ever has two payments, and no nonce moves money twice.
func testLaneRace(w *world) {
	handles := []ledger.Store{w.s}
	if w.o.Shared {
		handles = append(handles, w.open(), w.open())
	}
	type use struct {
		key   [32]byte
		nonce uint64
	}
	var mu sync.Mutex
	live, used := map[[32]byte]payment.ID{}, map[use]payment.ID{}
	var full, most atomic.Int64
	w.together(64, func(i int) {
		s := handles[i%len(handles)]
		for n := 0; n < 3; {
			e, _, err := s.Reserve(w.ctx, w.fetch(path(fmt.Sprintf("/%d/%d/%d", i, n, full.Load())), lanes(4)))
			if err != nil {
				w.Errorf("Reserve: %v", err)
				return
			}
			if e.State != ledger.Authorized {
				if len(e.Reasons) != 1 || e.Reasons[0].Code != ledger.CodeNoFreeLane {
					w.Errorf("denied: %v", codes(e.Reasons))
					return
				}
				full.Add(1)
				continue
			}
			mu.Lock()
			if id := live[e.Slot.NonceID]; id != "" {
				w.Errorf("%s and %s are on one lane", id, e.ID)
			}
			live[e.Slot.NonceID] = e.ID
			most.Store(max(most.Load(), int64(len(live))))
			to := ledger.Settled
			if (i+n)%3 == 0 {
				to = ledger.ExpiredUnused
			}
			if u := (use{e.Slot.NonceID, e.Slot.Nonce}); to == ledger.Settled {
				if id := used[u]; id != "" {
					w.Errorf("%s and %s used one nonce", id, e.ID)
				}
				used[u] = e.ID
			}
			mu.Unlock()
			for _, st := range []ledger.State{ledger.InDoubt, to} {
				by := ledger.ByChain
				if st == ledger.InDoubt {
					by = ledger.ByClient
				} else {
					mu.Lock()
					delete(live, e.Slot.NonceID)
					mu.Unlock()
				}
				if e, err = s.Advance(w.ctx, ledger.Change{ID: e.ID, Version: e.Version, To: st, By: by, Now: w.now()}); err != nil {
					w.Errorf("Advance: %v", err)
					return
				}
			}
			n++
		}
	})
	if n := most.Load(); n < 1 || n > 4 {
		w.Errorf("%d lanes were in use at once", n)
	}
	keys := map[[32]byte]int{}
	for u := range used {
		keys[u.key]++
	}
	if len(keys) > 4 {
		w.Errorf("%d lanes were opened", len(keys))
	}
	for key, n := range keys {
		for nonce := range uint64(n) {
			if used[use{key, nonce}] == "" {
				w.Errorf("lane %x has a gap at %d", key[:4], nonce)
			}
		}
	}
	w.verify()
}

// testLaneModel plays random payments on lanes, and holds each lane against what
// became of all that were on it before.
func testLaneModel(w *world) {
	account := 0
	rapid.Check(w.T, func(t *rapid.T) {
		account++
		payer := payment.Address{0: 1, 18: byte(account >> 8), 19: byte(account)}
		type lane struct {
			last    ledger.Entry
			retired bool
		}
		pool := map[[32]byte]*lane{}
		var live []ledger.Entry
		size := rapid.IntRange(1, 4).Draw(t, "lanes")
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				e := w.reserve(w.onLane(size, func(r *ledger.Request) { r.Payer = payer }))
				if (e.State == ledger.Authorized) != (len(live) < size) {
					t.Fatalf("%s with %d in flight on %d lanes", e.State, len(live), size)
				}
				if e.State != ledger.Authorized {
					return
				}
				live = append(live, e)
				l := pool[e.Slot.NonceID]
				if l == nil {
					for _, o := range pool {
						if !o.retired && !o.last.State.Live() {
							t.Fatalf("a lane was opened, and %s is free", o.last.Slot)
						}
					}
					l = &lane{}
					pool[e.Slot.NonceID] = l
					if e.Slot.Nonce != 0 {
						t.Fatalf("a new lane begins at %d", e.Slot.Nonce)
					}
				} else {
					want := l.last.Slot.Nonce
					if l.last.State != ledger.ExpiredUnused {
						want++
					}
					if l.retired || l.last.State.Live() || e.Slot.Nonce != want {
						t.Fatalf("%s after %s, which is %s", e.Slot, l.last.Slot, l.last.State)
					}
					for key, o := range pool {
						if key != e.Slot.NonceID && e.Slot.Nonce == 0 && !o.retired && o.last.State == ledger.Settled {
							t.Fatalf("%s, and %s was used before", e.Slot, o.last.Slot)
						}
					}
				}
				l.last = e
			},
			"end": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("nothing is in flight")
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				e := live[i]
				l := pool[e.Slot.NonceID]
				switch pick(t, "how", "settled", "unused", "unused", "cancelled", "assumed", "operator", "claimed") {
				case "settled":
					e = w.end(e, ledger.Settled)
				case "unused":
					e = w.end(e, ledger.ExpiredUnused)
				case "cancelled":
					e = w.end(e, ledger.Cancelled)
				case "assumed":
					e, l.retired = w.end(e, ledger.ExpiredUnused, assumed), true
				case "operator":
					e, l.retired = w.move(w.end(e, ledger.NeedsOperator), ledger.ExpiredUnused, ledger.ByOperator), true
				case "claimed":
					if e.State == ledger.Authorized {
						e = w.move(e, ledger.Claimed, ledger.ByClient)
					}
				}
				if l.last = e; e.State.Live() {
					live[i] = e
				} else {
					live = append(live[:i], live[i+1:]...)
				}
			},
		})
	})
	w.verify()
}

// testTakenForEver lets no payment have a memo or a bound nonce that one ever
// had, whatever became of it.
func testTakenForEver(w *world) {
	n := byte(0)
	for _, kind := range []payment.SlotKind{payment.SlotExpiring, payment.SlotEVM} {
		for _, s := range []ledger.State{
			ledger.Authorized, ledger.Claimed, ledger.InDoubt, ledger.Settled, ledger.ExpiredUnused, ledger.Cancelled, ledger.NeedsOperator,
		} {
			n++
			use := func(r *ledger.Request) { r.Slot = payment.Slot{Kind: kind, NonceID: [32]byte{n}} }
			e := w.in(s, use)
			w.fails(w.fetch(path("/other"), use), ledger.ErrTaken)
			w.fails(w.fetch(path("/other"), use, agent("other")), ledger.ErrTaken)
			if w.o.Shared {
				if _, _, err := w.open().Reserve(w.ctx, w.fetch(path("/other"), use)); !errors.Is(err, ledger.ErrTaken) {
					w.Errorf("another handle: %v, want ErrTaken", err)
				}
			}
			// Another account's is another slot.
			w.allow(w.fetch(path(fmt.Sprint("/elsewhere/", n)), use, func(r *ledger.Request) { r.Payer = payment.Address{19: 0xb2} }))
			w.want(w.entry(e.ID), s)
		}
	}
	// One that was never authorized takes nothing.
	use := func(r *ledger.Request) { r.Slot = payment.Slot{Kind: payment.SlotExpiring, NonceID: [32]byte{0xfe}} }
	w.deny(w.fetch(path("/denied"), use, func(r *ledger.Request) { r.Verdict = denied(r.Verdict) }), "host_denied")
	w.allow(w.fetch(path("/allowed"), use))
	none := func(r *ledger.Request) { r.Slot = payment.Slot{Kind: payment.SlotExpiring} }
	if e, _, err := w.s.Reserve(w.ctx, w.fetch(path("/none"), none)); err == nil {
		w.Errorf("%s without a memo has %s", e.State, e.Slot)
	}
	w.verify()
}
