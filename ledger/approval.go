package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Approval is a payment put to a person, bound to its terms. It is used once,
// by the payment and the agent that it names, before it expires.
type Approval struct {
	ID        payment.ApprovalID
	Payment   payment.ID
	Agent     string
	Terms     payment.Terms
	TermsHash payment.Hash
	Cost      payment.USD
	Reason    string // why a person is asked
	Purpose   string // the agent's words

	Status    ApprovalStatus
	CreatedAt time.Time
	ExpiresAt time.Time
	DecidedAt time.Time // zero while pending
	By        string    // who decided; empty while pending
	Via       string    // how: cli, page, webhook, client, chat
	Comment   string    // the decider's reason
	UsedAt    time.Time // when a commit consumed it; zero while unspent
	Version   int64
}

// ApprovalStatus is what became of a request for approval.
type ApprovalStatus uint8

// The statuses of an approval.
const (
	ApprovalPending ApprovalStatus = iota
	ApprovalGranted
	ApprovalRefused
	ApprovalLapsed
)

// String is the status as tools write it: pending, approved, denied, expired.
func (s ApprovalStatus) String() string {
	return [...]string{"pending", "approved", "denied", "expired"}[min(int(s), 3)]
}

// MarshalText writes s as String does.
func (s ApprovalStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Approvals is the store's record of approvals. Methods are safe for concurrent
// use. An approval past its expiry is returned as expired whether or not that
// was written yet.
type Approvals interface {
	// Approval returns one, or ErrNotFound.
	Approval(ctx context.Context, id payment.ApprovalID, now time.Time) (Approval, error)

	// List returns those of an agent ("" for all), newest first; only pending
	// ones where pending is set.
	List(ctx context.Context, agent string, pending bool, now time.Time) ([]Approval, error)

	// Decide records a person's answer, and moves the payment, in one durable
	// step. ErrDecided means that somebody was first or it expired; the
	// approval is returned with it. ErrTermsChanged means that the stored
	// terms no longer have the hash that d names, ErrSelf that the requester
	// answered its own request. A grant is ErrClockSkew where clocks disagree.
	Decide(ctx context.Context, d Decision) (Approval, error)
}

// Decision is a person's answer.
type Decision struct {
	ID        payment.ApprovalID
	Approve   bool
	TermsHash payment.Hash // of the terms that the person saw; zero to go by the stored ones
	By        string       // never the requesting agent
	Via       string
	Comment   string
	Now       time.Time
}

// Errors of Decide.
var (
	ErrDecided      = errors.New("ledger: the approval is decided already, or expired")
	ErrTermsChanged = errors.New("ledger: the stored terms are not those that were shown")
	ErrSelf         = errors.New("ledger: the requester cannot approve its own payment")
)
