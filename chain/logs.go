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
	if l.Timestamp == 0 || l.Timestamp > maxTime {
		return time.Time{}
	}
	return time.Unix(int64(l.Timestamp), 0).UTC()
}

// Uses returns every use of an authorization of account, of the token of asset,
// in the blocks from first to at, with what each moved: ours and any that this
// ledger never made, in the chain's order. It is all that any node shows, so that
// none can leave one out, and an error where fewer than Sources tell. What nodes
// show differently stands there more than once; Confirm tells what all agree on.
func (c *Chain) Uses(ctx context.Context, asset payment.Asset, account payment.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	if asset.Chain != c.id {
		return nil, fmt.Errorf("chain: %s is not on %s", asset, c.id)
	}
	answers, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) ([]payment.Settlement, error) {
		return n.uses(ctx, asset.Address, account, first, at.Number)
	})
	if err != nil {
		return nil, fmt.Errorf("chain: uses of authorizations: %w", err)
	}
	return union(answers), nil
}

// union is what any of answers has, each of which is in the chain's order.
func union(answers [][]payment.Settlement) []payment.Settlement {
	out := answers[0]
	bySlot := make(map[payment.Slot][]payment.Settlement, len(out))
	for _, s := range out {
		bySlot[s.Slot] = append(bySlot[s.Slot], s)
	}
	for _, more := range answers[1:] {
		for _, s := range more {
			if !slices.ContainsFunc(bySlot[s.Slot], s.Equal) {
				bySlot[s.Slot] = append(bySlot[s.Slot], s)
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b payment.Settlement) int { return cmp.Compare(a.Block, b.Block) })
	return out
}

// Confirm reports whether s, which Uses returned, is what every node shows. It
// is false where none does, and an error where they do not agree or too few
// answer.
func (c *Chain) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	if s.Slot.Kind != payment.SlotEVM || s.Slot.Chain != c.id {
		return false, fmt.Errorf("chain: %s is not a slot of %s", s.Slot, c.id)
	}
	answers, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) (bool, error) {
		found, err := n.uses(ctx, s.Slot.Token, s.Slot.From, s.Block, s.Block)
		return slices.ContainsFunc(found, s.Equal), err
	})
	if err != nil {
		return false, fmt.Errorf("chain: use of %s: %w", s.Slot, err)
	}
	for _, a := range answers[1:] {
		if a != answers[0] {
			return false, fmt.Errorf("chain: use of %s: %w", s.Slot, ErrDisagree)
		}
	}
	return answers[0], nil
}

// maxRange is how many blocks one question about logs spans; a node that finds
// it too many is asked for half as many.
const maxRange = 5_000

func (n *node) uses(ctx context.Context, token, account payment.Address, first, last uint64) ([]payment.Settlement, error) {
	var logs []log
	put := 0 // how often a smaller range was tried because the node was busy
	for span := uint64(maxRange); first <= last; {
		to := min(last, first+span-1)
		found, err := n.logs(ctx, to, map[string]any{
			"address": token.Lower(), "fromBlock": quantity(first), "toBlock": quantity(to),
			"topics": []any{[]word{authorizationLog, cancelLog, transferLog}, wordOf(account)},
		})
		if tooMuch(err, &put) && to > first {
			span = (to - first + 1) / 2
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			if !l.belongs(token, account, first, to) {
				return nil, fmt.Errorf("%w: %s gave a log that was not asked for", ErrAnswer, n.host)
			}
		}
		logs = append(logs, found...)
		first = to + 1
	}
	return pair(payment.Slot{Kind: payment.SlotEVM, Chain: n.chain, Token: token, From: account}, logs), nil
}

// logs asks for logs up to block last, and in the same request for the node's
// latest block: one that is not there yet answers as if there were none.
func (n *node) logs(ctx context.Context, last uint64, filter map[string]any) ([]log, error) {
	var found *[]log
	var head *quantity
	asked := []*call{
		{method: "eth_getLogs", params: []any{filter}, result: &found},
		{method: "eth_blockNumber", result: &head},
	}
	if err := n.together(ctx, asked); err != nil {
		return nil, err
	}
	for _, c := range asked {
		if c.err != nil {
			return nil, fmt.Errorf("%s: %w", n.host, c.err)
		}
	}
	switch {
	case found == nil || head == nil:
		return nil, fmt.Errorf("%w: %s gave no logs, or no latest block", ErrAnswer, n.host)
	case uint64(*head) < last:
		return nil, fmt.Errorf("%w: %s is at block %d, and was asked up to %d", ErrAnswer, n.host, uint64(*head), last)
	}
	return *found, nil
}

// together makes calls in one request where the node takes so many. An answer
// that is too long is no reason to ask for less at once ever after.
func (n *node) together(ctx context.Context, calls []*call) error {
	if err := n.read(ctx); err != nil { // is it the chain?
		return err
	}
	if int(n.batch.Load()) >= len(calls) {
		if err := n.patient(ctx, calls); !refusesBatch(err) || errors.Is(err, errTooLarge) {
			return err
		}
	}
	for _, c := range calls {
		if err := n.read(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// tooMuch reports whether a smaller question may be answered. Nodes say in many
// ways that a range is too wide, some of them as if they were only busy.
func tooMuch(err error, put *int) bool {
	var refused *RPCError
	switch {
	case errors.Is(err, errTooLarge):
		return true
	case !errors.As(err, &refused):
		return false
	case refused.limited():
		*put++
		return *put <= 3
	}
	return true
}

func (l log) belongs(token, account payment.Address, first, last uint64) bool {
	return !l.Removed && uint64(l.Block) >= first && uint64(l.Block) <= last && len(l.Address) == len(token) &&
		payment.Address(l.Address) == token && len(l.Topics) >= 2 && l.Topics[1] == wordOf(account)
}

// pair puts to each use of an authorization the transfer that followed it in
// its transaction, before the next use: a token logs them in that order.
func pair(slot payment.Slot, logs []log) []payment.Settlement {
	slices.SortStableFunc(logs, func(a, b log) int { return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index)) })
	var out []payment.Settlement
	var tx word
	open := false
	for _, l := range logs {
		if l.Tx != tx {
			tx, open = l.Tx, false
		}
		switch l.Topics[0] {
		case authorizationLog, cancelLog:
			if open = len(l.Topics) == 3; !open {
				continue
			}
			slot.NonceID = l.Topics[2]
			s := payment.Settlement{Slot: slot, TxHash: l.Tx.String(), Block: uint64(l.Block), Time: l.time(), Canceled: l.Topics[0] == cancelLog}
			open = !s.Canceled
			out = append(out, s)
		case transferLog:
			if !open || len(l.Topics) != 3 || len(l.Data) != 32 {
				continue
			}
			if to, ok := l.Topics[2].address(); ok {
				s := &out[len(out)-1]
				s.Moved = append(s.Moved, payment.Recipient{Address: to, Amount: payment.UnitsFromBytes([32]byte(l.Data))})
				open = false
			}
		}
	}
	return out
}
