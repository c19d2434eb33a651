package ledger

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Store keeps the ledger. Every implementation passes ledgertest.Run. All
// methods are safe for concurrent use, by several processes where the store
// can be shared. A call whose context ends early returns its error; whether it
// took effect is then told by Entry. Entries and slices that are returned
// belong to the caller.
type Store interface {
	// Reserve decides and records one payment in one atomic, durable step:
	// it checks the clock, freeze, the key, the duplicate guard, every limit
	// of the verdict and a granted approval, and then stores the payment as
	// Authorized (hold taken, slot and validity stamped, permit minted),
	// PendingApproval or Denied. The entry's State tells which; Reasons has
	// every reason, the ledger's own among them. Where a limit denies, the uses
	// are those of all the verdict's limits before this payment, and exact;
	// else they are told to a Request that wants them, perhaps a little high
	// after a long pause, and nil to others.
	//
	// A granted approval of this very payment is consumed in the same step: the
	// entry that comes back is the approved one, under its own ID, Authorized.
	// Where it cannot be carried out now, nothing is stored, and it comes back
	// as it stands, Approved, with the refusal in Reasons; its approval stays
	// unspent.
	//
	// A call that is answered by an earlier payment gets that entry and a
	// *JoinedError. Other errors mean that nothing was stored: ErrKeyConflict,
	// ErrClockSkew, ErrTaken, ErrMissing, ErrReadOnly, or the store's own.
	Reserve(ctx context.Context, r Request) (Entry, []policy.Use, error)

	// Advance records a move, or a fact about a live payment, by compare-and-set
	// on Change.Version. ErrStale means that somebody else moved it, ErrIllegal
	// that the table of moves forbids it; nothing is stored then. It refuses no
	// clock, since an outcome must not be lost: only a Variant or a Carry, which
	// permits a signature, is refused as by Reserve, with ErrClockSkew, ErrFrozen,
	// ErrTooShort, ErrMissing or ErrReadOnly.
	Advance(ctx context.Context, c Change) (Entry, error)

	// Entry returns one payment, or ErrNotFound.
	Entry(ctx context.Context, id payment.ID) (Entry, error)

	// Entries yields the payments that match, newest first unless Oldest is
	// set. An error ends the iteration.
	Entries(ctx context.Context, q Query) iter.Seq2[Entry, error]

	// Events returns one payment's chain of events, oldest first.
	Events(ctx context.Context, id payment.ID) ([]Event, error)

	// Use tells what counts against limits at now, with Held and ResetsAt.
	Use(ctx context.Context, limits []policy.Limit, now time.Time) ([]policy.Use, error)

	// Approvals is the store's record of approvals. It is never nil.
	Approvals() Approvals

	// Close gives up what the store holds open. Calls after it fail.
	Close() error
}

// Freezer is an optional power of a Store: a switch that stops payments. Every
// store of this module has it.
type Freezer interface {
	// Freeze stops the agent's payments, or with agent "" everybody's, before
	// the next signature. by and reason are for the record.
	Freeze(ctx context.Context, agent, by, reason string) error
	// Unfreeze ends what Freeze began, for the same agent.
	Unfreeze(ctx context.Context, agent, by, reason string) error
	// Frozen tells whether the agent's payments are stopped, by a freeze of
	// its own or of everybody, and why. It is a read without a commit.
	Frozen(ctx context.Context, agent string) (bool, string, error)
	// Freezes lists what is frozen: agent ("" for everybody) to reason.
	Freezes(ctx context.Context) (map[string]string, error)
}

// Acker is an optional power of a Store: an operator takes note of a clock
// that jumped, or of a ledger that is new where an older one was expected.
type Acker interface {
	Ack(ctx context.Context, by, reason string) error
}

// Verifier is an optional power of a Store: it reads everything and checks the
// chains, the sums and the indexes, without changing anything.
type Verifier interface {
	Verify(ctx context.Context) (Report, error)
}

// Report is what a Verifier found.
type Report struct {
	Payments int64
	Events   int64
	Problems []string // empty where all is well; at most 100 are listed
}

// Request is one payment to be decided and recorded.
type Request struct {
	Payment payment.Payment // ID set by the caller
	Verdict policy.Verdict
	Payer   payment.Address

	Key string // unique per agent; empty for none

	// Fingerprint is what equal calls share and a key stands for: the hash of
	// method, URL and body digest of a fetch, or of chain, asset, payee and
	// amount of a transfer.
	Fingerprint payment.Hash

	// Budget is the one that the payment is made under, and empty for none: it
	// counts in that and in all that it was taken from. Within, where it is set,
	// is one that Budget must be or be part of. ErrBudget where the ledger has no
	// such budget of the agent, and a denial where it has ended.
	Budget payment.BudgetID
	Within payment.BudgetID

	// Began is when the call began, by the caller's clock: an outcome written
	// before it can answer the call.
	Began time.Time
	Now   time.Time // the caller's clock, read once per payment

	// Offer is what the payment was made from; its challenge, echo and
	// expiry are recorded.
	Offer payment.Offer

	// Validity is the window that the authorization gets: validBefore is the
	// store's time plus Validity, cut to whole seconds, and never after
	// Offer.Expires.
	Validity time.Duration

	// Slot is the slot to use. A zero NonceID of a SlotEVM is filled by the
	// store with 32 random bytes, and for that of a SlotLane it allots a lane. A
	// SlotExpiring, and a SlotEVM with a NonceID, is ErrTaken where any payment
	// of this ledger was ever authorized in it.
	Slot payment.Slot

	// Lanes is the size of the pool that a SlotLane is allotted from: so many
	// payments of the account on the chain are in flight at once. With 0, and
	// for a payment that is not Watched, the lane is a fresh one of random bytes
	// that is never used again.
	Lanes int

	// Gas is what transactions of the account's own that carry the payment may
	// cost, and nil where there are none.
	Gas *Gas

	Watched bool // see Entry.Watched
	Uses    bool // the uses are wanted also where every limit has room

	// Only, where it is set, is the one payment that may be carried out: it
	// must be approved on these terms. As anything else it answers the call,
	// with JoinItself, and nothing new is made.
	Only payment.ID

	// Ask turns an allowed verdict into a pending one, with this reason, for a
	// caller that wants a person asked.
	Ask string
}

// Change is one move, or a fact about a live payment where To is its state.
type Change struct {
	ID      payment.ID
	Version int64
	To      State
	By      Actor
	Now     time.Time

	Receipt   *payment.Receipt // nil leaves what is recorded
	HTTP      int              // 0 leaves what is recorded
	Delivered bool             // true sets it; it is never taken back
	Sent      int              // added to Sends
	Note      string           // "" leaves what is recorded
	SpentAt   time.Time        // with Settled, and with a Fee: the time of the block
	Assumed   bool
	Who       string // the operator's or the evidence's name, for the record

	// Fee is what the account paid for the use of the slot, with a move to
	// Settled or Cancelled: the payment counts for its value and the fee from
	// then on, or, Cancelled, for the fee alone. It is ErrIllegal where it is
	// above the fee bound of the terms. nil where it is not known: what is
	// settled counts for its whole cost then, and what is cancelled for nothing.
	Fee *payment.USD

	// Variant asks for a permit to sign the payment for a further challenge.
	Variant *Variant

	// Carry asks for a permit to sign one more transaction that carries the
	// payment, and keeps it. Its Nonce is the least that it may have: one that a
	// transaction of the payment has already is had again, and one that another
	// payment has which is on its way, and not in doubt, is passed over. Only the client may ask for it, of a
	// payment with Gas that is Authorized or InDoubt and stays so, MaxCarries
	// times, and for no more than that Gas pays: else it is ErrIllegal or
	// ErrOverGas.
	Carry *payment.Carry
}

// Query selects entries.
type Query struct {
	Agent  string // "" for every agent
	States []State
	Host   string
	Since  time.Time // CreatedAt at or after
	Until  time.Time // CreatedAt before
	Limit  int       // 0 for all
	Oldest bool      // oldest first

	// After, where it is set, is the payment that the iteration goes on after,
	// in its order; ErrNotFound where it is not there.
	After payment.ID
}

// Errors that callers branch on.
var (
	ErrFrozen      = errors.New("ledger: frozen: payments are stopped")
	ErrTooShort    = errors.New("ledger: validity_too_short: under 10 s are left for the authorization")
	ErrNotFound    = errors.New("ledger: not found")
	ErrStale       = errors.New("ledger: somebody else moved this payment")
	ErrIllegal     = errors.New("ledger: not a legal move")
	ErrKeyConflict = errors.New("ledger: the key stands for another request")
	ErrClockSkew   = errors.New("ledger: clock_skew: the clocks disagree")
	ErrReadOnly    = errors.New("ledger: an earlier write failed: nothing new is paid until the ledger is opened again")
	ErrMissing     = errors.New("ledger: this account had another ledger, which is missing or was set back: find it, or run canopy ledger ack")
	ErrClosed      = errors.New("ledger: closed")
)

// JoinedError says that an earlier payment answers the call. Its entry is what
// Reserve returned beside it.
type JoinedError struct {
	ID  payment.ID
	Why Join
}

// Join is why an earlier payment answers a call.
type Join uint8

// The reasons to join.
const (
	JoinKey    Join = iota + 1 // the key stands for it
	JoinEqual                  // an equal call is pending or approved
	JoinGuard                  // an equal call ended undelivered or in doubt
	JoinItself                 // it is Request.Only, and not one to carry out now
)

// Error tells which payment answers.
func (e *JoinedError) Error() string {
	return "ledger: answered by payment " + string(e.ID) + ": " + e.Why.String()
}

// String is the reason in words.
func (j Join) String() string {
	return [...]string{"", "the same key", "an equal call waits for approval", "an equal call is not resolved",
		"it is not one to carry out now"}[min(int(j), 4)]
}
