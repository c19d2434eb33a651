package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// twoHundredRules is a document of 200 rules: 120 entries that allow, 70 that
// deny, and ten other keys, of which four ask the ledger.
func twoHundredRules(tb testing.TB) *policy.Policy {
	var allow, deny []string
	for i := range 120 {
		allow = append(allow, fmt.Sprintf("%q", fmt.Sprintf("host:feed%d.example", i)))
	}
	for i := range 70 {
		entry := fmt.Sprintf("host:*.evil%d.example", i)
		if i%2 == 0 {
			entry = "address:" + payment.Address{0: 0xee, 19: byte(i)}.Lower()
		}
		deny = append(deny, fmt.Sprintf("%q", entry))
	}
	p, err := policy.Parse("rules", []byte(`
[org]
caps = ["$90000000 / 24h"]
[policy.default]
max_payment = "$10"
caps = ["$20000000 / 24h", "$100000000 / month", "20000000 payments / 1h", "$10000000 / 24h per host"]
approve_above = "$5"
approve_above_total = "$9000000 / 24h per payee"
hours = "Mon-Sun 00:00-12:00,12:00-24:00 Europe/Berlin"
new_payee = "approve"
price_jump = "3x"
allow = [`+strings.Join(allow, ", ")+`]
deny = [`+strings.Join(deny, ", ")+`]
`))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// BenchmarkRules is a verdict by 200 rules, with what was paid before, in a
// ledger of that many payments, and the whole decision with the reservation.
// Rounds of both and of a bare signature take turns: the figures are medians.
func BenchmarkRules(b *testing.B) {
	for _, past := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("past=%d", past), func(b *testing.B) {
			if past > 1000 && testing.Short() {
				b.Skip()
			}
			w := newBench(b, 0)
			w.policy = twoHundredRules(b)
			w.fill(b, past)
			w.pay.Host, w.pay.Terms.Origin = "feed119.example", "https://feed119.example" // the last entry
			verdict := func() policy.Verdict {
				h := policy.History{}
				var err error
				if h.Past, err = ledger.PastOf(b.Context(), w.m, w.policy, &w.pay); err != nil {
					b.Fatal(err)
				}
				v := w.policy.Evaluate(w.pay, w.clock.Now(), h)
				if v.Status != payment.Allowed || len(h.Past.Payees) != 1 || !h.Past.Priced {
					b.Fatal(v.Status, v.Reasons, h.Past)
				}
				return v
			}
			key, err := crypto.GenerateKey()
			if err != nil {
				b.Fatal(err)
			}
			var verdicts, decisions, signatures []time.Duration
			for b.Loop() {
				start := time.Now()
				for range perRound {
					verdict()
				}
				judged := time.Now()
				for range perRound {
					w.clock.Advance(time.Millisecond)
					if e, _, err := w.reserve(verdict()); err != nil || e.State != ledger.Authorized {
						b.Fatal(err, e.Reasons)
					}
				}
				reserved := time.Now()
				for range perRound / 4 {
					if _, err := crypto.Sign(w.digest[:], key); err != nil {
						b.Fatal(err)
					}
				}
				signatures = append(signatures, time.Since(reserved)/(perRound/4))
				verdicts, decisions = append(verdicts, judged.Sub(start)/perRound), append(decisions, reserved.Sub(judged)/perRound)
			}
			median := func(d []time.Duration) float64 {
				slices.Sort(d)
				return float64(d[len(d)/2])
			}
			verdict1, decision, signature := median(verdicts), median(decisions), median(signatures)
			b.ReportMetric(verdict1, "ns/op")
			b.ReportMetric(decision, "decision-ns")
			b.ReportMetric(signature, "sign-ns")
			b.ReportMetric(verdict1/signature, "x-sign")
		})
	}
}

// fill makes n payments of the last day to 120 hosts, each to one of 50 payees.
func (b *bench) fill(tb testing.TB, n int) {
	step := 24 * time.Hour / time.Duration(n)
	t := &b.pay.Terms
	for i := range n {
		b.pay.Host = fmt.Sprintf("feed%d.example", i%120)
		t.Origin, t.Target = "https://"+b.pay.Host, fmt.Sprintf("/data?n=%d", i)
		t.Recipients = []payment.Recipient{{Address: payment.Address{19: byte(1 + i%50)}, Amount: t.Amount}}
		v := b.policy.Evaluate(b.pay, b.clock.Now(), policy.History{Past: &policy.Past{Payees: []payment.Address{t.Recipients[0].Address}}})
		e, _, err := b.reserve(v)
		if err != nil || e.State != ledger.Authorized {
			tb.Fatalf("%v: %v, %v", err, e.State, e.Reasons)
		}
		c := ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Claimed, By: ledger.ByClient, Now: b.clock.Now(), Delivered: true, HTTP: 200}
		if _, err := b.m.Advance(tb.Context(), c); err != nil {
			tb.Fatal(err)
		}
		b.clock.Advance(step)
	}
}
