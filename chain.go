package canopy

import (
	"context"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Chain is where a chain's balances are read. Implementations are safe for
// concurrent use, and give up when ctx ends.
type Chain interface {
	ID() ChainID

	// Balance is what account holds of asset at the latest block. It is a
	// preference in choosing an offer, never evidence.
	Balance(ctx context.Context, asset Asset, account Address) (Units, error)
}

// Timekeeper is an optional power of a Chain: its clock, to compare ours with.
type Timekeeper interface {
	// Latest is the newest block.
	Latest(ctx context.Context) (payment.Block, error)
}

// Reconciler is an optional power of a Chain: evidence of what became of
// authorizations. Nothing that is not final is evidence. Implementations are
// safe for concurrent use, give up when ctx ends, and return an error rather
// than a part of an answer.
type Reconciler interface {
	// Sources is how many independent nodes agree on evidence. What is
	// released on the word of one is marked as assumed.
	Sources() int

	// Finalized is the latest block that nothing takes back.
	Finalized(ctx context.Context) (payment.Block, error)

	// Used tells for each slot whether it was used or cancelled up to block
	// at. It is an error where the nodes do not agree.
	Used(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error)

	// BlockAt is the number of a block that is not after t, by the word of any
	// node that answers, and where a search for Uses begins. It is an error
	// where fewer than Sources answer: a node that lies can only make the
	// search longer.
	BlockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error)

	// Uses are all uses and cancellations of the account's authorizations of
	// asset in the blocks from first to at that any node shows, each as often
	// as nodes show it differently, and marked ByAll where none leaves it out.
	// It is an error where fewer than Sources tell: what one leaves out another
	// has.
	Uses(ctx context.Context, asset Asset, account Address, first uint64, at payment.Block) ([]payment.Settlement, error)

	// Confirm reports whether what Uses told is what all nodes show. It is an
	// error where they do not agree.
	Confirm(ctx context.Context, s payment.Settlement) (bool, error)
}

// ForeignUse is what is done where the chain shows that our key authorized
// something that this ledger never signed: the key is somewhere else too, or
// another ledger is, and no cap of this one holds for it. What may have been
// signed before the ledger's first look, eleven minutes after it at the latest,
// is logged and reported either way.
type ForeignUse uint8

// What can be done.
const (
	FreezeOnForeignUse ForeignUse = iota // freeze every agent on the ledger, until an operator looks
	WarnOnForeignUse                     // log and report it, and go on
)

// chain is the configured chain with that id, or nil.
func (c *Client) chain(id ChainID) Chain {
	for _, ch := range c.cfg.Treasury.Chains {
		if ch.ID() == id {
			return ch
		}
	}
	return nil
}

// reconciler is what can tell about slots of that chain, or nil.
func (c *Client) reconciler(id ChainID) Reconciler {
	r, _ := c.chain(id).(Reconciler)
	return r
}

// watched reports whether a chain can be asked about the slot: a proof is on
// none.
func (c *Client) watched(s payment.Slot) bool {
	switch s.Kind {
	case payment.SlotEVM, payment.SlotLane, payment.SlotExpiring:
		return c.reconciler(s.Chain) != nil
	}
	return false
}
