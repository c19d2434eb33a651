package policy

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/canopy-go/canopy/payment"
)

// Rule is one opinion on one payment. Check returns the zero Reason where it
// has none. It can deny and ask, and never allow: a Reason with the status
// Allowed counts as none. An error, and a panic, deny with the code
// rule_failed.
//
// Check is called by many goroutines at once, gets a copy of the payment, and
// should answer from what it is given: it has no clock and waits for nothing.
type Rule interface {
	Check(p payment.Payment) (Reason, error)
}

func deny(code, format string, args ...any) Reason {
	return Reason{Status: payment.Denied, Code: code, Text: fmt.Sprintf(format, args...)}
}

type maxPayment struct {
	max  payment.USD
	text string // as the document wrote it
}

// MaxPayment denies any single payment whose cost is above max.
func MaxPayment(max payment.USD) Rule { return maxPayment{max, max.String()} }

func (r maxPayment) Check(p payment.Payment) (Reason, error) {
	if cost := p.Terms.Cost(); cost > r.max {
		return r.reason(cost), nil
	}
	return Reason{}, nil
}

func (r maxPayment) reason(cost payment.USD) Reason {
	return Reason{
		Status: payment.Denied, Code: CodeMaxPayment, Rule: r.text, Cost: cost, Limit: r.max,
		Text: "Amount " + cost.String() + " exceeds the maximum of " + r.text + " per payment",
	}
}

type approveAbove struct {
	above payment.USD
	text  string
}

// ApproveAbove puts any single payment whose cost is strictly above the
// threshold to a person.
func ApproveAbove(threshold payment.USD) Rule { return approveAbove{threshold, threshold.String()} }

func (r approveAbove) Check(p payment.Payment) (Reason, error) {
	if cost := p.Terms.Cost(); cost > r.above {
		return r.reason(cost), nil
	}
	return Reason{}, nil
}

func (r approveAbove) reason(cost payment.USD) Reason {
	return Reason{
		Status: payment.PendingApproval, Code: CodeApprovalThreshold, Rule: r.text, Cost: cost, Limit: r.above,
		Text: "Amount " + cost.String() + " exceeds approval threshold of " + r.text,
	}
}

// check asks a user's rule. Whatever the rule does, its answer tightens or is
// nothing, and the payment stays as it was.
func check(r Rule, p payment.Payment) (out Reason, ok bool) {
	name := reflect.TypeOf(r).String()
	defer func() {
		if caught := recover(); caught != nil {
			out, ok = deny(CodeRuleFailed, "Rule %s failed: it panicked", name), true
			out.Rule = name
		}
	}()
	p.Terms.Recipients = slices.Clone(p.Terms.Recipients)
	out, err := r.Check(p)
	switch {
	case err != nil:
		out = deny(CodeRuleFailed, "Rule %s failed: %s", name, oneLine(err.Error()))
		out.Rule = name
		return out, true
	case out == Reason{} || out.Status == payment.Allowed:
		return Reason{}, false
	}
	if out.Status != payment.PendingApproval {
		out.Status = payment.Denied
	}
	if out.Code == "" {
		out.Code = CodeRule
	}
	if out.Rule == "" {
		out.Rule = name
	}
	if out.Text = oneLine(out.Text); out.Text == "" {
		out.Text = "Rule " + name + " said " + out.Status.String()
	}
	return out, true
}

// oneLine bounds a stranger's text and takes its control characters out.
func oneLine(s string) string {
	if len(s) > 300 {
		s = s[:300] + "..."
	}
	out := []rune(s)
	for i, r := range out {
		if control(r) {
			out[i] = ' '
		}
	}
	return string(out)
}
