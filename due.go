package canopy

import (
	"context"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// due is what a Reconcile has to tell of one account: of the uses after block
// told, up to the last that a call met.
type due struct{ told, met uint64 }

func (d due) is() bool { return d.met > d.told }

func toldName(k account) string { return "told/" + cursorName(k) }
func metName(k account) string  { return "met/" + cursorName(k) }

func (r *round) dueOf(ctx context.Context, k account) (due, error) {
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok {
		return due{}, nil
	}
	met, known, err := c.Cursor(ctx, metName(k))
	if err != nil || !known {
		return due{}, err
	}
	told, _, err := c.Cursor(ctx, toldName(k))
	return due{told, met}, err
}

// owe keeps it for the next Reconcile to tell of s, which was acted on.
func (r *round) owe(ctx context.Context, k account, from *looked, s payment.Settlement) error {
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok {
		return nil
	}
	if !from.due.is() {
		from.due.told = max(from.due.told, max(from.next, 1)-1)
		if err := c.MoveCursor(ctx, toldName(k), from.due.told); err != nil {
			return err
		}
	}
	if err := c.MoveCursor(ctx, metName(k), s.Block); err != nil {
		return err
	}
	from.due.met = max(from.due.met, s.Block)
	return c.MoveCursor(ctx, actedName(s), s.Block)
}

// actedOn reports whether s was acted on within a call, and nobody was told.
func (r *round) actedOn(ctx context.Context, s payment.Settlement) (bool, error) {
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok {
		return false, nil
	}
	_, is, err := c.Cursor(ctx, actedName(s))
	return is, err
}
