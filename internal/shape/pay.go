package shape

import (
	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/payment"
)

// PayAllowed is the result of canopy_pay and canopy_preview where the payment
// is allowed.
type PayAllowed struct {
	Status        string      `json:"status"`
	TxHash        *string     `json:"txHash"`        // null where none is known
	TransactionID *payment.ID `json:"transactionId"` // null in a dry run
	CostUSD       payment.USD `json:"costUsd"`
	DryRun        bool        `json:"dryRun,omitempty"`
}

// PayPending is theirs where a person has to be asked.
type PayPending struct {
	Status     string              `json:"status"`
	ApprovalID *payment.ApprovalID `json:"approvalId"` // null in a dry run
	Reason     string              `json:"reason"`
	DryRun     bool                `json:"dryRun,omitempty"`
	Code       string              `json:"code"`
	Reasons    []Reason            `json:"reasons"`
}

// PayDenied is theirs where the policy says no.
type PayDenied struct {
	Status  string   `json:"status"`
	Reason  string   `json:"reason"`
	DryRun  bool     `json:"dryRun,omitempty"`
	Code    string   `json:"code"`
	Reasons []Reason `json:"reasons"`
}

// Pay is the shape of the result of a direct transfer, or of its dry run.
func Pay(r canopy.Result) any {
	switch r.Status {
	case canopy.Allowed:
		return PayAllowed{r.Status.String(), orNull(r.TxHash), orNull(r.PaymentID), cost(r), r.DryRun}
	case canopy.PendingApproval:
		return PayPending{r.Status.String(), orNull(r.ApprovalID), r.Reason, r.DryRun, r.Code, reasonsOf(r.Reasons)}
	}
	return PayDenied{canopy.Denied.String(), r.Reason, r.DryRun, r.Code, reasonsOf(r.Reasons)}
}
