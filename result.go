package canopy

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Settlement says how sure it is that money moved.
type Settlement string

// The settlements. Empty means that no word came.
const (
	SettlementClaimed   Settlement = "claimed"   // the seller says so
	SettlementConfirmed Settlement = "confirmed" // the chain shows it, final
)

// Result is the outcome of a payment, or of a dry run.
type Result struct {
	Status     Status
	State      State
	PaymentID  PaymentID
	ApprovalID ApprovalID // where a person is, or was, asked

	Amount     USD   // what the recipients get together, rounded up to a millionth
	Fee        USD   // the fee bound
	Spent      USD   // what counts of it in the caps: the amount and the bound, until the chain told the fee
	Gas        Units // the most that transactions of our own can cost beside, in the smallest unit of the chain's coin; 0 where there are none
	Rail       string
	Chain      ChainID
	Recipient  Address
	Recipients []Payee // all of them, the primary one first; none where no terms were judged
	TxHash     string  // as the seller claimed it, until the chain confirms
	Settlement Settlement

	Code      string    // of Reason, in snake case
	Reason    string    // one line: why it was denied or has to wait
	Reasons   []Reason  // all of them, with their numbers
	ExpiresAt time.Time // of the approval, where one is pending
	DryRun    bool

	// Warning tells of a trouble that did not change the outcome, such as a
	// record that could not be written after the answer came.
	Warning string
}

// Payee is one recipient of a payment, and what it gets, rounded up to a
// millionth.
type Payee struct {
	Address Address
	Amount  USD
}

// payees are the recipients of amounts of asset.
func payees(asset Asset, to []payment.Recipient) []Payee {
	out := make([]Payee, len(to))
	for i, r := range to {
		out[i].Address = r.Address
		out[i].Amount, _ = asset.Value(r.Amount)
	}
	return out
}

// Cost is the amount and the fee bound together: what limits, prices and
// choices use.
func (r Result) Cost() USD { return costOf(r.Amount, r.Fee) }

func costOf(amount, fee USD) USD {
	cost, _ := amount.Add(fee)
	return cost
}

// costText is a cost for people, with its parts where there is a fee.
func costText(amount, fee USD) string {
	if fee == 0 {
		return amount.String()
	}
	return fmt.Sprintf("%s (%s and a fee of at most %s)", costOf(amount, fee), amount, fee)
}

// resultOf is what the ledger's entry says.
func resultOf(e ledger.Entry) Result {
	r := Result{
		State: e.State, PaymentID: e.ID, ApprovalID: e.ApprovalID,
		Fee: e.Terms.FeeBound, Spent: e.Spent, Rail: e.Terms.Rail, Chain: e.Terms.Asset.Chain, Recipient: e.Terms.Payee(),
		Recipients: payees(e.Terms.Asset, e.Terms.Recipients),
		TxHash:     e.Receipt.TxHash, Gas: e.Gas,
	}
	r.Amount, _ = e.Terms.Asset.Value(e.Terms.Amount)
	switch e.State {
	case ledger.PendingApproval:
		r.Status = PendingApproval
	case ledger.Proposed, ledger.Denied, ledger.Rejected, ledger.ApprovalExpired:
		r.Status = Denied
	case ledger.Approved: // granted, and not carried out yet
		r.Status = PendingApproval
	default:
		r.Status = Allowed
	}
	switch {
	case e.State == ledger.Settled && e.Slot.Kind != payment.SlotProof:
		r.Settlement = SettlementConfirmed
	case e.State == ledger.Claimed, e.State == ledger.Settled && e.Receipt.Claim != payment.ClaimNone:
		r.Settlement = SettlementClaimed // a proof is on no chain
	}
	r.setReasons(e.Reasons)
	return r
}

// setReasons takes the reasons of a decision; the headline is the first one
// with the decision's own status.
func (r *Result) setReasons(reasons []Reason) {
	r.Reasons = reasons
	for _, reason := range reasons {
		if reason.Decides(r.Status) && r.Status != Allowed {
			r.Code, r.Reason = reason.Code, reason.Text
			return
		}
	}
}

// Shadow is what a policy in shadow would have decided, had it blocked, and why;
// false where it would have decided the same.
func (r Result) Shadow() (Status, string, bool) {
	reason, ok := policy.Shadowed(r.Reasons)
	return reason.Status, reason.Text, ok
}

// deny adds a denial to r.
func (r *Result) deny(code, text string) {
	r.Status = Denied
	r.setReasons(append(r.Reasons[:len(r.Reasons):len(r.Reasons)], Reason{Status: payment.Denied, Code: code, Text: text}))
}

type resultKey struct{}

// PaymentOf tells what the call that resp answers cost, also where the payment
// was answered by a redirect that led here, and false where nothing was paid or
// attempted.
func PaymentOf(resp *http.Response) (Result, bool) {
	for ; resp != nil && resp.Request != nil; resp = resp.Request.Response {
		if r, ok := paidBefore(resp.Request); ok {
			return r, true
		}
	}
	return Result{}, false
}

func paidBefore(req *http.Request) (Result, bool) {
	r, ok := req.Context().Value(resultKey{}).(*Result)
	if !ok {
		return Result{}, false
	}
	return *r, true
}

// withResult returns resp as the answer to req, carrying what it cost. The
// request that carried the authorization is not reachable from it.
func withResult(resp *http.Response, req *http.Request, r Result) *http.Response {
	resp.Request = req.WithContext(context.WithValue(req.Context(), resultKey{}, &r))
	return resp
}

// denial is a result that the policy or the client itself denies before
// anything is recorded.
func denial(code, text string) Result {
	r := Result{Status: Denied, State: ledger.Denied}
	r.setReasons([]Reason{{Status: payment.Denied, Code: code, Text: text}})
	return r
}
