package mpp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/payment"
)

// Node broadcasts transactions, and tells what became of them. Implementations
// are safe for concurrent use, and give up when ctx ends.
type Node interface {
	// Broadcast sends a signed transaction and returns its hash, which proves
	// nothing. That it is known already is no error. To broadcast the same bytes
	// again is safe.
	Broadcast(ctx context.Context, raw []byte) (txHash string, err error)

	// Receipt reports whether a transaction is in a block, and whether it did
	// there what it was made for.
	Receipt(ctx context.Context, txHash string) (found, ok bool, at payment.Block, err error)
}

// ErrNoNode is returned where a chain has no node to broadcast by.
var ErrNoNode = errors.New("mpp: no node to broadcast by")

const (
	minedWait  = 15 * time.Second // how long Submit waits for a block
	minedPause = 300 * time.Millisecond

	codeFailed = "transaction_failed"
)

// Submits tells why a transaction on chain cannot be broadcast, or nil. It does
// no I/O.
func (r *Rail) Submits(chain payment.ChainID) error {
	if r.nodes[chain] == nil {
		return fmt.Errorf("%w: a transaction on %s is sent by ourselves, to the nodes that are configured for it (rpc in its [[chain]], mpp.Config.Nodes)", ErrNoNode, chain.Name())
	}
	return nil
}

// Submit broadcasts the transaction of a, and waits some seconds until it is in a
// block. To submit the same one again is safe: its lane takes one. With an
// error it may have been broadcast too; the receipt proves nothing but what its
// Claim says.
func (r *Rail) Submit(ctx context.Context, a payment.Authorization) (payment.Receipt, error) {
	if err := r.Submits(a.Slot.Chain); err != nil {
		return payment.Receipt{}, err
	}
	if len(a.Raw) == 0 || a.TxHash == "" {
		return payment.Receipt{}, fmt.Errorf("%w: there is no transaction to broadcast", ErrGrant)
	}
	node := r.nodes[a.Slot.Chain]
	switch hash, err := node.Broadcast(ctx, a.Raw); {
	case err != nil:
		// It may be in a block all the same, from an earlier time.
		if out, done := r.mined(ctx, node, a.TxHash); done {
			return out, nil
		}
		return payment.Receipt{}, fmt.Errorf("mpp: broadcast: %w", err)
	case hash != a.TxHash:
		return payment.Receipt{}, fmt.Errorf("mpp: broadcast: the node calls it by another hash, %.80q", hash)
	}
	deadline := r.clock.Now().Add(minedWait)
	for {
		if out, done := r.mined(ctx, node, a.TxHash); done {
			return out, nil
		}
		if !r.clock.Now().Before(deadline) || clock.Sleep(ctx, r.clock, minedPause) != nil {
			return payment.Receipt{Claim: payment.ClaimPending, TxHash: a.TxHash}, nil
		}
	}
}

// mined is what the node shows of the transaction, and false where it is in no
// block yet.
func (r *Rail) mined(ctx context.Context, node Node, txHash string) (payment.Receipt, bool) {
	found, ok, at, err := node.Receipt(ctx, txHash)
	switch {
	case err != nil || !found:
		return payment.Receipt{}, false
	case !ok:
		return payment.Receipt{Claim: payment.ClaimRefused, TxHash: txHash, Code: codeFailed, Message: "the transaction failed on the chain"}, true
	}
	return payment.Receipt{Claim: payment.ClaimPaid, TxHash: txHash, Block: at.Time}, true
}
