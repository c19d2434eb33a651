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

	AmountUSD *payment.USD `json:"amountUsd"`
	FeeUSD    *payment.USD `json:"feeUsd"`             // the bound
	SpentUSD  *payment.USD `json:"spentUsd,omitempty"` // what counts in the caps; not in a dry run
	GasBound  string       `json:"gasBound,omitempty"` // in the chain's coin, beside the cost: of a transaction of ours
}

// PayPending is theirs where a person has to be asked.
type PayPending struct {
	Status     string              `json:"status"`
	ApprovalID *payment.ApprovalID `json:"approvalId"` // null in a dry run
	Reason     string              `json:"reason"`
	DryRun     bool                `json:"dryRun,omitempty"`
	Code       string              `json:"code"`
	Reasons    []Reason            `json:"reasons"`

	AmountUSD *payment.USD `json:"amountUsd,omitempty"`
	FeeUSD    *payment.USD `json:"feeUsd,omitempty"`
	CostUSD   *payment.USD `json:"costUsd,omitempty"`
	GasBound  string       `json:"gasBound,omitempty"`
}

// PayDenied is theirs where the policy says no.
type PayDenied struct {
	Status  string   `json:"status"`
	Reason  string   `json:"reason"`
	DryRun  bool     `json:"dryRun,omitempty"`
	Code    string   `json:"code"`
	Reasons []Reason `json:"reasons"`

	AmountUSD *payment.USD `json:"amountUsd,omitempty"` // and the next two: not where no terms were judged
	FeeUSD    *payment.USD `json:"feeUsd,omitempty"`
	CostUSD   *payment.USD `json:"costUsd,omitempty"`
	GasBound  string       `json:"gasBound,omitempty"`
}

// Pay is the shape of the result of a direct transfer, or of its dry run.
func Pay(r canopy.Result) any {
	amount, fee, cost := money(r)
	gas := ""
	if !r.Gas.IsZero() {
		gas = r.Gas.Coin()
	}
	switch r.Status {
	case canopy.Allowed:
		out := PayAllowed{r.Status.String(), orNull(r.TxHash), orNull(r.PaymentID), r.Cost(), r.DryRun, &r.Amount, &r.Fee, nil, gas}
		if !r.DryRun {
			out.SpentUSD = &r.Spent
		}
		return out
	case canopy.PendingApproval:
		return PayPending{r.Status.String(), orNull(r.ApprovalID), r.Reason, r.DryRun, r.Code, reasonsOf(r.Reasons), amount, fee, cost, gas}
	}
	return PayDenied{canopy.Denied.String(), r.Reason, r.DryRun, r.Code, reasonsOf(r.Reasons), amount, fee, cost, gas}
}
