package payment

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/ulid"
)

// ID names a payment for life: a ULID.
type ID string

// NewID returns a new ID for a payment that begins at now.
func NewID(now time.Time) ID { return ID(ulid.New(now)) }

// Valid reports whether id is spelled as NewID spells it.
func (id ID) Valid() bool { return ulid.Valid(string(id)) }

// ApprovalID names a request for approval: appr_ and a ULID.
type ApprovalID string

// NewApprovalID returns a new ID for an approval asked at now.
func NewApprovalID(now time.Time) ApprovalID { return ApprovalID("appr_" + ulid.New(now)) }

// Valid reports whether id is spelled as NewApprovalID spells it.
func (id ApprovalID) Valid() bool {
	s, ok := strings.CutPrefix(string(id), "appr_")
	return ok && ulid.Valid(s)
}

// BudgetID names a budget: bgt_ and a ULID.
type BudgetID string

// NewBudgetID returns a new ID for a budget that is made at now.
func NewBudgetID(now time.Time) BudgetID { return BudgetID("bgt_" + ulid.New(now)) }

// Valid reports whether id is spelled as NewBudgetID spells it.
func (id BudgetID) Valid() bool {
	s, ok := strings.CutPrefix(string(id), "bgt_")
	return ok && ulid.Valid(s)
}

// AgentID is the public id of the agent called name: agt_ and a hash of it.
func AgentID(name string) string {
	sum := sha256.Sum256([]byte("canopy.agent.v1\x00" + name))
	return "agt_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// Status is the outcome of a decision. The zero value is Denied.
type Status uint8

// The three outcomes.
const (
	Denied Status = iota
	PendingApproval
	Allowed
)

// String is the status as tools write it: denied, pending_approval or allowed.
func (s Status) String() string {
	switch s {
	case Allowed:
		return "allowed"
	case PendingApproval:
		return "pending_approval"
	}
	return "denied"
}

// MarshalText writes s as String does.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Payment is one purchase as a policy judges it: which agent, for what, to
// whom, how much.
type Payment struct {
	ID    ID
	Agent string // the agent's name, bound by the program, never taken from an argument
	Terms Terms

	// Host and Port are those of Terms.Origin, normalised; Host is empty for
	// a direct transfer.
	Host string
	Port uint16

	// Run is the piece of work that it is made for: the outermost budget, else
	// the client. Empty where whoever asks knows of none.
	Run string

	Purpose string // the caller's words, for people; never a rule's input
}
