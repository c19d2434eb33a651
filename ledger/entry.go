package ledger

import (
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Entry is one payment as the ledger holds it. Entries that a store returns
// are the caller's own; instants are UTC and cut to microseconds.
type Entry struct {
	ID      payment.ID
	Agent   string
	State   State
	Version int64 // rises by one with every move; the compare-and-set of Advance

	Terms     payment.Terms
	TermsHash payment.Hash
	Cost      payment.USD // what was judged

	// Spent is what counts of it in every cap: Cost from its authorization on,
	// and once the chain told the fee that was paid, the value and that fee. It
	// is 0 before, and where nothing was spent after all.
	Spent payment.USD

	Payer   payment.Address
	Shared  bool   // judged by the default table
	Host    string // normalised; empty for a direct transfer
	Purpose string

	Run     string             // the work that it is part of, where a cap or a budget counts by it
	Budgets []payment.BudgetID // those that it counts in, the outermost first
	Path    payment.Hash       // Budget.Path of the innermost; zero without budgets

	Key         string       // the caller's key; empty where there was none
	Fingerprint payment.Hash // of what a key stands for; see Request

	// What rebuilding the authorization needs, and never the signature.
	Slot        payment.Slot    // zero until authorized
	ValidBefore time.Time       // of all that was permitted the latest: the hold's; whole seconds; zero until authorized
	SignBefore  time.Time       // that of the newest variant, which is what is signed now; not after ValidBefore
	Variants    int             // how often it was permitted for a further challenge; see Variant
	Gas         payment.Units   // what its transactions may cost together, in the chain's coin; 0 where there are none
	Carries     []payment.Carry // those that were permitted, oldest first
	ChallengeID string
	Realm       string
	Protocol    int    // the protocol version of the offer
	Echo        []byte // at most payment.MaxEcho
	Resend      bool   // as in payment.Offer
	Sends       int    // how often the bytes left, as far as recorded

	// Watched says that a chain could be asked when it was authorized. Then
	// only the chain's word, or an operator's, ends the hold; else it stops
	// being live at ValidBefore and stays counted as spent at that time.
	Watched bool

	CreatedAt    time.Time // first commit
	AuthorizedAt time.Time // zero until authorized
	OutcomeAt    time.Time // of the first commit that wrote an outcome; zero until then
	OutcomeSeen  time.Time // the same by the store's own clock, to order it with a call's beginning
	Recovered    bool      // its outcome was written because its process was gone
	SpentAt      time.Time // the settling block's time, where known
	Owner        string    // the process that authorized it

	Receipt   payment.Receipt // what the seller claimed
	HTTP      int             // status of the answer that came after the payment left; 0 for none
	Delivered bool            // a 2xx or 3xx arrived after the payment left
	Note      string          // why it is in doubt, or what the operator said
	Assumed   bool            // released or settled by an operator's word or by one RPC's

	ApprovalID payment.ApprovalID
	Reasons    []policy.Reason // of the decision
	Policy     payment.Hash    // of the document that decided

	// DuplicateWindow is the policy's, for SafeAfter.
	DuplicateWindow time.Duration

	Head payment.Hash // of the payment's own chain of events

	// Permit lets the signer sign this entry's slot until SignBefore, for the
	// first time or for the same bytes again. A store sets it on committed
	// entries in Authorized, InDoubt, Claimed and Settled; it is zero on all
	// others.
	Permit payment.Permit

	// CarryPermit is the same for the newest of Carries: it is set where there
	// is one, in Authorized and InDoubt.
	CarryPermit payment.Permit

	slot string // Slot.String, where it was asked for
}

// SlotKey is Slot.String; it is kept where the entry was authorized in this
// process.
func (e *Entry) SlotKey() string {
	if e.slot != "" {
		return e.slot
	}
	return e.Slot.String()
}

// SafeAfter is when a payment in doubt, or one not delivered, stops answering
// equal calls: its bytes are dead and the duplicate window has passed since
// the outcome.
func (e *Entry) SafeAfter() time.Time {
	t := e.OutcomeAt.Add(e.DuplicateWindow)
	if e.ValidBefore.After(t) {
		return e.ValidBefore
	}
	return t
}

// AnswersUntil is the instant until which the entry may answer an equal call,
// and false where it never does. It is far away for one that waits for a
// person; one that was approved and carried out still answers the calls that
// waited with it; any other without an outcome answers nobody.
func (e *Entry) AnswersUntil() (time.Time, bool) {
	var until time.Time
	switch e.State {
	case PendingApproval, Approved:
		return farAway, true
	case InDoubt, NeedsOperator:
		until = e.SafeAfter()
	case Claimed, Settled:
		if !e.Delivered && !e.Terms.IsTransfer() {
			until = e.SafeAfter()
		}
	case Authorized:
	default:
		return until, false
	}
	if e.ApprovalID != "" {
		until = latest(until, e.AuthorizedAt.Add(waitedWith))
	}
	return until, !until.IsZero()
}

// waitedWith is how long a payment that was approved answers the equal calls
// that waited for the same person: all that is left to them is to ask.
const waitedWith = time.Hour

var farAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// HoldsKey reports whether the entry's key is taken by it.
func (e *Entry) HoldsKey() bool { return e.Key != "" && !e.State.Freed() }

// HoldsSlot reports whether no other payment may have the entry's slot.
func (e *Entry) HoldsSlot() bool { return !e.Slot.IsZero() && e.State.Live() }

// CountedUntil is the instant until which what is Spent of the entry counts as
// spent or held, and open where it has no end yet: see policy.Window.Counts. It is
// false where the entry does not count.
func (e *Entry) CountedUntil() (until time.Time, open, counts bool) {
	switch e.State {
	case Authorized, InDoubt, Claimed:
		return e.ValidBefore, e.Watched, true
	case NeedsOperator:
		return time.Time{}, true, true
	case Settled, Cancelled:
		if e.State == Cancelled && e.Spent == 0 {
			return time.Time{}, false, false
		}
		if !e.SpentAt.IsZero() {
			return e.SpentAt, false, true
		}
		return e.ValidBefore, false, true
	}
	return time.Time{}, false, false
}

// Facts are what caps count the entry by.
func (e *Entry) Facts() policy.Facts {
	payees := payeesOf(make([]payment.Address, 0, len(e.Terms.Recipients)), e.Terms.Recipients)
	return policy.Facts{Agent: e.Agent, Shared: e.Shared, Host: e.Host, Payees: payees, Run: e.Run, Budgets: e.Budgets}
}

func payeesOf(out []payment.Address, recipients []payment.Recipient) []payment.Address {
	for i := range recipients {
		out = append(out, recipients[i].Address)
	}
	return out
}

// Grant is what a rail builds the entry's authorization from.
func (e Entry) Grant() payment.Grant {
	return payment.Grant{
		PaymentID: e.ID, Terms: e.Terms, Payer: e.Payer, Slot: e.Slot, ValidBefore: e.SignBefore,
		ChallengeID: e.ChallengeID, Realm: e.Realm, Version: e.Protocol, Echo: e.Echo, Permit: e.Permit,
	}
}
