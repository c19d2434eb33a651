package policy

import (
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Codes of the reasons that Evaluate gives, beside those of Apply. They are
// stable.
const (
	CodeFrozen            = "frozen"
	CodeNoPolicy          = "no_policy"
	CodeInvalidTerms      = "invalid_terms"
	CodeZeroAmount        = "zero_amount"
	CodeAmountOverflow    = "amount_overflow"
	CodeDenied            = "denied_destination"
	CodeNotAllowed        = "not_allowed"
	CodeSplitNotAllowed   = "split_not_allowed"
	CodeChainNotAllowed   = "chain_not_allowed"
	CodeTokenNotAllowed   = "token_not_allowed"
	CodeMaxPayment        = "max_payment"
	CodeApprovalThreshold = "approval_threshold"
	CodeOutsideHours      = "outside_hours"
	CodeApprovalTotal     = "approval_total"
	CodeNewPayee          = "new_payee"
	CodePriceJump         = "price_jump"
	CodeNoHistory         = "no_history" // the table asks what was paid before, and nobody was asked
	CodeRuleFailed        = "rule_failed"
	CodeRule              = "rule" // of a Rule that names no code
)

// Evaluate judges pay: frozen, hours, deny, allow, new payees, the maximum,
// rules that deny, caps, and rules that ask, in this order. Every reason is
// reported; the status is the least of them. Caps are judged where h has their
// uses, and else left to the ledger. It reads nothing but its arguments.
//
// Where the table is in shadow its own opinions and caps are reported as such,
// and decide nothing. What decides still: a freeze, the caps of [org], terms and
// amounts that are none.
func (p *Policy) Evaluate(pay payment.Payment, now time.Time, h History) Verdict {
	v := Verdict{
		Status: payment.Allowed, Cost: pay.Terms.Cost(), Policy: p.Hash(),
		MaxValidity: defaultMaxValidity, DuplicateWindow: defaultDuplicateWindow,
		ApprovalTTL: defaultApprovalTTL, MaxPending: defaultMaxPending,
	}
	if p != nil && p.frozen {
		v.add(deny(CodeFrozen, "All payments are frozen by the policy"))
	}
	t := p.find(pay.Agent)
	if t == nil {
		v.add(deny(CodeNoPolicy, "No policy names agent %q, and there is no default", clip(pay.Agent)))
		return v
	}
	v.Shared = t.shared
	v.MaxValidity, v.DuplicateWindow, v.ApprovalTTL, v.MaxPending = t.maxValidity, t.duplicateWindow, t.approvalTTL, t.maxPending
	v.Approvers, v.Quorum, v.Chat, v.Shadow = t.approvers, t.quorum, t.chat, t.shadow
	if t.frozen {
		v.add(deny(CodeFrozen, "Payments by policy %s are frozen", t.name))
	}
	if t.hours.set && !t.hours.open(now) {
		t.say(&v, t.outside(now))
	}
	t.destination(&v, &pay)
	asked := t.past(&v, &pay, h.Past)
	t.amount(&v, &pay)
	asked = append(asked, t.ask(&v, pay)...)
	v.Limits = p.limits(t, &pay)
	if t.asks && v.Cost > t.approve.above {
		t.say(&v, t.approve.reason(v.Cost))
	}
	for _, r := range asked {
		t.say(&v, r)
	}
	if len(h.Uses) > 0 {
		v = v.Apply(h.Uses)
	}
	return v
}

// add reports r, which lowers the status to its own unless it is a shadow.
func (v *Verdict) add(r Reason) {
	v.Reasons = append(v.Reasons, r)
	if !r.Shadow {
		v.Status = min(v.Status, r.Status)
	}
}

// say reports an opinion of t, as a shadow where t is in shadow.
func (t *table) say(v *Verdict, r Reason) {
	r.Shadow = t.shadow
	v.add(r)
}

// outside says that now is not within t's hours.
func (t *table) outside(now time.Time) Reason {
	r := deny(CodeOutsideHours, "Payments by policy %s are made %s only", t.name, t.hours)
	r.Until = t.hours.opens(now)
	return r
}

// destination judges to whom p goes: the deny list, then the allow list.
func (t *table) destination(v *Verdict, p *payment.Payment) {
	switch {
	case len(p.Terms.Recipients) == 0:
		v.add(deny(CodeInvalidTerms, "The terms name no recipient"))
	case p.Terms.IsTransfer() != (p.Host == ""):
		v.add(deny(CodeInvalidTerms, "The terms name a request without a host, or a host without a request"))
	}
	for _, list := range t.deny {
		for i := range list {
			if e := &list[i]; e.denies(p) {
				r := deny(CodeDenied, "%s is denied by %s", destinationOf(p), e.text)
				r.Rule = e.text
				t.say(v, r)
			}
		}
	}
	if !t.listed {
		t.say(v, deny(CodeNotAllowed, "%s is not allowed: the policy has no allow list", destinationOf(p)))
		return
	}
	for i := range p.Terms.Recipients {
		switch {
		case t.admits(p, i):
		case i == 0:
			t.say(v, deny(CodeNotAllowed, "%s is not on the allow list", destinationOf(p)))
		case !refusedBefore(t, p, i):
			t.say(v, deny(CodeSplitNotAllowed, "Further recipient %s of %s is not on the allow list", p.Terms.Recipients[i].Address, destinationOf(p)))
		}
	}
	if len(t.allow.chains) > 0 && !anyFits(t.allow.chains, p) {
		t.say(v, deny(CodeChainNotAllowed, "Chain %s is not on the allow list", p.Terms.Asset.Chain))
	}
	if len(t.allow.assets) > 0 && !anyFits(t.allow.assets, p) {
		t.say(v, deny(CodeTokenNotAllowed, "Token %s of %s is not on the allow list", p.Terms.Asset.Address, p.Terms.Asset.Chain))
	}
}

// refusedBefore reports whether an earlier further recipient of p has the
// address of the i-th, and was refused as that is.
func refusedBefore(t *table, p *payment.Payment, i int) bool {
	for j := 1; j < i; j++ {
		if p.Terms.Recipients[j].Address == p.Terms.Recipients[i].Address {
			return true
		}
	}
	return false
}

func (t *table) admits(p *payment.Payment, i int) bool {
	for j := range t.allow.to {
		if t.allow.to[j].admits(p, i) {
			return true
		}
	}
	return false
}

func anyFits(entries []entry, p *payment.Payment) bool {
	for i := range entries {
		if entries[i].fits(p) {
			return true
		}
	}
	return false
}

// destinationOf names where p goes, for a reason.
func destinationOf(p *payment.Payment) string {
	switch {
	case p.Host == "":
		return "Payee " + p.Terms.Payee().String()
	case len(p.Terms.Recipients) == 0:
		return "Host " + p.Host
	}
	return fmt.Sprintf("Host %s (payee %s)", p.Host, p.Terms.Payee())
}

// amount judges what p costs.
func (t *table) amount(v *Verdict, p *payment.Payment) {
	if p.Terms.Amount.IsZero() && !p.Terms.IsProof() {
		v.add(deny(CodeZeroAmount, "The amount is zero"))
	}
	if v.Cost == payment.MaxUSD || v.Cost < 0 {
		v.add(deny(CodeAmountOverflow, "The amount is more than can be counted"))
	}
	if v.Cost > t.max.max {
		t.say(v, t.max.reason(v.Cost))
	}
}

// ask asks the user's rules; those that would ask a person are returned.
func (t *table) ask(v *Verdict, p payment.Payment) []Reason {
	var asked []Reason
	for _, rule := range t.rules {
		r, ok := check(rule, p)
		switch {
		case !ok:
		case r.Status == payment.PendingApproval:
			asked = append(asked, r)
		default:
			t.say(v, r)
		}
	}
	return asked
}
