package policy

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/canopy-go/canopy/payment"
)

// Codes of the reasons that caps give.
const (
	CodeCapExceeded   = "cap_exceeded"
	CodeCountExceeded = "count_exceeded"

	CodeBudgetExceeded = "budget_exceeded" // of a budget of WithBudget
)

// Apply is v with its limits judged by uses: a reason is added for each limit of
// v that has no room for one more payment of v.Cost, and the status is lowered
// to what it says: denied, or that a person is asked where the limit asks. It
// never raises a status, and a limit of a table in shadow changes none. Evaluate
// judges the uses of its History by Apply, and the ledger calls it inside the
// step that reserves, so both say the same.
//
// A use stands for a limit of v where scope, window and kind are the same; a
// limit without a use adds nothing here. A reason that v already has for the
// same limit is replaced by the newer figures. v's slices are not changed.
func (v Verdict) Apply(uses []Use) Verdict {
	var full, asked []Reason
	for i, l := range v.Limits {
		u, ok := useOf(l, i, uses)
		switch {
		case !ok || u.Fits(v.Cost):
			continue
		case l.Asks:
			asked = append(asked, u.reason(v.Cost))
		default:
			full = append(full, u.reason(v.Cost))
		}
		if !l.Shadow {
			v.Status = min(v.Status, l.says())
		}
	}
	if len(full)+len(asked) == 0 {
		return v
	}
	// Caps come before the rules that ask a person, and after all others.
	reasons := make([]Reason, 0, len(v.Reasons)+len(full)+len(asked))
	for _, r := range v.Reasons {
		if r.Status != payment.PendingApproval && !replaced(r, full) {
			reasons = append(reasons, r)
		}
	}
	reasons = append(reasons, full...)
	for _, r := range v.Reasons {
		if r.Status == payment.PendingApproval && !replaced(r, asked) {
			reasons = append(reasons, r)
		}
	}
	v.Reasons = append(reasons, asked...)
	return v
}

// says is what becomes of a payment above l.
func (l Limit) says() payment.Status {
	if l.Asks {
		return payment.PendingApproval
	}
	return payment.Denied
}

// useOf finds what uses say of l, which is the i-th limit: stores answer in the
// order they were asked. Where several do, the one with the least room counts.
// The limit is l itself: a use only brings the figures.
func useOf(l Limit, i int, uses []Use) (Use, bool) {
	if len(uses) > i && uses[i].Limit == l {
		return uses[i], true
	}
	var found Use
	ok := false
	for _, u := range uses {
		if u.Limit.Scope != l.Scope || u.Limit.Window != l.Window || u.Limit.Counting != l.Counting {
			continue
		}
		if !ok || u.USD > found.USD || u.USD == found.USD && u.Count > found.Count {
			found, ok = u, true
		}
	}
	found.Limit = l
	return found, ok
}

func replaced(r Reason, by []Reason) bool {
	return slices.ContainsFunc(by, func(n Reason) bool {
		return n.Code == r.Code && n.Rule == r.Rule && n.Scope == r.Scope
	})
}

// reason says that u has no room for cost.
func (u Use) reason(cost payment.USD) Reason {
	r := Reason{
		Status: u.Limit.says(), Shadow: u.Limit.Shadow, Rule: u.Limit.String(), Scope: u.Limit.Scope.Key(),
		Cost: cost, Used: u.USD, Limit: u.Limit.USD, Count: u.Count, MaxCount: u.Limit.Count, Until: u.ResetsAt,
	}
	what, sum := "Spend cap", u.USD.String()+" + "+cost.String()
	r.Code = CodeCapExceeded
	if u.Limit.Counting {
		what, sum = "Payment count", strconv.FormatInt(u.Count, 10)+" + 1"
		r.Code = CodeCountExceeded
	}
	if u.Limit.Scope.Kind == ScopeBudget {
		what, r.Code = "Budget", CodeBudgetExceeded
	}
	if u.Limit.Asks {
		what, r.Code = "Approval total", CodeApprovalTotal
	}
	r.Text = what + " exceeded: " + sum + " > " + r.Rule
	return r
}

// String is the limit as the document wrote it, or where no document did, as
// one would.
func (l Limit) String() string {
	if l.Text != "" {
		return l.Text
	}
	s := l.USD.String()
	if l.Counting {
		s = fmt.Sprintf("%d payments", l.Count)
	}
	s += " / " + l.Window.String()
	if l.Scope.Kind >= ScopeHost {
		s += " per " + l.Scope.Kind.String()
	}
	return s
}
