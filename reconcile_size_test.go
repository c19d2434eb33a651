package canopy_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// fact answers questions about slots at once: every other one was used.
type fact struct {
	*canopytest.Chain
	at   payment.Block
	uses []payment.Settlement
	used map[payment.Slot]bool
}

func (f *fact) Finalized(context.Context) (payment.Block, error) { return f.at, nil }

func (f *fact) BlockAt(context.Context, time.Time, payment.Block) (uint64, error) { return 1, nil }

func (f *fact) Used(_ context.Context, slots []payment.Slot, _ payment.Block) ([]bool, error) {
	out := make([]bool, len(slots))
	for i, s := range slots {
		out[i] = f.used[s]
	}
	return out, nil
}

func (f *fact) Uses(context.Context, canopy.Asset, canopy.Address, uint64, payment.Block) ([]payment.Settlement, error) {
	return f.uses, nil
}

// BenchmarkReconcile reconciles 10,000 holds, half of them settled and half to
// be released.
func BenchmarkReconcile(b *testing.B) {
	const holds = 10_000
	clock := canopytest.NewStillClock(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	for name, open := range map[string]func(b *testing.B) ledger.Store{
		"Memory": func(*testing.B) ledger.Store { return ledger.NewMemory(ledger.Options{Now: clock.Now}) },
		"SQLite": func(b *testing.B) ledger.Store {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "canopy.db"), sqlite.Options{Now: clock.Now})
			must(b, err)
			return s
		},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				store := open(b)
				f := &fact{Chain: canopytest.NewChain(canopytest.ChainConfig{Clock: clock}), used: map[payment.Slot]bool{}}
				f.at = payment.Block{Number: 10, Time: clock.Now().Add(time.Hour)}
				f.hold(b, store, clock.Now(), holds)
				rules, err := policy.Parse("test", []byte(openPolicy))
				must(b, err)
				c, err := canopy.New(canopy.Config{Treasury: canopy.Treasury{Chains: []canopy.Chain{f}}, Policy: rules, Store: store, Now: clock.Now})
				must(b, err)
				b.StartTimer()
				r, err := c.Reconcile(context.Background())
				b.StopTimer()
				if err != nil || r.Settled != holds/2 || r.Released != holds/2 {
					b.Fatalf("settled %d, released %d, %v, %v", r.Settled, r.Released, r.Problems, err)
				}
				must(b, store.Close())
			}
		})
	}
}

// hold puts n payments in doubt.
func (f *fact) hold(b *testing.B, store ledger.Store, now time.Time, n int) {
	asset := f.Dollar()
	payer, payee := canopytest.Address("payer"), canopytest.Address("payee")
	sem := make(chan struct{}, 64)
	ids := make(chan ledger.Entry, n)
	for i := range n {
		sem <- struct{}{}
		go func() {
			defer func() { <-sem }()
			t := payment.Terms{
				Rail: "x402", Scheme: "exact", Asset: asset, Amount: payment.UnitsOf(1000), Method: "GET", Origin: "https://feed.example", Target: "/x",
				Recipients: []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(1000)}}, Validity: time.Minute,
			}
			id := payment.NewID(now)
			e, _, err := store.Reserve(context.Background(), ledger.Request{
				Payment: payment.Payment{ID: id, Agent: "tester", Terms: t, Host: "feed.example"}, Payer: payer, Now: now,
				Verdict: policy.Verdict{Status: payment.Allowed, Cost: t.Cost()}, Fingerprint: payment.Hash{1, byte(i >> 8), byte(i)}, Validity: time.Minute,
				Slot: payment.Slot{Kind: payment.SlotEVM}, Watched: true,
			})
			if err == nil {
				e, err = store.Advance(context.Background(), ledger.Change{ID: e.ID, Version: e.Version, To: ledger.InDoubt, Now: now})
			}
			if err != nil {
				b.Error(err)
			}
			ids <- e
		}()
	}
	for i := range n {
		e := <-ids
		if i%2 == 0 {
			f.used[e.Slot] = true
			f.uses = append(f.uses, payment.Settlement{Slot: e.Slot, TxHash: "0x01", Block: 5, Time: now, Moved: e.Terms.Recipients})
		}
	}
}
