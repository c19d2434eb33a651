package canopy_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// twoTokens shows one transaction of the account's own that moved nothing of the
// first token and $900 of the second. One node of two holds up the first token's
// cursor by an invented use, and is down for the second token at first.
type twoTokens struct {
	*inventor
	second payment.Address
	down   bool
	at     uint64
}

func (c *twoTokens) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	theft := payment.Settlement{
		Slot: payment.Slot{Kind: payment.SlotLane, Chain: a.Chain, From: of, Nonce: 7}, TxHash: "0xfeed", Block: c.at, Token: a.Address, ByAll: true, Fee: payment.UnitsOf(100),
	}
	if a.Address == c.second {
		if c.down {
			return nil, errors.New("timeout")
		}
		theft.Fee = payment.Units{}
		theft.Moved = []payment.Recipient{{Address: payment.Address{6, 6, 6}, Amount: payment.UnitsOf(900_000_000)}}
		if c.at < first || c.at > at.Number {
			return nil, nil
		}
		return []payment.Settlement{theft}, nil
	}
	uses, err := c.inventor.Uses(ctx, a, of, first, at)
	if err == nil && c.at >= first && c.at <= at.Number && c.at > 0 {
		uses = append(uses, theft)
	}
	return uses, err
}

func (c *twoTokens) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	if s.TxHash == "0xfeed" {
		return true, nil
	}
	return c.inventor.Confirm(ctx, s)
}

// railWith has one token more.
type railWith struct {
	canopy.Rail
	more canopy.Asset
}

func (r railWith) Assets() []canopy.Asset {
	return append(r.Rail.(interface{ Assets() []canopy.Asset }).Assets(), r.more)
}

// What a use turns out to have moved of another token is told, whatever was known
// of it before.
func TestKnownUseHidesNoToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		second := payment.Address{19: 0xee}
		c := &twoTokens{inventor: &inventor{}, second: second}
		w := newWorld(t, setup{config: func(w *world, cfg *canopy.Config) {
			c.inventor.Chain = w.chain
			cfg.Treasury.Chains = []canopy.Chain{c}
			more := canopy.Asset{Chain: w.chain.ID(), Address: second, Symbol: "USDX", Decimals: 6}
			cfg.Rails = append([]canopy.Rail{railWith{cfg.Rails[0], more}}, cfg.Rails[1:]...)
		}})
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		w.reconcile()
		at, err := w.chain.Finalized(t.Context())
		must(t, err)
		c.block, c.at, c.down = at.Number+1, at.Number+2, true
		w.clock.Advance(time.Minute)
		w.elsewhere(url + "x") // blocks go on
		w.chain.Finalize()
		at, err = w.chain.Finalized(t.Context())
		must(t, err)
		c.at = at.Number
		told := func() []payment.Settlement {
			return slices.DeleteFunc(w.reconcile(true).Foreign, func(s payment.Settlement) bool { return s.TxHash != "0xfeed" })
		}
		if got := told(); len(got) != 1 || len(got[0].Moved) != 0 {
			t.Fatalf("at first %+v is told", got)
		}
		w.frozen(true)
		must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "it moved nothing"))
		c.down = false
		if got := told(); len(got) != 1 || len(got[0].Moved) != 1 {
			t.Errorf("then %+v is told", got)
		}
		w.frozen(true)
		must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "we know"))
		if got := told(); len(got) != 0 {
			t.Errorf("again %+v is told", got)
		}
		w.frozen(false)
	})
}
