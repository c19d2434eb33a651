package policy_test

import (
	"testing"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// tenRules is a document of ten rules and five caps.
const tenRules = `
[org]
caps = ["$50 / 24h"]
[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h", "$100 / month", "200 payments / 1h", "$10 / 24h per host"]
approve_above = "$5"
allow = ["host:a.example", "host:b.example", "address:0x00000000000000000000000000000000000000bb", "host:*.mpp.example", "chain:eip155:8453"]
deny  = ["host:evil.example", "host:*.evil.example", "address:0x00000000000000000000000000000000000000cc"]
`

// BenchmarkEvaluate is the policy's part of a decision: at most 2 us of 5.
func BenchmarkEvaluate(b *testing.B) {
	p := parse(b, tenRules)
	one := pay("agent", "x.mpp.example", usd, addrA)
	var uses []policy.Use
	for _, l := range p.Evaluate(one, now, policy.History{}).Limits {
		uses = append(uses, policy.Use{Limit: l, USD: usd, Count: 1})
	}
	full := append([]policy.Use(nil), uses...)
	full[0].USD = 20 * usd
	denied := pay("agent", "x.evil.example", 20*usd, addrA)
	for _, bb := range []struct {
		name string
		pay  payment.Payment
		h    policy.History
	}{
		{"allowed", one, policy.History{}}, {"allowed with uses", one, policy.History{Uses: uses}},
		{"over a cap", one, policy.History{Uses: full}}, {"denied four times", denied, policy.History{}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = p.Evaluate(bb.pay, now, bb.h)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	doc := []byte(tenRules)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policy.Parse("bench.toml", doc); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEvaluateAllocates holds the common path to no allocation: the limits are
// those of the payment before.
func TestEvaluateAllocates(t *testing.T) {
	p := parse(t, tenRules)
	one := pay("agent", "x.mpp.example", usd, addrA)
	if n := testing.AllocsPerRun(100, func() { p.Evaluate(one, now, policy.History{}) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
