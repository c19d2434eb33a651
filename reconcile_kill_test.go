package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var errKilled = errors.New("killed")

// mortal is a store and a chain that stop working after so many calls: what a
// process that is killed does to them. Before the end, or after it where late
// is set, the last call still takes effect.
type mortal struct {
	*canopytest.Chain
	store
	left atomic.Int64 // calls; negative for ever
	late bool
}

type store interface {
	ledger.Store
	ledger.Freezer
	ledger.Cursors
	ledger.SlotFinder
	ledger.Recoverer
	ledger.Verifier
}

// call does f unless the process is dead.
func (m *mortal) call(f func() error) error {
	switch n := m.left.Add(-1); {
	case n < -1<<40: // for ever
		m.left.Store(-1 << 50)
	case n < 0:
		return errKilled
	case n == 0 && m.late:
		return errors.Join(f(), errKilled)
	}
	return f()
}

func (m *mortal) Finalized(ctx context.Context) (b payment.Block, err error) {
	err = m.call(func() error { b, err = m.Chain.Finalized(ctx); return err })
	return b, err
}

func (m *mortal) Used(ctx context.Context, s []payment.Slot, at payment.Block) (used []bool, err error) {
	err = m.call(func() error { used, err = m.Chain.Used(ctx, s, at); return err })
	return used, err
}

func (m *mortal) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) (s []payment.Settlement, err error) {
	err = m.call(func() error { s, err = m.Chain.Uses(ctx, a, of, first, at); return err })
	return s, err
}

func (m *mortal) Advance(ctx context.Context, c ledger.Change) (e ledger.Entry, err error) {
	err = m.call(func() error { e, err = m.store.Advance(ctx, c); return err })
	return e, err
}

func (m *mortal) Freeze(ctx context.Context, agent, by, why string) error {
	return m.call(func() error { return m.store.Freeze(ctx, agent, by, why) })
}

func (m *mortal) MoveCursor(ctx context.Context, name string, at uint64) error {
	return m.call(func() error { return m.store.MoveCursor(ctx, name, at) })
}

func (m *mortal) FindSlots(ctx context.Context, s []payment.Slot) (ids []payment.ID, err error) {
	err = m.call(func() error { ids, err = m.store.FindSlots(ctx, s); return err })
	return ids, err
}

func (m *mortal) Entries(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		if err := m.call(func() error { return nil }); err != nil {
			yield(ledger.Entry{}, err)
			return
		}
		m.store.Entries(ctx, q)(yield)
	}
}

// TestReconcileKilled kills a round after each of its calls, before and after
// it took effect: the next round ends where an undisturbed one does.
func TestReconcileKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, late := range []bool{false, true} {
			for n := int64(0); ; n++ {
				if !killAfter(t, n, late) {
					if n < 10 {
						t.Errorf("a whole round has %d calls only", n)
					}
					break
				}
			}
		}
	})
}

// killAfter reports whether the round was killed before its end.
func killAfter(t *testing.T, n int64, late bool) bool {
	m := &mortal{late: late}
	m.left.Store(-1 << 50)
	w := newWorld(t, setup{store: func(s ledger.Store) ledger.Store {
		m.store = s.(store)
		return m
	}, config: func(w *world, c *canopy.Config) {
		m.Chain = w.chain
		c.Treasury.Chains = []canopy.Chain{m}
	}})
	_, url := w.sells(dime,
		canopytest.First(canopytest.DropAfterSettling()), canopytest.Nth(2, canopytest.DropBeforeSettling()),
		canopytest.Nth(3, canopytest.DropBeforeSettling()), canopytest.Nth(4, canopytest.DropAfterSettling()))
	moved, unused, cancelled := w.doubt(url), w.doubt(url+"2"), w.doubt(url+"3")
	must(t, w.chain.Cancel(w.chain.Dollar(), w.client.Address(), w.state(cancelled, ledger.InDoubt).Slot.NonceID))
	w.clock.Advance(11 * time.Minute) // nothing of before the first look is valid any more
	stranger := [32]byte{1, 2, 3}
	must(t, w.chain.Cancel(w.chain.Dollar(), w.client.Address(), stranger))
	w.clock.Advance(2 * time.Minute)
	w.chain.Finalize()

	m.left.Store(n)
	_, err := w.client.Reconcile(context.Background())
	killed := m.left.Load() < 0 || late && m.left.Load() == 0
	if err != nil && !errors.Is(err, errKilled) {
		t.Errorf("killed after %d calls: %v", n, err)
	}
	m.left.Store(-1 << 50)
	counted := canopy.USD(0)
	for id, want := range map[canopy.PaymentID]ledger.State{moved: ledger.Settled, unused: ledger.ExpiredUnused, cancelled: ledger.Cancelled} {
		e, err := w.store.Entry(context.Background(), id)
		must(t, err)
		if e.State != want && e.State != ledger.InDoubt {
			t.Errorf("killed after %d calls, %s is %s", n, id, e.State)
		}
		if e.State == ledger.InDoubt || e.State == ledger.Settled {
			counted += dime
		}
	}
	w.counted(counted)
	_, err = w.client.Reconcile(context.Background())
	must(t, err)
	w.state(moved, ledger.Settled)
	w.state(unused, ledger.ExpiredUnused)
	w.state(cancelled, ledger.Cancelled)
	w.counted(dime)
	w.frozen(true) // by the use that nobody here signed
	w.sound()
	return killed
}

// TestReconcilersRace has several at once: each payment moves once.
func TestReconcilersRace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(canopy.USD(10_000), canopytest.From(1, canopytest.DropAfterSettling()), canopytest.From(16, canopytest.DropBeforeSettling()))
		for i := range 30 {
			w.doubt(fmt.Sprint(url, i))
		}
		w.clock.Advance(2 * time.Minute)
		w.chain.Finalize()
		var settled, released atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				r, err := w.client.Reconcile(context.Background())
				if err != nil || len(r.Problems) > 0 || len(r.Foreign) > 0 {
					t.Errorf("%+v, %v", r, err)
				}
				settled.Add(int64(r.Settled))
				released.Add(int64(r.Released))
			})
		}
		wg.Wait()
		if settled.Load() != 15 || released.Load() != 15 {
			t.Errorf("settled %d and released %d, want 15 and 15", settled.Load(), released.Load())
		}
		w.counted(150_000)
		w.sound()
	})
}

// TestReconcileSQLite settles, in another process so to speak, what one left
// that is gone: signed, perhaps sent, and without an outcome.
func TestReconcileSQLite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "canopy.db")
	var first *sqlite.Store
	open := func(w *world) *sqlite.Store {
		s, err := sqlite.Open(path, sqlite.Options{Now: w.clock.Now})
		must(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
		watching(w, c)
		first = open(w)
		w.store, c.Store = first, first
	}})
	_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
	moved := w.doubt(url)
	// The process dies between its first commit and its second: once after the
	// money moved, once before.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.spy.Before(func(context.Context, canopytest.Signed) { first.Close() })
	_, err := w.client.Fetch(ctx, w.request("GET", url+"2", nil))
	if err == nil {
		t.Fatal("a process that died has an answer")
	}
	w.spy.Before(nil)

	second := open(w)
	w.store = second
	rules, err := policy.Parse("test", []byte(openPolicy))
	must(t, err)
	cfg := canopy.Config{
		Agent: "tester", Treasury: canopy.Treasury{Signer: w.spy, Chains: []canopy.Chain{w.chain}},
		Policy: rules, Store: second, Now: w.clock.Now,
	}
	w.client, err = canopy.New(cfg)
	must(t, err)
	w.clock.Advance(2 * time.Minute)
	w.chain.Finalize()
	r := w.reconcile()
	if r.Settled != 1 || r.Released != 1 {
		t.Errorf("%+v", r)
	}
	w.state(moved, ledger.Settled)
	w.counted(dime)
	w.sound()
	must(t, second.Close())
	third := open(w)
	w.store = third
	w.state(moved, ledger.Settled)
}
