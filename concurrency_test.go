package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// atOnce runs n calls at once and returns what they came to.
func (w *world) atOnce(n int, call func(i int) got) []got {
	out := make([]got, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			out[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return out
}

// 64 equal calls with one key: one payment, and the others learn of it.
func TestF10_EqualCallsWithOneKey(t *testing.T) {
	play(t, setup{}, func(t *testing.T, w *world) {
		s, url := w.sells(dime, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		var bought, inFlight atomic.Int32
		for _, g := range w.atOnce(64, func(int) got { return w.get(url, canopy.WithKey("one")) }) {
			var flying *canopy.InFlightError
			switch {
			case g.err == nil && g.paid.State == ledger.Claimed:
				bought.Add(1)
			case errors.As(g.err, &flying) && flying.Result.PaymentID.Valid():
				inFlight.Add(1)
			default:
				t.Errorf("got %+v", g)
			}
		}
		if bought.Load() != 1 || inFlight.Load() != 63 {
			t.Errorf("%d bought, %d in flight", bought.Load(), inFlight.Load())
		}
		w.signed(1)
		w.handed(s, 1)
		w.spent(dime)
		w.counted(dime)
	})
}

// 64 calls without a key are 64 purchases.
func TestEqualCallsWithoutKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(dime, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		for _, g := range w.atOnce(64, func(int) got { return w.get(url) }) {
			w.bought(g)
		}
		w.signed(64)
		w.handed(s, 64)
		w.spent(64 * dime)
	})
}

// 64 calls race for a cap of ten: exactly ten are paid. Attack 94.
func TestAttack94_CapRace(t *testing.T) {
	t.Parallel()
	for _, version := range []canopytest.Version{canopytest.V1, canopytest.V2} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{policy: capped("$1 / 24h"), base: &http.Transport{MaxIdleConnsPerHost: 64}})
			s := canopytest.NewSeller(w.chain, canopytest.SellerConfig{Version: version, Routes: []canopytest.Route{{Pattern: "GET /goods/{id}", Price: dime}}})
			url := s.Start(t)
			paid := 0
			for _, g := range w.atOnce(64, func(i int) got { return w.get(fmt.Sprintf("%s/goods/%d", url, i)) }) {
				if g.err == nil {
					w.bought(g)
					paid++
					continue
				}
				w.denied(g, "cap_exceeded")
			}
			if paid != 10 {
				t.Errorf("%d were paid, want 10", paid)
			}
			w.handed(s, 10)
			w.spent(payment.Dollar)
			w.counted(payment.Dollar)
		})
	}
}

// The same by many agents on one ledger, against a cap of the whole.
func TestAttack61_ManyAgentsOneCap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: "[org]\ncaps = [\"$1 / 24h\"]\n[policy.default]\ncaps = [\"none\"]\nallow = [\"*\"]\n"})
		s, url := w.sells(dime)
		other := func(agent string) *world {
			o := newWorld(t, setup{policy: "[org]\ncaps = [\"$1 / 24h\"]\n[policy.default]\ncaps = [\"none\"]\nallow = [\"*\"]\n",
				config: func(_ *world, c *canopy.Config) { c.Agent, c.Store, c.Transport = agent, w.store, w.wire }})
			return o
		}
		agents := make([]*world, 8)
		for i := range agents {
			agents[i] = other(fmt.Sprint("agent-", i))
		}
		w.atOnce(64, func(i int) got { return agents[i%8].get(fmt.Sprintf("%s/%d", url, i)) })
		w.handed(s, 10)
		w.spent(payment.Dollar)
	})
}

// Splitting a purchase into parts spends no more than the cap.
func TestAttack41_CapLaundering(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{
		"402 again": canopytest.AnswerAgain(), "failed": canopytest.SayFailed(""), "dropped": canopytest.DropBeforeSettling(),
		"500": canopytest.Status(500), "given away": canopytest.GiveAway(), "receipt of nothing": canopytest.FakeReceipt(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{policy: capped("$1 / 24h")})
				s, url := w.sells(dime, canopytest.Always(fault))
				for i := range 100 {
					w.get(fmt.Sprintf("%s/%d", url, i))
				}
				if _, err := s.Harvest().SettleLate(context.Background()); err != nil {
					t.Fatal(err)
				}
				w.chain.AssertSpentAtMost(t, w.spy.Address(), payment.Dollar)
				w.counted(payment.Dollar)
				w.signed(10)
			})
		})
	}
}

// Cancelled at any stage: nothing is lost, and what may have left is held.
func TestF28_CancelledAtEveryStage(t *testing.T) {
	t.Run("before anything", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			_, url := w.sells(dime)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			w.cancelled(err, 0, 0)
		})
	})
	t.Run("while the 402 comes", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			_, url := w.sells(dime, canopytest.Always(canopytest.Delay(time.Minute)))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			w.signed(0)
			time.Sleep(2 * time.Minute)
		})
	})
	t.Run("between the 402 and the signature", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(t.Context())
			w.wire.After = func(*http.Response) error { cancel(); return nil }
			_, url := w.sells(dime)
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			w.cancelled(err, 0, 0)
		})
	})
	t.Run("in the commit", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(t.Context())
			w.changed(func(c *canopy.Config) { c.Store = hookStore{w.store.(powers), cancel} })
			_, url := w.sells(dime)
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			e := as[*canopy.InDoubtError](t, err)
			if e.Phase != canopy.SignedNotSent {
				t.Errorf("in doubt as %+v", e)
			}
			w.cancelled(err, 0, dime)
		})
	})
	t.Run("in the signer", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			s, url := w.sells(dime)
			ctx, cancel := context.WithCancel(t.Context())
			w.spy.Before(func(context.Context, canopytest.Signed) { cancel() })
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			e := as[*canopy.InDoubtError](t, err)
			if e.Phase != canopy.SignedNotSent || e.Result.State != ledger.InDoubt {
				t.Errorf("in doubt as %+v", e)
			}
			w.handed(s, 0)
			w.cancelled(err, 0, dime)
		})
	})
	t.Run("while it is settled", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			s, url := w.sells(dime, canopytest.Always(canopytest.Delay(time.Minute).At(canopytest.OnPaid)))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			e := as[*canopy.InDoubtError](t, err)
			if e.Phase != canopy.SentUnknown || e.Result.State != ledger.InDoubt {
				t.Errorf("in doubt as %+v", e)
			}
			time.Sleep(2 * time.Minute)
			w.handed(s, 1)
			w.cancelled(err, dime, dime)
		})
	})
	t.Run("while it waits to send again", func(t *testing.T) {
		play(t, setup{}, func(t *testing.T, w *world) {
			s, url := w.sells(dime, canopytest.Always(canopytest.Both(canopytest.AnswerAgain(), canopytest.WithHeader("Retry-After", "20"))))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, cancel)
			_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
			if e := as[*canopy.InDoubtError](t, err); e.Phase != canopy.RefusedAfter {
				t.Errorf("in doubt as %+v", e)
			}
			if n := s.Count("").Paid; n != 1 {
				t.Errorf("sent %d times", n)
			}
			w.cancelled(err, 0, dime)
		})
	})
}

// cancelled fails the test unless err is the cancellation, and so much moved
// and counts.
func (w *world) cancelled(err error, spent, counted payment.USD) {
	w.t.Helper()
	if !errors.Is(err, context.Canceled) {
		w.t.Errorf("got %v, want the cancellation", err)
	}
	w.spent(spent)
	w.counted(counted)
}

// hookStore calls after once Reserve has committed.
type hookStore struct {
	powers
	after func()
}

func (s hookStore) Reserve(ctx context.Context, r ledger.Request) (ledger.Entry, []policy.Use, error) {
	e, uses, err := s.powers.Reserve(ctx, r)
	s.after()
	return e, uses, err
}
