package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// Used tells for each slot whether it was used or cancelled at block at, which
// is one that Finalized returned. Every node that answers has to say the same
// of all of them. It is an error where a slot is of another chain, or of a kind
// that this one does not count: on Tempo's expiring nonce only Uses tells.
func (c *Chain) Used(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	var authorizations, lanes []payment.Slot
	for _, s := range slots {
		switch {
		case s.Kind == payment.SlotEVM && s.Chain == c.id:
			authorizations = append(authorizations, s)
		case s.Kind == payment.SlotLane && s.Chain == c.id && c.tempo && s.NonceID != tempo.ExpiringKey:
			lanes = append(lanes, s)
		default:
			return nil, fmt.Errorf("chain: of %s %s does not tell whether it is used", s, c.id)
		}
	}
	answers, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) ([]bool, error) {
		used, err := n.used(ctx, authorizations, at)
		if err != nil {
			return nil, err
		}
		passed, err := n.passed(ctx, lanes, at)
		return append(used, passed...), err
	})
	if err != nil {
		return nil, fmt.Errorf("chain: used slots: %w", err)
	}
	for _, a := range answers[1:] {
		if !slices.Equal(a, answers[0]) {
			return nil, fmt.Errorf("chain: used slots: %w", ErrDisagree)
		}
	}
	used, passed := answers[0][:len(authorizations)], answers[0][len(authorizations):]
	out := make([]bool, len(slots))
	for i, s := range slots {
		if s.Kind == payment.SlotEVM {
			out[i], used = used[0], used[1:]
		} else {
			out[i], passed = passed[0], passed[1:]
		}
	}
	return out, nil
}

// used tells of slots by the word of one node: of many in one call, or in a
// call for each where the node does not answer that.
func (n *node) used(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	if len(slots) < 2 || n.single.Load() {
		return n.singly(ctx, slots, at)
	}
	out, packErr := n.packed(ctx, slots, at)
	if packErr == nil || spent(ctx, packErr) {
		return out, packErr
	}
	out, err := n.singly(ctx, slots, at)
	if err == nil && refuses(packErr) {
		n.single.Store(true)
	}
	return out, err
}

func (n *node) singly(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	calls := make([]*call, len(slots))
	words := make([]word, len(slots))
	for i, s := range slots {
		input := append(append(selector(authorizationState), word32(wordOf(s.From))...), s.NonceID[:]...)
		calls[i] = &call{method: "eth_call", result: &words[i], params: []any{
			map[string]any{"to": s.Token.Lower(), "data": data(input)}, quantity(at.Number),
		}}
	}
	if err := n.read(ctx, calls...); err != nil {
		return nil, err
	}
	out := make([]bool, len(slots))
	for i, c := range calls {
		switch {
		case c.err != nil:
			return nil, fmt.Errorf("%s: %s: %w", n.host, slots[i], c.err)
		case words[i] == word{31: 1}:
			out[i] = true
		case words[i] != word{}:
			return nil, fmt.Errorf("%s: %w: authorizationState is neither true nor false", n.host, ErrAnswer)
		}
	}
	return out, nil
}

// BlockAt is the number of a block that is not after t by the word of any node
// that answers, which are at least Sources: the lowest that they give, so that
// one that lies can only have a search begin too early. By an honest node it is
// at most about four times as far back from at as the last such block. Block 0
// where there is none.
func (c *Chain) BlockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	numbers, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) (uint64, error) { return n.blockAt(ctx, t, at) })
	if err != nil {
		return 0, fmt.Errorf("chain: block at %s: %w", t.UTC().Format(time.RFC3339), err)
	}
	return slices.Min(numbers), nil
}

// blockAt goes back by steps that grow. To search on would cost more, in
// headers that list all their transactions, than the logs of more blocks do.
func (n *node) blockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	if !t.Before(at.Time) {
		return at.Number, nil
	}
	for back := uint64(16); back < at.Number; back *= 4 {
		b, err := n.block(ctx, quantity(at.Number-back))
		if err != nil {
			return 0, err
		}
		if !b.Time.After(t) {
			return b.Number, nil
		}
	}
	return 0, nil
}
