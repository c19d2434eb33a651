package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// fetchAll has n calls made at once, turn by turn by some clients on one ledger,
// and returns their errors.
func (w *world) fetchAll(clients, n int, url func(i int) string, opts ...canopy.Option) []error {
	w.t.Helper()
	all := []*canopy.Client{w.client}
	for len(all) < clients {
		all = append(all, w.another())
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		req := w.request("GET", url(i), nil)
		wg.Go(func() {
			resp, err := all[i%clients].Fetch(context.Background(), req, opts...)
			if err == nil {
				resp.Body.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	w.audit.run("all calls")
	return errs
}

// F10 across processes: 64 calls under one key by four processes: one payment.
func TestF10_OneKeyInManyProcesses(t *testing.T) {
	play(t, setup{config: watching}, func(t *testing.T, w *world) {
		s, url := w.sells(dime, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		won := 0
		for i, err := range w.fetchAll(4, 64, func(int) string { return url }, canopy.WithKey("one")) {
			var flying *canopy.InFlightError
			switch {
			case err == nil:
				won++
			case !errors.As(err, &flying):
				t.Errorf("call %d: %v", i, err)
			}
		}
		if won != 1 {
			t.Errorf("%d were bought, want 1", won)
		}
		w.over()
		w.handed(s, 1)
		w.signed(1)
		w.spent(dime)
	})
}

// F21: processes race for one cap: exactly as many win as fit.
func TestF21_OneCapInManyProcesses(t *testing.T) {
	for _, n := range []int{2, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			play(t, setup{policy: capped("$1.05 / 24h"), config: watching}, func(t *testing.T, w *world) {
				s, url := w.sells(dime, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
				won := 0
				for i, err := range w.fetchAll(n, 40, func(i int) string { return fmt.Sprint(url, i) }) {
					var denied *canopy.DeniedError
					switch {
					case err == nil:
						won++
					case !errors.As(err, &denied) || denied.Result.Code != "cap_exceeded":
						t.Errorf("call %d: %v", i, err)
					}
				}
				if won != 10 {
					t.Errorf("%d were bought, want 10", won)
				}
				w.handed(s, 10)
				w.over()
				w.spent(payment.Dollar)
				w.counted(payment.Dollar)
			})
		})
	}
}

// F16 at every depth: what a reorganisation takes back is neither spent nor
// released, and counts once when it is mined again, or is released when it never
// is.
func TestF16_Depths(t *testing.T) {
	for _, depth := range []int{1, 2, 7, 33, 64} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(depth, ", lost ", lost), func(t *testing.T) {
				play(t, setup{config: watching, final: 65}, func(t *testing.T, w *world) {
					w.chain.SetMining(canopytest.Manual)
					w.chain.Mine()
					w.chain.SetMining(canopytest.Instant)
					_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
					id := w.doubt(url)
					w.chain.SetMining(canopytest.Manual)
					for range depth - 1 {
						w.chain.Mine()
					}
					w.spent(dime)
					w.step("a round", func() { w.reconcile() })
					w.state(id, ledger.InDoubt)
					w.step("a reorganisation", func() { must(t, w.chain.Reorg(depth)) })
					w.spent(0)
					w.counted(dime)
					w.clock.Advance(90 * time.Second) // over its validity, by our clock
					w.step("a round", func() { w.reconcile() })
					w.state(id, ledger.InDoubt)
					want, moved := ledger.Settled, dime
					if lost {
						for _, hash := range w.chain.Pending() {
							w.chain.Drop(hash)
						}
						want, moved = ledger.ExpiredUnused, 0
					} else {
						w.clock.Advance(-90 * time.Second) // an old time
						w.step("mined again", func() { w.chain.Mine() })
						w.clock.Advance(90 * time.Second)
						w.spent(dime)
					}
					w.counted(dime)
					w.over()
					w.state(id, want)
					w.spent(moved)
					w.counted(moved)
				})
			})
		}
	}
}

// F17 once more: a block with a time of before the payment was made. Its money
// counts from when it was authorized, and no earlier.
func TestF17_OldTimestamps(t *testing.T) {
	play(t, setup{policy: capped("$0.15 / 1h"), config: watching}, func(t *testing.T, w *world) {
		s, url := w.sells(dime, canopytest.First(canopytest.DropBeforeSettling()))
		w.chain.SetMining(canopytest.Manual)
		w.clock.Advance(50 * time.Minute)
		id := w.doubt(url)
		w.clock.Advance(-50 * time.Minute)
		for _, a := range s.Harvest().Unsettled() {
			w.chain.Enqueue(a.Authorization)
		}
		w.step("it is mined with an old time", func() { w.chain.Mine() })
		w.clock.Advance(51 * time.Minute)
		w.step("it is final", func() {
			w.chain.Finalize()
			w.reconcile()
		})
		e := w.state(id, ledger.Settled)
		if !e.SpentAt.Equal(e.AuthorizedAt) {
			t.Errorf("it was spent at %s, and authorized at %s", e.SpentAt, e.AuthorizedAt)
		}
		w.clock.Set(e.AuthorizedAt.Add(58 * time.Minute))
		w.refused("within an hour", func() { w.denied(w.get(url+"2"), "cap_exceeded") })
		w.clock.Set(e.AuthorizedAt.Add(61 * time.Minute))
		w.chain.SetMining(canopytest.Instant)
		w.bought(w.get(url + "2"))
		w.over()
		w.spent(2 * dime)
	})
}

// pretender is a chain whose token tells of an authorization that was used, and
// moves nothing, or something else.
type pretender struct {
	*canopytest.Chain
	moved []payment.Recipient
}

func (p *pretender) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	uses, err := p.Chain.Uses(ctx, a, of, first, at)
	for i := range uses {
		uses[i].Moved = p.moved
	}
	return uses, err
}

// Confirm is what all nodes show, since the token itself pretends.
func (p *pretender) Confirm(context.Context, payment.Settlement) (bool, error) { return true, nil }

// F19: a token that succeeds without moving money, or moves less, or to another:
// the use alone settles nothing.
func TestF19_UseWithoutTransfer(t *testing.T) {
	seller := canopytest.Address("seller")
	for name, moved := range map[string][]payment.Recipient{
		"nothing":      nil,
		"less":         {{Address: seller, Amount: payment.UnitsOf(99_999)}},
		"to another":   {{Address: canopytest.Address("thief"), Amount: payment.UnitsOf(100_000)}},
		"more besides": {{Address: seller, Amount: payment.UnitsOf(100_000)}, {Address: canopytest.Address("thief"), Amount: payment.UnitsOf(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{config: func(w *world, c *canopy.Config) {
				c.Treasury.Chains = []canopy.Chain{&pretender{w.chain, moved}}
			}}, func(t *testing.T, w *world) {
				_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
				id := w.doubt(url)
				w.chain.Finalize()
				w.step("a round", func() {
					if r := w.reconcile(); r.Settled != 0 || r.Released != 0 || r.Operator != 1 {
						t.Errorf("%+v", r)
					}
				})
				w.state(id, ledger.NeedsOperator)
				w.frozen(true)
				w.counted(dime)
				w.refused("everybody is frozen", func() { w.denied(w.get(url+"2"), "frozen") })
			})
		})
	}
}
