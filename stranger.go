package canopy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// useOf is one use of our key. A nonce of the account itself is shown with every
// token that is asked about.
type useOf struct {
	slot payment.Slot
	tx   string
}

// tell adds s to what the round tells: in place of the same use shown with a
// token of which it moved nothing, and not at all where it moved nothing itself.
func (r *round) tell(s payment.Settlement) {
	r.told[useOf{s.Slot, s.TxHash}] = true
	for i, o := range r.out.Foreign {
		if (useOf{o.Slot, o.TxHash}) != (useOf{s.Slot, s.TxHash}) {
			continue
		}
		switch {
		case len(s.Moved) == 0 && (len(o.Moved) > 0 || s.Fee.IsZero()):
			return
		case len(o.Moved) == 0:
			r.out.Foreign[i] = s
			return
		}
	}
	r.out.Foreign = append(r.out.Foreign, s)
}

// knownName is the cursor that is there once a use was acted on that is not
// behind the cursor of its account. It stands for all that the use was said to
// have done: one that turns out to have moved more is another.
func knownName(s payment.Settlement) string { return "known/" + digest(s) }

// actedName is the cursor that is there once a use was acted on within a call,
// which told nobody.
func actedName(s payment.Settlement) string { return "acted/" + digest(s) }

func digest(s payment.Settlement) string {
	h := sha256.New()
	fmt.Fprint(h, s.Slot.String(), "\n", s.TxHash, "\n", s.Fee, "\n", s.Token, "\n", s.Canceled, s.Failed, "\n")
	for _, m := range s.Moved {
		fmt.Fprint(h, m.Address, " ", m.Amount, "\n")
	}
	return hex.EncodeToString(h.Sum(nil))
}

// known reports whether an earlier round told of s and acted on it: whoever ended its freeze
// since has judged it.
func (r *round) known(ctx context.Context, s payment.Settlement) (bool, error) {
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok || r.told[useOf{s.Slot, s.TxHash}] {
		return false, nil
	}
	_, is, err := c.Cursor(ctx, knownName(s))
	if is {
		r.seen(useOf{s.Slot, s.TxHash})
	}
	return is, err
}

// seen counts a use that is known, once.
func (r *round) seen(u useOf) {
	if !r.again[u] {
		r.again[u] = true
		r.out.Known++
	}
}

// remember keeps it for the rounds to come that s was acted on.
func (r *round) remember(ctx context.Context, s payment.Settlement) error {
	c, ok := r.c.cfg.Store.(ledger.Cursors)
	if !ok {
		return nil
	}
	return c.MoveCursor(ctx, knownName(s), s.Block)
}
