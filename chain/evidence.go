package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Used tells for each slot whether it was used or cancelled at block at, which
// is one that Finalized returned. Every node that answers has to say the same
// of all of them. Slots of another kind than SlotEVM, or of another chain, are
// an error.
func (c *Chain) Used(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	for _, s := range slots {
		if s.Kind != payment.SlotEVM || s.Chain != c.id {
			return nil, fmt.Errorf("chain: %s is not a slot of %s", s, c.id)
		}
	}
	answers, err := all(ctx, c, func(ctx context.Context, n *node) ([]bool, error) { return n.used(ctx, slots, at) })
	if err != nil {
		return nil, fmt.Errorf("chain: used slots: %w", err)
	}
	for _, a := range answers[1:] {
		if !slices.Equal(a, answers[0]) {
			return nil, fmt.Errorf("chain: used slots: %w", ErrDisagree)
		}
	}
	return answers[0], nil
}

func (n *node) used(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
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

// log is an event of a contract.
type log struct {
	Address   data     `json:"address"`
	Topics    []word   `json:"topics"`
	Data      data     `json:"data"`
	Block     quantity `json:"blockNumber"`
	Tx        word     `json:"transactionHash"`
	Index     quantity `json:"logIndex"`
	Removed   bool     `json:"removed"`
	Timestamp quantity `json:"blockTimestamp"` // newer nodes only
}

func (l log) time() time.Time {
	if l.Timestamp == 0 {
		return time.Time{}
	}
	return time.Unix(int64(l.Timestamp), 0).UTC()
}

// Uses returns every use of an authorization of account, of the token of asset,
// in the blocks from first to at, with what each moved: ours and any that this
// ledger never made. It is read from the first node that answers.
func (c *Chain) Uses(ctx context.Context, asset payment.Asset, account payment.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	if asset.Chain != c.id {
		return nil, fmt.Errorf("chain: %s is not on %s", asset, c.id)
	}
	var errs []error
	for _, n := range c.nodes {
		out, err := n.uses(ctx, asset, account, first, at.Number)
		if err == nil {
			return out, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("chain: uses of authorizations: %w", errors.Join(errs...))
}

// maxRange is how many blocks one question about logs spans; a node that finds
// it too many is asked for half as many.
const maxRange = 5_000

func (n *node) uses(ctx context.Context, asset payment.Asset, account payment.Address, first, last uint64) ([]payment.Settlement, error) {
	var logs []log
	span := uint64(maxRange)
	for first <= last {
		to := min(last, first+span-1)
		var found []log
		err := n.one(ctx, "eth_getLogs", &found, map[string]any{
			"address": asset.Address.Lower(), "fromBlock": quantity(first), "toBlock": quantity(to),
			"topics": []any{[]word{authorizationLog, cancelLog, transferLog}, wordOf(account)},
		})
		var refused *RPCError
		if errors.As(err, &refused) && !refused.limited() && span > 1 {
			span /= 2
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			if l.Removed || uint64(l.Block) < first || uint64(l.Block) > to || payment.Address(l.Address20()) != asset.Address ||
				len(l.Topics) < 2 || l.Topics[1] != wordOf(account) {
				return nil, fmt.Errorf("%s: %w: a log that was not asked for", n.host, ErrAnswer)
			}
		}
		logs = append(logs, found...)
		first = to + 1
	}
	return pair(asset, account, logs), nil
}

// Address20 is the contract's address, or zero where it is not 20 bytes.
func (l log) Address20() (a [20]byte) {
	if len(l.Address) == 20 {
		copy(a[:], l.Address)
	}
	return a
}

// pair puts to each use of an authorization the transfers that followed it in
// its transaction, up to the next use: a token logs them in that order.
func pair(asset payment.Asset, account payment.Address, logs []log) []payment.Settlement {
	slices.SortFunc(logs, func(a, b log) int { return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index)) })
	var out []payment.Settlement
	var tx word
	open := false
	for _, l := range logs {
		if l.Tx != tx {
			tx, open = l.Tx, false
		}
		switch {
		case l.Topics[0] == authorizationLog || l.Topics[0] == cancelLog:
			if open = len(l.Topics) == 3; !open {
				continue
			}
			out = append(out, payment.Settlement{
				Slot:   payment.Slot{Kind: payment.SlotEVM, Chain: asset.Chain, Token: asset.Address, From: account, NonceID: l.Topics[2]},
				TxHash: l.Tx.String(), Block: uint64(l.Block), Time: l.time(),
			})
			open = l.Topics[0] == authorizationLog
		case open && len(l.Topics) == 3 && len(l.Data) == 32:
			if to, ok := l.Topics[2].address(); ok {
				s := &out[len(out)-1]
				s.Moved = append(s.Moved, payment.Recipient{Address: to, Amount: payment.UnitsFromBytes([32]byte(l.Data))})
				open = false
			}
		}
	}
	return out
}

// BlockAt is the number of the last block that is not after t, by the first
// node that answers: where a search for logs begins, never evidence.
func (c *Chain) BlockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	var errs []error
	for _, n := range c.nodes {
		number, err := n.blockAt(ctx, t, at)
		if err == nil {
			return number, nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("chain: block at %s: %w", t.UTC().Format(time.RFC3339), errors.Join(errs...))
}

// blockAt searches by the rate at which blocks came, and then by halves.
func (n *node) blockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	if !t.Before(at.Time) {
		return at.Number, nil
	}
	low, high := uint64(0), at.Number // low is not after t, or is the first block; high is after it
	for back := uint64(16); back < at.Number; back *= 4 {
		b, err := n.block(ctx, quantity(at.Number-back))
		if err != nil {
			return 0, err
		}
		if !b.Time.After(t) {
			low = b.Number
			break
		}
		high = b.Number
	}
	for low+1 < high {
		mid := low + (high-low)/2
		b, err := n.block(ctx, quantity(mid))
		if err != nil {
			return 0, err
		}
		if b.Time.After(t) {
			high = mid
		} else {
			low = mid
		}
	}
	return low, nil
}
