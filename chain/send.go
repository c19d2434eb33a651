package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// ErrExpired is wrapped where a node takes a transaction no more because of its
// validBefore. It may have been taken before.
var ErrExpired = errors.New("chain: the transaction's validity is over")

// Broadcast gives a signed transaction to every node, and returns its hash,
// which the bytes tell and which is there with an error too. It is nil where a
// node took it, or has it already: that it is to be mined is not sure then. An
// error does not say that it is not: it may have been taken before, or by a node
// whose answer was lost. To send the same bytes again is safe.
func (c *Chain) Broadcast(ctx context.Context, raw []byte) (txHash string, err error) {
	hash := word(keccak.Sum256(raw))
	_, err = all(ctx, c, 1, func(ctx context.Context, n *node) (struct{}, error) {
		return struct{}{}, n.broadcast(ctx, raw, hash)
	})
	if err != nil {
		err = fmt.Errorf("chain: sending %s: %w", hash, err)
	}
	return hash.String(), err
}

func (n *node) broadcast(ctx context.Context, raw []byte, hash word) error {
	var named word
	err := n.one(ctx, "eth_sendRawTransaction", &named, data(raw))
	var refused *RPCError
	switch {
	case errors.As(err, &refused) && refused.has("already known", "already imported", "known transaction", "already exists"):
		return nil
	case errors.As(err, &refused) && refused.has("valid_before", "validbefore"):
		return fmt.Errorf("%s: %w: %w", n.host, ErrExpired, err)
	case err == nil && named != hash:
		return fmt.Errorf("%w: %s took %s for %s", ErrAnswer, n.host, hash, named)
	}
	return err
}

// has reports whether the node's words hold one of some.
func (e *RPCError) has(some ...string) bool {
	said := strings.ToLower(e.Message)
	for _, s := range some {
		if strings.Contains(said, s) {
			return true
		}
	}
	return false
}

// Receipt reports whether any node has txHash in a block, whether it did what it
// was to do, and the block, whose time is zero where the node does not say. It
// is a claim: only Uses, up to a block that is final, is evidence. Not found is
// no error, and does not say that it was not sent.
func (c *Chain) Receipt(ctx context.Context, txHash string) (found, ok bool, block payment.Block, err error) {
	var tx word
	if tx.UnmarshalJSON(strconv.AppendQuote(nil, txHash)) != nil {
		return false, false, payment.Block{}, errors.New("chain: receipt: not the hash of a transaction")
	}
	answers, err := all(ctx, c, 1, func(ctx context.Context, n *node) (*receipt, error) { return n.receipt(ctx, tx) })
	if err != nil {
		return false, false, payment.Block{}, fmt.Errorf("chain: receipt of %s: %w", tx, err)
	}
	for _, r := range answers {
		if r != nil {
			at := payment.Block{Number: uint64(*r.Block), Hash: payment.Hash(r.BlockHash), Time: time.Time(r.Time)}
			return true, *r.Status == 1, at, nil
		}
	}
	return false, false, payment.Block{}, nil
}

func (n *node) receipt(ctx context.Context, tx word) (*receipt, error) {
	var r *receipt
	if err := n.one(ctx, "eth_getTransactionReceipt", &r, tx); err != nil {
		return nil, err
	}
	if r != nil && !r.isOf(tx) {
		return nil, fmt.Errorf("%w: %s gave no receipt of %s", ErrAnswer, n.host, tx)
	}
	return r, nil
}

// stamp is a block's time, which some nodes write as a number and others as a
// quantity, or not at all.
type stamp time.Time

func (s *stamp) UnmarshalJSON(b []byte) error {
	var q quantity
	if err := q.UnmarshalJSON(b); err != nil {
		if err := json.Unmarshal(b, (*uint64)(&q)); err != nil {
			return fmt.Errorf("%.40q is not a time", b)
		}
	}
	if q > 0 && q <= maxTime {
		*s = stamp(time.Unix(int64(q), 0).UTC())
	}
	return nil
}
