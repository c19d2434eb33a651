package ledgertest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// testClosed calls after Close.
func testClosed(w *world) {
	e := w.allow(w.fetch())
	approvals := w.s.Approvals()
	if err := w.s.Close(); err != nil {
		w.Fatalf("Close: %v", err)
	}
	if _, _, err := w.s.Reserve(w.ctx, w.fetch()); err == nil {
		w.Errorf("Reserve after Close works")
	}
	if _, err := w.s.Advance(w.ctx, ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Claimed, Now: w.now()}); err == nil {
		w.Errorf("Advance after Close works")
	}
	if _, err := w.s.Entry(w.ctx, e.ID); err == nil {
		w.Errorf("Entry after Close works")
	}
	if _, err := w.s.Use(w.ctx, []policy.Limit{atMost(1, ever)}, w.now()); err == nil {
		w.Errorf("Use after Close works")
	}
	if _, err := approvals.List(w.ctx, "", false, w.now()); err == nil {
		w.Errorf("List after Close works")
	}
	if err := w.s.Close(); err != nil {
		w.Errorf("Close again: %v", err)
	}
}

// testReopened closes and opens: everything is there, counters and all.
func testReopened(w *world) {
	if !w.o.Durable {
		w.T.Skip("the store is not durable")
	}
	l := atMost(10*payment.Dollar, day24)
	paid := w.move(w.allow(w.fetch(usd(6*payment.Dollar), key("k"), caps(l))), ledger.Claimed, ledger.ByClient, delivered)
	asked := w.ask(w.fetch(path("/asked"), asks()))
	w.decide(asked, true)
	w.deny(w.fetch(path("/denied"), func(r *ledger.Request) { r.Verdict = denied(r.Verdict) }), "host_denied")
	if f, ok := w.s.(ledger.Freezer); ok {
		if err := f.Freeze(w.ctx, "frozen", "ana", "kept"); err != nil {
			w.Fatalf("Freeze: %v", err)
		}
	}
	if err := w.s.Close(); err != nil {
		w.Fatalf("Close: %v", err)
	}
	w.clock.Advance(time.Hour)
	w.s = w.open()
	w.same(w.entry(paid.ID), paid)
	w.uses(l, 6*payment.Dollar, 1)
	w.deny(w.fetch(path("/1"), usd(5*payment.Dollar), caps(l)), policy.CodeCapExceeded)
	w.allow(w.fetch(path("/1"), usd(4*payment.Dollar), caps(l)))
	w.join(w.fetch(key("k")), paid.ID, ledger.JoinKey)
	if e := w.allow(w.fetch(path("/asked"))); e.ID != asked.ID {
		w.Errorf("the approval was lost: carried out %s", e.ID)
	}
	if f, ok := w.s.(ledger.Freezer); ok {
		if frozen, why, err := f.Frozen(w.ctx, "frozen"); !frozen || why != "kept" || err != nil {
			w.Errorf("the freeze was lost: %v, %q, %v", frozen, why, err)
		}
	}
	// The ledger's time is kept: a clock set back meanwhile is refused.
	if err := w.s.Close(); err != nil {
		w.Fatalf("Close: %v", err)
	}
	w.clock.Step(-48 * time.Hour)
	w.s = w.open()
	w.fails(w.fetch(path("/2"), usd(payment.Dollar), caps(l)), ledger.ErrClockSkew)
	w.verify()
}

// testTwoHandles is F21: handles of one ledger race one cap, one key and one
// version.
func testTwoHandles(w *world) {
	if !w.o.Shared {
		w.T.Skip("the store is not shared")
	}
	handles := []ledger.Store{w.s, w.open(), w.open()}
	l := atMost(20*payment.Dollar, day24)
	var wins, keyed atomic.Int64
	w.together(60, func(i int) {
		e, _, err := handles[i%3].Reserve(w.ctx, w.fetch(path(fmt.Sprint(i)), usd(1500*payment.Cent/10), caps(l)))
		if err != nil {
			w.Errorf("Reserve: %v", err)
		} else if e.State == ledger.Authorized {
			wins.Add(1)
		}
	})
	if wins.Load() != 13 {
		w.Errorf("%d of $1.50 won under $20, want 13", wins.Load())
	}
	w.together(30, func(i int) {
		_, _, err := handles[i%3].Reserve(w.ctx, w.fetch(path("/keyed"), key("once")))
		if err == nil {
			keyed.Add(1)
		} else if _, ok := errors.AsType[*ledger.JoinedError](err); !ok {
			w.Errorf("Reserve: %v", err)
		}
	})
	if keyed.Load() != 1 {
		w.Errorf("%d won one key", keyed.Load())
	}
	// What one writes the others see at once, counters and freezes too.
	e := w.allow(w.fetch(path("/seen"), caps(atMost(100*payment.Dollar, day24))))
	for i, s := range handles {
		got, err := s.Entry(w.ctx, e.ID)
		if err != nil || got.Version != e.Version {
			w.Errorf("handle %d has version %d, %v; want %d", i, got.Version, err, e.Version)
		}
		if e, err = s.Advance(w.ctx, ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Authorized, By: ledger.ByClient, Now: w.now(), Sent: 1}); err != nil {
			w.Fatalf("handle %d: %v", i, err)
		}
		uses, err := s.Use(w.ctx, []policy.Limit{l}, w.now())
		if want := 13*1500*payment.Cent/10 + 1*payment.Dollar + 1*payment.Dollar; err != nil || uses[0].USD != want {
			w.Errorf("handle %d counts %v, %v; want %v", i, uses[0].USD, err, want)
		}
	}
	if f, ok := handles[1].(ledger.Freezer); ok {
		if err := f.Freeze(w.ctx, "", "ana", "all"); err != nil {
			w.Fatalf("Freeze: %v", err)
		}
		w.deny(w.fetch(path("/frozen")), ledger.CodeFrozen)
	}
	w.verify()
}

// testRecovery kills a process with a payment in flight: the next to reserve
// finds it in doubt, and its retry finds it too.
func testRecovery(w *world) {
	if w.o.Kill == nil || !w.o.Shared {
		w.T.Skip("the store's process cannot be killed")
	}
	l := atMost(10*payment.Dollar, day24)
	other := w.open()
	e, _, err := other.Reserve(w.ctx, w.fetch(usd(6*payment.Dollar), caps(l)))
	if err != nil {
		w.Fatalf("Reserve: %v", err)
	}
	mine := w.allow(w.fetch(path("/mine"), caps(l)))
	began := w.now() // before anybody knows of the outcome
	w.clock.Advance(time.Second)
	w.allow(w.fetch(path("/alive"), caps(l)))
	w.want(w.entry(e.ID), ledger.Authorized)

	w.o.Kill(w, other)
	w.join(w.fetch(usd(6*payment.Dollar), caps(l), func(r *ledger.Request) { r.Began = began }), e.ID, ledger.JoinGuard)
	got := w.want(w.entry(e.ID), ledger.InDoubt)
	if !got.Recovered || got.Note == "" || got.OutcomeAt.IsZero() {
		w.Errorf("recovered: %v, note %q, outcome at %v", got.Recovered, got.Note, got.OutcomeAt)
	}
	w.want(w.entry(mine.ID), ledger.Authorized)
	w.uses(l, 8*payment.Dollar, 3)
	w.deny(w.fetch(path("/5"), usd(3*payment.Dollar), caps(l)), policy.CodeCapExceeded)
	w.verify()
}
