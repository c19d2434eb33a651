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
	"github.com/canopy-go/canopy/payment"
)

// Faults F4 to F17 and F28 on the rail of MPP: on a lane, where the fee is ours,
// and on the expiring nonce, where the seller pays it.

// kind is one way to be paid.
type kind struct {
	name string
	ask  canopytest.MPPConfig
	cost payment.USD // of a dime
}

var kinds = []kind{{"lane", canopytest.MPPConfig{}, costly}, {"sponsored", canopytest.MPPConfig{Sponsor: true}, dime}}

// playKinds plays a fault in both ways, with a cap that two payments of a dime
// fill.
func playKinds(t *testing.T, f func(*testing.T, *world, kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			play(t, onTempo(setup{policy: capped((2*k.cost + 5*payment.Cent).String() + " / 24h")}), func(t *testing.T, w *world) { f(t, w, k) })
		})
	}
}

// late has the seller settle all that it was handed, in the last second.
func (w *world) late(s *canopytest.Seller) {
	w.t.Helper()
	w.step("the seller settles in the last second", func() {
		if _, err := s.Harvest().SettleLate(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
}

// F4: the link drops before the seller settles. It settles in the last second that
// nodes take it: within the cap.
func TestF4_MPPLinkDropsBeforeSettling(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.DropBeforeSettling()))
		for i := range 2 {
			e := as[*canopy.InDoubtError](t, w.get(fmt.Sprint(url, "/", i)).err)
			if e.Phase != canopy.SentUnknown || !e.SafeAfter.After(w.clock.Now()) {
				t.Errorf("in doubt as %+v", e)
			}
		}
		w.moved(0)
		w.counted(2 * k.cost)
		w.denied(w.get(url+"/3"), "cap_exceeded")
		w.handed(s, 2)
		w.late(s)
		w.reconcile()
		w.denied(w.get(url+"/3"), "cap_exceeded")
		w.settled(2 * dime)
		w.overAll()
		w.moved(2 * dime)
	})
}

// F5: settled, and the answer is lost. Whatever key the retry has: the same bytes,
// "already been used" is a claim, one debit.
func TestF5_MPPResponseLost(t *testing.T) {
	for name, keys := range map[string][2]string{"same key": {"a-1", "a-1"}, "new key": {"a-1", "a-2"}, "no key": {"", ""}} {
		t.Run(name, func(t *testing.T) {
			playKinds(t, func(t *testing.T, w *world, k kind) {
				s, url := w.asks(dime, k.ask, canopytest.First(canopytest.DropAfterSettling()))
				opts := func(key string) (out []canopy.Option) {
					if key != "" {
						out = append(out, canopy.WithKey(key))
					}
					return out
				}
				first := as[*canopy.InDoubtError](t, w.get(url, opts(keys[0])...).err)
				again := as[*canopy.PaidError](t, w.get(url, opts(keys[1])...).err)
				if again.Result.PaymentID != first.Result.PaymentID || again.Code != "verification_failed" || again.Result.State != ledger.Claimed {
					t.Errorf("the retry is %+v, want the payment %s", again, first.Result.PaymentID)
				}
				w.handed(s, 1)
				w.digests(1)
				w.counted(k.cost)
				w.settled(dime, first.Result.PaymentID)
				// The bytes are dead: no word of the seller's, and none is needed.
				w.clock.Advance(2 * time.Minute)
				as[*canopy.PaidError](t, w.get(url, canopy.WithKey("a-1")).err)
				w.digests(1)
				w.overAll()
			})
		})
	}
}

// F5: "already been used", of bytes that never left before, proves nothing.
func TestF5_MPPUsedIsAClaimOnlyAfterASending(t *testing.T) {
	used := canopytest.Instead("used", canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
		a := x.Challenge("verification-failed")
		a.Body = []byte(`{"type":"https://paymentauth.org/problems/verification-failed","title":"Verification Failed","status":402,"detail":"Payment verification failed: Transaction hash has already been used."}`)
		return a
	})
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask, canopytest.First(used))
		w.bought(w.get(url))
		if n := s.Count("").Paid; n != 2 {
			t.Errorf("sent %d times, want 2", n)
		}
		w.signed(1)
		s.SetFaults("", canopytest.Plan{canopytest.Always(used)})
		g := w.get(url + "/2")
		as[*canopy.PaidError](t, g.err) // it said so of bytes that had left
		w.counted(2 * k.cost)
		w.overAll() // the chain knows better
		w.moved(dime)
		w.counted(dime + w.fees())
	})
}

// F6 and F8: the answer came, and the record of it did not.
func TestF6_MPPOutcomeNeverRecorded(t *testing.T) {
	for name, latch := range map[string]bool{"F6": false, "F8": true} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{store: func(s ledger.Store) ledger.Store { return &deafStore{powers: s.(powers), latch: latch} }}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{})
				g := w.get(url, canopy.WithKey("k"))
				if g.err != nil || g.body == "" || g.paid.Warning == "" {
					t.Fatalf("got %+v, want the answer with a warning", g)
				}
				w.counted(costly)
				switch again := w.get(url, canopy.WithKey("k")).err; latch {
				case true:
					if !errors.Is(again, ledger.ErrReadOnly) {
						t.Errorf("again: %v", again)
					}
				default:
					as[*canopy.InFlightError](t, again)
				}
				w.handed(s, 1)
				w.digests(1)
				w.moved(dime)
			})
		})
	}
}

// F2, F3 and F6: the process dies at each moment of a payment, a variant
// and a push among them. The next one signs nothing else, and what became of it is
// told by the chain.
func TestF3_MPPCrashAnywhere(t *testing.T) {
	for _, at := range []moment{beforeT1, afterT1, beforeSign, afterSign, beforeSend, afterAnswer, beforeT2, afterT2} {
		for name, tc := range map[string]struct {
			ask  canopytest.MPPConfig
			rule canopytest.Rule
		}{
			"pull":      {canopytest.MPPConfig{}, canopytest.Nth(99, canopytest.Drop())},
			"variant":   {canopytest.MPPConfig{}, canopytest.First(canopytest.AnswerAgain())},
			"push":      {canopytest.MPPConfig{Modes: []string{"push"}}, canopytest.Nth(99, canopytest.Drop())},
			"sponsored": {canopytest.MPPConfig{Sponsor: true}, canopytest.Nth(99, canopytest.Drop())},
		} {
			t.Run(fmt.Sprint(at, ", ", name), func(t *testing.T) {
				playFile(t, onTempo(setup{config: func(w *world, c *canopy.Config) { w.dieAt(c, at) }}), func(t *testing.T, w *world) {
					s, url := w.asks(dime, tc.ask, tc.rule)
					w.step("a try that dies "+string(at), func() { w.get(url, canopy.WithKey("k")) })
					w.restart()
					w.step("the same again", func() { w.get(url, canopy.WithKey("k")) })
					w.signed(1)
					w.late(s)
					w.overAll()
					e := w.only()
					if want := map[bool]ledger.State{true: ledger.ExpiredUnused, false: ledger.Settled}[w.chain.Spent(w.spy.Address()) == 0]; e.State != want {
						t.Errorf("it is %s, want %s", e.State, want)
					}
					if moved := w.chain.Spent(w.spy.Address()) - w.fees(); moved != 0 && moved != dime {
						t.Errorf("%v moved", moved)
					}
					w.counted(w.chain.Spent(w.spy.Address()))
				})
			})
		}
	}
}

// F10: 36 equal calls with one key: one payment.
func TestF10_MPPEqualCallsWithOneKey(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask, canopytest.First(canopytest.AnswerAgain()), canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		bought := 0
		for i, err := range w.fetchAll(3, 36, func(int) string { return url }, canopy.WithKey("one")) {
			var flying *canopy.InFlightError
			switch {
			case err == nil:
				bought++
			case !errors.As(err, &flying):
				t.Errorf("call %d: %v", i, err)
			}
		}
		if bought != 1 {
			t.Errorf("%d were bought, want 1", bought)
		}
		w.signed(1)
		w.handed(s, 1)
		w.settled(dime)
		w.overAll()
	})
}

// F11: a model that retries with a new key each time, across the life of the
// bytes: one debit.
func TestF11_MPPRetryStorm(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.DropAfterSettling()))
		for i := range 12 {
			if g := w.get(url, canopy.WithKey(fmt.Sprint("attempt-", i))); g.err == nil {
				t.Fatalf("attempt %d: %+v", i, g)
			}
			w.clock.Advance(7 * time.Second)
		}
		w.handed(s, 1)
		w.digests(1)
		w.settled(dime)
		w.overAll()
	})
}

// F12: a 402 for ever never frees the budget.
func TestF12_MPP402ForEver(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.AnswerAgain()))
		for i := range 6 {
			for range 3 {
				if g := w.get(fmt.Sprint(url, "/", i)); g.err == nil {
					t.Errorf("call %d: %+v", i, g)
				}
			}
		}
		w.signed(2)
		w.handed(s, 2)
		w.counted(2 * k.cost)
		w.late(s)
		w.settled(2 * dime)
		w.overAll()
	})
}

// F14, attack 41: whatever the seller says of a settlement that it made, makes or
// will make, the cap holds.
func TestF14_MPPSettlementFailedIsALie(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{
		"said before": canopytest.SettleAndSayFailed(""), "settled after": canopytest.SayFailed(""), "settled, asked again": canopytest.SettleAndAnswerAgain(),
		"internal error": canopytest.SayInternalError(), "settled, internal error": canopytest.SettleAndSayInternalError(),
		"no fresh challenge": canopytest.Both(canopytest.SayFailed(""), canopytest.NoFreshChallenge()), "invalid challenge": canopytest.SayFailed("invalid-challenge"),
		"expired": canopytest.SayFailed("payment-expired"), "refused": canopytest.Status(403), "settled, refused": canopytest.StatusAfterSettling(403),
		"gone": canopytest.Status(410), "settled, unauthorized": canopytest.StatusAfterSettling(401),
	} {
		t.Run(name, func(t *testing.T) {
			playKinds(t, func(t *testing.T, w *world, k kind) {
				s, url := w.asks(dime, k.ask, canopytest.Always(fault))
				for i := range 5 {
					if g := w.get(fmt.Sprint(url, "/", i)); g.err == nil && (g.StatusCode < 400 || g.cost && g.paid.State == ledger.Claimed) {
						t.Errorf("call %d: %+v", i, g)
					}
				}
				w.signed(2)
				w.handed(s, 2)
				w.counted(2 * k.cost)
				w.late(s)
				w.settled(2 * dime)
				w.denied(w.get(url+"/9"), "cap_exceeded")
				w.overAll()
			})
		})
	}
}

// F15: the seller's node is slow. The seller knows nothing, the transaction lands:
// in doubt, then settled by the chain's word, one debit.
func TestF15_MPPSlowNode(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		w.chain.SetMining(canopytest.Manual)
		s, url := w.asks(dime, k.ask)
		g := w.get(url, canopy.WithKey("k"))
		if g.err != nil || g.StatusCode != 500 || g.paid.State != ledger.InDoubt {
			t.Fatalf("got %+v, %v", g, g.err)
		}
		w.counted(k.cost)
		w.step("the transaction lands", func() { w.chain.Mine() })
		w.moved(dime)
		as[*canopy.PaidError](t, w.get(url, canopy.WithKey("k")).err)
		w.digests(1)
		w.handed(s, 1)
		w.settled(dime, g.paid.PaymentID)
		as[*canopy.PaidError](t, w.get(url, canopy.WithKey("k")).err)
		w.overAll()
	})
	t.Run("pending", func(t *testing.T) {
		playKinds(t, func(t *testing.T, w *world, k kind) {
			_, url := w.asks(dime, k.ask, canopytest.First(canopytest.SettlementPending()))
			g := w.get(url)
			if g.err != nil || g.StatusCode != 500 || g.paid.State != ledger.InDoubt {
				t.Fatalf("got %+v, %v", g, g.err)
			}
			w.settled(dime, g.paid.PaymentID)
			w.overAll()
		})
	})
}

// Attack 43, F5: receipts that must not be believed as they stand. Each is of a
// payment that settled: none frees the budget, none names a foreign transaction,
// and the answer is the caller's.
func TestAttack43_ForgedPaymentReceipts(t *testing.T) {
	for _, fault := range canopytest.ForgedPaymentReceipts() {
		t.Run(fault.String(), func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				_, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(fault))
				g := w.get(url)
				if g.err != nil || g.StatusCode != 200 || g.body == "" {
					t.Fatalf("got %+v, %v", g, g.err)
				}
				real := w.chain.TempoUses()[0].TxHash
				if g.paid.State == ledger.Claimed && g.paid.TxHash != real || g.paid.State != ledger.Claimed && g.paid.State != ledger.InDoubt {
					t.Errorf("it is %s by %q, and %s moved", g.paid.State, g.paid.TxHash, real)
				}
				if e := w.only(); e.Receipt.TxHash != "" && e.Receipt.TxHash != real || !e.Delivered {
					t.Errorf("the ledger names %q, delivered %v", e.Receipt.TxHash, e.Delivered)
				}
				w.counted(costly)
				w.settled(dime, g.paid.PaymentID)
				if e := w.only(); e.Receipt.TxHash != real {
					t.Errorf("settled by %q, and %s moved", e.Receipt.TxHash, real)
				}
			})
		})
	}
	t.Run("of nothing", func(t *testing.T) {
		playKinds(t, func(t *testing.T, w *world, k kind) {
			_, url := w.asks(dime, k.ask, canopytest.Always(canopytest.FakeReceipt()))
			g := w.get(url)
			// The hash of what the buyer pays for is known; a sponsor's is not.
			if want := map[string]ledger.State{"lane": ledger.InDoubt, "sponsored": ledger.Claimed}[k.name]; g.err != nil || g.paid.State != want {
				t.Errorf("got %+v, want %s", g, want)
			}
			w.counted(k.cost)
			w.overAll()
			w.state(g.paid.PaymentID, ledger.ExpiredUnused)
			w.counted(0)
		})
	})
}

// F16: what is taken back before it is final is no evidence, in either direction;
// mined again, or lost.
func TestF16_MPPReorganised(t *testing.T) {
	for _, depth := range []int{1, 7} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(depth, ", lost ", lost), func(t *testing.T) {
				playKinds(t, func(t *testing.T, w *world, k kind) {
					w.chain.SetMining(canopytest.Manual)
					w.chain.Mine()
					w.chain.SetMining(canopytest.Instant)
					_, url := w.asks(dime, k.ask)
					id := w.bought(w.get(url)).paid.PaymentID
					w.chain.SetMining(canopytest.Manual)
					for range depth - 1 {
						w.chain.Mine()
					}
					w.moved(dime)
					w.step("a round", func() { w.reconcile() })
					w.state(id, ledger.Claimed)
					w.step("a reorganisation", func() { must(t, w.chain.Reorg(depth)) })
					w.moved(0)
					w.counted(k.cost)
					if !lost {
						w.step("mined again", func() { w.chain.Mine() })
						w.settled(dime, id)
						w.overAll()
						return
					}
					for _, hash := range w.chain.Pending() {
						w.chain.Drop(hash)
					}
					w.clock.Advance(90 * time.Second)
					w.step("a round", func() { w.reconcile() })
					w.state(id, ledger.Claimed) // the chain stands where it stood
					w.counted(k.cost)
					w.overAll()
					w.state(id, ledger.ExpiredUnused)
					w.counted(0)
				})
			})
		}
	}
}

// F17: a chain that halts releases nothing, and what it settles with an old
// timestamp was still held.
func TestF17_MPPChainHalts(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.SettlementPending()))
		w.chain.SetMining(canopytest.Manual)
		first := w.get(url).paid.PaymentID
		second := w.get(url + "/2").paid.PaymentID
		w.clock.Advance(2 * time.Hour)
		w.step("a round", func() { w.reconcile() })
		w.state(first, ledger.InDoubt)
		w.denied(w.get(url+"/3"), "cap_exceeded")
		w.counted(2 * k.cost)
		w.step("a block with an old time", func() {
			w.clock.Advance(-2 * time.Hour)
			w.chain.Mine()
			w.clock.Advance(2 * time.Hour)
		})
		w.moved(2 * dime)
		w.step("a round", func() { w.reconcile() })
		w.state(first, ledger.InDoubt)
		w.handed(s, 2)
		w.settled(2*dime, first, second)
		w.overAll()
	})
}

// F28: the caller leaves at each stage.
func TestF28_MPPCancelled(t *testing.T) {
	t.Run("in the signer", func(t *testing.T) {
		playKinds(t, func(t *testing.T, w *world, k kind) {
			s, url := w.asks(dime, k.ask)
			ctx, cancel := context.WithCancel(t.Context())
			w.spy.Before(func(context.Context, canopytest.Signed) { cancel() })
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			if e := as[*canopy.InDoubtError](t, err); e.Phase != canopy.SignedNotSent || !errors.Is(err, context.Canceled) {
				t.Errorf("in doubt as %+v", e)
			}
			w.handed(s, 0)
			w.counted(k.cost)
			w.overAll()
			w.counted(0)
		})
	})
	t.Run("while it is settled", func(t *testing.T) {
		playKinds(t, func(t *testing.T, w *world, k kind) {
			s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.Delay(time.Minute).At(canopytest.OnPaid)))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			e := as[*canopy.InDoubtError](t, err)
			if e.Phase != canopy.SentUnknown || !errors.Is(err, context.Canceled) {
				t.Errorf("in doubt as %+v", e)
			}
			time.Sleep(2 * time.Minute)
			w.handed(s, 1)
			w.moved(dime)
			w.counted(k.cost)
			w.settled(dime, e.Result.PaymentID)
			w.overAll()
		})
	})
	t.Run("between the broadcast and the seller", func(t *testing.T) {
		play(t, onTempo(setup{}), func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(t.Context())
			leaver := &notary{after: cancel}
			w.broadcastBy(leaver)
			s, url := w.asks(dime, canopytest.MPPConfig{Modes: []string{"push"}})
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			var paid *canopy.PaidError
			var doubt *canopy.InDoubtError
			if !errors.As(err, &paid) && !errors.As(err, &doubt) || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			if n := s.Count("").Paid; n != 0 {
				t.Errorf("shown %d times", n)
			}
			w.settled(dime, w.only().ID)
			w.overAll()
		})
	})
}

// A transaction that fails on the chain, for want of money: it moved nothing and
// took its fee. The payment is cancelled, its fee counts, and the lane goes on
// with the next nonce.
func TestMPPFailedTransaction(t *testing.T) {
	for _, mode := range []string{"pull", "push"} {
		t.Run(mode, func(t *testing.T) {
			poor := setup{
				policy: capped("$1 / 24h"),
				begin: func(w *world) {
					rest, _ := w.chain.Dollar().Units(1000*payment.Dollar - dime/2)
					must(w.t, w.chain.Send(w.chain.Dollar(), w.spy.Address(), canopytest.Address("savings"), rest))
				},
				config: func(w *world, c *canopy.Config) {
					c.Lanes, c.Treasury.Chains = 1, []canopy.Chain{stale{w.chain}}
				},
			}
			play(t, onTempo(poor), func(t *testing.T, w *world) {
				w.chain.SetNodes(2, canopytest.NoLie)
				w.clock.Advance(time.Minute)
				w.chain.Finalize()
				w.watchLanes()
				saved := w.chain.Spent(w.spy.Address())
				_, url := w.asks(dime, canopytest.MPPConfig{Modes: []string{mode}})
				g := w.get(url)
				id := g.paid.PaymentID
				if mode == "push" {
					id = as[*canopy.InDoubtError](t, g.err).Result.PaymentID
				}
				w.state(id, ledger.InDoubt)
				if uses := w.chain.TempoUses(); len(uses) != 1 || !uses[0].Failed {
					t.Fatalf("the chain has %+v", uses)
				}
				w.counted(costly)
				w.refused("its lane is live", func() {
					w.chain.Fund(w.client.Address(), payment.Dollar)
					w.denied(w.get(url+"/2"), "no_free_lane")
				})
				w.chain.Finalize()
				w.step("a round", func() {
					if r := w.reconcile(); r.Cancelled != 1 || len(r.Foreign) != 0 {
						t.Errorf("%+v", r)
					}
				})
				e := w.state(id, ledger.Cancelled)
				if w.fees() == 0 || e.Spent != w.fees() || e.Receipt.TxHash != w.chain.TempoUses()[0].TxHash {
					t.Errorf("cancelled as %+v, the chain took %v", e, w.fees())
				}
				w.counted(w.fees())
				next := w.bought(w.get(url + "/2")).paid.PaymentID
				if n := w.state(next, ledger.Claimed); n.Slot.NonceID != e.Slot.NonceID || n.Slot.Nonce != e.Slot.Nonce+1 {
					t.Errorf("the lane goes on with %v after %v", n.Slot, e.Slot)
				}
				w.chain.Finalize()
				w.reconcile()
				w.state(next, ledger.Settled)
				w.counted(dime + w.fees())
				w.frozen(false)
				if got := w.chain.Spent(w.spy.Address()) - w.fees() - saved; got != dime {
					t.Errorf("%v moved, want one dime", got)
				}
				w.overAll()
			})
		})
	}
}

// stale is a chain whose node is behind with balances.
type stale struct{ *canopytest.Chain }

func (s stale) Balance(context.Context, payment.Asset, payment.Address) (payment.Units, error) {
	return payment.UnitsOf(1_000_000_000), nil
}

// Case 44: a node that answers "too many requests" to reads stops no payment, and
// one to whom the broadcast is too much is asked again with the same bytes.
func TestMPPCase44_BusyNode(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		busy := errors.New("rpc: -32005: too many requests")
		w.chain.SetDown(busy)
		_, url := w.asks(dime, canopytest.MPPConfig{})
		w.bought(w.get(url)) // a pull needs no node
		_, push := w.serve("127.0.0.1:8405", canopytest.SellerConfig{
			Protocol: canopytest.MPP, MPP: canopytest.MPPConfig{Modes: []string{"push"}}, Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}},
		})
		time.AfterFunc(300*time.Millisecond, func() { w.chain.SetDown(nil) })
		w.bought(w.get(push + "/goods/1"))
		w.digests(2)
		w.settled(2 * dime)
		w.overAll()
	})
}
