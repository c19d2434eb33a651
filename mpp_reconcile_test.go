package canopy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

// The chain's word about payments of MPP.

// teller is a chain of which one of two nodes tells something else of each use.
type teller struct {
	*canopytest.Chain
	also func(payment.Settlement) (payment.Settlement, bool)
}

func (l *teller) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	uses, err := l.Chain.Uses(ctx, a, of, first, at)
	if l.also == nil {
		return uses, err
	}
	for _, s := range uses[:len(uses):len(uses)] {
		if other, is := l.also(s); is {
			uses = append(uses, other)
		}
	}
	return uses, err
}

func (l *teller) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	if l.also != nil {
		return false, canopytest.ErrDisagree
	}
	return l.Chain.Confirm(ctx, s)
}

// telling gives the client such a chain, of two nodes.
func (w *world) telling() *teller {
	l := &teller{Chain: w.chain}
	w.chain.SetNodes(2, canopytest.NoLie)
	w.changed(func(c *canopy.Config) { c.Treasury.Chains = []canopy.Chain{l} })
	return l
}

// The fee that was paid takes the bound's place in every cap; of two nodes that
// tell of different ones, the higher counts, and one above the bound is nobody's
// word.
func TestMPPReconcileFee(t *testing.T) {
	for name, tc := range map[string]struct {
		other   payment.Units
		waits   bool
		counted func(fee payment.USD) payment.USD
	}{
		"lower":           {payment.UnitsOf(1), false, func(fee payment.USD) payment.USD { return dime + fee }},
		"higher":          {payment.UnitsOf(20_000), false, func(payment.USD) payment.USD { return dime + 20_000 }},
		"above the bound": {payment.UnitsOf(30_001), true, func(payment.USD) payment.USD { return costly }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{policy: capped("$0.25 / 24h")}), func(t *testing.T, w *world) {
				l := w.telling()
				_, url := w.asks(dime, canopytest.MPPConfig{})
				id := w.bought(w.get(url)).paid.PaymentID
				w.denied(w.get(url+"/2"), "cap_exceeded")
				w.chain.Finalize()
				l.also = func(s payment.Settlement) (payment.Settlement, bool) {
					s.Fee = tc.other
					return s, true
				}
				w.step("a round", func() { w.reconcile(problems(tc.waits)...) })
				b, err := w.client.Budget(t.Context())
				if must(t, err); b.Spent != tc.counted(w.fees()) || b.Remaining != 25*payment.Cent-b.Spent {
					t.Errorf("the budget says %+v, the chain took %v", b, w.fees())
				}
				if tc.waits {
					w.frozen(false)
					w.state(id, ledger.Claimed)
					l.also = nil
					w.reconcile()
				}
				e := w.state(id, ledger.Settled)
				if want := tc.counted(w.fees()); !tc.waits && e.Spent != want {
					t.Errorf("it counts %v, want %v", e.Spent, want)
				}
				w.bought(w.get(url + "/2"))
			})
		})
	}
}

// An expiring slot is released only when the chain is past validBefore and no
// node shows its transfer: what one of two nodes leaves out or makes up, frees
// nothing.
func TestMPPReconcileExpiring(t *testing.T) {
	for name, settles := range map[string]bool{"it moved": true, "it never moved": false} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{policy: capped("$0.15 / 24h")}), func(t *testing.T, w *world) {
				rule := canopytest.First(canopytest.DropBeforeSettling())
				if settles {
					rule = canopytest.First(canopytest.DropAfterSettling())
				}
				w.chain.SetNodes(2, canopytest.LieNoLogs)
				_, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, rule)
				id := w.doubt(url)
				before := w.state(id, ledger.InDoubt).ValidBefore
				w.clock.Set(before.Add(-time.Second))
				w.chain.SetMining(canopytest.Manual)
				w.clock.Advance(time.Hour) // by our clock alone
				w.step("the chain stands before its end", func() {
					if r := w.reconcile(); r.Released != 0 {
						t.Errorf("%+v", r)
					}
				})
				if !settles {
					w.state(id, ledger.InDoubt)
					w.denied(w.get(url+"/2"), "cap_exceeded")
				}
				w.clock.Advance(-time.Hour)
				w.chain.SetMining(canopytest.Instant)
				w.clock.Set(before.Add(time.Minute))
				w.step("one node of two shows nothing", func() { w.client.Reconcile(context.Background()) })
				if e := w.entries()[0]; settles && e.State == ledger.ExpiredUnused {
					t.Errorf("released as %+v", e)
				}
				w.chain.SetNodes(2, canopytest.NoLie)
				w.overAll()
				want, value := ledger.ExpiredUnused, payment.USD(0)
				if settles {
					want, value = ledger.Settled, dime
				}
				w.state(id, want)
				w.counted(value)
				w.moved(value)
			})
		})
	}
}

// F18: one of two nodes lies about lanes and transfers.
func TestF18_MPPOneLiarOfTwo(t *testing.T) {
	for _, lie := range []canopytest.Lie{
		canopytest.LieUnused, canopytest.LieUsed, canopytest.LieNoLogs, canopytest.LieCancel, canopytest.LiePayee, canopytest.LieDates,
	} {
		t.Run(fmt.Sprint(lie), func(t *testing.T) {
			playKinds(t, func(t *testing.T, w *world, k kind) {
				_, url := w.asks(dime, k.ask, canopytest.First(canopytest.DropAfterSettling()), canopytest.From(2, canopytest.DropBeforeSettling()))
				moved, unused := w.doubt(url), w.doubt(url+"2")
				w.clock.Advance(2 * time.Minute)
				w.chain.SetNodes(2, lie)
				for range 4 {
					w.step("a round", func() {
						if _, err := w.client.Reconcile(context.Background()); err != nil {
							t.Fatal(err)
						}
					})
				}
				if e, _ := w.store.Entry(context.Background(), moved); e.State != ledger.InDoubt && e.State != ledger.Settled {
					t.Errorf("what moved is %s", e.State)
				}
				if k.name == "lane" && (lie == canopytest.LieUnused || lie == canopytest.LieUsed) {
					w.state(unused, ledger.InDoubt)
				}
				w.frozen(false)
				w.chain.SetNodes(2, canopytest.NoLie)
				w.reconcile()
				w.state(moved, ledger.Settled)
				w.state(unused, ledger.ExpiredUnused)
				w.counted(dime + w.fees())
				w.overAll()
			})
		})
	}
}

// elsewhereOn makes a payment of another ledger with the same key.
func (w *world) elsewhereOn(url string) {
	w.t.Helper()
	other := newWorld(w.t, setup{config: func(o *world, c *canopy.Config) {
		key, err := signer.FromHex(testKey)
		must(w.t, err)
		o.clock = w.clock
		o.store = ledger.NewMemory(ledger.Options{Now: w.clock.Now})
		c.Rails = w.cfg.Rails
		c.Treasury.Signer, c.Store, c.Transport, c.Now = key.WithNow(w.clock.Now), o.store, w.wire, w.clock.Now
	}})
	if g := other.get(url); g.err != nil || !g.cost {
		w.t.Fatalf("elsewhere: %+v", g)
	}
}

// I13: a use of our key that this ledger never signed freezes every agent,
// whether it is on a lane, on the expiring nonce or an ordinary transaction; and
// is only told of where that is what was asked for.
func TestMPPForeignUse(t *testing.T) {
	ways := map[string]func(*world){
		"a lane": func(w *world) {
			_, url := w.serve("127.0.0.1:8406", canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}}})
			w.elsewhereOn(url + "/goods/")
		},
		"the expiring nonce": func(w *world) {
			_, url := w.serve("127.0.0.1:8407", canopytest.SellerConfig{Protocol: canopytest.MPP, MPP: canopytest.MPPConfig{Sponsor: true}, Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}}})
			w.elsewhereOn(url + "/goods/")
		},
		"another token": func(w *world) {
			alpha := w.chain.Assets()[1]
			w.chain.Mint(alpha, w.client.Address(), payment.UnitsOf(1_000_000))
			_, url := w.serve("127.0.0.1:8408", canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime, Asset: alpha}}})
			w.elsewhereOn(url + "/goods/")
		},
		"a spender": func(w *world) {
			must(w.t, w.chain.Send(w.chain.Dollar(), w.client.Address(), canopytest.Address("thief"), payment.UnitsOf(100_000)))
		},
	}
	for name, use := range ways {
		for _, what := range []canopy.ForeignUse{canopy.FreezeOnForeignUse, canopy.WarnOnForeignUse} {
			t.Run(fmt.Sprint(name, " ", what), func(t *testing.T) {
				play(t, onTempo(setup{config: func(_ *world, c *canopy.Config) { c.ForeignUse = what }}), func(t *testing.T, w *world) {
					if name != "a spender" {
						w.audit.expects("I13")
					}
					w.chain.SetNodes(2, canopytest.NoLie)
					_, url := w.asks(dime, canopytest.MPPConfig{})
					w.bought(w.get(url))
					w.clock.Advance(12 * time.Minute)
					w.chain.Finalize()
					w.reconcile()
					use(w)
					w.step("before it is final", func() { w.reconcile() })
					w.frozen(false)
					w.chain.Finalize()
					if r := w.reconcile(); len(r.Foreign) != 1 || len(r.Foreign[0].Moved) != 1 || r.Foreign[0].Token == (payment.Address{}) {
						t.Errorf("found %+v", r.Foreign)
					}
					w.frozen(what == canopy.FreezeOnForeignUse)
					if what == canopy.FreezeOnForeignUse {
						w.refused("frozen", func() { w.denied(w.get(url+"/2"), "frozen") })
					} else {
						w.bought(w.get(url + "/2"))
					}
				})
			})
		}
	}
}

// What one node makes up on a lane freezes nobody.
func TestMPPInventedUse(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		l := w.telling()
		_, url := w.asks(dime, canopytest.MPPConfig{})
		w.bought(w.get(url))
		w.clock.Advance(12 * time.Minute)
		w.chain.Finalize()
		w.reconcile()
		w.bought(w.get(url + "/2"))
		w.chain.Finalize()
		l.also = func(s payment.Settlement) (payment.Settlement, bool) {
			s.Slot.NonceID, s.TxHash = [32]byte{9}, "0x09"
			return s, true
		}
		w.step("a round", func() { w.reconcile(true) })
		w.frozen(false)
		l.also = nil
		w.step("a round", func() {
			if r := w.reconcile(); len(r.Foreign) != 0 {
				t.Errorf("%+v", r)
			}
		})
		w.frozen(false)
		w.settled(2 * dime)
	})
}

// A lane whose nonce moved for something else than was agreed puts the payment
// before an operator, and freezes.
func TestMPPOtherUseOfOurLane(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		w.chain.SetNodes(2, canopytest.NoLie)
		_, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.First(canopytest.DropBeforeSettling()))
		id := w.doubt(url)
		w.chain.Finalize()
		c := &other{w.chain, w.entries()[0].Slot}
		w.changed(func(cfg *canopy.Config) { cfg.Treasury.Chains = []canopy.Chain{c} })
		w.step("a round", func() {
			if r := w.reconcile(); r.Operator != 1 {
				t.Errorf("%+v", r)
			}
		})
		w.state(id, ledger.NeedsOperator)
		w.counted(costly)
		w.frozen(true)
	})
}

// other is a chain on which a lane of ours paid somebody else.
type other struct {
	*canopytest.Chain
	slot payment.Slot
}

func (o *other) Used(_ context.Context, slots []payment.Slot, _ payment.Block) ([]bool, error) {
	out := make([]bool, len(slots))
	for i, s := range slots {
		out[i] = s == o.slot
	}
	return out, nil
}

func (o *other) Uses(_ context.Context, a canopy.Asset, _ canopy.Address, _ uint64, at payment.Block) ([]payment.Settlement, error) {
	return []payment.Settlement{{
		Slot: o.slot, TxHash: "0x" + fmt.Sprintf("%064x", 5), Block: at.Number, Time: at.Time, Token: a.Address,
		Moved: []payment.Recipient{{Address: canopytest.Address("thief"), Amount: payment.UnitsOf(100_000)}},
	}}, nil
}

func (o *other) Confirm(context.Context, payment.Settlement) (bool, error) { return true, nil }

// problems is what reconcile is told where some are due.
func problems(due bool) []bool {
	if due {
		return []bool{true}
	}
	return nil
}

// A proof is on no chain: it ends with what came back, or with its validity, and
// either way goes on counting as one payment of nothing. No round looks at it again.
func TestMPPReconcileProof(t *testing.T) {
	play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\", \"4 payments / 1h\"]\nallow = [\"*\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{},
			canopytest.First(canopytest.NoReceipt()), canopytest.Rule{From: 2, To: 2, Fault: canopytest.StatusWithReceipt(500)},
			canopytest.Rule{From: 3, To: 3, Fault: canopytest.DropBeforeSettling()})
		given := w.get(url).paid.PaymentID
		claimed := w.get(url + "2").paid.PaymentID
		lost := w.doubt(url + "3")
		w.state(given, ledger.InDoubt)
		w.state(claimed, ledger.Claimed)
		done := w.bought(w.get(url + "4")).paid.PaymentID
		w.step("while they are valid", func() {
			if r := w.reconcile(); r.Looked != 3 || r.Waiting != 3 || r.Proofs+r.Settled+r.Unwatched != 0 {
				t.Errorf("%+v", r)
			}
		})
		w.state(given, ledger.InDoubt)
		w.clock.Set(w.state(lost, ledger.InDoubt).ValidBefore)
		w.step("their end", func() {
			if r := w.reconcile(); r.Looked != 3 || r.Proofs != 3 || r.Settled+r.Waiting != 0 || len(r.Changed) != 3 || r.Changed[0].Settlement == canopy.SettlementConfirmed {
				t.Errorf("%+v", r)
			}
		})
		for _, id := range []canopy.PaymentID{given, claimed, lost, done} {
			if e := w.state(id, ledger.Settled); e.Spent != 0 || e.Assumed || !e.SpentAt.IsZero() || !strings.Contains(e.Note, "moved nothing") {
				t.Errorf("%+v", e)
			}
		}
		w.step("a round later", func() {
			if r := w.reconcile(); r.Looked != 0 {
				t.Errorf("%+v", r)
			}
		})
		w.refused("four an hour", func() { w.denied(w.get(url+"5"), "count_exceeded") })
		w.counted(0)
		w.clock.Advance(62 * time.Minute)
		w.bought(w.get(url + "5"))
	})
}
