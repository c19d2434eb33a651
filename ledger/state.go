package ledger

import "fmt"

// State is where a payment stands. The zero value is Proposed, which is never
// stored.
type State uint8

// The states. Denied, Rejected, ApprovalExpired, Settled, ExpiredUnused and
// Cancelled are final.
const (
	Proposed        State = iota
	Denied                // the policy or the ledger said no; nothing was signed
	PendingApproval       // put to a person; holds nothing
	Approved              // a person said yes; consumed by the commit that authorizes
	Rejected              // a person said no
	ApprovalExpired       // nobody answered in time
	Authorized            // committed; a signature may exist and may be on its way
	Claimed               // the seller claims settlement; counts as spent
	InDoubt               // a signature may have left and no proof came back
	Settled               // the chain shows the transfer, final; of a proof: it ended, and moved nothing
	ExpiredUnused         // the chain shows that it can never move, or an operator said so
	Cancelled             // our own cancellation used up the slot, final
	NeedsOperator         // the slot is used and the transfer is not the agreed one
)

var stateNames = [...]string{
	"proposed", "denied", "pending_approval", "approved", "rejected", "approval_expired", "authorized",
	"claimed", "in_doubt", "settled", "expired_unused", "cancelled", "needs_operator",
}

// String is the state in snake case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText writes s as String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what String writes.
func (s *State) UnmarshalText(b []byte) error {
	v, err := ParseState(string(b))
	if err == nil {
		*s = v
	}
	return err
}

// ParseState reads what String writes.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("ledger: %q is not a state", name)
}

// Actor is who makes a move.
type Actor uint8

// The actors.
const (
	ByClient   Actor = iota // the payment's own process
	ByPerson                // an approver, or the clock on an approval
	ByChain                 // reconciliation, on finalized evidence
	ByOperator              // canopy ledger resolve
	ByRecovery              // the ledger, on a payment whose process is gone, or whose time is up
)

// String is the actor's name.
func (a Actor) String() string {
	return [...]string{"client", "person", "chain", "operator", "recovery"}[min(int(a), 4)]
}

// moves is the one table of legal moves. Settled by the client or the ledger is
// for proofs alone: see Change.proves.
var moves = map[State]map[State][]Actor{
	Proposed: {Denied: {ByClient}, PendingApproval: {ByClient}, Authorized: {ByClient}},
	PendingApproval: {
		Approved: {ByPerson}, Rejected: {ByPerson}, ApprovalExpired: {ByPerson, ByClient, ByRecovery},
	},
	Approved: {Authorized: {ByClient}, ApprovalExpired: {ByPerson, ByClient, ByRecovery}},
	Authorized: {
		Claimed: {ByClient}, InDoubt: {ByClient, ByRecovery}, Settled: {ByClient},
	},
	InDoubt: {
		Claimed: {ByClient},
		Settled: {ByChain, ByOperator, ByClient, ByRecovery}, ExpiredUnused: {ByChain, ByOperator},
		Cancelled: {ByChain}, NeedsOperator: {ByChain},
	},
	Claimed: {
		Settled: {ByChain, ByOperator, ByClient, ByRecovery}, ExpiredUnused: {ByChain, ByOperator},
		Cancelled: {ByChain}, NeedsOperator: {ByChain},
	},
	NeedsOperator: {Settled: {ByOperator}, ExpiredUnused: {ByOperator}},
}

// Legal reports whether by may move a payment from one state to another.
// Staying in a state, to record a fact, is legal for the live ones, and in
// PendingApproval to record one vote of several.
func Legal(from, to State, by Actor) bool {
	if from == to {
		return from == Authorized || from == InDoubt || from == Claimed || from == PendingApproval && by == ByPerson
	}
	for _, a := range moves[from][to] {
		if a == by {
			return true
		}
	}
	return false
}

// Final reports whether nothing can follow s.
func (s State) Final() bool { return s != Proposed && len(moves[s]) == 0 }

// Live reports whether an authorization may exist that still can move money,
// or moved it and is not final.
func (s State) Live() bool {
	return s == Authorized || s == InDoubt || s == Claimed || s == NeedsOperator
}

// Freed reports whether the payment ended without money, so that its key is
// free again.
func (s State) Freed() bool {
	switch s {
	case Denied, Rejected, ApprovalExpired, ExpiredUnused, Cancelled:
		return true
	}
	return false
}

// Paid reports whether money moved, or is claimed to have.
func (s State) Paid() bool { return s == Claimed || s == Settled }
