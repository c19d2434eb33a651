package policy

import (
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Reason is one rule's opinion, with its numbers. Code is stable and in snake
// case; docs/policy.md lists them.
type Reason struct {
	Status payment.Status // what this reason alone leads to
	Code   string
	Text   string // one line for people
	Rule   string // the rule as the document wrote it, where it has a text
	Scope  string // what a cap counts, such as agent:trader host:feed.example; empty for other rules

	Cost     payment.USD // of the payment
	Used     payment.USD // what already counts against a cap
	Limit    payment.USD // the maximum, threshold or cap
	Count    int64       // of payments that already count against a cap
	MaxCount int64
	Until    time.Time // when it may turn out otherwise; zero where unknown

	// Shadow says that the table is in shadow: Status is what this would have
	// led to, and it leads to nothing.
	Shadow bool
}

// Decides reports whether r is one of the reasons for a status.
func (r Reason) Decides(s payment.Status) bool { return r.Status == s && !r.Shadow }

// Said is the text of r; of one that decided nothing, with what it would have
// led to.
func (r Reason) Said() string {
	switch {
	case !r.Shadow:
		return r.Text
	case r.Status == payment.PendingApproval:
		return "In shadow, a person would have been asked: " + r.Text
	}
	return "In shadow, would have been denied: " + r.Text
}

// Shadowed is the gravest of the reasons that decided nothing, the first denial
// or else the first that would have asked, and false where there is none.
func Shadowed(reasons []Reason) (Reason, bool) {
	var asked Reason
	for _, r := range reasons {
		switch {
		case r.Shadow && r.Status == payment.Denied:
			return r, true
		case r.Shadow && !asked.Shadow && r.Status == payment.PendingApproval:
			asked = r
		}
	}
	return asked, asked.Shadow
}

// Verdict is the policy's whole answer. The zero value is a denial without a
// reason. Its Reasons belong to whoever called Evaluate. Its Limits are shared
// with other verdicts of the same policy: they may be appended to, and are
// cloned before one is changed.
type Verdict struct {
	Status  payment.Status
	Reasons []Reason // every one, in the order of evaluation
	Limits  []Limit  // to be checked and reserved by the ledger, in one step

	Cost            payment.USD
	Shared          bool          // judged by the default table
	MaxValidity     time.Duration // of the agent's policy
	DuplicateWindow time.Duration
	ApprovalTTL     time.Duration
	MaxPending      int
	Policy          payment.Hash // of the document

	Approvers []string // who rules where a person is asked, each with a credential; shared like Limits
	Quorum    int      // of them; 0 where there are none
	Chat      bool     // the agent's own host may rule
	Shadow    bool     // the table's mode: its own denials and questions are told and do not block
}

// Reason is the verdict in one line: the first denial, else the first reason
// to ask, else nothing.
func (v Verdict) Reason() string {
	for _, r := range v.Reasons {
		if r.Decides(v.Status) {
			return r.Text
		}
	}
	return ""
}

// Code is the code of the reason that Reason tells.
func (v Verdict) Code() string {
	for _, r := range v.Reasons {
		if r.Decides(v.Status) {
			return r.Code
		}
	}
	return ""
}
