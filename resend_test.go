package canopy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

// A payment that is claimed and was not delivered is asked for with the same
// bytes, and a seller that knows it serves it.
func TestClaimedAndNotDeliveredIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
			PaymentID: canopytest.PaymentIDRequired, Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}},
			Faults: canopytest.Plan{canopytest.First(canopytest.StatusWithReceipt(500))},
		})
		first := w.get(url + "/goods")
		if first.err != nil || first.StatusCode != 500 || first.paid.State != ledger.Claimed {
			t.Fatalf("got %+v", first)
		}
		again := w.bought(w.get(url + "/goods"))
		if again.paid.PaymentID != first.paid.PaymentID || again.paid.TxHash != first.paid.TxHash {
			t.Errorf("bought as %+v, first %+v", again.paid, first.paid)
		}
		w.handed(s, 1)
		w.spent(dime)
		w.counted(dime)
	})
}

// A seller of version 1 runs its handler at each sending: what is not GET
// or HEAD leaves once, whoever asks.
func TestVersionOneIsNotSentAgain(t *testing.T) {
	for method, want := range map[string]int{"GET": 3, "POST": 1, "PUT": 1} {
		t.Run(method, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
					Version: canopytest.V1, Routes: []canopytest.Route{{Pattern: "/goods", Price: dime}}, Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())},
				})
				as[*canopy.InDoubtError](t, w.do(w.request(method, url+"/goods", nil), canopy.WithKey("k")).err)
				if n := s.Count("").Paid; n != want {
					t.Errorf("sent %d times, want %d", n, want)
				}
				e := as[*canopy.InDoubtError](t, w.do(w.request(method, url+"/goods", nil), canopy.WithKey("k")).err)
				if want == 1 && (s.Count("").Paid != 1 || !strings.Contains(e.Error(), "a second time")) {
					t.Errorf("sent %d times, %v", s.Count("").Paid, e)
				}
				w.handed(s, 1)
				w.counted(dime)
			})
		})
	}
}

// Bytes that would arrive dead are not sent.
func TestNothingIsSentTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(dime, canopytest.Always(canopytest.Both(canopytest.AnswerAgain(), canopytest.WithHeader("Retry-After", "3600"))), canopytest.Always(canopytest.OtherTimeout(35*time.Second)))
		e := as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
		if n := s.Count("").Paid; n != 1 || !strings.Contains(e.Error(), "its validity ends") {
			t.Errorf("sent %d times, %v", n, e)
		}
		w.clock.Advance(30 * time.Second)
		e = as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
		if n := s.Count("").Paid; n != 1 || !strings.Contains(e.Error(), "dead") {
			t.Errorf("sent %d times, %v", n, e)
		}
		w.handed(s, 1)
		w.counted(dime)
	})
}

// The same agent with another key of its own: what the first account paid is not
// signed for by the second.
func TestAnotherAccountDoesNotSendAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(dime, canopytest.Always(canopytest.DropBeforeSettling()))
		as[*canopy.InDoubtError](t, w.get(url).err)
		key, err := signer.FromHex(strings.Repeat("11", 32))
		must(t, err)
		other := newWorld(t, setup{bend: func(*world, payment.Signer) payment.Signer { return key }, config: func(_ *world, c *canopy.Config) { c.Store, c.Transport = w.store, w.wire }})
		if e := as[*canopy.InDoubtError](t, other.get(url).err); !strings.Contains(e.Error(), "another account") {
			t.Errorf("in doubt as %v", e)
		}
		other.signed(0)
		w.handed(s, 1)
	})
}

// An operator said that it settled while the answer was lost: the answer to the
// same bytes adds nothing, and warns of nothing.
func TestAnswerToWhatIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		w.settle(e.Result.PaymentID)
		p := as[*canopy.PaidError](t, w.get(url).err)
		if p.Result.State != ledger.Settled || p.Result.Settlement != canopy.SettlementConfirmed || p.Result.Warning != "" {
			t.Errorf("paid as %+v", p.Result)
		}
		w.counted(dime)
	})
}

// settle is an operator's word.
func (w *world) settle(id canopy.PaymentID) {
	w.t.Helper()
	e, err := w.store.Entry(w.context(), id)
	must(w.t, err)
	_, err = w.store.Advance(w.context(), ledger.Change{ID: id, Version: e.Version, To: ledger.Settled, By: ledger.ByOperator, Now: w.clock.Now(), Assumed: true, Who: "ana"})
	must(w.t, err)
}

// Somebody else moves the payment between sending and recording: the outcome is
// recorded on what stands.
func TestOutcomeIsRecordedOnWhatStands(t *testing.T) {
	for name, to := range map[string]ledger.State{"a fact": ledger.InDoubt, "settled": ledger.Settled} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				meddle := &meddler{to: to}
				w := newWorld(t, setup{store: func(s ledger.Store) ledger.Store { meddle.Memory = s.(*ledger.Memory); return meddle }})
				_, url := w.sells(dime)
				g := w.get(url)
				want := ledger.Claimed
				if to == ledger.Settled {
					want = to
				}
				if g.err != nil || g.paid.State != want || g.paid.Warning != "" {
					t.Errorf("got %+v", g)
				}
				w.counted(dime)
			})
		})
	}
}

// meddler moves a payment once, just before its client does.
type meddler struct {
	*ledger.Memory
	to   ledger.State
	done bool
}

func (m *meddler) Advance(ctx context.Context, c ledger.Change) (ledger.Entry, error) {
	if !m.done {
		m.done = true
		first := c
		first.To, first.Receipt, first.By = ledger.InDoubt, nil, ledger.ByClient
		e, err := m.Memory.Advance(ctx, first)
		if err == nil && m.to != ledger.InDoubt {
			_, err = m.Memory.Advance(ctx, ledger.Change{ID: c.ID, Version: e.Version, To: m.to, By: ledger.ByChain, Now: c.Now})
		}
		if err != nil {
			return ledger.Entry{}, fmt.Errorf("meddling: %w", err)
		}
	}
	return m.Memory.Advance(ctx, c)
}

// A signer of another process has its address recovered by the rail, one of
// this module has not.
func TestForeignSignersAreRecovered(t *testing.T) {
	for name, local := range map[string]bool{"local": true, "foreign": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				rail := &grants{}
				w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
					rail.Rail, c.Rails[0] = c.Rails[0], rail
					if local {
						key, err := signer.FromHex(testKey)
						must(t, err)
						c.Treasury.Signer = key.WithNow(w.clock.Now)
					}
				}})
				_, url := w.sells(dime)
				w.bought(w.get(url))
				if rail.recover == local {
					t.Errorf("Decode was asked to recover: %v", rail.recover)
				}
			})
		})
	}
}

// grants remembers what it was asked to decode.
type grants struct {
	canopy.Rail
	recover bool
}

func (r *grants) Decode(a payment.Authorization, g payment.Grant) (payment.Terms, error) {
	r.recover = g.Recover
	return r.Rail.Decode(a, g)
}

// A rail that hands out more to echo than the ledger keeps: not paid.
func TestEchoOfAnyRailIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Rails[0] = wordy{c.Rails[0]} }})
		_, url := w.sells(dime)
		if g := w.get(url); g.err != nil || g.StatusCode != 402 {
			t.Errorf("got %+v", g)
		}
		w.signed(0)
	})
}

type wordy struct{ canopy.Rail }

func (r wordy) Offers(resp *http.Response, body []byte) ([]payment.Offer, error) {
	offers, err := r.Rail.Offers(resp, body)
	for i := range offers {
		offers[i].Echo = make([]byte, payment.MaxEcho+1)
	}
	return offers, err
}
