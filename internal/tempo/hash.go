package tempo

import (
	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// SigningHash is what the sender signs. It depends on no signature, and for a
// sponsored transaction neither on the fee token nor on the form of the slot.
func (t *Transaction) SigningHash() [32]byte {
	var room [roomSize]byte
	return keccak.Sum256(t.append(room[:0], senderText))
}

// FeePayerHash is what a sponsor signs for sender, with the fee token that it
// chose in t.
func (t *Transaction) FeePayerHash(sender payment.Address) [32]byte {
	u := *t
	u.FeePayer = FeePayer{Kind: FeePayerSender, Sender: sender}
	var room [roomSize]byte
	return keccak.Sum256(u.append(room[:0], feePayerText))
}

// Hash is the transaction hash under which the chain knows t. There is none
// before all signatures are there. A node spells v as 27 or 28 whatever it was
// sent, and so does the hash.
func (t *Transaction) Hash() ([32]byte, error) {
	switch {
	case len(t.Signature) == 0:
		return [32]byte{}, refused("no hash without the sender's signature")
	case t.FeePayer.Kind == FeePayerPlaceholder || t.FeePayer.Kind == FeePayerSender:
		return [32]byte{}, refused("no hash without the fee payer's signature")
	}
	var room [roomSize]byte
	b := t.append(room[:0], wire)
	if v := &b[len(b)-1]; endsInV(t.Signature) && *v < 27 {
		*v += 27
	}
	return keccak.Sum256(b), nil
}
