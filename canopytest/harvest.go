package canopytest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// Harvested is what a seller was handed that can move money: an authorization,
// or a transaction of Tempo.
type Harvested struct {
	Authorization
	Tempo   *TempoTx // nil where it is an Authorization
	Asset   payment.Asset
	Pattern string    // of the route
	Header  string    // the payment header as received
	Time    time.Time // by the chain's clock

	chain   *Chain
	sponsor func(*TempoTx) ([]byte, error)
}

// Expires is when it stops being valid; a transaction without an end is valid
// for ever.
func (h Harvested) Expires() time.Time {
	if h.Tempo == nil {
		return h.Authorization.Expires()
	}
	if h.Tempo.ValidBefore == 0 {
		return Authorization{ValidBefore: payment.UnitsOf(1 << 62)}.Expires()
	}
	return time.Unix(int64(h.Tempo.ValidBefore), 0)
}

// String tells everything but the signature.
func (h Harvested) String() string {
	if h.Tempo != nil {
		return h.Tempo.String()
	}
	return h.Authorization.String()
}

// GoString is String.
func (h Harvested) GoString() string { return h.String() }

// place is what makes it one of a kind on its chain: of all that has the same
// one at most one moves money.
func (h Harvested) place() [32]byte {
	switch {
	case h.Tempo == nil:
		return h.Nonce
	case h.chain.expiring(h.Tempo):
		return h.Tempo.replay()
	}
	nonce := payment.UnitsOf(h.Tempo.Nonce).Bytes()
	return keccak.Sum256(h.Tempo.Sender[:], h.Tempo.NonceKey[:], nonce[:])
}

// spent reports whether that place is taken.
func (h Harvested) spent() bool {
	if h.Tempo == nil {
		return h.chain.AuthorizationState(h.Token, h.From, h.Nonce)
	}
	h.chain.mu.Lock()
	defer h.chain.mu.Unlock()
	h.chain.catchUp()
	if h.chain.expiring(h.Tempo) {
		return h.chain.tempo.replays[h.Tempo.replay()]
	}
	return h.chain.next(h.Tempo.Sender, h.Tempo.NonceKey) > h.Tempo.Nonce
}

// settle moves its money.
func (h Harvested) settle(ctx context.Context) (Tx, error) {
	if h.Tempo == nil {
		return h.chain.Settle(ctx, h.Authorization)
	}
	raw, err := h.sponsor(h.Tempo)
	if err != nil {
		return Tx{}, err
	}
	return h.chain.settleTempo(ctx, raw, time.Time{})
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
		if a.Tempo != nil || b.Tempo != nil {
			return a.Tempo != nil && b.Tempo != nil && a.Tempo.Hash() == b.Tempo.Hash()
		}
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
		return a.spent() || !a.Expires().After(a.chain.clock.Now())
	})
}

// Nonces returns the different nonces, in the order in which they came: one for
// each purchase, where the client never signs twice for one. Of transactions of
// Tempo they stand for the lane and its nonce, or for what was signed on the
// expiring one.
func (h *Harvest) Nonces() [][32]byte {
	var out [][32]byte
	for _, a := range h.All() {
		if p := a.place(); !slices.Contains(out, p) {
			out = append(out, p)
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
// could still settle and settles it there: the worst that a seller can do. On
// Tempo it is the last second in which nodes take it. The clock does not go
// back.
func (h *Harvest) SettleLate(ctx context.Context) ([]Tx, error) {
	late := h.Unsettled()
	slices.SortStableFunc(late, func(a, b Harvested) int { return cmp.Compare(a.Expires().Unix(), b.Expires().Unix()) })
	return settleEach(ctx, late, func(a Harvested) {
		margin := time.Second
		if a.Tempo != nil {
			margin += poolMargin
		}
		if last := a.Expires().Add(-margin); last.After(a.chain.clock.Now()) {
			a.chain.clock.Set(last)
		}
	})
}

func settleEach(ctx context.Context, all []Harvested, before func(Harvested)) ([]Tx, error) {
	var settled []Tx
	for _, a := range all {
		before(a)
		tx, err := a.settle(ctx)
		switch {
		case err == nil:
			settled = append(settled, tx)
		case ctx.Err() != nil:
			return settled, errors.Join(ctx.Err(), err)
		}
	}
	return settled, nil
}
