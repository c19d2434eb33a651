package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

const dime = 10 * payment.Cent

// Sent, and the link drops before the seller settles: the hold stays although
// nothing moved yet, and what settles in the last second is within the cap.
func TestF4_LinkDropsBeforeSettling(t *testing.T) {
	play(t, setup{policy: capped("$0.25 / 24h")}, func(t *testing.T, w *world) {
		s, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
		for i := range 2 {
			e := as[*canopy.InDoubtError](t, w.get(fmt.Sprintf("%s/%d", url, i)).err)
			if e.Phase != canopy.SentUnknown || e.Result.State != ledger.InDoubt || !e.SafeAfter.After(w.clock.Now()) {
				t.Errorf("in doubt as %+v", e)
			}
		}
		w.spent(0)
		w.counted(2 * dime)
		w.denied(w.get(url+"/3"), "cap_exceeded")
		w.handed(s, 2)
		if _, err := s.Harvest().SettleLate(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.spent(2 * dime)
		w.counted(2 * dime)
	})
}

// Settled, and the response is lost: whatever key the caller retries with, one
// debit, and the retry learns that it was paid.
func TestF5_ResponseLostAfterSettling(t *testing.T) {
	for name, keys := range map[string][2]string{"same key": {"a-1", "a-1"}, "new key": {"a-1", "a-2"}, "key lost": {"a-1", ""}, "no key": {"", ""}} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{}, func(t *testing.T, w *world) {
				s, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
				opts := func(key string) []canopy.Option {
					if key == "" {
						return nil
					}
					return []canopy.Option{canopy.WithKey(key)}
				}
				first := as[*canopy.InDoubtError](t, w.get(url, opts(keys[0])...).err)
				again := as[*canopy.PaidError](t, w.get(url, opts(keys[1])...).err)
				if again.Result.PaymentID != first.Result.PaymentID || again.Phase() != canopy.SettledPhase || again.Result.State != ledger.Claimed {
					t.Errorf("the retry is %+v, want the payment %s", again, first.Result.PaymentID)
				}
				w.handed(s, 1)
				w.signed(1)
				w.chain.AssertTransfers(t, canopytest.Move{From: w.spy.Address(), To: canopytest.Address("seller"), Amount: dime})
				w.counted(dime)
			})
		})
	}
}

// The key of such a retry stands for the payment for good; a key that comes
// after the duplicate window is that of a new purchase.
func TestF5_KeyAnsweredByAnother(t *testing.T) {
	play(t, setup{}, func(t *testing.T, w *world) {
		_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		id := w.doubt(url, canopy.WithKey("a"))
		for range 3 {
			w.clock.Advance(time.Second)
			if again := as[*canopy.PaidError](t, w.get(url, canopy.WithKey("b")).err); again.Result.PaymentID != id {
				t.Errorf("the retry is %+v, want the payment %s", again, id)
			}
			w.clock.Advance(time.Hour)
		}
		w.signed(1)
		w.bought(w.get(url, canopy.WithKey("c")))
		w.spent(2 * dime)
	})
}

// The same with a seller that knows a payment by its identifier: the retry gets
// what was bought.
func TestF5_ResponseLostIsServedAgainByIdentifier(t *testing.T) {
	play(t, setup{}, func(t *testing.T, w *world) {
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
			PaymentID: canopytest.PaymentIDRequired,
			Routes: []canopytest.Route{{
				Pattern: "GET /goods", Price: dime, Faults: canopytest.Plan{canopytest.First(canopytest.DropAfterSettling())},
			}},
		})
		as[*canopy.InDoubtError](t, w.get(url+"/goods").err)
		w.bought(w.get(url + "/goods"))
		w.handed(s, 1)
		w.spent(dime)
	})
}

// The answer came and the record of it did not: as if the process had ended
// there. The payment counts in full and nothing is signed for it again.
func TestF6_OutcomeNeverRecorded(t *testing.T) {
	play(t, setup{store: func(s ledger.Store) ledger.Store { return &deafStore{powers: s.(powers)} }}, func(t *testing.T, w *world) {
		s, url := w.sells(dime)
		g := w.get(url, canopy.WithKey("k"))
		if g.err != nil || g.body == "" || g.paid.Warning == "" {
			t.Fatalf("got %+v, want the answer with a warning", g)
		}
		w.counted(dime)
		as[*canopy.InFlightError](t, w.get(url, canopy.WithKey("k")).err)
		w.handed(s, 1)
		w.signed(1)
		w.spent(dime)
	})
}

// The second commit fails for want of a disk: the answer is returned with a
// warning, and the latched ledger lets nothing new be paid.
func TestF8_DiskFullAtOutcome(t *testing.T) {
	play(t, setup{store: func(s ledger.Store) ledger.Store { return &deafStore{powers: s.(powers), latch: true} }}, func(t *testing.T, w *world) {
		s, url := w.sells(dime)
		g := w.get(url)
		if g.err != nil || g.StatusCode != 200 || g.body == "" || g.paid.Warning == "" {
			t.Fatalf("got %+v, want the answer with a warning", g)
		}
		if g := w.get(url + "/2"); !errors.Is(g.err, ledger.ErrReadOnly) {
			t.Errorf("the next payment is %v, want ErrReadOnly", g.err)
		}
		w.handed(s, 1)
		w.spent(dime)
		w.counted(dime)
	})
}

// deafStore is a store whose outcomes cannot be written.
type deafStore struct {
	powers
	latch  bool // after one, nothing at all
	failed bool
}

func (s *deafStore) Advance(context.Context, ledger.Change) (ledger.Entry, error) {
	s.failed = true
	return ledger.Entry{}, errors.New("no space left on device")
}

func (s *deafStore) Reserve(ctx context.Context, r ledger.Request) (ledger.Entry, []policy.Use, error) {
	if s.latch && s.failed {
		return ledger.Entry{}, nil, ledger.ErrReadOnly
	}
	return s.powers.Reserve(ctx, r)
}

// A language model that retries with a new key each time: one debit.
func TestF11_RetryStormWithNewKeys(t *testing.T) {
	play(t, setup{}, func(t *testing.T, w *world) {
		s, url := w.sells(dime, canopytest.Always(canopytest.DropAfterSettling()))
		for i := range 10 {
			if g := w.get(url, canopy.WithKey(fmt.Sprintf("attempt-%d", i))); g.err == nil {
				t.Fatalf("attempt %d: %+v", i, g)
			}
		}
		w.handed(s, 1)
		w.signed(1)
		w.spent(dime)
		w.counted(dime)
	})
}

// A seller that takes the authorization and answers 402 for ever gets one, at
// most three times a call, and never frees the budget.
func TestF12_402ForEver(t *testing.T) {
	for _, v := range []canopytest.Version{canopytest.V2, canopytest.V1} {
		t.Run(fmt.Sprint("version ", v), func(t *testing.T) {
			play(t, setup{policy: capped("$0.15 / 24h")}, func(t *testing.T, w *world) {
				s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
					Version: v, Routes: []canopytest.Route{{Pattern: "GET /goods/", Price: dime}},
					Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())},
				})
				e := as[*canopy.InDoubtError](t, w.get(url+"/goods/1").err)
				if e.Phase != canopy.RefusedAfter || e.Code == "" {
					t.Errorf("in doubt as %+v", e)
				}
				if n := s.Count("").Paid; n != 3 {
					t.Errorf("sent %d times, want 3", n)
				}
				as[*canopy.InDoubtError](t, w.get(url+"/goods/1", canopy.WithKey("new")).err)
				if n := s.Count("").Paid; n != 6 {
					t.Errorf("sent %d times in two calls, want 6", n)
				}
				w.handed(s, 1)
				w.signed(1)
				w.counted(dime)
				w.denied(w.get(url+"/goods/other"), "cap_exceeded")
				w.clock.Advance(23 * time.Hour)
				w.counted(dime)
				if len(w.wire.Payments()) != 1 {
					t.Errorf("%d different payments left", len(w.wire.Payments()))
				}
			})
		})
	}
}

// Other terms in the second 402 are never signed while the first authorization
// can still settle.
func TestF13_OtherTermsAfterPayment(t *testing.T) {
	other := canopytest.Address("somebody else")
	for name, fault := range map[string]canopytest.Fault{
		"dearer": canopytest.PriceWalk(payment.Cent), "cheaper": canopytest.OtherPrice(payment.Cent), "other payee": canopytest.OtherPayee(other),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{}, func(t *testing.T, w *world) {
				s, url := w.sells(dime, canopytest.From(2, fault))
				e := as[*canopy.InDoubtError](t, w.get(url).err)
				if e.Err == nil {
					t.Errorf("in doubt without a cause: %+v", e)
				}
				as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("again")).err)
				w.handed(s, 1)
				w.signed(1)
				w.spent(0)
				w.counted(dime)

				w.clock.Set(e.SafeAfter)
				s.SetFaults("", nil)
				w.bought(w.get(url))
				w.handed(s, 2)
				w.spent(dime)
				w.counted(2 * dime) // no chain was asked, so nothing is released
			})
		})
	}
}

// The seller says that settlement failed, and settles afterwards: the cap holds.
func TestF14_SettlementFailedIsALie(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{
		"before": canopytest.SettleAndSayFailed(""), "after": canopytest.SayFailed(""), "again": canopytest.SettleAndAnswerAgain(),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{policy: capped("$0.25 / 24h")}, func(t *testing.T, w *world) {
				s, url := w.sells(dime, canopytest.Always(fault))
				for i := range 5 {
					if g := w.get(fmt.Sprintf("%s/%d", url, i)); g.err == nil {
						t.Errorf("call %d: %d", i, g.StatusCode)
					}
				}
				w.handed(s, 2)
				w.counted(2 * dime)
				if _, err := s.Harvest().SettleLate(context.Background()); err != nil {
					t.Fatal(err)
				}
				w.spent(2 * dime)
			})
		})
	}
}

// settlement_pending: the same bytes at once, and never others.
func TestF15_SettlementPending(t *testing.T) {
	t.Run("joined", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			s, url := w.sells(dime, canopytest.First(canopytest.SettlementPending()))
			start := w.clock.Now()
			w.bought(w.get(url))
			if d := w.clock.Now().Sub(start); d > 0 {
				t.Errorf("it waited %v", d)
			}
			w.handed(s, 1)
			w.spent(dime)
		})
	})
	t.Run("for ever", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			w.chain.SetMining(canopytest.Manual)
			s, url := w.sells(dime, canopytest.Always(canopytest.SettlementPending()))
			e := as[*canopy.InDoubtError](t, w.get(url).err)
			if e.Code != "settlement_pending" || e.Phase != canopy.SentUnknown {
				t.Errorf("in doubt as %+v", e)
			}
			w.chain.Mine()
			as[*canopy.PaidError](t, w.get(url).err)
			w.handed(s, 1)
			w.spent(dime)
			w.counted(dime)
		})
	})
	t.Run("202 without a receipt", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			s, url := w.sells(dime, canopytest.Always(canopytest.Status(http.StatusAccepted)))
			if g := w.get(url); g.err != nil || g.StatusCode != 202 || g.paid.State != ledger.InDoubt {
				t.Errorf("got %+v", g)
			}
			w.handed(s, 1)
			w.counted(dime)
		})
	})
}

// "Nonce already used" of bytes that never left before proves nothing: the
// seller is asked once more. Afterwards it counts as a claim.
func TestF5_NonceUsedIsAClaimOnlyAfterASending(t *testing.T) {
	used := func() canopytest.Fault {
		return canopytest.Instead("nonce used", canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
			return x.Challenge("invalid_exact_evm_nonce_already_used")
		})
	}
	for name, tc := range map[string]struct {
		rule canopytest.Rule
		paid bool
	}{"once": {canopytest.First(used()), true}, "always": {canopytest.Always(used()), false}} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{}, func(t *testing.T, w *world) {
				s, url := w.sells(dime, tc.rule)
				if g := w.get(url); tc.paid {
					w.bought(g)
				} else {
					as[*canopy.PaidError](t, g.err)
				}
				if n := s.Count("").Paid; n != 2 {
					t.Errorf("sent %d times, want 2", n)
				}
				w.handed(s, 1)
				w.counted(dime)
			})
		})
	}
}
