package canopy

import (
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

// Phase is how far a payment had come when a call ended.
type Phase string

// The phases.
const (
	BeforeSigning Phase = "before_signing"  // nothing was signed
	SignedNotSent Phase = "signed_not_sent" // committed, perhaps signed, never sent
	SentUnknown   Phase = "sent_unknown"    // it left, and no word of it came back
	RefusedAfter  Phase = "refused"         // it left, and the seller says that it did not settle; it still may
	SettledPhase  Phase = "settled"         // it moved money, or the seller says so
)

// Errors without values.
var (
	// ErrKeyConflict: the key was used for another method, URL or body, or for a
	// transfer on another chain, of another token, to another payee, of another
	// amount or with another memo.
	ErrKeyConflict = ledger.ErrKeyConflict

	// ErrBodyNotReplayable: the seller asks for payment, and the request's body
	// cannot be sent a second time. Nothing was signed. Give the request a
	// GetBody, or a body of at most 1 MiB.
	ErrBodyNotReplayable = errors.New("canopy: the request body cannot be sent again: set GetBody, or keep it under 1 MiB")

	// ErrClockSkew: the clocks disagree and windows of time cannot be trusted.
	ErrClockSkew = ledger.ErrClockSkew
)

// PendingError says that a person is asked first. Nothing was signed. The same
// call again carries the payment out once it is approved.
type PendingError struct{ Result Result }

// Error is the reason and the approval's id.
func (e *PendingError) Error() string {
	return fmt.Sprintf("canopy: approval needed (%s): %s", e.Result.ApprovalID, e.Result.Reason)
}

// DeniedError says that the payment is not allowed. Nothing was signed.
type DeniedError struct {
	Result Result
	Err    error // what lies behind it, where there is more to tell
}

// Error is the reason.
func (e *DeniedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("canopy: payment denied: %s: %v", e.Result.Reason, e.Err)
	}
	return "canopy: payment denied: " + e.Result.Reason
}

// Unwrap is Err.
func (e *DeniedError) Unwrap() error { return e.Err }

// Phase is BeforeSigning.
func (e *DeniedError) Phase() Phase { return BeforeSigning }

// InDoubtError says that an authorization may have left and nothing proves what
// became of it. The money is held. Do not pay again by other means before
// SafeAfter; the same call asks the seller again with the same bytes.
type InDoubtError struct {
	Result    Result
	Phase     Phase
	Code      string    // the seller's, where it gave one
	Message   string    // the seller's words, cleaned; data, not advice
	SafeAfter time.Time // from when an equal call is a new payment, but under a key that this one answered
	Err       error     // what stopped it
}

// Error tells the payment, the phase and the cause.
func (e *InDoubtError) Error() string {
	s := fmt.Sprintf("canopy: payment %s of %s is in doubt (%s)", e.Result.PaymentID, costText(e.Result.Amount, e.Result.Fee), e.Phase)
	if e.Code != "" {
		s += ": the seller said " + e.Code
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap is Err, such as context.Canceled.
func (e *InDoubtError) Unwrap() error { return e.Err }

// PaidError says that the payment was made, by the seller's word or the
// chain's, and that what was bought did not arrive in this call.
type PaidError struct {
	Result    Result
	Code      string
	Message   string
	SafeAfter time.Time // from when an equal call is a new payment, but under a key that this one answered
	Delivered bool      // an earlier call with the same key got the answer
	Err       error
}

// Error tells the payment and the cause.
func (e *PaidError) Error() string {
	became := "not delivered"
	if e.Delivered {
		became = "delivered before"
	}
	s := fmt.Sprintf("canopy: payment %s of %s was made and %s", e.Result.PaymentID, costText(e.Result.Amount, e.Result.Fee), became)
	if e.Code != "" {
		s += ": the seller said " + e.Code
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap is Err.
func (e *PaidError) Unwrap() error { return e.Err }

// Phase is SettledPhase.
func (e *PaidError) Phase() Phase { return SettledPhase }

// InFlightError says that the same key's payment is on its way in another call.
type InFlightError struct{ Result Result }

// Error tells the payment.
func (e *InFlightError) Error() string {
	return fmt.Sprintf("canopy: payment %s with the same key is in flight", e.Result.PaymentID)
}
