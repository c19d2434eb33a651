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
	"github.com/canopy-go/canopy/signer"
)

var (
	_ canopy.Chain      = (*canopytest.Chain)(nil)
	_ canopy.Reconciler = (*canopytest.Chain)(nil)
	_ canopy.Timekeeper = (*canopytest.Chain)(nil)
)

// watching gives the client the world's chain to ask.
func watching(w *world, c *canopy.Config) { c.Treasury.Chains = []canopy.Chain{w.chain} }

// reconcile fails the test on an error, and on problems unless some are due.
func (w *world) reconcile(problems ...bool) canopy.Reconciliation {
	w.t.Helper()
	before := w.spy.Signatures()
	r, err := w.client.Reconcile(context.Background())
	must(w.t, err)
	if want := len(problems) > 0; len(r.Problems) > 0 != want {
		w.t.Errorf("problems %v, want some: %v", r.Problems, want)
	}
	if w.spy.Signatures() != before {
		w.t.Error("reconciling signed something")
	}
	return r
}

// state fails the test unless the payment is in it.
func (w *world) state(id canopy.PaymentID, want ledger.State) ledger.Entry {
	w.t.Helper()
	e, err := w.store.Entry(context.Background(), id)
	must(w.t, err)
	if e.State != want {
		w.t.Errorf("payment %s is %s (%s), want %s", id, e.State, e.Note, want)
	}
	return e
}

// sound fails the test unless the ledger finds itself whole.
func (w *world) sound() {
	w.t.Helper()
	r, err := w.store.(ledger.Verifier).Verify(context.Background())
	if err != nil || len(r.Problems) > 0 {
		w.t.Errorf("the ledger: %v, %v", r.Problems, err)
	}
}

// frozen fails the test unless the agent is, or is not.
func (w *world) frozen(want bool) string {
	w.t.Helper()
	is, why, err := w.store.(ledger.Freezer).Frozen(context.Background(), "tester")
	must(w.t, err)
	if is != want {
		w.t.Errorf("frozen: %v (%s), want %v", is, why, want)
	}
	return why
}

// doubt buys at url, where no proof comes back, and returns the payment's id.
func (w *world) doubt(url string, opts ...canopy.Option) canopy.PaymentID {
	w.t.Helper()
	return as[*canopy.InDoubtError](w.t, w.get(url, opts...).err).Result.PaymentID
}

func TestReconcileSettles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		lost := w.doubt(url)
		paid := w.bought(w.get(url + "2")).paid.PaymentID
		if e := w.state(lost, ledger.InDoubt); !e.Watched {
			t.Error("it does not say that a chain watches it")
		}
		if r := w.reconcile(); r.Waiting != 2 || r.Looked != 2 || r.Settled != 0 {
			t.Errorf("before it is final: %+v", r)
		}
		w.chain.Finalize()
		r := w.reconcile()
		if r.Settled != 2 || r.Waiting != 0 || len(r.Changed) != 2 || r.Changed[0].Settlement != canopy.SettlementConfirmed {
			t.Errorf("after it is final: %+v", r)
		}
		for i, id := range []canopy.PaymentID{lost, paid} {
			e := w.state(id, ledger.Settled)
			moved := w.chain.Transfers()[i]
			if e.Receipt.TxHash != moved.TxHash || !e.SpentAt.Equal(moved.Block.Time) && e.SpentAt != e.AuthorizedAt || e.Assumed {
				t.Errorf("settled as %+v, moved by %+v", e, moved)
			}
		}
		if r := w.reconcile(); r.Looked != 0 || len(r.Foreign) != 0 {
			t.Errorf("once more: %+v", r)
		}
		w.counted(2 * dime)
		w.spent(2 * dime)
		w.frozen(false)
		w.sound()
	})
}

func TestReconcileReleases(t *testing.T) {
	for _, sources := range []int{1, 2} {
		t.Run(fmt.Sprint(sources), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{config: watching, policy: capped("$0.15 / 24h")})
				w.chain.SetNodes(sources, canopytest.NoLie)
				s, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
				id := w.doubt(url)
				w.clock.Advance(59 * time.Second)
				w.reconcile()
				w.state(id, ledger.InDoubt)
				w.clock.Advance(2 * time.Second) // dead, and not final
				if r := w.reconcile(); r.Waiting != 1 {
					t.Errorf("dead and not final: %+v", r)
				}
				w.counted(dime)
				w.clock.Advance(20 * time.Second) // blocks of two seconds, final after eight
				if r := w.reconcile(); r.Released != 1 {
					t.Errorf("dead and final: %+v", r)
				}
				if e := w.state(id, ledger.ExpiredUnused); e.Assumed != (sources == 1) {
					t.Errorf("with %d nodes assumed: %v", sources, e.Assumed)
				}
				w.counted(0)
				if _, err := s.Harvest().SettleAll(context.Background()); err == nil && len(w.chain.Transfers()) > 0 {
					t.Error("money moved after its hold was released")
				}
				w.doubt(url) // the cap has room again
				w.sound()
			})
		})
	}
}

// F17: a chain that stands still releases nothing, whatever our clock says, and
// what it settles when it goes on with old timestamps was still held.
func TestF17_ChainHalts(t *testing.T) {
	play(t, setup{config: watching, policy: capped("$0.15 / 24h")}, func(t *testing.T, w *world) {
		s, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
		id := w.doubt(url)
		w.chain.SetMining(canopytest.Manual)
		for _, a := range s.Harvest().Unsettled() {
			w.chain.Enqueue(a.Authorization)
		}
		w.clock.Advance(2 * time.Hour)
		w.reconcile()
		w.state(id, ledger.InDoubt)
		w.denied(w.get(url+"2"), "cap_exceeded")
		w.counted(dime)
		w.clock.Advance(-2 * time.Hour) // the block that mines it has an old time
		w.chain.Mine()
		w.clock.Advance(2 * time.Hour)
		w.spent(dime)
		w.reconcile()
		w.state(id, ledger.InDoubt)
		w.chain.Finalize()
		w.reconcile()
		w.state(id, ledger.Settled)
		w.counted(dime)
	})
}

// F16: what was mined and taken back is no evidence, in either direction.
func TestF16_Reorganised(t *testing.T) {
	play(t, setup{config: watching}, func(t *testing.T, w *world) {
		w.chain.SetMining(canopytest.Manual)
		w.chain.Mine()
		w.chain.SetMining(canopytest.Instant)
		_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		id := w.doubt(url)
		w.spent(dime)
		w.reconcile()
		w.state(id, ledger.InDoubt)
		must(t, w.chain.Reorg(1))
		w.spent(0)
		w.reconcile()
		w.state(id, ledger.InDoubt)
		w.counted(dime)
		w.chain.Finalize()
		w.reconcile()
		w.state(id, ledger.Settled)
		w.spent(dime)
		w.counted(dime)
	})
}

// F18: one of two nodes lies. Nothing is released or judged by its word, and
// everything goes on when it stops.
func TestF18_OneLiarOfTwo(t *testing.T) {
	for _, lie := range []canopytest.Lie{
		canopytest.LieUnused, canopytest.LieUsed, canopytest.LieNoLogs, canopytest.LieCancel, canopytest.LiePayee, canopytest.LieDates,
	} {
		t.Run(fmt.Sprint(lie), func(t *testing.T) {
			play(t, setup{config: watching}, func(t *testing.T, w *world) {
				_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()), canopytest.From(2, canopytest.DropBeforeSettling()))
				moved, unused := w.doubt(url), w.doubt(url+"2")
				w.clock.Advance(2 * time.Minute)
				w.chain.SetNodes(2, lie)
				for range 4 {
					if _, err := w.client.Reconcile(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
				if e, _ := w.store.Entry(context.Background(), moved); e.State != ledger.InDoubt && e.State != ledger.Settled {
					t.Errorf("what moved is %s", e.State)
				}
				if lie == canopytest.LieUnused || lie == canopytest.LieUsed {
					w.state(unused, ledger.InDoubt)
				}
				w.frozen(false)
				w.chain.SetNodes(2, canopytest.NoLie)
				w.reconcile()
				w.state(moved, ledger.Settled)
				w.state(unused, ledger.ExpiredUnused)
				w.counted(dime)
			})
		})
	}
}

// A single node that lies about use keeps holds, or is believed and said so.
func TestOneNodeAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
		id := w.doubt(url)
		w.clock.Advance(2 * time.Minute)
		w.chain.SetNodes(1, canopytest.LieUsed)
		if r := w.reconcile(true); r.Waiting != 1 {
			t.Errorf("used by nothing: %+v", r)
		}
		w.state(id, ledger.InDoubt)
	})
}

func TestReconcileCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
		id := w.doubt(url)
		e := w.state(id, ledger.InDoubt)
		must(t, w.chain.Cancel(w.chain.Dollar(), w.client.Address(), e.Slot.NonceID))
		w.reconcile()
		w.state(id, ledger.InDoubt)
		w.chain.Finalize()
		if r := w.reconcile(); r.Cancelled != 1 || len(r.Foreign) != 0 {
			t.Errorf("%+v", r)
		}
		w.state(id, ledger.Cancelled)
		w.counted(0)
		w.frozen(false)
	})
}

// A slot that moved something else than agreed stops everybody, keeps the hold,
// and waits for an operator.
func TestNeedsOperator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		id := w.doubt(url)
		w.chain.Finalize()
		w.chain.SetNodes(1, canopytest.LiePayee)
		if r := w.reconcile(); r.Operator != 1 {
			t.Errorf("%+v", r)
		}
		e := w.state(id, ledger.NeedsOperator)
		if why := w.frozen(true); why == "" || e.Note == "" {
			t.Errorf("frozen for %q, noted %q", why, e.Note)
		}
		w.chain.SetNodes(1, canopytest.NoLie)
		if r := w.reconcile(); r.Looked != 0 {
			t.Errorf("an operator's payment is looked at again: %+v", r)
		}
		w.clock.Advance(100 * 24 * time.Hour)
		w.state(id, ledger.NeedsOperator)
		must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "looked"))
		w.counted(dime) // for ever, until somebody decides
	})
}

func TestChainDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		w.chain.SetDown(errors.New("no route"))
		id := w.doubt(url) // a chain that cannot be asked stops no payment
		w.bought(w.get(url + "2"))
		w.chain.Finalize()
		if r := w.reconcile(true); r.Waiting != 2 {
			t.Errorf("%+v", r)
		}
		w.state(id, ledger.InDoubt)
		w.chain.SetDown(nil)
		w.reconcile()
		w.state(id, ledger.Settled)
	})
}

// elsewhere has another ledger pay by the same key.
func (w *world) elsewhere(url string) {
	w.t.Helper()
	other := newWorld(w.t, setup{config: func(o *world, c *canopy.Config) {
		key, err := signer.FromHex(testKey)
		must(w.t, err)
		o.clock = w.clock
		o.store = ledger.NewMemory(ledger.Options{Now: w.clock.Now})
		c.Treasury.Signer, c.Store, c.Transport, c.Now = key.WithNow(w.clock.Now), o.store, w.wire, w.clock.Now
	}})
	if g := other.get(url); g.err != nil || !g.cost {
		w.t.Fatalf("elsewhere: %+v", g)
	}
}

// F26 and I13: the chain shows a use of our key that this ledger never signed.
func TestForeignUse(t *testing.T) {
	for _, what := range []canopy.ForeignUse{canopy.FreezeOnForeignUse, canopy.WarnOnForeignUse} {
		t.Run(fmt.Sprint(what), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
					watching(w, c)
					c.ForeignUse = what
				}})
				_, url := w.sells(dime)
				w.bought(w.get(url)) // looks where the chain stands, and pays
				w.chain.Finalize()
				if r := w.reconcile(); len(r.Foreign) != 0 || r.Settled != 1 {
					t.Errorf("our own payment: %+v", r)
				}
				w.clock.Advance(11 * time.Minute)
				w.elsewhere(url + "other")
				if r := w.reconcile(); len(r.Foreign) != 0 {
					t.Errorf("before it is final: %+v", r)
				}
				w.chain.Finalize()
				w.chain.SetNodes(2, canopytest.LiePayee) // what one node makes up freezes nobody
				_, err := w.client.Reconcile(context.Background())
				must(t, err)
				w.frozen(false)
				w.chain.SetNodes(2, canopytest.NoLie)
				r := w.reconcile()
				if len(r.Foreign) != 1 || r.Foreign[0].TxHash != w.chain.Transfers()[1].TxHash {
					t.Errorf("found %+v", r.Foreign)
				}
				if w.frozen(what == canopy.FreezeOnForeignUse); what == canopy.FreezeOnForeignUse {
					w.denied(w.get(url+"2"), "frozen")
					must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "looked"))
				}
				w.bought(w.get(url + "2"))
				w.chain.Finalize()
				if r := w.reconcile(); len(r.Foreign) != 0 || r.Settled != 1 {
					t.Errorf("found again: %+v", r)
				}
				w.frozen(false)
			})
		})
	}
}
