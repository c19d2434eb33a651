package ledger

import (
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// proofNote is what the record of a proof says that ended.
const proofNote = "it is a proof: it moved nothing, and counts as one payment"

// ended reports whether the client or the ledger settles a payment by to, which
// it may do with proofs only. A proof is on no chain that could: it is settled
// where its seller's receipt is recorded, and by the end of its validity
// whatever came. Settled is the one final state that counts as a payment: of a
// proof as one of $0, to the end of its validity, as before.
func ended(to State, by Actor) bool {
	return to == Settled && (by == ByClient || by == ByRecovery)
}

// proves refuses to end e, with c on it, where it is no proof that ended by now.
func (c *Change) proves(e *Entry, now time.Time) error {
	claim := e.Receipt.Claim
	switch {
	case !ended(c.To, c.By):
		return nil
	case e.Slot.Kind != payment.SlotProof || e.Cost != 0:
		return fmt.Errorf("%w: only a proof is %s by %s", ErrIllegal, c.To, c.By)
	case c.By == ByClient && claim != payment.ClaimPaid && claim != payment.ClaimUsed:
		return fmt.Errorf("%w: a proof is %s by its receipt, and %s has none", ErrIllegal, c.To, e.ID)
	case c.By == ByRecovery && now.Before(e.ValidBefore):
		return fmt.Errorf("%w: the proof %s ends at %s, and it is %s", ErrIllegal, e.ID, e.ValidBefore.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}
