//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
)

// TestPayByKey makes calls with one key, one after another and at once: one debit.
func TestPayByKey(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		var id canopy.PaymentID
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			resp, _, err := b.get(t, s.URL+"/cent", canopy.WithKey("order-1"))
			if err != nil {
				t.Fatal(err)
			}
			id = paid(t, resp, ledger.Claimed, 10_000).PaymentID
			// The same bytes go to the seller again, who does not sell twice for them.
			_, _, err = b.get(t, s.URL+"/cent", canopy.WithKey("order-1"))
			var made *canopy.PaidError
			if !errors.As(err, &made) || made.Result.PaymentID != id || made.Result.TxHash == "" || !made.Delivered {
				t.Errorf("the same key again: %v, want *PaidError of %s", err, id)
			}
		})
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, _, err := b.get(t, s.URL+"/two", canopy.WithKey("order-1"))
			if !errors.Is(err, canopy.ErrKeyConflict) {
				t.Errorf("the key of another URL: %v, want ErrKeyConflict", err)
			}
		})
		var delivered atomic.Int32
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					req, _ := http.NewRequest(http.MethodGet, s.URL+"/cent", nil)
					resp, err := b.Fetch(t.Context(), req, canopy.WithKey("order-2"))
					var made *canopy.PaidError
					var flying *canopy.InFlightError
					switch {
					case err == nil:
						resp.Body.Close()
						delivered.Add(1)
					case !errors.As(err, &made) && !errors.As(err, &flying):
						t.Errorf("one of eight: %v", err)
					}
				})
			}
			wg.Wait()
		})
		if delivered.Load() == 0 {
			t.Error("none of eight callers got the content")
		}
		b.spent(t, 20_000)
	})
}

// TestPayAndHangUp leaves while the seller works: the payment is in doubt, and asking again with the key pays
// nothing more.
func TestPayAndHangUp(t *testing.T) {
	const key = "slow-1"
	ownSellers(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			err := b.hangUp(t, 200*time.Millisecond, s.URL+"/slow", key)
			var doubt *canopy.InDoubtError
			if !errors.As(err, &doubt) || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want *InDoubtError for the hang-up", err)
			}
			if doubt.Phase != canopy.SentUnknown || doubt.Result.State != ledger.InDoubt || doubt.SafeAfter.IsZero() {
				t.Errorf("%+v", doubt)
			}
			left, err := b.Budget(t.Context())
			if err != nil || left.Held != 10_000 || left.Spent != 10_000 {
				t.Errorf("budget %+v, %v: want the price held", left, err)
			}
			b.chain.settled(t, b.payer)
			askAgain(t, b.Client, s.URL+"/slow", key, doubt.Result.PaymentID)
			// Without the key it is the same purchase still, since nothing was delivered. (The v1 seller
			// makes its goods once more for every sending, which takes its time.)
			if s.Version == 2 {
				askAgain(t, b.Client, s.URL+"/slow", "", doubt.Result.PaymentID)
			}
		})
		b.spent(t, 10_000)
	})
}

// askAgain repeats a call whose payment is in doubt or paid: content, *PaidError or *InDoubtError of the same
// payment are right.
func askAgain(t testing.TB, c *canopy.Client, url, key string, id canopy.PaymentID) {
	t.Helper()
	var opts []canopy.Option
	if key != "" {
		opts = append(opts, canopy.WithKey(key))
	}
	resp, _, err := fetch(t, c, http.MethodGet, url, nil, opts...)
	var made *canopy.PaidError
	var doubt *canopy.InDoubtError
	var got canopy.PaymentID
	switch {
	case err == nil:
		r, _ := canopy.PaymentOf(resp)
		got = r.PaymentID
	case errors.As(err, &made):
		got = made.Result.PaymentID
	case errors.As(err, &doubt):
		got = doubt.Result.PaymentID
	default:
		t.Fatalf("asking again: %v", err)
	}
	if got != id {
		t.Errorf("asking again gave payment %s, want %s", got, id)
	}
	t.Logf("asked again: %v", err)
}

// TestPayForABrokenPage gets the seller's 500 as the answer it is, with what became of the money.
func TestPayForABrokenPage(t *testing.T) {
	broken := func(t *testing.T, b *buyer, url string, state canopy.State) {
		resp, body, err := b.get(t, url)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(body, "broken on purpose") {
			t.Errorf("answer %s %s", resp.Status, body)
		}
		r := paid(t, resp, state, 10_000)
		if e, err := b.store.Entry(t.Context(), r.PaymentID); err != nil || e.Delivered || e.HTTP != 500 {
			t.Errorf("entry %+v, %v", e, err)
		}
	}
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		b.chain.Moves(t, s.PayTo, 0, func() {
			for range 3 { // an equal call sends the same bytes, and signs nothing
				broken(t, b, s.URL+"/broken", ledger.InDoubt)
			}
		})
		if got := entries(t, b.store); len(got) != 1 || got[0].Sends < 3 {
			t.Errorf("%d payments, the first sent %d times: want one, sent again", len(got), got[0].Sends)
		}
		if s.Version == 1 {
			return
		}
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			broken(t, b, s.URL+"/upfront-broken", ledger.Claimed)
			_, _, err := b.get(t, s.URL+"/upfront-broken")
			var made *canopy.PaidError
			if !errors.As(err, &made) {
				t.Errorf("an equal call after a paid failure: %v, want *PaidError", err)
			}
		})
	})
}
