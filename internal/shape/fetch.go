package shape

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Response is canopy_fetch's result where the service answered.
type Response struct {
	Status        int               `json:"status"`
	Headers       map[string]string `json:"headers"`
	ContentLength *int64            `json:"content_length"` // null where it is not known
	Body          *string           `json:"body"`           // null where it is omitted
	BodyEncoding  string            `json:"body_encoding"`
	Truncated     bool              `json:"truncated"`

	// Of an answer that was paid for, or attempted to be.
	TransactionID payment.ID   `json:"transaction_id,omitempty"`
	CostUSD       *payment.USD `json:"cost_usd,omitempty"`
	PaymentState  string       `json:"payment_state,omitempty"` // claimed, settled or in_doubt
	AmountUSD     *payment.USD `json:"amount_usd,omitempty"`
	FeeUSD        *payment.USD `json:"fee_usd,omitempty"`   // the bound
	SpentUSD      *payment.USD `json:"spent_usd,omitempty"` // what counts in the caps
}

// FetchResponse reads resp, at most MaxBody of it, and closes it. Where the
// answer breaks off, the result has what came and the error says why.
func FetchResponse(resp *http.Response) (Response, error) {
	defer resp.Body.Close()
	b, err := readBody(resp)
	out := Response{
		Status: resp.StatusCode, Headers: headers(resp.Header), ContentLength: b.length,
		Body: b.text, BodyEncoding: b.encoding, Truncated: b.truncated,
	}
	out.payment(resp)
	return out, err
}

// FetchSaved is FetchResponse for an answer whose body of n bytes went
// elsewhere.
func FetchSaved(resp *http.Response, n int64) Response {
	out := Response{Status: resp.StatusCode, Headers: headers(resp.Header), ContentLength: &n, BodyEncoding: EncodingOmitted}
	out.payment(resp)
	return out
}

func (r *Response) payment(resp *http.Response) {
	if p, ok := canopy.PaymentOf(resp); ok {
		r.TransactionID, r.PaymentState, r.SpentUSD = p.PaymentID, p.State.String(), &p.Spent
		r.AmountUSD, r.FeeUSD, r.CostUSD = money(p)
	}
}

// Codes of failures.
const (
	CodeInDoubt     = "in_doubt"
	CodePaid        = "paid_not_delivered"
	CodeDelivered   = "already_delivered" // paid, and an earlier call got the answer
	CodeInFlight    = "in_flight"
	CodeKeyConflict = "key_conflict"
	CodeBody        = "body_not_replayable"
	CodeClockSkew   = "clock_skew"
	CodeMissing     = "ledger_missing"
	CodeReadOnly    = "ledger_read_only"
)

// FetchPending is canopy_fetch's result where a person has to be asked.
type FetchPending struct {
	Status              string             `json:"status"`
	ApprovalID          payment.ApprovalID `json:"approval_id"`
	TransactionID       payment.ID         `json:"transaction_id"`
	RecipientName       string             `json:"recipient_name"`
	AmountUSD           *payment.USD       `json:"amount_usd"`
	ExpiresAt           *Time              `json:"expires_at"`
	ChatApprovalEnabled bool               `json:"chat_approval_enabled"`
	Message             string             `json:"message"`
	Code                string             `json:"code"` // of the reason that the message tells
	Reasons             []FetchReason      `json:"reasons"`
	FeeUSD              *payment.USD       `json:"fee_usd"` // the bound
	CostUSD             *payment.USD       `json:"cost_usd"`
}

// FetchEnded is canopy_fetch's result where it waited for a person and got no
// approval: denied, expired or approval_timeout.
type FetchEnded struct {
	Status     string             `json:"status"`
	ApprovalID payment.ApprovalID `json:"approval_id"`
	Reason     string             `json:"reason"`
	Code       string             `json:"code"`
	Reasons    []FetchReason      `json:"reasons"`
	AmountUSD  *payment.USD       `json:"amount_usd,omitempty"`
	FeeUSD     *payment.USD       `json:"fee_usd,omitempty"`
	CostUSD    *payment.USD       `json:"cost_usd,omitempty"`
}

// FetchDenied is canopy_fetch's result where the policy said no.
type FetchDenied struct {
	Status        string      `json:"status"`
	Reason        string      `json:"reason"`
	TransactionID *payment.ID `json:"transaction_id"` // null where nothing was recorded

	Code    string        `json:"code"`
	Reasons []FetchReason `json:"reasons"`

	AmountUSD *payment.USD `json:"amount_usd,omitempty"` // and the next two: not where no terms were judged
	FeeUSD    *payment.USD `json:"fee_usd,omitempty"`
	CostUSD   *payment.USD `json:"cost_usd,omitempty"`
}

// FetchFailure is canopy_fetch's result where there is no answer and no
// decision.
type FetchFailure struct {
	Status        string       `json:"status"`
	Error         string       `json:"error"`
	Code          string       `json:"code,omitempty"`
	TransactionID payment.ID   `json:"transaction_id,omitempty"`
	AmountUSD     *payment.USD `json:"amount_usd,omitempty"`
	SafeAfter     *Time        `json:"safe_after,omitempty"`
	FeeUSD        *payment.USD `json:"fee_usd,omitempty"`
	CostUSD       *payment.USD `json:"cost_usd,omitempty"`
}

// FetchCall is what the shape of a failure depends on.
type FetchCall struct {
	Host   string // the service, where nothing better names the recipient
	Waited bool   // for a person
	Chat   bool   // the policy lets the agent's own host rule
}

// FetchError is the shape of an error of Fetch.
func FetchError(err error, c FetchCall) any {
	var pending *canopy.PendingError
	var denied *canopy.DeniedError
	switch {
	case errors.As(err, &pending):
		return c.pending(pending.Result)
	case errors.As(err, &denied):
		return c.denied(denied)
	}
	return FetchFailure(failureOf(err))
}

func (c FetchCall) pending(r canopy.Result) any {
	if c.Waited {
		return ended("approval_timeout", "Nobody has decided yet: the approval stays pending. "+r.Reason, r)
	}
	amount, fee, cost := money(r)
	return FetchPending{
		Status: canopy.PendingApproval.String(), ApprovalID: r.ApprovalID, TransactionID: r.PaymentID,
		RecipientName: c.Host, AmountUSD: amount, FeeUSD: fee, CostUSD: cost, ExpiresAt: at(r.ExpiresAt),
		ChatApprovalEnabled: c.Chat, Message: c.message(r),
		Code: r.Code, Reasons: fetchReasons(r.Reasons),
	}
}

func (c FetchCall) message(r canopy.Result) string {
	if c.Chat {
		return "Payment requires approval. Once the user confirms, call canopy_approve with this approval_id, then re-call canopy_fetch with the same URL."
	}
	return fmt.Sprintf("Payment requires approval: %s. A person approves it with: canopy approvals approve %s. After that, the same fetch again pays.", r.Reason, r.ApprovalID)
}

func (c FetchCall) denied(err *canopy.DeniedError) any {
	r := err.Result
	switch {
	case r.State == ledger.Rejected && r.ApprovalID != "":
		return ended("denied", r.Reason, r)
	case r.State == ledger.ApprovalExpired && r.ApprovalID != "":
		return ended("expired", r.Reason, r)
	}
	amount, fee, cost := money(r)
	return FetchDenied{canopy.Denied.String(), reason(err), orNull(r.PaymentID), r.Code, fetchReasons(r.Reasons), amount, fee, cost}
}

// ended is the shape of r, which a person was waited for in vain.
func ended(status, why string, r canopy.Result) FetchEnded {
	amount, fee, cost := money(r)
	return FetchEnded{status, r.ApprovalID, why, r.Code, fetchReasons(r.Reasons), amount, fee, cost}
}

// reason is the denial, and what lies behind it where that tells more.
func reason(err *canopy.DeniedError) string {
	s := err.Result.Reason
	if err.Err != nil {
		s += ": " + err.Err.Error()
	}
	return plaintext.Clean(s, maxText)
}
