package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

const usd = payment.Dollar

func dayCap(text string, amount payment.USD) policy.Limit {
	return policy.Limit{
		Scope:  policy.Scope{Kind: policy.ScopeAgent, Agent: "a"},
		Window: policy.Window{Kind: policy.Rolling, Length: 24 * time.Hour},
		USD:    amount, Text: text,
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	reset := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	sum := dayCap("$10 / 24h", 10*usd)
	count := policy.Limit{
		Scope:  policy.Scope{Kind: policy.ScopeOrg},
		Window: policy.Window{Kind: policy.Rolling, Length: time.Hour}, Counting: true, Count: 200, Text: "200 payments / 1h",
	}
	ask := policy.Reason{Status: payment.PendingApproval, Code: "approval_threshold", Text: "Amount $5.00 exceeds approval threshold of $2"}
	v := policy.Verdict{
		Status: payment.PendingApproval, Cost: 5 * usd, Limits: []policy.Limit{sum, count}, Reasons: []policy.Reason{ask},
	}
	over := policy.Reason{
		Status: payment.Denied, Code: "cap_exceeded", Text: "Spend cap exceeded: $8.00 + $5.00 > $10 / 24h",
		Rule: "$10 / 24h", Scope: "agent:a", Cost: 5 * usd, Used: 8 * usd, Limit: 10 * usd, Count: 3, Until: reset,
	}
	many := policy.Reason{
		Status: payment.Denied, Code: "count_exceeded", Text: "Payment count exceeded: 200 + 1 > 200 payments / 1h",
		Rule: "200 payments / 1h", Scope: "org", Cost: 5 * usd, Count: 200, MaxCount: 200,
	}
	for name, tt := range map[string]struct {
		uses   []policy.Use
		status payment.Status
		want   []policy.Reason
	}{
		"no uses": {nil, payment.PendingApproval, []policy.Reason{ask}},
		"fits to the last cent": {
			[]policy.Use{{Limit: sum, USD: 5 * usd}, {Limit: count, Count: 199}}, payment.PendingApproval, []policy.Reason{ask},
		},
		"sum": {
			[]policy.Use{{Limit: sum, USD: 8 * usd, Count: 3, ResetsAt: reset}}, payment.Denied, []policy.Reason{over, ask},
		},
		"both, in another order and with another text": {
			[]policy.Use{{Limit: count, Count: 200}, {Limit: dayCap("old", 99*usd), USD: 8 * usd, Count: 3, ResetsAt: reset}},
			payment.Denied, []policy.Reason{over, many, ask},
		},
		"a sum says nothing of a count": {
			[]policy.Use{{Limit: policy.Limit{Scope: sum.Scope, Window: sum.Window, Counting: true}, USD: 80 * usd}},
			payment.PendingApproval, []policy.Reason{ask},
		},
		"two answers for one limit": {
			[]policy.Use{{Limit: dayCap("x", 0)}, {Limit: dayCap("old", 99*usd), USD: 8 * usd, Count: 3, ResetsAt: reset}},
			payment.Denied, []policy.Reason{over, ask},
		},
		"another scope": {
			[]policy.Use{{Limit: policy.Limit{Scope: policy.Scope{Kind: policy.ScopeAgent, Agent: "b"}, Window: sum.Window}, USD: 80 * usd}},
			payment.PendingApproval, []policy.Reason{ask},
		},
		"a saturated sum": {
			[]policy.Use{{Limit: sum, USD: payment.MaxUSD}}, payment.Denied, []policy.Reason{{
				Status: payment.Denied, Code: "cap_exceeded", Text: "Spend cap exceeded: more than can be counted + $5.00 > $10 / 24h",
				Rule: "$10 / 24h", Scope: "agent:a", Cost: 5 * usd, Used: payment.MaxUSD, Limit: 10 * usd,
			}, ask},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := v.Apply(tt.uses)
			if got.Status != tt.status {
				t.Errorf("status %v, want %v", got.Status, tt.status)
			}
			if diff := cmp.Diff(tt.want, got.Reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if len(v.Reasons) != 1 || v.Status != payment.PendingApproval {
				t.Error("Apply changed its receiver")
			}
			if again := got.Apply(tt.uses); cmp.Diff(got, again) != "" {
				t.Errorf("a second Apply differs: %s", cmp.Diff(got, again))
			}
		})
	}
	if got := (policy.Verdict{}).Apply(nil); got.Status != payment.Denied {
		t.Errorf("the zero verdict became %v", got.Status)
	}
	if got := v.Apply([]policy.Use{{Limit: sum, USD: 8 * usd}}).Reason(); got != over.Text {
		t.Errorf("Reason() = %q, want %q", got, over.Text)
	}
}
