package shape

import (
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Reason is one rule's opinion, with the numbers that it has.
type Reason struct {
	Status   string       `json:"status"`
	Code     string       `json:"code"`
	Text     string       `json:"text"`
	Rule     string       `json:"rule,omitempty"`
	Scope    string       `json:"scope,omitempty"`
	CostUSD  *payment.USD `json:"costUsd,omitempty"`
	UsedUSD  *payment.USD `json:"usedUsd,omitempty"`
	LimitUSD *payment.USD `json:"limitUsd,omitempty"`
	Count    *int64       `json:"count,omitempty"`
	MaxCount *int64       `json:"maxCount,omitempty"`
	Until    *Time        `json:"until,omitempty"`
	Shadow   bool         `json:"shadow,omitempty"` // it decided nothing: the policy is in shadow
}

// FetchReason is Reason as canopy_fetch spells it.
type FetchReason struct {
	Status   string       `json:"status"`
	Code     string       `json:"code"`
	Text     string       `json:"text"`
	Rule     string       `json:"rule,omitempty"`
	Scope    string       `json:"scope,omitempty"`
	CostUSD  *payment.USD `json:"cost_usd,omitempty"`
	UsedUSD  *payment.USD `json:"used_usd,omitempty"`
	LimitUSD *payment.USD `json:"limit_usd,omitempty"`
	Count    *int64       `json:"count,omitempty"`
	MaxCount *int64       `json:"max_count,omitempty"`
	Until    *Time        `json:"until,omitempty"`
	Shadow   bool         `json:"shadow,omitempty"` // it decided nothing: the policy is in shadow
}

func reasonsOf(reasons []policy.Reason) []Reason {
	out := make([]Reason, len(reasons))
	for i, r := range reasons {
		out[i] = reasonOf(r)
	}
	return out
}

func fetchReasons(reasons []policy.Reason) []FetchReason {
	out := make([]FetchReason, len(reasons))
	for i, r := range reasons {
		out[i] = FetchReason(reasonOf(r))
	}
	return out
}

// reasonOf leaves out the numbers that r does not have. What a cap compares
// with is told also where it is 0.
func reasonOf(r policy.Reason) Reason {
	out := Reason{
		Status: r.Status.String(), Code: r.Code, Text: plaintext.Words(r.Text, maxText),
		Rule: r.Rule, Scope: r.Scope, Until: after(r.Until), Shadow: r.Shadow,
	}
	switch r.Code {
	case policy.CodeCapExceeded:
		out.CostUSD, out.UsedUSD, out.LimitUSD = &r.Cost, &r.Used, &r.Limit
	case policy.CodeCountExceeded:
		out.Count, out.MaxCount = &r.Count, &r.MaxCount
	case policy.CodeMaxPayment, policy.CodeApprovalThreshold:
		out.CostUSD, out.LimitUSD = &r.Cost, &r.Limit
	default:
		out.CostUSD, out.UsedUSD, out.LimitUSD = orNull(r.Cost), orNull(r.Used), orNull(r.Limit)
		out.Count, out.MaxCount = orNull(r.Count), orNull(r.MaxCount)
	}
	return out
}
