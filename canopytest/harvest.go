package canopytest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Harvested is an authorization that a seller was handed.
type Harvested struct {
	Authorization
	Asset   payment.Asset
	Pattern string    // of the route
	Header  string    // the payment header as received
	Time    time.Time // by the chain's clock

	chain *Chain
}

// Harvest is what a seller was handed, in order, each authorization once. A
// hostile seller settles from it whatever it answered; it is safe for
// concurrent use.
type Harvest struct {
	chain *Chain

	mu  sync.Mutex
	all []Harvested
}

func (h *Harvest) add(a Harvested) {
	h.mu.Lock()
	defer h.mu.Unlock()
	same := func(b Harvested) bool {
		return slices.Equal(a.Signature, b.Signature) && a.Digest(a.Asset) == b.Digest(b.Asset)
	}
	if !slices.ContainsFunc(h.all, same) {
		h.all = append(h.all, a)
	}
}

// All returns everything that was handed over.
func (h *Harvest) All() []Harvested {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// Unsettled returns what could still settle: neither used nor expired.
func (h *Harvest) Unsettled() []Harvested {
	return slices.DeleteFunc(h.All(), func(a Harvested) bool {
		return a.chain.AuthorizationState(a.Token, a.From, a.Nonce) || !a.Expires().After(a.chain.clock.Now())
	})
}

// Nonces returns the different nonces, in the order in which they came: one for
// each purchase, where the client never signs twice for one.
func (h *Harvest) Nonces() [][32]byte {
	var out [][32]byte
	for _, a := range h.All() {
		if !slices.Contains(out, a.Nonce) {
			out = append(out, a.Nonce)
		}
	}
	return out
}

// SettleAll tries to settle everything that was handed over, in order, and
// returns what settled. What the token refuses is left out; only the end of ctx
// is an error.
func (h *Harvest) SettleAll(ctx context.Context) ([]Tx, error) {
	return settleEach(ctx, h.All(), func(Harvested) {})
}

// SettleLate moves the clock on to the last second of each authorization that
// could still settle and settles it there: the worst that a seller can do. The
// clock does not go back.
func (h *Harvest) SettleLate(ctx context.Context) ([]Tx, error) {
	late := h.Unsettled()
	slices.SortStableFunc(late, func(a, b Harvested) int { return cmp.Compare(a.Expires().Unix(), b.Expires().Unix()) })
	return settleEach(ctx, late, func(a Harvested) {
		if last := a.Expires().Add(-time.Second); last.After(a.chain.clock.Now()) {
			a.chain.clock.Set(last)
		}
	})
}

func settleEach(ctx context.Context, all []Harvested, before func(Harvested)) ([]Tx, error) {
	var settled []Tx
	for _, a := range all {
		before(a)
		tx, err := a.chain.Settle(ctx, a.Authorization)
		switch {
		case err == nil:
			settled = append(settled, tx)
		case ctx.Err() != nil:
			return settled, errors.Join(ctx.Err(), err)
		}
	}
	return settled, nil
}
