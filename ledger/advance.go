package ledger

import (
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// AdvanceTx is Store.Advance in one step. Its clock refuses nothing, since an
// outcome must not be lost: an instant that cannot be right is left out.
func AdvanceTx(tx Tx, c *Change, env Env) (*Entry, error) {
	was, err := tx.Entry(c.ID)
	if err != nil {
		return nil, err
	}
	if was.Version != c.Version {
		return nil, fmt.Errorf("%w: it is %s at version %d, not %d", ErrStale, was.State, was.Version, c.Version)
	}
	if !was.State.Live() || !Legal(was.State, c.To, c.By) {
		return nil, fmt.Errorf("%w: %s to %s by %s", ErrIllegal, was.State, c.To, c.By)
	}
	if err := c.checkFee(was); err != nil {
		return nil, err
	}
	if c.By == ByOperator && c.To != was.State {
		said := *c
		said.Assumed = true // whatever becomes of it is by a person's word
		c = &said
	}
	if ended(c.To, c.By) && c.Note == "" {
		said := *c
		said.Note = proofNote
		c = &said
	}
	return advance(tx, was, c, env)
}

// checkFee refuses a fee that was not agreed to, or that ends no payment.
func (c *Change) checkFee(was *Entry) error {
	switch {
	case c.Fee == nil:
	case c.To != Settled && c.To != Cancelled:
		return fmt.Errorf("%w: a fee, and it is not settled or cancelled by it", ErrIllegal)
	case *c.Fee < 0 || *c.Fee > was.Terms.FeeBound:
		return fmt.Errorf("%w: a fee of %s, and at most %s was agreed", ErrIllegal, *c.Fee, was.Terms.FeeBound)
	}
	return nil
}

// spend sets what counts of e, which has moved.
func (e *Entry) spend(fee *payment.USD) {
	switch {
	case e.State.Freed():
		e.Spent = 0
		if fee != nil {
			e.Spent = *fee
		}
	case fee != nil:
		value, _ := e.Terms.Asset.Value(e.Terms.Amount)
		sum, _ := value.Add(*fee)
		e.Spent = min(sum, e.Spent)
	}
}

func advance(tx Tx, was *Entry, c *Change, env Env) (*Entry, error) {
	seen, err := tx.Seen()
	if err != nil {
		return nil, err
	}
	e := *was
	var now, own time.Time
	switch {
	case c.Carry != nil:
		now, own, err = c.carry(tx, &e, &seen, env)
	case c.Variant != nil:
		now, own, err = c.vary(tx, &e, &seen, env)
	default:
		now, own = env.lenient(seen, c.Now)
	}
	if err != nil {
		return nil, err
	}
	e.State = c.To
	e.Version++
	if c.Receipt != nil {
		e.Receipt = *c.Receipt
	}
	if err := c.proves(&e, now); err != nil {
		return nil, err
	}
	if c.HTTP != 0 {
		e.HTTP = c.HTTP
	}
	if c.Note != "" {
		e.Note = c.Note
	}
	e.Delivered = e.Delivered || c.Delivered
	e.Assumed = e.Assumed || c.Assumed
	e.Sends += max(c.Sent, 0)
	e.spend(c.Fee)
	var spent time.Time
	if (c.To == Settled || c.Fee != nil) && !c.SpentAt.IsZero() {
		// Money cannot have moved before the hold was taken, whatever a
		// block's clock says.
		spent = latest(instant(c.SpentAt), e.AuthorizedAt)
		e.SpentAt = spent
	}
	if e.OutcomeAt.IsZero() && c.To != Authorized {
		e.OutcomeAt, e.OutcomeSeen, e.Recovered = now, own, c.By == ByRecovery
	}
	if err := tx.Update(&e, newEvent(&e, was.State, c.By, now, c.record(&e, spent))); err != nil {
		return nil, err
	}
	if spanOf(was) != spanOf(&e) {
		var count counting
		if err := count.start(tx, now); err != nil {
			return nil, err
		}
		if err := count.recount(was, &e); err != nil {
			return nil, err
		}
	}
	if now.After(seen.At) || c.Variant != nil || c.Carry != nil {
		seen.At = now
		return &e, tx.SetSeen(seen)
	}
	return &e, nil
}

// RecoverTx moves the payments of owners that are not alive from Authorized to
// InDoubt, and tells how many. A store runs it on opening; ReserveTx runs it.
func RecoverTx(tx Tx, env Env) (int, error) {
	owners, err := tx.Owners()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, owner := range owners {
		if owner == env.Owner || env.Alive != nil && env.Alive(owner) {
			continue
		}
		left, err := tx.Owned(owner)
		if err != nil {
			return n, err
		}
		for _, e := range left {
			c := Change{ID: e.ID, To: InDoubt, By: ByRecovery, Note: "its process ended before an outcome was recorded"}
			if _, err := advance(tx, e, &c, env); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
