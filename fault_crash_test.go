package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
)

// only returns the one payment that the ledger has.
func (w *world) only() ledger.Entry {
	w.t.Helper()
	all := w.entries()
	if len(all) != 1 {
		w.t.Fatalf("the ledger has %d payments, want 1", len(all))
	}
	return all[0]
}

func (w *world) entries() []ledger.Entry {
	w.t.Helper()
	var all []ledger.Entry
	for e, err := range w.store.Entries(context.Background(), ledger.Query{Oldest: true}) {
		must(w.t, err)
		all = append(all, e)
	}
	return all
}

// killed buys at url, and fails the test unless the process died of it.
func (w *world) killed(url string, opts ...canopy.Option) {
	w.t.Helper()
	w.step("it dies "+string(w.life.dies), func() {
		if g := w.get(url, opts...); g.err == nil && g.paid.Warning == "" {
			w.t.Errorf("it lives: %+v", g)
		}
		if !w.life.over.Load() {
			w.t.Fatal("it did not die")
		}
	})
}

// F1: a process that dies before its first commit leaves nothing, and has
// signed nothing.
func TestF1_CrashBeforeTheFirstCommit(t *testing.T) {
	play(t, mortals(beforeT1), func(t *testing.T, w *world) {
		s, url := w.sells(dime)
		w.refused("it dies", func() { w.killed(url, canopy.WithKey("k")) })
		if n := len(w.entries()); n != 0 {
			t.Errorf("the ledger has %d payments", n)
		}
		w.handed(s, 0)
		if w.path == "" {
			return // a ledger in memory ends with its process
		}
		w.restart()
		w.counted(0)
		w.bought(w.get(url, canopy.WithKey("k")))
		w.signed(1)
		w.over()
		w.spent(dime)
	})
}

// F2: what a process committed and did not sign is held until it is final that
// it never moved, and no longer.
func TestF2_CrashBeforeSigning(t *testing.T) {
	for _, at := range []moment{afterT1, beforeSign} {
		t.Run(string(at), func(t *testing.T) {
			s := mortals(at)
			s.policy = capped("$0.15 / 24h")
			playFile(t, s, func(t *testing.T, w *world) {
				s, url := w.sells(dime)
				w.refused("it dies", func() { w.killed(url) })
				w.restart()
				e := w.only()
				w.state(e.ID, ledger.InDoubt)
				w.counted(dime)
				w.refused("the cap is full", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
				w.handed(s, 0)

				w.clock.Set(e.ValidBefore.Add(time.Second))
				w.step("it is dead, and not final", func() {
					if r := w.reconcile(); r.Waiting != 1 || r.Released != 0 {
						t.Errorf("%+v", r)
					}
				})
				w.counted(dime)
				w.chain.Finalize()
				w.step("it is final", func() {
					if r := w.reconcile(); r.Released != 1 {
						t.Errorf("%+v", r)
					}
				})
				w.state(e.ID, ledger.ExpiredUnused)
				w.counted(0)
				w.bought(w.get(url))
				w.over()
				w.spent(dime)
			})
		})
	}
}

// F3: an authorization that a process signed, and perhaps sent, counts in full
// after it died, whether it is settled at the last second or never.
func TestF3_CrashAfterSigning(t *testing.T) {
	for _, at := range []moment{afterSign, beforeSend, beforeT2} {
		for _, late := range []bool{false, true} {
			if late && at != beforeT2 {
				continue // nobody has it
			}
			t.Run(fmt.Sprint(at, ", settled late ", late), func(t *testing.T) {
				s := mortals(at)
				s.policy = capped("$0.15 / 24h")
				playFile(t, s, func(t *testing.T, w *world) {
					s, url := w.sells(dime, canopytest.First(canopytest.DropBeforeSettling()))
					w.killed(url)
					w.restart()
					e := w.only()
					w.state(e.ID, ledger.InDoubt)
					w.counted(dime)
					w.refused("the cap is full", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
					want := ledger.ExpiredUnused
					if late {
						want = ledger.Settled
						w.step("it is settled at the last second", func() {
							_, err := s.Harvest().SettleLate(context.Background())
							must(t, err)
						})
						w.spent(dime)
						w.counted(dime)
					}
					w.clock.Set(e.ValidBefore.Add(time.Second))
					w.step("a round", func() { w.reconcile() })
					w.state(e.ID, ledger.InDoubt)
					w.over()
					w.state(e.ID, want)
					if n := w.audit.slots(); n != 1 {
						t.Errorf("%d slots were signed into, want 1", n)
					}
				})
			})
		}
	}
}

// F6: the answer came, and the process died before it was on record. The next
// one learns from the chain that it settled, and pays for it no second time.
func TestF6_CrashAfterTheAnswer(t *testing.T) {
	for _, at := range []moment{afterAnswer, beforeT2, afterT2} {
		t.Run(string(at), func(t *testing.T) {
			playFile(t, mortals(at), func(t *testing.T, w *world) {
				s, url := w.sells(dime)
				w.killed(url, canopy.WithKey("k"))
				w.spent(dime)
				w.restart()
				e := w.only()
				if want := map[bool]ledger.State{true: ledger.Claimed, false: ledger.InDoubt}[at == afterT2]; e.State != want {
					t.Errorf("it is %s, want %s", e.State, want)
				}
				w.counted(dime)
				as[*canopy.PaidError](t, w.get(url, canopy.WithKey("k")).err)
				w.step("it is final", func() {
					w.chain.Finalize()
					if r := w.reconcile(); r.Settled != 1 || len(r.Foreign) != 0 {
						t.Errorf("%+v", r)
					}
				})
				w.state(e.ID, ledger.Settled)
				as[*canopy.PaidError](t, w.get(url, canopy.WithKey("k")).err)
				w.over()
				w.state(e.ID, ledger.Settled)
				w.handed(s, 1)
				w.signed(1)
				w.spent(dime)
				w.counted(dime)
			})
		})
	}
}

// F4 and F5 of a process that dies over and over: one payment under one key,
// whatever the seller does and whenever the process dies.
func TestF5_KilledAgainAndAgain(t *testing.T) {
	for name, rule := range map[string]canopytest.Rule{
		"an honest seller": canopytest.Nth(99, canopytest.Status(500)), "dropped before": canopytest.From(1, canopytest.DropBeforeSettling()),
		"dropped after": canopytest.From(1, canopytest.DropAfterSettling()), "402 again": canopytest.From(1, canopytest.SettleAndAnswerAgain()),
	} {
		t.Run(name, func(t *testing.T) {
			playFile(t, setup{config: watching}, func(t *testing.T, w *world) {
				s, url := w.sells(dime, rule)
				for _, at := range []moment{beforeT1, afterT1, afterSign, beforeSend, afterAnswer, beforeT2, afterT2} {
					w.changed(func(c *canopy.Config) {
						c.Store = w.store
						w.dieAt(c, at)
					})
					w.step("a try that dies "+string(at), func() { w.get(url, canopy.WithKey("k")) })
					w.clock.Advance(time.Second)
					w.restart()
				}
				if _, err := s.Harvest().SettleLate(context.Background()); err != nil && !errors.Is(err, canopytest.ErrNonceUsed) {
					t.Error(err)
				}
				w.over()
				w.signed(1)
				w.state(w.only().ID, ledger.Settled)
				w.spent(dime)
				w.counted(dime)
			})
		})
	}
}

// F9: a disk that lied about what it had written loses a commit with the power.
// The chain shows a use of the key that the ledger knows nothing of, and
// everybody is frozen.
func TestF9_CommitLostWithThePower(t *testing.T) {
	playFile(t, setup{config: watching}, func(t *testing.T, w *world) {
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		w.chain.Finalize()
		w.step("a round", func() { w.reconcile() })
		written := w.image() // what the disk really has

		w.bought(w.get(url + "2"))
		for _, kind := range []string{"I9: it is gone", "which was never committed", "I13: "} {
			w.audit.expects(kind)
		}
		w.restartFrom(written)
		if n := len(w.entries()); n != 1 {
			t.Fatalf("the ledger has %d payments, want the one that was written", n)
		}
		w.chain.Finalize()
		w.step("a round", func() {
			if r := w.reconcile(); len(r.Foreign) != 1 {
				t.Errorf("found %+v", r.Foreign)
			}
		})
		w.frozen(true)
		w.refused("it is frozen", func() { w.denied(w.get(url+"3"), "frozen") })
	})
}

// F25: a ledger that was deleted or set back pays nothing until an operator
// took note of it.
func TestF25_LedgerGone(t *testing.T) {
	begin := func(w *world) { w.stateDir = w.dir() }
	for name, next := range map[string]func(w *world, backup string) string{
		"deleted":  func(w *world, _ string) string { return filepath.Join(w.dir(), "canopy.db") },
		"set back": func(_ *world, backup string) string { return backup },
		"deleted while it is open": func(w *world, _ string) string {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				must(w.t, os.Remove(w.path+suffix))
			}
			return w.path
		},
	} {
		t.Run(name, func(t *testing.T) {
			playFile(t, setup{begin: begin}, func(t *testing.T, w *world) {
				s, url := w.sells(dime)
				backup := w.image()
				w.bought(w.get(url))
				for _, kind := range []string{"I9: it is gone", "which was never committed", "I13: "} {
					w.audit.expects(kind)
				}
				w.restartFrom(next(w, backup))
				for range 2 {
					w.refused("the ledger is not the account's", func() {
						if g := w.get(url + "2"); !errors.Is(g.err, ledger.ErrMissing) {
							t.Errorf("got %+v, want ErrMissing", g)
						}
					})
				}
				w.handed(s, 1)
				must(t, w.store.(ledger.Acker).Ack(t.Context(), "ana", "the disk died"))
				w.bought(w.get(url + "2"))
			})
		})
	}
}

// F27: a process that dies while it carries out what a person approved neither
// loses the approval nor uses it twice.
func TestF27_CrashWithAnApproval(t *testing.T) {
	for _, at := range []moment{beforeT1, afterT1, afterSign, beforeT2} {
		t.Run(string(at), func(t *testing.T) {
			playFile(t, setup{config: watching}, func(t *testing.T, w *world) {
				s, url := w.sells(report)
				p := w.pending(w.get(url))
				w.step("a person approves", func() { w.rule(p.Result.ApprovalID, true) })
				w.changed(func(c *canopy.Config) {
					c.Store = w.store
					w.dieAt(c, at)
				})
				w.killed(url)
				w.restart()
				e := w.only()
				if at == beforeT1 {
					w.state(e.ID, ledger.Approved)
					if g := w.bought(w.get(url)); g.paid.PaymentID != p.Result.PaymentID || g.paid.ApprovalID != p.Result.ApprovalID {
						t.Errorf("carried out as %+v", g.paid)
					}
				} else {
					w.state(e.ID, ledger.InDoubt)
					w.counted(report)
					a, err := w.client.ApprovalStatus(t.Context(), p.Result.ApprovalID)
					if err != nil || a.UsedAt.IsZero() {
						t.Errorf("its approval is %+v, %v: not used", a, err)
					}
				}
				w.over()
				w.clock.Advance(time.Hour)
				next := w.pending(w.get(url))
				if next.Result.ApprovalID == p.Result.ApprovalID || next.Result.PaymentID == p.Result.PaymentID {
					t.Error("the approval was used twice")
				}
				if n := len(s.Harvest().Nonces()); n > 1 {
					t.Errorf("%d authorizations left", n)
				}
				w.chain.AssertSpentAtMost(t, w.spy.Address(), report)
			})
		})
	}
}

// F27 of one process: an approval that was used is refused when it comes again.
func TestF27_ApprovalReplayed(t *testing.T) {
	play(t, setup{}, func(t *testing.T, w *world) {
		s, url := w.sells(report)
		p := w.pending(w.get(url))
		w.step("a person approves", func() { w.rule(p.Result.ApprovalID, true) })
		w.bought(w.get(url))
		for range 3 {
			w.refused("it comes again", func() {
				if next := w.pending(w.get(url)); next.Result.ApprovalID == p.Result.ApprovalID {
					t.Error("the approval was used twice")
				}
			})
		}
		w.handed(s, 1)
		w.spent(report)
	})
}
