package shape

import (
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Approval is the result of canopy_get_approval_status and of
// canopy_wait_for_approval.
type Approval struct {
	Status        string     `json:"status"` // pending, approved, denied or expired
	DecidedAt     *Time      `json:"decidedAt"`
	ExpiresAt     *Time      `json:"expiresAt"`
	TransactionID payment.ID `json:"transactionId"`
	TxHash        *string    `json:"txHash"` // null until paid
	Reason        *string    `json:"reason"`
	Next          string     `json:"next"`
	SafeAfter     *Time      `json:"safeAfter,omitempty"` // with next in_doubt
	Approvers     []string   `json:"approvers,omitempty"` // who may rule, where the policy names them
	Quorum        int        `json:"quorum,omitempty"`    // how many of them it takes
	Votes         []Vote     `json:"votes,omitempty"`
	Terms         *Terms     `json:"terms,omitempty"` // that were put to a person
}

// What to do next about an approval.
const (
	NextWait       = "wait"
	NextFetch      = "call_canopy_fetch"
	NextPay        = "call_canopy_pay"
	NextPaid       = "paid"
	NextInDoubt    = "in_doubt"
	NextRetryLater = "retry_later"
	NextNone       = "none"
)

// ApprovalOf is the shape of a and of the payment e that it is for. blocked
// says that it could not be carried out now: a cap is full or the agent frozen.
func ApprovalOf(a ledger.Approval, e ledger.Entry, blocked bool) Approval {
	out := Approval{
		Status: a.Status.String(), DecidedAt: at(a.DecidedAt), ExpiresAt: at(a.ExpiresAt), TransactionID: a.Payment,
		Reason: said(approvalReason(a), maxText), Next: Next(a, e, blocked),
		Approvers: a.Approvers, Quorum: quorumOf(a), Votes: votesOf(a),
	}
	if a.Terms.Rail != "" {
		terms := termsOf(a.Terms, a.TermsHash)
		out.Terms = &terms
	}
	if e.State.Paid() {
		out.TxHash = orNull(e.Receipt.TxHash)
	}
	if out.Next == NextInDoubt {
		out.SafeAfter = after(e.SafeAfter())
	}
	return out
}

// Next is what to do next about a.
func Next(a ledger.Approval, e ledger.Entry, blocked bool) string {
	switch a.Status {
	case ledger.ApprovalPending:
		return NextWait
	case ledger.ApprovalRefused, ledger.ApprovalLapsed:
		return NextNone
	}
	switch {
	case e.State == ledger.Authorized:
		return NextWait // it is on its way
	case e.State.Paid():
		return NextPaid
	case e.State == ledger.InDoubt || e.State == ledger.NeedsOperator:
		return NextInDoubt
	case e.State != ledger.Approved:
		return NextNone
	case blocked:
		return NextRetryLater
	case e.Terms.IsTransfer():
		return NextPay
	}
	return NextFetch
}

// approvalReason is why a person is asked, or why the answer was no.
func approvalReason(a ledger.Approval) string {
	if a.Status == ledger.ApprovalRefused && a.Comment != "" {
		return a.Comment
	}
	return a.Reason
}

// Ruling is the result of canopy_approve and canopy_deny.
type Ruling struct {
	Status        string             `json:"status"` // approved or denied
	ApprovalID    payment.ApprovalID `json:"approval_id"`
	TransactionID payment.ID         `json:"transaction_id"`
}

// RulingOf is the shape of a ruling that was recorded.
func RulingOf(a ledger.Approval) Ruling { return Ruling{a.Status.String(), a.ID, a.Payment} }

// Refusal is theirs where the ruling was not taken. Code is stable.
type Refusal struct {
	Status string `json:"status"` // error
	Error  string `json:"error"`
	Code   string `json:"code"`
}

// Refused is the shape of a ruling that was not taken.
func Refused(err error, code string) Refusal {
	return Refusal{"error", words(err), code}
}
