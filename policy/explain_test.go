package policy_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Every reason of a verdict is one rule of its explanation, and every other rule
// is passed: of random documents, payments and histories.
func TestExplainIsEvaluate(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	codes := map[string]int{}
	passed := map[string]int{}
	for i := range uint64(20_000) {
		d := dice{rand.New(rand.NewPCG(seed, i))}
		p, err := policy.Parse("t", []byte(d.document()))
		if err != nil {
			continue
		}
		now := time.Unix(1_700_000_000+d.Int64N(100_000_000), 0).UTC()
		pay := d.deal().payment()
		h := policy.History{}
		if d.chance(70) {
			h.Past = &policy.Past{Priced: d.chance(50), Price: payment.USD(d.Int64N(5_000_000))}
			if d.chance(50) {
				h.Past.Payees = []payment.Address{pay.Terms.Payee()}
			}
		}
		if d.chance(70) {
			for _, l := range p.Evaluate(pay, now, h).Limits {
				h.Uses = append(h.Uses, policy.Use{Limit: l, USD: payment.USD(d.Int64N(12_000_000)), Count: d.Int64N(12)})
			}
		}
		v, x := p.Evaluate(pay, now, h), p.Explain(pay, now, h)
		if x.Verdict.Status != v.Status || len(x.Verdict.Reasons) != len(v.Reasons) {
			t.Fatalf("seed %d, case %d: the verdict is another", seed, i)
		}
		var want, got []string
		for _, r := range v.Reasons {
			want = append(want, fmt.Sprint(r.Code, r.Status, r.Shadow, r.Text))
			codes[r.Code]++
		}
		for _, r := range x.Rules {
			if (r.Code == "") != (r.Status == payment.Allowed) || r.Text == "" || r.Key == "" || r.Code == "" && r.Fix != "" {
				t.Fatalf("seed %d, case %d: %+v", seed, i, r)
			}
			if r.Code == "" {
				passed[r.Key]++
				continue
			}
			got = append(got, fmt.Sprint(r.Code, r.Status, r.Shadow, r.Text))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, case %d: explained are\n\t%s\nreasons are\n\t%s", seed, i, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
	for _, code := range []string{policy.CodeDenied, policy.CodeNotAllowed, policy.CodeMaxPayment, policy.CodeCapExceeded, policy.CodeCountExceeded, policy.CodeApprovalThreshold} {
		if codes[code] < 50 {
			t.Errorf("%s came %d times", code, codes[code])
		}
	}
	for _, key := range []string{"deny", "allow", "max_payment", "caps", "approve_above", "frozen"} {
		if passed[key] < 50 {
			t.Errorf("%s was passed %d times", key, passed[key])
		}
	}
}

// What a fix says does make the payment pass that rule.
func TestExplainFix(t *testing.T) {
	t.Parallel()
	const doc = `
[org]
caps = ["$3 / 24h"]
[policy.default]
max_payment = "$2"
caps = ["$1 / 1h", "2 payments / 1h"]
approve_above = "$0.50"
allow = ["host:b.example", "chain:eip155:8453"]
deny = ["host:a.example"]
hours = "Mon-Fri 08:00-20:00"
`
	p := parse(t, doc)
	a := worldAssets[0]
	pay := deal{
		agent: "x", host: "a.example", port: 443, chain: string(a.Chain), token: a.Address.Lower(), decimals: int(a.Decimals),
		units: big.NewInt(2_500_000), to: []string{worldAddrs[0]}, verb: "GET", path: "/a",
	}.payment()
	now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC) // a Saturday
	resets := now.Add(20 * time.Minute)
	h := policy.History{}
	for _, l := range p.Evaluate(pay, now, h).Limits {
		h.Uses = append(h.Uses, policy.Use{Limit: l, USD: 800_000, Count: 2, ResetsAt: resets})
	}
	x := p.Explain(pay, now, h)
	got := map[string]string{}
	for _, r := range x.Rules {
		got[r.Key+" "+r.Rule+" "+r.Code] = r.Fix
	}
	for key, want := range map[string]string{
		"hours Mon-Fri 08:00-20:00 outside_hours": "wait until 2026-03-09 08:00 UTC",
		"deny host:a.example denied_destination":  `take "host:a.example" out of deny`,
		"allow  not_allowed":                      `add "host:a.example" to allow`,
		"max_payment $2 max_payment":              "a max_payment of at least $2.50",
		"caps $1 / 1h cap_exceeded":               "a cap of at least $3.30", // waiting would not help: it is more than the cap
		"caps 2 payments / 1h count_exceeded":     "wait until 2026-03-07 12:20 UTC, or a cap of at least 3 payments",
		"org.caps $3 / 24h cap_exceeded":          "wait until 2026-03-07 12:20 UTC, or a cap of at least $3.30",
		"approve_above $0.50 approval_threshold":  "a person's approval, or an approve_above of at least $2.50",
	} {
		if fix, ok := got[key]; !ok || fix != want {
			t.Errorf("%s: %q, want %q", key, fix, want)
		}
	}
	if t.Failed() {
		t.Logf("%q", got)
	}
	fixed := parse(t, strings.NewReplacer(`"$2"`, `"$2.50"`, `"$3 / 24h"`, `"$3.30 / 24h"`, `"$1 / 1h", "2 payments`, `"$3.30 / 1h", "3 payments`, `"$0.50"`, `"$2.49"`,
		`"host:b.example"`, `"host:a.example"`, `["host:a.example"]`+"\nhours", `[]`+"\nhours").Replace(doc))
	h.Uses = nil
	now = time.Date(2026, 3, 9, 8, 0, 0, 0, time.UTC)
	for _, l := range fixed.Evaluate(pay, now, h).Limits {
		h.Uses = append(h.Uses, policy.Use{Limit: l, USD: 800_000, Count: 2})
	}
	if v := fixed.Evaluate(pay, now, h); v.Status != payment.PendingApproval || len(v.Reasons) != 1 {
		t.Errorf("mended: %+v", v)
	}
	if x := (*policy.Policy)(nil).Explain(pay, now, h); len(x.Rules) != 1 || x.Rules[0].Code != policy.CodeNoPolicy || x.Rules[0].Fix == "" {
		t.Errorf("of nothing: %+v", x)
	}
}
