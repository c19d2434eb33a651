package payment

import (
	"errors"
	"log/slog"
	"time"
)

// MaxEcho bounds what a seller may want echoed.
const MaxEcho = 16 << 10

// ErrNotMine is what a rail returns for a response that is not of its
// protocol: try the next rail.
var ErrNotMine = errors.New("payment: not a challenge of this rail")

// ErrNoTerms is what a rail's error is where a response is of its protocol and
// names no terms at all: there is nothing to pay, and nothing to refuse.
var ErrNoTerms = errors.New("payment: the challenge states no terms")

// ErrForeignSignature is wrapped where a signature is not the payer's.
var ErrForeignSignature = errors.New("payment: the signature is not the payer's")

// Offer is one set of terms that a seller will accept, read from a 402, with
// what echoing it needs. Text in it is the seller's and is never an input of
// policy.
type Offer struct {
	Rail       string
	Scheme     string
	Asset      Asset // from the pinned table, never from the seller
	Recipients []Recipient
	Amount     Units
	FeeBound   USD

	// Slot is the kind of slot that an authorization of this offer uses. Mark
	// is what the challenge makes of it: the memo of a SlotExpiring, or the nonce
	// of a SlotEVM that the challenge binds; else zero, and the ledger chooses.
	Slot SlotKind
	Mark [32]byte

	// Broadcast says that an authorization of this offer is broadcast from here
	// before the seller is shown it.
	Broadcast bool

	// Digest is the SHA-256 of the request body that the challenge is bound to:
	// nil where it is bound to none. Another body is not paid for.
	Digest *[32]byte

	Validity    time.Duration // the longest validity that the seller states; 0 where it states none
	Expires     time.Time     // when the challenge ends; zero where it does not
	ChallengeID string        // empty where the protocol has none
	Realm       string        // as stated; policy keys on the host that was dialled
	Network     string        // the chain as the seller spelled it
	Resource    string        // the URL that the seller states; shown, never used
	Description string

	// Version is the protocol version that the offer came in, where the rail
	// has several.
	Version int

	// Resend says that a seller of this offer serves the same bytes again
	// without running its handler twice, so that a call other than GET or
	// HEAD may be re-sent.
	Resend bool

	// Echo is what the rail needs to build the authorization, verbatim from
	// the seller and at most MaxEcho. It is kept in the ledger, never logged.
	Echo []byte
}

// Terms are the offer's terms for one request. Validity is set by the caller.
func (o Offer) Terms(method, origin, target string, body [32]byte) Terms {
	return Terms{
		Rail: o.Rail, Scheme: o.Scheme, Asset: o.Asset,
		Recipients: o.Recipients, Amount: o.Amount, FeeBound: o.FeeBound,
		Method: method, Origin: origin, Target: target, BodyDigest: body,
	}
}

// Grant is what a rail builds an authorization from: terms, slot and instants
// as they were committed to the ledger.
type Grant struct {
	PaymentID   ID
	Terms       Terms
	Payer       Address
	Slot        Slot
	ValidBefore time.Time // whole seconds
	ChallengeID string
	Realm       string
	Version     int
	Echo        []byte
	Permit      Permit

	// TxHash is that of the authorization, where it was known before it left: a
	// receipt that names another is not of it. Authorize and Decode do not look.
	TxHash string

	// Recover asks Decode to recover the signer's address from the signature
	// and to compare it with Payer.
	Recover bool
}

// Authorization is signed bytes that can move money. From the moment they
// leave, money may move. It prints as its slot and never as its bytes.
type Authorization struct {
	Header string // name of the request header that carries it; empty where it is not sent to a seller
	Value  string // the header's value
	Raw    []byte // the signed transaction, where the rail pushes one
	TxHash string // known in advance only where the rail can compute it

	Slot        Slot
	ValidBefore time.Time
}

// String tells the slot and the validity, never the signed bytes.
func (a Authorization) String() string {
	return "authorization of " + a.Slot.String() + " until " + a.ValidBefore.UTC().Format(time.RFC3339)
}

// GoString is String.
func (a Authorization) GoString() string { return a.String() }

// LogValue is String.
func (a Authorization) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalJSON refuses: an authorization is not written anywhere.
func (a Authorization) MarshalJSON() ([]byte, error) {
	return nil, errors.New("payment: an authorization is not written as JSON")
}

// Claim is what a seller's answer says of the settlement.
type Claim uint8

// The claims. The zero value is no word at all.
const (
	ClaimNone    Claim = iota // nothing readable, or nothing that matches the grant
	ClaimPaid                 // it settled: counts as spent, unconfirmed
	ClaimPending              // it was broadcast and is not settled yet
	ClaimUsed                 // our nonce or hash is used already: paid, if these bytes were sent before
	ClaimRefused              // the seller says that it did not settle; proves nothing
)

// String is the claim's name.
func (c Claim) String() string {
	return [...]string{"none", "paid", "pending", "used", "refused"}[min(int(c), 4)]
}

// Receipt is what the seller says about settlement: a claim until the chain
// confirms it. A zero Receipt is unknown.
type Receipt struct {
	Claim   Claim
	TxHash  string // 0x and hex, or empty
	Code    string // the seller's error code, cleaned; empty where there is none
	Message string // the seller's words, cleaned and bounded; never a rule's input
	Amount  Units  // what was charged, where the seller says so
	Block   time.Time
}
