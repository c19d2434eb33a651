package payment

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// Recipient is one payee and what it gets.
type Recipient struct {
	Address Address
	Amount  Units
}

// Terms is what a person or a policy judges, and what is signed in the end:
// their hash binds policy, approval, ledger and signature. Anything that may
// differ between two 402s of one purchase (challenge, nonce, slot, instants,
// the seller's words) is not in them. Terms are a value; nobody changes the
// Recipients of terms that were handed out.
type Terms struct {
	Rail   string // x402 or mpp
	Scheme string // the rail's scheme, such as exact
	Asset  Asset  // hashed by chain and address

	Recipients []Recipient // the primary one first; never empty
	Amount     Units       // what leaves the account, the sum of the recipients
	FeeBound   USD         // the most that fees can add; 0 where somebody else pays them

	Method     string   // HTTP method; empty for a direct transfer
	Origin     string   // of the connection made, such as https://feed.example
	Target     string   // path and query as sent; of a direct transfer its memo as its caller stated it
	BodyDigest [32]byte // SHA-256 of the request body; of nothing where there is none
	Validity   time.Duration
	// Validity is the longest time for which an authorization may be valid:
	// the policy's max_validity, or a shorter duration that the seller states.
}

// Cost is the amount and the fee bound in dollars, rounded up: what every
// limit, price and choice uses. It saturates at MaxUSD, which no limit admits.
func (t Terms) Cost() USD {
	v, ok := t.Asset.Value(t.Amount)
	if !ok {
		return MaxUSD
	}
	sum, _ := v.Add(t.FeeBound)
	return sum
}

// Payee is the primary recipient, or the zero address where there is none.
func (t Terms) Payee() Address {
	if len(t.Recipients) == 0 {
		return Address{}
	}
	return t.Recipients[0].Address
}

// IsTransfer reports whether the terms are those of a direct transfer, which
// has no HTTP request.
func (t Terms) IsTransfer() bool { return t.Method == "" }

// SchemeProof is the scheme of a zero-amount proof: a signature that moves
// nothing, and says whose account it is.
const SchemeProof = "tempo/proof"

// IsProof reports whether t asks for a zero-amount proof. Of every other scheme
// an amount of zero is no payment.
func (t Terms) IsProof() bool { return t.Scheme == SchemeProof && t.Amount.IsZero() && t.FeeBound == 0 }

// Check names what makes t unpayable whatever the policy: no recipient, a sum
// that is not the amount, a payee that is nobody, the token or the payer.
func (t Terms) Check(payer Address) error {
	if len(t.Recipients) == 0 {
		return fmt.Errorf("payment: terms name no recipient")
	}
	var sum Units
	for _, r := range t.Recipients {
		ok := true
		if sum, ok = sum.Add(r.Amount); !ok {
			return fmt.Errorf("payment: the recipients' amounts overflow")
		}
		switch r.Address {
		case Address{}:
			return fmt.Errorf("payment: the payee is the zero address")
		case t.Asset.Address:
			return fmt.Errorf("payment: the payee %s is the token itself", r.Address)
		case payer:
			return fmt.Errorf("payment: the payee %s is the paying account", r.Address)
		case burn:
			return fmt.Errorf("payment: the payee %s is a burn address", r.Address)
		}
	}
	if sum != t.Amount {
		return fmt.Errorf("payment: the recipients get %s base units, not the amount %s", sum, t.Amount)
	}
	return nil
}

var burn = mustAddress("0x000000000000000000000000000000000000dEaD")

// Hash is a SHA-256 that stands for what was hashed.
type Hash [32]byte

// IsZero reports whether h stands for nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// String is h in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes h in hex.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 hex digits.
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) != 64 {
		return fmt.Errorf("payment: a hash has 64 hex digits, not %d characters", len(b))
	}
	_, err := hex.Decode(h[:], b)
	return err
}

// Hash is the hash of t over a typed, length-prefixed encoding of its own.
func (t Terms) Hash() Hash {
	buf := make([]byte, 0, 512)
	buf = appendField(buf, "canopy.terms.v1")
	buf = appendField(buf, t.Rail)
	buf = appendField(buf, t.Scheme)
	buf = appendField(buf, string(t.Asset.Chain))
	buf = append(buf, t.Asset.Address[:]...)
	buf = append(buf, t.Asset.Decimals)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(t.Recipients)))
	for _, r := range t.Recipients {
		buf = append(buf, r.Address[:]...)
		buf = appendUnits(buf, r.Amount)
	}
	buf = appendUnits(buf, t.Amount)
	buf = binary.BigEndian.AppendUint64(buf, uint64(t.FeeBound))
	buf = appendField(buf, t.Method)
	buf = appendField(buf, t.Origin)
	buf = appendField(buf, t.Target)
	buf = append(buf, t.BodyDigest[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(t.Validity))
	return sha256.Sum256(buf)
}

func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

func appendUnits(b []byte, u Units) []byte {
	for _, w := range u.w {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b
}
