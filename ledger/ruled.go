package ledger

import (
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// CodeApprovalOutdated denies an approved payment that by now takes other people,
// or more of them, to approve.
const CodeApprovalOutdated = "approval_outdated"

// ruled is the approved payment that the call carries out, where those who said
// yes to it are who the policy of now wants asked, with credentials that hold now.
// Where they are not, the approval is over and the payment is asked for again; one
// that only may be carried out, or that was to go over a cap, is denied.
func (s *reserving) ruled(approved *Entry) (*Entry, error) {
	if approved == nil || s.verdict.Status == payment.Denied || s.verdict.Status == payment.Allowed && !s.override {
		return approved, nil
	}
	a, err := s.tx.Approval(approved.ApprovalID)
	if err != nil {
		return nil, err
	}
	enough, err := s.enough(a)
	switch {
	case err != nil || enough:
		return approved, err
	case s.r.Only != "" || a.Override:
		s.deny(CodeApprovalOutdated, "Those who approved it are not enough by the policy of now: let the agent ask again", time.Time{})
		return approved, nil
	}
	return nil, lapse(s.tx, approved, a, ByRecovery, s.r.Payment.ID, s.now)
}

// enough reports whether a has the votes that the verdict wants.
func (s *reserving) enough(a *Approval) (bool, error) {
	v := &s.verdict
	if len(v.Approvers) == 0 {
		return a.Via != ViaChat || v.Chat || a.Override, nil
	}
	need := max(v.Quorum, 1)
	if a.Override && !slices.ContainsFunc(v.Reasons, asksPeople) {
		need = 1 // the caps alone stood in the way
	}
	counted, err := standing(s.tx, a, v.Approvers)
	return len(counted) >= need, err
}

// asksPeople reports whether r puts a payment to people.
func asksPeople(r policy.Reason) bool { return r.Status == payment.PendingApproval && !r.Shadow }
