package ledger

import (
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// MaxVariants is how often a payment may be signed for a further challenge.
const MaxVariants = 3

// Variant is a further challenge for the same terms: what was authorized is to
// be signed for it too, in the same lane with the same nonce, so that one of
// them at most moves money. It takes the place of the challenge that the entry
// has. Only the client may ask for one, of a payment on a lane that is
// Authorized or InDoubt and stays so, and MaxVariants times: else it is
// ErrIllegal. The hold lasts until the latest of all instants that were
// permitted.
type Variant struct {
	ChallengeID string
	Realm       string
	Version     int    // as in payment.Offer
	Echo        []byte // at most payment.MaxEcho

	// Validity is as in Request: of the ledger's time, cut to whole seconds,
	// never longer than the terms allow and never after Expires.
	Validity time.Duration
	Expires  time.Time // when the challenge ends; zero where it does not
}

// vary puts c's variant on e, by the clocks that a decision is made by.
func (c *Change) vary(tx Tx, e *Entry, seen *Seen, env Env) (now, own time.Time, err error) {
	v := c.Variant
	switch {
	case c.To != e.State || e.State != Authorized && e.State != InDoubt || c.By != ByClient:
		return now, own, fmt.Errorf("%w: a variant of a payment that is %s, to %s by %s", ErrIllegal, e.State, c.To, c.By)
	case e.Slot.Kind != payment.SlotLane:
		return now, own, fmt.Errorf("%w: a variant, and %s is not on a lane", ErrIllegal, e.ID)
	case e.Variants >= MaxVariants:
		return now, own, fmt.Errorf("%w: %s has %d variants", ErrIllegal, e.ID, e.Variants)
	case len(v.Echo) > payment.MaxEcho:
		return now, own, fmt.Errorf("ledger: the echo is longer than %d bytes", payment.MaxEcho)
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
	}
	before := v.before(now, e.Terms.Validity)
	if before.Sub(now) < minValidity || !now.Before(e.ValidBefore) {
		// Dead bytes may count no more, and what counts again might be over a cap.
		return now, own, fmt.Errorf("%w: %s, valid until %s, at %s", ErrTooShort, e.ID, before.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	e.ChallengeID, e.Realm, e.Protocol, e.Echo = v.ChallengeID, v.Realm, v.Version, append([]byte(nil), v.Echo...)
	e.SignBefore, e.ValidBefore = before, latest(e.ValidBefore, before)
	e.Variants++
	return now, own, nil
}

// before is when what is signed for v ends; most is the terms' bound, if any.
func (v *Variant) before(now time.Time, most time.Duration) time.Time {
	validity := min(v.Validity, maxValidity)
	if most > 0 {
		validity = min(validity, most)
	}
	before := now.Add(validity)
	if !v.Expires.IsZero() && v.Expires.Before(before) {
		before = v.Expires.UTC()
	}
	return before.Truncate(time.Second)
}
