package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Explanation is a verdict with what every rule says of the payment, those that
// it passes too.
type Explanation struct {
	Verdict Verdict
	Table   string // of the policy that judges; empty where none does
	Rules   []Explained
}

// Explained is what one rule says.
type Explained struct {
	Key    string         // of the document, such as max_payment, with org. before it where it stands there; terms for what no policy changes
	Rule   string         // the rule as the document wrote it; empty where it has no text
	Status payment.Status // allowed where the payment passes it; a shadow's is what it would say
	Shadow bool           // it is told, and decides nothing
	Code   string         // of the reason; empty where it passes
	Text   string         // one line, with its numbers
	Fix    string         // what would make it pass; empty where it passes, or nothing does
}

// Explain is Evaluate, rule by rule, in the order of evaluation. A cap without a
// use in h is said to be left to the ledger.
func (p *Policy) Explain(pay payment.Payment, now time.Time, h History) Explanation {
	x := &explaining{v: p.Evaluate(pay, now, h), pay: &pay, h: h}
	t := p.find(pay.Agent)
	if t == nil {
		if p != nil {
			x.frozen(p, &table{})
		}
		x.failed(CodeNoPolicy, "policy", func(Reason) string { return "write a [policy." + keyText(pay.Agent) + "] or a [policy.default]" })
		return x.done("")
	}
	x.frozen(p, t)
	if t.hours.set {
		x.rule("hours", t.hours.String(), CodeOutsideHours, "It is within the hours", func(r Reason) string { return until("wait", r.Until) })
	}
	x.failed(CodeInvalidTerms, "terms", func(Reason) string { return "" })
	x.denied(t)
	x.allowed(t)
	if t.payee.set {
		x.rule("new_payee", t.payee.text, CodeNewPayee, "Every recipient was paid before", func(Reason) string {
			if t.payee.text == askNew {
				return "a person's approval, this once"
			}
			return `new_payee = "approve", and a person's approval, this once`
		})
	}
	x.failed(CodeNoHistory, "new_payee", func(Reason) string { return "give History.Past: what the ledger knows of earlier payments" })
	x.failed(CodeZeroAmount, "terms", func(Reason) string { return "" })
	x.failed(CodeAmountOverflow, "terms", func(Reason) string { return "" })
	x.rule("max_payment", t.max.text, CodeMaxPayment, fmt.Sprintf("%s is at most %s", x.v.Cost, t.max.text), func(r Reason) string {
		return "a max_payment of at least " + r.Cost.String()
	})
	x.rules(t)
	x.limits(t)
	if t.asks {
		x.rule("approve_above", t.approve.text, CodeApprovalThreshold, fmt.Sprintf("%s is not above %s", x.v.Cost, t.approve.text), func(r Reason) string {
			return "a person's approval, or an approve_above of at least " + r.Cost.String()
		})
	}
	if t.jumpSet && !pay.Terms.IsTransfer() {
		passed := "It was never paid for before"
		if h.Past != nil && h.Past.Priced {
			passed = fmt.Sprintf("%s is not more than %s the %s paid before", x.v.Cost, t.jump.text, h.Past.Price)
		}
		x.rule("price_jump", t.jump.text, CodePriceJump, passed, func(Reason) string { return "a person's approval, this once" })
	}
	return x.done(t.name)
}

// explaining is an Explanation in the making. What a rule says is taken from the
// verdict, so that both cannot differ.
type explaining struct {
	v   Verdict
	pay *payment.Payment
	h   History
	out []Explained
}

func (x *explaining) done(table string) Explanation {
	return Explanation{Verdict: x.v, Table: table, Rules: x.out}
}

// failed tells every reason with a code, and how many there are.
func (x *explaining) failed(code, key string, fix func(Reason) string) int {
	n := 0
	for _, r := range x.v.Reasons {
		if r.Code == code {
			n++
			x.out = append(x.out, Explained{Key: key, Rule: r.Rule, Status: r.Status, Shadow: r.Shadow, Code: r.Code, Text: r.Text, Fix: fix(r)})
		}
	}
	return n
}

func (x *explaining) passed(key, rule, text string) {
	x.out = append(x.out, Explained{Key: key, Rule: rule, Status: payment.Allowed, Text: text})
}

// rule tells the reasons with a code, or that the rule is passed.
func (x *explaining) rule(key, rule, code, passed string, fix func(Reason) string) {
	from := len(x.out)
	if x.failed(code, key, fix) == 0 {
		x.passed(key, rule, passed)
	}
	for i := range x.out[from:] {
		x.out[from+i].Rule = rule
	}
}

func (x *explaining) frozen(p *Policy, t *table) {
	for i, r := range []struct {
		key string
		on  bool
	}{{"org.frozen", p.frozen}, {"frozen", t.frozen}} {
		if !r.on {
			if i == 1 && t.name != "" && !p.frozen {
				x.passed(r.key, "", "The policy freezes nothing")
			}
			continue
		}
		who := "All payments are frozen by the policy"
		if i == 1 {
			who = "Payments by policy " + t.name + " are frozen"
		}
		x.out = append(x.out, Explained{Key: r.key, Rule: "true", Status: payment.Denied, Code: CodeFrozen, Text: who, Fix: r.key + " = false"})
	}
}

// denied tells which entries of deny match.
func (x *explaining) denied(t *table) {
	n := 0
	for _, list := range t.deny {
		n += len(list)
	}
	if n == 0 {
		return
	}
	if x.failed(CodeDenied, "deny", func(r Reason) string { return "take " + strconv.Quote(r.Rule) + " out of deny" }) == 0 {
		x.passed("deny", "", fmt.Sprintf("None of %d matches", n))
	}
}

// allowed tells by which entry of allow each recipient is admitted, or which
// would admit it.
func (x *explaining) allowed(t *table) {
	x.failed(CodeNotAllowed, "allow", func(Reason) string { return "add " + strconv.Quote(x.entry()) + " to allow" })
	x.failed(CodeSplitNotAllowed, "allow", func(Reason) string {
		return `add an address: entry for it to allow, or splits:any to the entry of the host`
	})
	for i := range x.pay.Terms.Recipients {
		for j := range t.allow.to {
			if e := &t.allow.to[j]; e.admits(x.pay, i) {
				x.passed("allow", e.text, fmt.Sprintf("It admits %s", x.pay.Terms.Recipients[i].Address))
				break
			}
		}
	}
	asset := x.pay.Terms.Asset
	narrow := func(list []entry, code, what, add string) {
		if len(list) == 0 {
			return
		}
		fix := func(Reason) string { return "add " + strconv.Quote(add) + " to allow" }
		if x.failed(code, "allow", fix) == 0 {
			for i := range list {
				if list[i].fits(x.pay) {
					x.passed("allow", list[i].text, "It admits the "+what)
					break
				}
			}
		}
	}
	narrow(t.allow.chains, CodeChainNotAllowed, "chain", "chain:"+string(asset.Chain))
	narrow(t.allow.assets, CodeTokenNotAllowed, "token", "asset:"+string(asset.Chain)+"/"+asset.Address.String())
}

// entry is what would admit the payment's first recipient.
func (x *explaining) entry() string {
	if x.pay.Host != "" {
		return "host:" + x.pay.Host
	}
	return "address:" + x.pay.Terms.Payee().String()
}

// rules tells what the Go rules said.
func (x *explaining) rules(t *table) {
	if len(t.rules) == 0 {
		return
	}
	n := len(x.out)
	known := map[string]bool{}
	for _, c := range documentCodes {
		known[c] = true
	}
	for _, r := range x.v.Reasons {
		if !known[r.Code] {
			x.out = append(x.out, Explained{Key: "rules", Rule: r.Rule, Status: r.Status, Shadow: r.Shadow, Code: r.Code, Text: r.Text})
		}
	}
	if len(x.out) == n {
		x.passed("rules", "", fmt.Sprintf("None of %d Go rules objects", len(t.rules)))
	}
}

// documentCodes are the codes that rules of a document have.
var documentCodes = []string{
	CodeFrozen, CodeNoPolicy, CodeInvalidTerms, CodeZeroAmount, CodeAmountOverflow, CodeDenied, CodeNotAllowed, CodeSplitNotAllowed,
	CodeChainNotAllowed, CodeTokenNotAllowed, CodeMaxPayment, CodeApprovalThreshold, CodeOutsideHours, CodeApprovalTotal, CodeNewPayee,
	CodePriceJump, CodeNoHistory, CodeCapExceeded, CodeCountExceeded,
}

// limits tells how full each cap is.
func (x *explaining) limits(t *table) {
	for i, l := range x.v.Limits {
		key := "caps"
		switch {
		case l.Scope.Kind == ScopeOrg:
			key = "org.caps"
		case l.Asks:
			key = "approve_above_total"
		}
		e := Explained{Key: key, Rule: l.String(), Status: payment.Allowed}
		u, ok := useOf(l, i, x.h.Uses)
		switch {
		case !ok:
			e.Text = "Left to the ledger: what counts against it was not given"
		case u.Fits(x.v.Cost):
			e.Text = u.room(x.v.Cost)
		default:
			r := u.reason(x.v.Cost)
			e.Status, e.Shadow, e.Code, e.Text, e.Fix = r.Status, r.Shadow, r.Code, r.Text, u.fix(x.v.Cost)
		}
		x.out = append(x.out, e)
	}
}

// room says what is left of u's limit with one more payment of cost.
func (u Use) room(cost payment.USD) string {
	if u.Limit.Counting {
		return fmt.Sprintf("%d + 1 of %d payments, %d left", u.Count, u.Limit.Count, u.Limit.Count-u.Count-1)
	}
	sum, _ := u.USD.Add(cost)
	left, _ := u.Limit.USD.Sub(sum)
	return fmt.Sprintf("%s + %s of %s, %s left", u.USD, cost, u.Limit.USD, left)
}

// fix says what would make a payment of cost fit.
func (u Use) fix(cost payment.USD) string {
	var fixes []string
	if u.Limit.Asks {
		fixes = append(fixes, "a person's approval")
	}
	alone := u
	alone.USD, alone.Count = 0, 0
	if !u.ResetsAt.IsZero() && alone.Fits(cost) {
		fixes = append(fixes, until("wait", u.ResetsAt))
	}
	sum, ok := u.USD.Add(cost)
	switch {
	case u.Limit.Counting:
		fixes = append(fixes, fmt.Sprintf("a cap of at least %d payments", u.Count+1))
	case ok:
		fixes = append(fixes, "a cap of at least "+sum.String())
	}
	return strings.Join(fixes, ", or ")
}

func until(what string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return what + " until " + t.UTC().Format("2006-01-02 15:04 UTC")
}
