package canopy_test

import (
	"context"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// What one of two nodes leaves out for a while is found all the same.
func TestForeignUseLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		w.reconcile()
		w.elsewhere(url + "other")
		w.chain.Finalize()
		w.chain.SetNodes(2, canopytest.LieNoLogs)
		w.reconcile(true)
		w.frozen(false)
		w.chain.SetNodes(2, canopytest.NoLie)
		if r := w.reconcile(); len(r.Foreign) != 1 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)
	})
}

// inventor is a chain of which one of two nodes shows a use that never was, in
// a block of its choice.
type inventor struct {
	*canopytest.Chain
	block uint64
}

func (i *inventor) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	uses, err := i.Chain.Uses(ctx, a, of, first, at)
	if err == nil && i.block >= first && i.block <= at.Number {
		slot := payment.Slot{Kind: payment.SlotEVM, Chain: a.Chain, Token: a.Address, From: of, NonceID: [32]byte{9}}
		uses = append([]payment.Settlement{{Slot: slot, TxHash: "0x09", Block: i.block, Canceled: true}}, uses...)
	}
	return uses, err
}

// What one node makes up freezes nobody, and hides nothing.
func TestInventedUseHidesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i := &inventor{}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			i.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{i}
		}})
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		w.reconcile()
		at, err := w.chain.Finalized(t.Context())
		must(t, err)
		i.block = at.Number + 1
		w.clock.Advance(time.Minute)
		w.reconcile(true)
		w.frozen(false)
		w.elsewhere(url + "other")
		w.chain.Finalize()
		if r := w.reconcile(true); len(r.Foreign) != 1 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)
	})
}

// What may have been signed before a ledger's first look is told, and freezes
// nobody.
func TestUseOfBeforeTheLedger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime)
		w.elsewhere(url + "before")
		w.reconcile() // the first look, before that block is final
		w.clock.Advance(10 * time.Minute)
		w.elsewhere(url + "at the same time")
		w.chain.Finalize()
		if r := w.reconcile(); len(r.Foreign) != 2 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(false)
		w.clock.Advance(time.Minute)
		w.elsewhere(url + "after")
		w.chain.Finalize()
		if r := w.reconcile(); len(r.Foreign) != 1 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)
	})
}

// old is a chain whose final block is the first one.
type old struct {
	*canopytest.Chain
	is bool
}

func (o *old) Finalized(ctx context.Context) (payment.Block, error) {
	at, err := o.Chain.Finalized(ctx)
	if o.is {
		at.Number, at.Time = 0, time.Unix(1000, 0).UTC()
	}
	return at, err
}

// A first look that goes by nodes far behind is none: what is between was
// before this ledger.
func TestFirstLookFarBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := &old{is: true}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			o.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{o}
		}})
		_, url := w.sells(dime)
		w.elsewhere(url + "long ago")
		w.clock.Advance(48 * time.Hour)
		w.chain.Finalize()
		w.reconcile(true)
		o.is = false
		if r := w.reconcile(); len(r.Foreign) != 0 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(false)
		w.clock.Advance(11 * time.Minute)
		w.elsewhere(url + "now")
		w.chain.Finalize()
		w.reconcile()
		w.frozen(true)
	})
}

// A payment that was released on a false word, and whose money then moved, is
// the worst that can be found: everybody is frozen.
func TestUseAfterRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		s, url := w.sells(dime, canopytest.Always(canopytest.AnswerAgain()))
		w.reconcile() // the first look
		d := as[*canopy.InDoubtError](t, w.get(url).err)
		e, err := w.store.Entry(t.Context(), d.Result.PaymentID)
		must(t, err)
		_, err = w.store.Advance(t.Context(), ledger.Change{
			ID: e.ID, Version: e.Version, To: ledger.ExpiredUnused, By: ledger.ByChain, Now: w.clock.Now(),
		})
		must(t, err)
		_, err = s.Harvest().SettleAll(t.Context())
		must(t, err)
		w.spent(dime)
		w.chain.Finalize()
		if r := w.reconcile(); len(r.Foreign) != 1 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)
	})
}
