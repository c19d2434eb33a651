package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// ViaChat is how a ruling of the agent's own host is recorded.
const ViaChat = "chat"

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

	// Approvers are who may rule, each with a credential of their own, as the
	// policy named them when it was asked; where there are none only a Desk
	// rules. Quorum is how many of them have to say yes: one at least.
	Approvers []string
	Quorum    int
	Chat      bool // the agent's own host may rule on it where no approvers are named

	// Override says that an approver let the payment go over a cap; see
	// Overrider.
	Override bool

	Status    ApprovalStatus
	Votes     []Vote // oldest first, the one that decided too
	CreatedAt time.Time
	ExpiresAt time.Time
	DecidedAt time.Time // zero while pending
	By        string    // whose vote decided; empty while pending
	Via       string    // how: cli, page, terminal, webhook, client, chat
	Comment   string    // the decider's reason
	UsedAt    time.Time // when a commit consumed it; zero while unspent
	Version   int64
}

// Vote is one person's answer. One denial ends the matter; a yes counts once for
// each person.
type Vote struct {
	By      string
	Via     string
	Approve bool
	At      time.Time
	Comment string
}

// Yes is how many people have said yes.
func (a *Approval) Yes() int {
	n := 0
	for _, v := range a.Votes {
		if v.Approve {
			n++
		}
	}
	return n
}

// Names reports whether a named person may rule on a.
func (a *Approval) Names(name string) bool {
	return slices.ContainsFunc(a.Approvers, func(n string) bool { return FoldApprover(n) == FoldApprover(name) })
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

	// Decide records a person's answer, and where that decides, moves the
	// payment, in one durable step. A yes short of the quorum leaves it pending,
	// the vote with it. ErrDecided means that somebody was first or it expired,
	// ErrVoted that this person has said yes before; the approval is returned
	// with either. ErrTermsChanged means that the stored terms no longer have
	// the hash that d names, ErrSelf that the requester answered its own
	// request. A yes is ErrClockSkew where clocks disagree.
	//
	// Where the approval names approvers, d.By has to be one of them and
	// d.Credential theirs, as they are in this step: else it is ErrNotNamed or
	// ErrCredential. Where it names none, only a ruling AtDesk counts: Remote is
	// ErrNoApprovers, and InChat ErrChatDisabled unless the policy allowed it. A
	// credential that is given has to be right in any case.
	Decide(ctx context.Context, d Decision) (Approval, error)
}

// Decision is a person's answer.
type Decision struct {
	ID        payment.ApprovalID
	Approve   bool
	TermsHash payment.Hash // of the terms that the person saw; zero to go by the stored ones
	By        string       // never the requesting agent

	// Credential is that of By, where an approver rules. It is never stored.
	Credential string
	Way        Way

	Via     string
	Comment string
	Now     time.Time
}

// String tells the decision without the credential.
func (d Decision) String() string {
	verb := "denied"
	if d.Approve {
		verb = "approved"
	}
	return fmt.Sprintf("%s %s by %s via %s", d.ID, verb, d.By, d.Via)
}

// GoString is String.
func (d Decision) GoString() string { return d.String() }

// Way is where an answer comes from.
type Way uint8

// The ways.
const (
	AtDesk Way = iota // of whoever can open the ledger: the command line, the page
	Remote            // through the paying program, or over a network
	InChat            // of the agent's own host
)

// Errors of Decide.
var (
	ErrDecided      = errors.New("ledger: the approval is decided already, or expired")
	ErrTermsChanged = errors.New("ledger: the stored terms are not those that were shown")
	ErrSelf         = errors.New("ledger: the requester cannot approve its own payment")
	ErrVoted        = errors.New("ledger: this person has approved it already: somebody else has to as well")
	ErrNotNamed     = errors.New("ledger: the policy does not name this person as an approver of this payment")
	ErrNoApprovers  = errors.New("ledger: no_approvers: the policy names no approvers, so that only canopy approvals and the page can rule")
	ErrChatDisabled = errors.New("ledger: chat_approval_disabled: the policy lets nobody rule in the chat: use canopy approvals, or the page")
)
