package canopy

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/policy"
)

// boot is the one reconciliation before a client's first payment.
type boot struct {
	mu   sync.Mutex
	done chan struct{} // nil until it began; closed when it has ended

	lanes time.Time // when it was done last for want of a lane
}

// again reports whether it is time to do it for want of a lane.
func (b *boot) again(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := now.Sub(b.lanes); d >= 0 && d < time.Second {
		return false
	}
	b.lanes = now
	return true
}

// watches reports whether there is a chain to ask.
func (c *Client) watches() bool {
	for _, ch := range c.cfg.Treasury.Chains {
		if _, ok := ch.(Reconciler); ok {
			return true
		}
	}
	return false
}

// catchUp reconciles once, before the first payment, and for probeTime at most.
// A chain that cannot be asked stops nothing. Whoever comes meanwhile waits.
func (c *Client) catchUp(ctx context.Context) {
	if !c.watches() {
		return
	}
	c.boot.mu.Lock()
	done := c.boot.done
	first := done == nil
	if first {
		done = make(chan struct{})
		c.boot.done = done
	}
	c.boot.mu.Unlock()
	if !first {
		select {
		case <-done:
		case <-ctx.Done():
		}
		return
	}
	defer close(done)
	c.reconcileBriefly(ctx)
}

// reconcileBriefly is Reconcile within probeTime. It goes on when the caller
// leaves, and logs what it could not do. Foreign uses that it meets are logged,
// and told by the next Reconcile.
func (c *Client) reconcileBriefly(ctx context.Context) Reconciliation {
	bounded, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, probeTime)
	defer cancel()
	r, err := c.reconcile(bounded, true)
	if errors.Is(err, context.DeadlineExceeded) {
		c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "reconciliation was not done in time", slog.Duration("within", probeTime))
		err = nil
	}
	c.logRound(ctx, r, err)
	return r
}

// mayFree reports whether e was refused for a cap in which a hold past its
// validity takes part, or for want of a lane, so that the chain may have room to
// give back. For lanes it is asked once a second.
func (c *Client) mayFree(ctx context.Context, e ledger.Entry) bool {
	if e.State != ledger.Denied && e.State != ledger.Approved || !c.watches() {
		return false
	}
	full := false
	for _, r := range e.Reasons {
		switch r.Code {
		case policy.CodeCapExceeded, policy.CodeCountExceeded, policy.CodeBudgetExceeded:
			full = true
		case ledger.CodeNoFreeLane:
			return c.boot.again(c.cfg.Now())
		}
	}
	if !full {
		return false
	}
	now := c.cfg.Now()
	q := ledger.Query{States: []ledger.State{ledger.InDoubt, ledger.Claimed}, Oldest: true}
	for h, err := range c.cfg.Store.Entries(ctx, q) {
		if err != nil {
			return false
		}
		if c.watched(h.Slot) && !now.Before(h.ValidBefore) {
			return true
		}
	}
	return false
}
