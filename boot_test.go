package canopy_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// What a client finds when it starts is taken up before it pays anything.
func TestBeforeTheFirstPayment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching, policy: capped("$0.15 / 24h")})
		_, url := w.sells(dime, canopytest.First(canopytest.DropBeforeSettling()))
		id := w.doubt(url)
		w.clock.Advance(2 * time.Minute)
		again := newWorld(t, setup{policy: capped("$0.25 / 24h"), config: func(o *world, c *canopy.Config) {
			watching(w, c)
			o.store, c.Store, o.spy, c.Treasury.Signer, c.Transport, c.Now = w.store, w.store, w.spy, w.spy, w.wire, w.clock.Now
		}})
		_, err := again.client.CheckURL(t.Context(), url)
		must(t, err)
		w.state(id, ledger.InDoubt) // looking is not paying
		again.bought(again.get(url + "2"))
		w.state(id, ledger.ExpiredUnused)
	})
}

// A denial that a dead hold takes part in asks the chain first.
func TestBeforeADenial(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching, policy: capped("$0.15 / 24h")})
		_, url := w.sells(dime, canopytest.First(canopytest.DropBeforeSettling()))
		id := w.doubt(url)
		w.denied(w.get(url+"2"), "cap_exceeded")
		w.clock.Advance(65 * time.Second)
		w.denied(w.get(url+"2"), "cap_exceeded") // dead, and not final
		w.clock.Advance(20 * time.Second)
		w.bought(w.get(url + "2"))
		w.state(id, ledger.ExpiredUnused)
		w.denied(w.get(url+"3"), "cap_exceeded")
		w.spent(dime)
		w.counted(dime)
		w.sound()
	})
}

// A chain that does not answer costs the first payment, and a denial, two
// seconds at most.
func TestSlowChain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := &stuck{}
		w := newWorld(t, setup{policy: capped("$0.15 / 24h"), config: func(w *world, c *canopy.Config) {
			slow.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{slow}
		}})
		_, url := w.sells(dime, canopytest.First(canopytest.DropBeforeSettling()))
		took := func(most time.Duration, f func()) {
			t.Helper()
			start := time.Now()
			f()
			if d := time.Since(start); d > most {
				t.Errorf("took %s, want at most %s", d, most)
			}
		}
		slow.set(true)
		took(4*time.Second, func() { w.doubt(url) }) // balance, and what was left
		took(0, func() { w.denied(w.get(url+"2"), "cap_exceeded") })
		w.clock.Advance(2 * time.Minute)
		took(4*time.Second, func() { w.denied(w.get(url+"2"), "cap_exceeded") })
		slow.set(false)
		w.bought(w.get(url + "2"))
	})
}

// stuck is a chain whose reads end with their context only.
type stuck struct {
	*canopytest.Chain

	mu sync.Mutex
	on bool
}

func (s *stuck) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

func (s *stuck) wait(ctx context.Context) error {
	s.mu.Lock()
	on := s.on
	s.mu.Unlock()
	if on {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s *stuck) Balance(ctx context.Context, a canopy.Asset, of canopy.Address) (canopy.Units, error) {
	if err := s.wait(ctx); err != nil {
		return canopy.Units{}, err
	}
	return s.Chain.Balance(ctx, a, of)
}

func (s *stuck) Latest(ctx context.Context) (payment.Block, error) {
	if err := s.wait(ctx); err != nil {
		return payment.Block{}, err
	}
	return s.Chain.Latest(ctx)
}

func (s *stuck) Finalized(ctx context.Context) (payment.Block, error) {
	if err := s.wait(ctx); err != nil {
		return payment.Block{}, err
	}
	return s.Chain.Finalized(ctx)
}

// A payment whose call never came back is taken up once the chain says that it
// is dead, although its process lives.
func TestReconcileForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		release := make(chan struct{})
		_, url := w.sells(dime)
		gone := w.client
		ctx, cancel := context.WithCancel(t.Context())
		w.spy.Before(func(ctx context.Context, s canopytest.Signed) { <-release })
		done := make(chan error)
		go func() {
			_, err := gone.Fetch(ctx, w.request("GET", url, nil))
			done <- err
		}()
		time.Sleep(time.Second)
		var id canopy.PaymentID
		for e, err := range w.store.Entries(t.Context(), ledger.Query{}) {
			must(t, err)
			id = e.ID
		}
		w.reconcile()
		w.state(id, ledger.Authorized)
		w.clock.Advance(2 * time.Minute)
		w.reconcile()
		w.state(id, ledger.ExpiredUnused)
		cancel()
		close(release)
		if err := <-done; err == nil {
			t.Error("the call that came back late has an answer")
		}
		w.state(id, ledger.ExpiredUnused)
		w.counted(0)
		w.spent(0)
		w.sound()
	})
}

func TestReconcileEvery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		id := w.doubt(url)
		ctx, cancel := context.WithCancel(t.Context())
		rounds := 0
		done := make(chan error)
		go func() {
			done <- w.client.ReconcileEvery(ctx, 10*time.Second, func(canopy.Reconciliation, error) { rounds++ })
		}()
		time.Sleep(65 * time.Second)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if rounds != 7 {
			t.Errorf("%d rounds in 65 s, want 7", rounds)
		}
		w.state(id, ledger.Settled)
		must(t, w.store.Close())
		if err := w.client.ReconcileEvery(t.Context(), 0, nil); !errors.Is(err, ledger.ErrClosed) {
			t.Error(err)
		}
	})
}
