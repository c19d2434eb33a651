package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
)

// ticking has the ledger see time that passes, whatever the clock shows.
func ticking(w *world) {
	start := time.Now() // of the bubble
	w.elapsed = func() time.Duration { return time.Since(start) }
}

// F20: a clock that is set by up to 48 hours, forward or back, while the process
// runs: nothing is signed until it is right again, and the cap holds all along.
func TestF20_ClockSteps(t *testing.T) {
	for _, step := range []time.Duration{48 * time.Hour, -48 * time.Hour, 24*time.Hour + time.Minute, -25 * time.Hour, 2 * time.Minute, -2 * time.Minute} {
		t.Run(step.String(), func(t *testing.T) {
			play(t, setup{policy: capped("$0.25 / 24h"), begin: ticking}, func(t *testing.T, w *world) {
				s, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
				w.chain.SetMining(canopytest.Manual)
				w.doubt(url + "0")
				w.doubt(url + "1")
				w.clock.Advance(step)
				for i := range 3 {
					w.refused("the clock was set", func() {
						if g := w.get(fmt.Sprint(url, 2+i)); !errors.Is(g.err, canopy.ErrClockSkew) {
							t.Errorf("got %+v, want ErrClockSkew", g)
						}
					})
				}
				w.clock.Advance(-step)
				w.refused("the clock is right again", func() { w.denied(w.get(url+"5"), "cap_exceeded") })
				w.counted(2 * dime)
				w.handed(s, 2)
				for _, a := range s.Harvest().Unsettled() {
					w.chain.Enqueue(a.Authorization)
				}
				w.step("what was held is settled", func() { w.chain.Mine() })
				w.spent(2 * dime)
			})
		})
	}
}

// F20 of an operator who takes note of a clock that stays where it was set: no
// window is opened by it for what can still move.
func TestF20_AcknowledgedJump(t *testing.T) {
	play(t, setup{policy: capped("$0.15 / 24h"), begin: ticking, config: watching}, func(t *testing.T, w *world) {
		_, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
		id := w.doubt(url)
		w.chain.SetMining(canopytest.Manual)
		w.clock.Advance(48 * time.Hour)
		w.refused("the clock was set", func() {
			if g := w.get(url + "2"); !errors.Is(g.err, canopy.ErrClockSkew) {
				t.Errorf("got %+v, want ErrClockSkew", g)
			}
		})
		must(t, w.store.(ledger.Acker).Ack(t.Context(), "ana", "the battery died"))
		w.refused("the hold is live still", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
		w.state(id, ledger.InDoubt)
		w.counted(dime)
	})
}

// F29: a hold that outlives its window counts in the next ones, until the chain
// tells what became of it.
func TestF29_HoldOutlivesItsWindow(t *testing.T) {
	for _, window := range []string{"1m", "1h", "day"} {
		t.Run(window, func(t *testing.T) {
			play(t, setup{policy: capped("$0.15 / " + window), config: watching}, func(t *testing.T, w *world) {
				_, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
				w.chain.SetMining(canopytest.Manual)
				id := w.doubt(url)
				for i := range 6 {
					w.clock.Advance(time.Duration(i) * 8 * time.Hour)
					w.clock.Advance(61 * time.Second)
					w.refused("another window", func() { w.denied(w.get(fmt.Sprint(url, 2+i)), "cap_exceeded") })
					w.counted(dime)
				}
				w.step("a round", func() { w.reconcile() })
				w.state(id, ledger.InDoubt)
				w.chain.Finalize()
				w.step("it is final", func() { w.reconcile() })
				w.state(id, ledger.ExpiredUnused)
				w.counted(0)
				w.doubt(url + "9")
				w.over()
			})
		})
	}
}

// F30: what settles in a later window than it was authorized in counts in both.
func TestF30_SettlesInALaterWindow(t *testing.T) {
	t.Run("calendar", func(t *testing.T) {
		play(t, setup{policy: capped("$0.15 / day"), config: watching}, func(t *testing.T, w *world) {
			s, url := w.sells(dime, canopytest.First(canopytest.DropBeforeSettling()))
			midnight := w.clock.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
			w.clock.Set(midnight.Add(-20 * time.Second))
			id := w.doubt(url)
			w.refused("the day it was authorized", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
			w.clock.Set(midnight.Add(10 * time.Second))
			w.refused("the next day, not settled", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
			w.step("it settles", func() {
				_, err := s.Harvest().SettleAll(context.Background())
				must(t, err)
				w.chain.Finalize()
				w.reconcile()
			})
			if e := w.state(id, ledger.Settled); e.SpentAt.Before(midnight) {
				t.Errorf("it was spent at %s, want after %s", e.SpentAt, midnight)
			}
			w.refused("the next day, settled", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
			w.clock.Set(midnight.Add(23 * time.Hour))
			w.refused("the end of the next day", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
			w.clock.Set(midnight.Add(24*time.Hour + time.Second))
			w.bought(w.get(url + "2"))
			w.over()
			w.spent(2 * dime)
		})
	})
	t.Run("rolling", func(t *testing.T) {
		play(t, setup{policy: capped("$0.15 / 1m"), config: watching}, func(t *testing.T, w *world) {
			s, url := w.sells(dime, canopytest.First(canopytest.DropBeforeSettling()))
			start := w.clock.Now()
			id := w.doubt(url)
			w.clock.Set(start.Add(50 * time.Second))
			w.step("it settles late", func() {
				_, err := s.Harvest().SettleAll(context.Background())
				must(t, err)
				w.chain.Finalize()
				w.reconcile()
			})
			spent := w.state(id, ledger.Settled).SpentAt
			w.clock.Set(start.Add(65 * time.Second))
			w.refused("a window after it was authorized", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
			w.clock.Set(spent.Add(61 * time.Second))
			w.bought(w.get(url + "2"))
			w.over()
		})
	})
}
