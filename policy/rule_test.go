package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

type ruleFunc func(p payment.Payment) (policy.Reason, error)

func (f ruleFunc) Check(p payment.Payment) (policy.Reason, error) { return f(p) }

// TestRules pins that a user's rule can tighten and nothing else (attack 97).
func TestRules(t *testing.T) {
	t.Parallel()
	says := func(r policy.Reason, err error) policy.Rule {
		return ruleFunc(func(payment.Payment) (policy.Reason, error) { return r, err })
	}
	var nilMap map[string]int
	for name, tt := range map[string]struct {
		rule   policy.Rule
		amount payment.USD
		status payment.Status
		codes  string
		reason string
	}{
		"no opinion":           {says(policy.Reason{}, nil), usd, payment.Allowed, "", ""},
		"allows: no effect":    {says(policy.Reason{Status: payment.Allowed, Code: "vip", Text: "fine"}, nil), 200 * usd, payment.Denied, "max_payment approval_threshold", ""},
		"denies":               {says(policy.Reason{Code: "tuesday", Text: "not on a\x1b[31m Tuesday"}, nil), usd, payment.Denied, "tuesday", "not on a [31m Tuesday"},
		"denies without code":  {says(policy.Reason{Text: "no"}, nil), usd, payment.Denied, "rule", "no"},
		"denies without text":  {says(policy.Reason{Code: "mute"}, nil), usd, payment.Denied, "mute", "Rule policy_test.ruleFunc said denied"},
		"asks":                 {says(policy.Reason{Status: payment.PendingApproval, Code: "odd", Text: "odd"}, nil), usd, payment.PendingApproval, "odd", "odd"},
		"asks, after a cap":    {says(policy.Reason{Status: payment.PendingApproval, Code: "odd", Text: "odd"}, nil), 7 * usd, payment.Denied, "cap_exceeded approval_threshold odd", ""},
		"an unknown status":    {says(policy.Reason{Status: 77, Code: "wild", Text: "x"}, nil), usd, payment.Denied, "wild", ""},
		"fails":                {says(policy.Reason{}, errors.New("no disk")), usd, payment.Denied, "rule_failed", "Rule policy_test.ruleFunc failed: no disk"},
		"allows and fails":     {says(policy.Reason{Status: payment.Allowed, Code: "vip"}, errors.New("x")), usd, payment.Denied, "rule_failed", ""},
		"panics":               {ruleFunc(func(payment.Payment) (policy.Reason, error) { nilMap["x"] = 1; return policy.Reason{}, nil }), usd, payment.Denied, "rule_failed", "Rule policy_test.ruleFunc failed: it panicked"},
		"panics with nil":      {ruleFunc(func(payment.Payment) (policy.Reason, error) { panic(nil) }), usd, payment.Denied, "rule_failed", ""},
		"an error that panics": {says(policy.Reason{}, badError{}), usd, payment.Denied, "rule_failed", ""},
		"a long error":         {says(policy.Reason{}, errors.New(strings.Repeat("x", 1<<20))), usd, payment.Denied, "rule_failed", ""},
		"changes the payment": {ruleFunc(func(p payment.Payment) (policy.Reason, error) {
			p.Terms.Recipients[0].Address = addrB
			p.Terms.Amount = payment.Units{}
			return policy.Reason{}, nil
		}), usd, payment.Allowed, "", ""},
		"the maximum as a rule": {policy.MaxPayment(usd / 2), usd, payment.Denied, "max_payment", "Amount $1.00 exceeds the maximum of $0.50 per payment"},
		"the maximum fits":      {policy.MaxPayment(usd), usd, payment.Allowed, "", ""},
		"asking as a rule":      {policy.ApproveAbove(usd / 2), usd, payment.PendingApproval, "approval_threshold", "Amount $1.00 exceeds approval threshold of $0.50"},
		"asking, not above":     {policy.ApproveAbove(usd), usd, payment.Allowed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.New(policy.Config{Tables: map[string]policy.Table{"default": {
				MaxPayment: "$100", ApproveAbove: "$5", Caps: []string{"$10 / 24h"}, Allow: []string{"*"}, Rules: []policy.Rule{tt.rule},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			given := pay("a", "h.example", tt.amount, addrA, addrC)
			v := p.Evaluate(given, now, policy.History{Uses: []policy.Use{{Limit: p.Limits("a")[0], USD: 4 * usd}}})
			if tt.amount == 200*usd {
				v = p.Evaluate(given, now, policy.History{})
			}
			if v.Status != tt.status || codes(v) != tt.codes {
				t.Errorf("got %v [%s], want %v [%s]", v.Status, codes(v), tt.status, tt.codes)
			}
			if tt.reason != "" && v.Reason() != tt.reason {
				t.Errorf("got %q, want %q", v.Reason(), tt.reason)
			}
			if len(v.Reason()) > 500 {
				t.Errorf("a reason of %d bytes", len(v.Reason()))
			}
			if diff := cmp.Diff(pay("a", "h.example", tt.amount, addrA, addrC).Terms.Recipients, given.Terms.Recipients, cmp.Comparer(func(a, b payment.Units) bool { return a == b })); diff != "" {
				t.Errorf("the rule changed the payment:\n%s", diff)
			}
		})
	}
}

type badError struct{}

func (badError) Error() string { panic("no text") }

// TestRuleSeesWhatIsPaid pins that one rule's changes reach no other rule.
func TestRuleSeesWhatIsPaid(t *testing.T) {
	t.Parallel()
	var saw payment.Address
	p, err := policy.New(policy.Config{Tables: map[string]policy.Table{"default": {
		Caps: []string{"none"}, Allow: []string{"*"}, Rules: []policy.Rule{
			ruleFunc(func(p payment.Payment) (policy.Reason, error) {
				p.Terms.Recipients[0].Address = addrB
				return policy.Reason{}, nil
			}),
			ruleFunc(func(p payment.Payment) (policy.Reason, error) { saw = p.Terms.Payee(); return policy.Reason{}, nil }),
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Evaluate(pay("a", "h.example", usd, addrA), now, policy.History{}); saw != addrA {
		t.Errorf("the second rule saw %v", saw)
	}
}

// TestNew pins that Go values and the document are one policy.
func TestNew(t *testing.T) {
	t.Parallel()
	c := policy.Config{
		Name: "mine",
		Org:  policy.Org{Name: "Acme", Caps: []string{"$50 / 24h"}},
		Tables: map[string]policy.Table{
			"default": {
				MaxPayment: "$10", Caps: []string{"$20 / 24h", "$100 / month", "200 payments / 1h", "$10 / 24h per host"}, ApproveAbove: "$5",
				Allow: []string{"host:feed.example", "host:*.mpp.example"}, Deny: []string{"host:evil.mpp.example"},
				DuplicateWindow: "5m", MaxValidity: "30s", ApprovalTTL: "1h", MaxPending: 3, ChatApproval: true, Timezone: "Europe/Berlin",
			},
			"trader": {From: "default", MaxPayment: "$7", Frozen: true},
		},
	}
	p, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	again := parse(t, p.String())
	if again.String() != p.String() || again.Hash() != p.Hash() {
		t.Errorf("reads back as\n%s\nnot\n%s", again, p)
	}
	if p.Name() != "mine" || p.Org() != "Acme" || p.MaxPayment("trader") != 7*usd || p.MaxPayment("x") != 10*usd || !p.ChatApproval("trader") {
		t.Errorf("name %q, org %q, max %v, chat %v", p.Name(), p.Org(), p.MaxPayment("trader"), p.ChatApproval("trader"))
	}
	if diff := cmp.Diff([]string{"default", "trader"}, p.Agents()); diff != "" {
		t.Error(diff)
	}
	got, ok := p.Table("trader")
	want := policy.Table{
		MaxPayment: "$7", Caps: c.Tables["default"].Caps, ApproveAbove: "$5", Allow: c.Tables["default"].Allow, Deny: c.Tables["default"].Deny,
		Frozen: true, Timezone: "Europe/Berlin", MaxValidity: "30s", DuplicateWindow: "5m", ApprovalTTL: "1h", MaxPending: 3, ChatApproval: true, Mode: "enforce",
	}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("table, %v (-want +got):\n%s", ok, diff)
	}
	// Neither what was given nor what is returned is the policy's own.
	c.Tables["default"].Allow[0] = "*"
	got.Caps[0] = "none"
	if p.String() != again.String() {
		t.Error("the policy can be changed from outside")
	}
	if _, err := policy.New(policy.Config{Tables: map[string]policy.Table{"a": {Caps: []string{"none"}, Rules: []policy.Rule{nil}}}}); err == nil {
		t.Error("a nil rule is taken")
	}
	_, err = policy.New(policy.Config{Tables: map[string]policy.Table{"a": {MaxPayment: "10"}}})
	if got, want := err.Error(), `policy: policy.a.max_payment: "10" has no unit: write "$10"`; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	with, err := policy.New(policy.Config{Tables: map[string]policy.Table{"a": {Caps: []string{"none"}, Rules: []policy.Rule{policy.MaxPayment(1)}}}})
	if err != nil || !strings.Contains(with.String(), "# rule policy.maxPayment") {
		t.Errorf("%v %v", err, with)
	}
}
