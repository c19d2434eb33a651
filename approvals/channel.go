package approvals

import (
	"context"

	"github.com/canopy-go/canopy/ledger"
)

// Approval is a payment put to a person.
type Approval = ledger.Approval

// Channel tells people that a payment waits for them. A channel that fails
// lowers nothing: the payment stays pending until somebody rules on it by any
// way, or it expires.
type Channel interface {
	// Notify tells that a waits. It is called once for each new approval, must
	// be safe for concurrent use, and gives up when ctx ends. Its error is
	// logged and otherwise has no effect.
	Notify(ctx context.Context, a Approval) error
}

// ChannelFunc is a Channel made of a function.
type ChannelFunc func(ctx context.Context, a Approval) error

// Notify calls f.
func (f ChannelFunc) Notify(ctx context.Context, a Approval) error { return f(ctx, a) }
