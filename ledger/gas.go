package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// MaxCarries is how many transactions may be made to carry one payment.
const MaxCarries = 5

// gasWindow is the day of Gas.PerDay.
const gasWindow = 24 * time.Hour

// CodeGasPerDay denies a payment whose transaction could cost more of the
// chain's coin than is left of the day's.
const CodeGasPerDay = "gas_per_day"

// ErrOverGas says that one more transaction could make a payment cost more of
// the chain's coin than it was authorized with.
var ErrOverGas = errors.New("ledger: max_gas: the transactions of this payment could cost more")

// Gas bounds what the transactions of the account's own that carry a payment may
// cost, in the smallest unit of the chain's coin. It is checked by the step that
// authorizes, and each transaction by the step that permits it.
type Gas struct {
	// Bound is the most that all transactions of the payment can cost together.
	Bound payment.Units

	// PerDay is the most that those of all payments of the account on the chain
	// can cost in 24 hours: each counts with its bound. Where it is zero nothing
	// is authorized.
	PerDay payment.Units
}

// GasTx finds the payments that count for Gas.PerDay.
type GasTx interface {
	// GasUsers are the payments of the account on the chain with a GasUntil that
	// is open or after a time, in any order. Index: (chain, account, until) where
	// there is one: no more than a day's.
	GasUsers(chain payment.ChainID, from payment.Address, after time.Time) ([]*Entry, error)
}

// GasUntil is the instant that the entry's Gas counts as spent at: for a day
// from it. It is open while the entry is live, and counts is false where no
// transaction can cost anything. A transaction that a chain takes when its
// authorization has ended is counted as if that were the end.
func (e *Entry) GasUntil() (until time.Time, open, counts bool) {
	switch {
	case e.Gas.IsZero() || e.AuthorizedAt.IsZero():
		return time.Time{}, false, false
	case e.State.Live():
		return e.ValidBefore, e.Watched || e.State == NeedsOperator, true
	}
	return e.ValidBefore, false, len(e.Carries) > 0
}

// checkGas refuses a bound that is none, and one of what is not carried by
// transactions of the account's own.
func (r *Request) checkGas() error {
	switch {
	case r.Gas == nil:
	case r.Gas.Bound.IsZero():
		return errors.New("ledger: the request has a gas bound of 0")
	case r.Slot.Kind != payment.SlotEVM || !r.Payment.Terms.IsTransfer():
		return errors.New("ledger: the request has a gas bound, and is no transfer by an authorization")
	}
	return nil
}

// gas denies where the day has too little left for the bound of the request.
func (s *reserving) gas() error {
	g := s.r.Gas
	if g == nil {
		return nil
	}
	users, err := s.tx.GasUsers(s.r.Payment.Terms.Asset.Chain, s.r.Payer, s.now.Add(-gasWindow))
	if err != nil {
		return err
	}
	var used payment.Units
	for _, e := range users {
		var ok bool
		if used, ok = used.Add(e.Gas); !ok {
			used = g.PerDay // whatever is left, it is too little
			break
		}
	}
	sum, ok := used.Add(g.Bound)
	if ok && sum.Cmp(g.PerDay) <= 0 {
		return nil
	}
	s.deny(CodeGasPerDay, fmt.Sprintf("Gas cap exceeded: %s + %s > %s / 24h of the coin of %s",
		used.Coin(), g.Bound.Coin(), g.PerDay.Coin(), s.r.Payment.Terms.Asset.Chain.Name()), freesGas(users, sum, g.PerDay))
	return nil
}

// freesGas is when sum, which users are part of, fits into most by time alone at
// the earliest; zero where it never does.
func freesGas(users []*Entry, sum, most payment.Units) time.Time {
	users = slices.Clone(users)
	slices.SortFunc(users, func(a, b *Entry) int { return a.ValidBefore.Compare(b.ValidBefore) })
	for _, e := range users {
		if e.State == NeedsOperator {
			continue
		}
		var ok bool
		if sum, ok = sum.Sub(e.Gas); !ok {
			break
		}
		if sum.Cmp(most) <= 0 {
			return e.ValidBefore.Add(gasWindow)
		}
	}
	return time.Time{}
}

// carry permits c's transaction, by the clocks that a decision is made by.
func (c *Change) carry(tx Tx, e *Entry, seen *Seen, env Env) (now, own time.Time, err error) {
	next := *c.Carry
	switch {
	case c.Variant != nil || c.To != e.State || e.State != Authorized && e.State != InDoubt || c.By != ByClient:
		return now, own, fmt.Errorf("%w: a transaction for a payment that is %s, to %s by %s", ErrIllegal, e.State, c.To, c.By)
	case e.Gas.IsZero() || e.Slot.Kind != payment.SlotEVM:
		return now, own, fmt.Errorf("%w: a transaction, and %s was authorized without gas", ErrIllegal, e.ID)
	case len(e.Carries) >= MaxCarries:
		return now, own, fmt.Errorf("%w: %s has %d transactions", ErrIllegal, e.ID, len(e.Carries))
	case next.GasLimit == 0 || next.MaxFee == 0 || next.MaxTip > next.MaxFee || next.Nonce > maxNonce:
		return now, own, fmt.Errorf("%w: a transaction that no chain takes", ErrIllegal)
	}
	if now, own, err = env.strict(seen, c.Now); err != nil {
		return now, own, err
	}
	frozen, reason, err := tx.Frozen(e.Agent)
	switch {
	case err != nil:
		return now, own, err
	case frozen:
		return now, own, fmt.Errorf("%w: %s", ErrFrozen, clip(reason))
	case e.SignBefore.Sub(now) < minValidity:
		return now, own, fmt.Errorf("%w: %s, valid until %s, at %s", ErrTooShort, e.ID, e.SignBefore.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	if next.Nonce, err = e.carryNonce(tx, next.Nonce, now); err != nil {
		return now, own, err
	}
	carries := append(slices.Clip(e.Carries), next)
	if cost, ok := payment.CarryCost(carries); !ok || cost.Cmp(e.Gas) > 0 {
		return now, own, fmt.Errorf("%w: %s, and %s was authorized", ErrOverGas, cost.Coin(), e.Gas.Coin())
	}
	e.Carries = carries
	return now, own, nil
}

// carryNonce is least where a transaction of e has it already: one takes the
// other's place. Else it is the next one from it on that no other payment has
// which is on its way. Of one in doubt, least tells: a transaction that never left,
// since its process died first, would hold up all after it, and nodes that know it
// count it. Of two with one nonce the chain takes one, and each carries the
// authorization of its own payment.
func (e *Entry) carryNonce(tx Tx, least uint64, now time.Time) (uint64, error) {
	if slices.ContainsFunc(e.Carries, func(c payment.Carry) bool { return c.Nonce == least }) {
		return least, nil
	}
	users, err := tx.GasUsers(e.Slot.Chain, e.Slot.From, now.Add(-gasWindow))
	if err != nil {
		return 0, err
	}
	taken := map[uint64]bool{}
	for _, u := range users {
		for _, c := range u.Carries {
			taken[c.Nonce] = taken[c.Nonce] || u.State.Live() && u.State != InDoubt
		}
	}
	for taken[least] {
		least++
	}
	return least, nil
}

// carried is the newest transaction of e, or nil.
func (e *Entry) carried() *payment.Carry {
	if len(e.Carries) == 0 {
		return nil
	}
	return &e.Carries[len(e.Carries)-1]
}

// CarryGrant is what a rail builds the newest transaction of the entry from,
// which carries auth. It is not for an entry without one.
func (e Entry) CarryGrant(auth payment.Authorization) payment.CarryGrant {
	return payment.CarryGrant{
		Grant: e.Grant(), Authorization: auth, Carry: *e.carried(),
		Key: payment.CarryKey(e.ID, len(e.Carries)), Permit: e.CarryPermit,
	}
}
