package ledgertest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// testDeliveries hands out what channels have to tell, each once at a time, until
// all of it was told.
func testDeliveries(w *world) {
	box, ok := w.s.(ledger.Deliveries)
	if !ok {
		w.Fatalf("the store is no ledger.Deliveries")
	}
	const lease = 30 * time.Second
	claim := func(box ledger.Deliveries, channel string, n int) []ledger.Delivery {
		w.Helper()
		got, err := box.ClaimDeliveries(w.ctx, channel, w.now(), lease, n)
		if err != nil {
			w.Fatalf("claim: %v", err)
		}
		return got
	}
	claims := func(channel string, told ledger.Told, attempts int, want ...payment.ApprovalID) {
		w.Helper()
		got := claim(box, channel, 10)
		if len(got) != len(want) {
			w.Fatalf("%d are due on %s, want %d: %+v", len(got), channel, len(want), got)
		}
		for i, d := range got {
			if d.Approval.ID != want[i] || d.Channel != channel || d.Told != told || d.Attempts != attempts {
				w.Errorf("due is %s on %s, told %d, after %d, want %s, %d, %d", d.Approval.ID, d.Channel, d.Told, d.Attempts, want[i], told, attempts)
			}
		}
	}
	end := func(channel string, id payment.ApprovalID, told ledger.Told, next time.Time, failure string) {
		w.Helper()
		if err := box.EndDelivery(w.ctx, channel, id, told, next, failure); err != nil {
			w.Fatalf("end: %v", err)
		}
	}
	claims("a", 0, 0)
	first := w.ask(w.fetch(asks(), path("/1")))
	w.clock.Advance(time.Second)
	second := w.ask(w.fetch(asks(), path("/2")))
	one, two := first.ApprovalID, second.ApprovalID

	// Each channel has its own, oldest first; a lease keeps others away.
	if got := claim(box, "a", 1); len(got) != 1 || got[0].Approval.ID != one || got[0].Approval.TermsHash != first.TermsHash ||
		got[0].Approval.Status != ledger.ApprovalPending {
		w.Fatalf("the first is %+v", got)
	}
	claims("a", 0, 0, two)
	claims("a", 0, 0)
	claims("b", 0, 0, one, two)
	w.clock.Advance(lease)
	claims("a", 0, 0, one, two) // whoever held them died

	// A failure waits for its next attempt; what arrived is not told again.
	end("a", one, ledger.ToldNothing, w.now().Add(time.Minute), strings.Repeat("x", 1000))
	end("a", two, ledger.ToldAsked, time.Time{}, "")
	claims("a", 0, 0)
	w.clock.Advance(59 * time.Second)
	claims("a", 0, 0)
	if u, err := box.Undelivered(w.ctx, "a", w.now()); err != nil || len(u) != 1 || u[0].Approval != one || u[0].Attempts != 1 ||
		!u[0].NextAt.Equal(w.now().Add(time.Second)) || u[0].Failure == "" || len(u[0].Failure) > 300 {
		w.Errorf("undelivered: %+v, %v", u, err)
	}
	w.clock.Advance(time.Second)
	claims("a", 0, 1, one)
	end("a", one, ledger.ToldAsked, time.Time{}, "")
	w.clock.Advance(time.Hour)
	claims("a", 0, 0)

	// How it ended is due where it was told that it was asked.
	w.decide(first, true)
	claims("a", ledger.ToldAsked, 0, one)
	end("a", one, ledger.ToldAsked, w.now().Add(time.Minute), "down")
	w.clock.Advance(time.Minute)
	claims("a", ledger.ToldAsked, 1, one)
	end("a", one, ledger.ToldOutcome, time.Time{}, "")
	w.clock.Advance(time.Minute)
	claims("a", 0, 0)
	claims("b", 0, 0, two) // nobody on b was told of the first: its outcome is not due
	if err := box.EndDelivery(w.ctx, "a", one, ledger.ToldAsked, time.Time{}, ""); !errors.Is(err, ledger.ErrNotFound) {
		w.Errorf("one of which all was told: %v", err)
	}

	// So is an expiry that nobody wrote down.
	w.clock.Advance(25 * time.Hour)
	if got := claim(box, "a", 10); len(got) != 1 || got[0].Approval.ID != two || got[0].Approval.Status != ledger.ApprovalLapsed || got[0].Told != ledger.ToldAsked {
		w.Fatalf("after the expiry: %+v", got)
	}
	end("a", two, ledger.ToldOutcome, time.Time{}, "")
	claims("b", 0, 0)
	for _, channel := range []string{"a", "b"} {
		if u, err := box.Undelivered(w.ctx, channel, w.now()); len(u) != 0 || err != nil {
			w.Errorf("undelivered on %s: %+v, %v", channel, u, err)
		}
	}
	for _, bad := range []string{"", "a b", "it's", strings.Repeat("x", 65)} {
		if _, err := box.ClaimDeliveries(w.ctx, bad, w.now(), lease, 1); err == nil {
			w.Errorf("a channel named %q", bad)
		}
	}
	w.verify()
}

// testDeliveryRace gives each delivery to one of many.
func testDeliveryRace(w *world) {
	handles := []ledger.Store{w.s}
	if w.o.Shared {
		handles = append(handles, w.open(), w.open())
	}
	want := map[payment.ApprovalID]bool{}
	for range 12 {
		want[w.ask(w.fetch(asks(), path("/"+string(payment.NewID(w.now()))))).ApprovalID] = true
	}
	var mu sync.Mutex
	got := map[payment.ApprovalID]int{}
	var wg sync.WaitGroup
	for i := range 12 {
		box := handles[i%len(handles)].(ledger.Deliveries)
		wg.Go(func() {
			for {
				ds, err := box.ClaimDeliveries(w.ctx, "hook", w.now(), time.Minute, 2)
				if err != nil {
					w.Errorf("claim: %v", err)
				}
				if len(ds) == 0 {
					return
				}
				mu.Lock()
				for _, d := range ds {
					got[d.Approval.ID]++
				}
				mu.Unlock()
				for _, d := range ds {
					if err := box.EndDelivery(w.ctx, "hook", d.Approval.ID, ledger.ToldAsked, time.Time{}, ""); err != nil {
						w.Errorf("end: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	for id := range want {
		if got[id] != 1 {
			w.Errorf("%s was handed out %d times", id, got[id])
		}
	}
	if len(got) != len(want) {
		w.Errorf("%d were handed out, want %d", len(got), len(want))
	}
}
