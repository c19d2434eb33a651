package canopy

import (
	"context"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// LateUse is a use of our key that is a payment of this ledger, whose hold was
// released before: no cap counts what it moved.
type LateUse struct {
	PaymentID  PaymentID
	ReleasedBy ledger.Actor // by an operator, who called it unused, or by the word of the chain's nodes
	Use        payment.Settlement
}

// LateUse is s as the late use of a payment, and false where it is none.
func (r Reconciliation) LateUse(s payment.Settlement) (LateUse, bool) {
	for _, l := range r.Late {
		if (useOf{l.Use.Slot, l.Use.TxHash}) == (useOf{s.Slot, s.TxHash}) {
			return l, true
		}
	}
	return LateUse{}, false
}

// late tells whose s is, once.
func (r *round) late(ctx context.Context, id payment.ID, s payment.Settlement) (LateUse, error) {
	if l, ok := r.out.LateUse(s); ok {
		return l, nil
	}
	events, err := r.c.cfg.Store.Events(ctx, id)
	if err != nil {
		return LateUse{}, err
	}
	out := LateUse{PaymentID: id, ReleasedBy: ledger.ByChain, Use: s}
	for _, ev := range events {
		if ev.To.Freed() {
			out.ReleasedBy = ev.By
		}
	}
	r.out.Late = append(r.out.Late, out)
	return out, nil
}

// how is how l's payment was released.
func (l LateUse) how() string {
	if l.ReleasedBy == ledger.ByOperator {
		return "an operator had called it unused"
	}
	return "it was released"
}
