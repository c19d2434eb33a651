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

// question is which logs are asked for: of these contracts, of one of these
// events, of account.
type question struct {
	contracts []payment.Address
	events    []word
	account   payment.Address
}

func (q question) filter(first, last uint64) map[string]any {
	of := make([]string, len(q.contracts))
	for i, a := range q.contracts {
		of[i] = a.Lower()
	}
	var address any = of
	if len(of) == 1 {
		address = of[0] // which every node knows
	}
	return map[string]any{
		"address": address, "fromBlock": quantity(first), "toBlock": quantity(last), "topics": []any{q.events, wordOf(q.account)},
	}
}

// asks reports whether l is an answer to q in the blocks from first to last.
func (q question) asks(l log, first, last uint64) bool {
	return !l.Removed && uint64(l.Block) >= first && uint64(l.Block) <= last && len(l.Address) == len(payment.Address{}) &&
		slices.Contains(q.contracts, payment.Address(l.Address)) && len(l.Topics) >= 2 && l.Topics[1] == wordOf(q.account)
}

// maxRange is how many blocks one question about logs spans; a node that finds
// it too many is asked for half as many.
const maxRange = 5_000

// search returns the logs of the blocks from first to last, in their order.
func (n *node) search(ctx context.Context, q question, first, last uint64) ([]log, error) {
	var logs []log
	put := 0 // how often a smaller range was tried because the node was busy
	for span := uint64(maxRange); first <= last; {
		to := min(last, first+span-1)
		found, err := n.logs(ctx, to, q.filter(first, to))
		if tooMuch(err, &put) && to > first {
			span = (to - first + 1) / 2
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			if !q.asks(l, first, to) {
				return nil, fmt.Errorf("%w: %s gave a log that was not asked for", ErrAnswer, n.host)
			}
		}
		logs = append(logs, found...)
		first = to + 1
	}
	slices.SortStableFunc(logs, func(a, b log) int { return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index)) })
	return logs, nil
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
