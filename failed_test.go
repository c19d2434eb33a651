package canopy_test

import (
	"context"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/payment"
)

// failing is a chain on which each use was by a transaction that failed.
type failing struct{ told }

// told is a chain, as its nodes tell it.
type told interface {
	canopy.Chain
	canopy.Reconciler
}

func (f failing) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	uses, err := f.told.Uses(ctx, a, of, first, at)
	for i := range uses {
		uses[i].Moved, uses[i].Failed = nil, true
	}
	return uses, err
}

func (f failing) Confirm(_ context.Context, s payment.Settlement) (bool, error) { return s.Failed, nil }

// A transaction that failed ends its payment, and is neither a foreign use nor
// money that moved after its release.
func TestFailedTransaction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			c.Treasury.Chains = []canopy.Chain{failing{w.chain}}
		}})
		_, url := w.sells(dime)
		w.reconcile()
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		if r := w.reconcile(); r.Cancelled != 1 || len(r.Foreign) != 0 {
			t.Errorf("%+v, want one cancelled", r)
		}
		w.frozen(false)
		w.clock.Advance(time.Minute)
		if r := w.reconcile(); len(r.Foreign) != 0 {
			t.Errorf("%+v", r)
		}
		w.frozen(false)
	})
}
