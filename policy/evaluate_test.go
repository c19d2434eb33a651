package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var (
	addrA = address("0x00000000000000000000000000000000000000aa")
	addrB = address("0x00000000000000000000000000000000000000bb")
	addrC = address("0x00000000000000000000000000000000000000cc")
	base  = payment.KnownAssets().On(payment.Base)[0]
	now   = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
)

func address(s string) payment.Address {
	a, err := payment.ParseAddressLoose(s)
	if err != nil {
		panic(err)
	}
	return a
}

// pay is a payment of a fetch at host, or of a transfer where host is empty.
func pay(agent, host string, amount payment.USD, payees ...payment.Address) payment.Payment {
	units, ok := base.Units(amount)
	if !ok {
		panic("amount")
	}
	p := payment.Payment{Agent: agent, Host: host, Terms: payment.Terms{Rail: "x402", Scheme: "exact", Asset: base, Amount: units}}
	if host != "" {
		p.Port, p.Terms.Method, p.Terms.Origin = 443, "GET", "https://"+host
	}
	for i, a := range payees {
		r := payment.Recipient{Address: a}
		if i == 0 {
			r.Amount = units
		}
		p.Terms.Recipients = append(p.Terms.Recipients, r)
	}
	return p
}

func parse(t testing.TB, doc string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("test.toml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func codes(v policy.Verdict) string {
	var out []string
	for _, r := range v.Reasons {
		out = append(out, r.Code)
	}
	return strings.Join(out, " ")
}

const document = `
[org]
name = "Acme"
caps = ["$50 / 24h"]
[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h", "$100 / month", "200 payments / 1h", "$10 / 24h per host", "$9 / ever per payee"]
approve_above = "$5"
allow         = ["host:feed.example", "host:*.mpp.example", "address:0x00000000000000000000000000000000000000bb", "chain:eip155:8453"]
deny          = ["host:evil.mpp.example", "address:0x00000000000000000000000000000000000000cc"]
[policy.trader]
from = "default"
timezone = "Europe/Berlin"
max_payment = "$7"
[policy.stopped]
from = "default"
frozen = true
`

// TestReasonForms pins the two texts that tools and pages show to the letter.
func TestReasonForms(t *testing.T) {
	t.Parallel()
	p := parse(t, `[policy.default]
max_payment = "$100"
caps = ["$10 / 24h"]
approve_above = "$5"
allow = ["*"]`)
	v := p.Evaluate(pay("a", "h.example", 7*usd+50*payment.Cent, addrA), now, policy.History{})
	if got, want := v.Reason(), "Amount $7.50 exceeds approval threshold of $5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	one := pay("a", "h.example", 5*usd, addrA)
	v = p.Evaluate(one, now, policy.History{Uses: []policy.Use{{Limit: p.Limits("a")[0], USD: 8 * usd}}})
	if got, want := v.Reason(), "Spend cap exceeded: $8.00 + $5.00 > $10 / 24h"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	p := parse(t, document)
	for name, tt := range map[string]struct {
		pay    payment.Payment
		status payment.Status
		codes  string
		reason string
	}{
		"allowed":                       {pay("a", "feed.example", usd, addrA), payment.Allowed, "", ""},
		"one below":                     {pay("a", "x.y.mpp.example", usd, addrA), payment.Allowed, "", ""},
		"not the name itself":           {pay("a", "mpp.example", usd, addrA), payment.Denied, "not_allowed", "Host mpp.example (payee 0x00000000000000000000000000000000000000AA) is not on the allow list"},
		"exactly the threshold":         {pay("a", "feed.example", 5*usd, addrA), payment.Allowed, "", ""},
		"above the threshold":           {pay("a", "feed.example", 5*usd+1, addrA), payment.PendingApproval, "approval_threshold", "Amount $5.000001 exceeds approval threshold of $5"},
		"exactly the maximum":           {pay("a", "feed.example", 10*usd, addrA), payment.PendingApproval, "approval_threshold", "Amount $10.00 exceeds approval threshold of $5"},
		"above the maximum":             {pay("a", "feed.example", 10*usd+1, addrA), payment.Denied, "max_payment approval_threshold", "Amount $10.000001 exceeds the maximum of $10 per payment"},
		"trader":                        {pay("trader", "feed.example", 8*usd, addrA), payment.Denied, "max_payment approval_threshold", "Amount $8.00 exceeds the maximum of $7 per payment"},
		"denied host":                   {pay("a", "evil.mpp.example", usd, addrA), payment.Denied, "denied_destination", "Host evil.mpp.example (payee 0x00000000000000000000000000000000000000AA) is denied by host:evil.mpp.example"},
		"denied payee":                  {pay("a", "feed.example", usd, addrC), payment.Denied, "denied_destination", ""},
		"denied split":                  {pay("a", "feed.example", usd, addrA, addrC), payment.Denied, "denied_destination split_not_allowed", ""},
		"split to an address":           {pay("a", "feed.example", usd, addrA, addrB), payment.Allowed, "", ""},
		"split to a stranger":           {pay("a", "feed.example", usd, addrB, addrA), payment.Denied, "split_not_allowed", "Further recipient 0x00000000000000000000000000000000000000AA of Host feed.example (payee 0x00000000000000000000000000000000000000bb) is not on the allow list"},
		"address at any host":           {pay("a", "else.example", usd, addrB), payment.Allowed, "", ""},
		"transfer to an address":        {pay("a", "", usd, addrB), payment.Allowed, "", ""},
		"transfer to a stranger":        {pay("a", "", usd, addrA), payment.Denied, "not_allowed", "Payee 0x00000000000000000000000000000000000000AA is not on the allow list"},
		"frozen":                        {pay("stopped", "feed.example", usd, addrA), payment.Denied, "frozen", "Payments by policy stopped are frozen"},
		"every reason, in its order":    {pay("stopped", "evil.example", 20*usd, addrC), payment.Denied, "frozen denied_destination not_allowed max_payment approval_threshold", ""},
		"no recipient":                  {pay("a", "feed.example", usd), payment.Denied, "invalid_terms", ""},
		"nothing":                       {payment.Payment{}, payment.Denied, "invalid_terms chain_not_allowed zero_amount amount_overflow max_payment approval_threshold", ""},
		"zero amount":                   {pay("a", "feed.example", 0, addrA), payment.Denied, "zero_amount", "The amount is zero"},
		"a proof":                       {proof(pay("a", "feed.example", 0, addrA)), payment.Allowed, "", ""},
		"a proof for another host":      {proof(pay("a", "other.example", 0, addrA)), payment.Denied, "not_allowed", ""},
		"a proof while frozen":          {proof(pay("stopped", "feed.example", 0, addrA)), payment.Denied, "frozen", ""},
		"a proof that costs a fee":      {withFee(proof(pay("a", "feed.example", 0, addrA)), 1), payment.Denied, "zero_amount", ""},
		"a proof that is a payment":     {proof(pay("a", "feed.example", 10*usd+1, addrA)), payment.Denied, "max_payment approval_threshold", ""},
		"smallest amount":               {pay("a", "feed.example", 1, addrA), payment.Allowed, "", ""},
		"default by its name":           {pay("default", "feed.example", usd, addrA), payment.Allowed, "", ""},
		"a fetch that lost its host":    {fetchWithoutHost(), payment.Denied, "invalid_terms", ""},
		"another chain":                 {onChain(pay("a", "feed.example", usd, addrA), payment.Tempo), payment.Denied, "chain_not_allowed", "Chain eip155:4217 is not on the allow list"},
		"a huge amount":                 {huge(pay("a", "feed.example", usd, addrA)), payment.Denied, "amount_overflow max_payment approval_threshold", "The amount is more than can be counted"},
		"fees count":                    {withFee(pay("a", "feed.example", 5*usd, addrA), 1), payment.PendingApproval, "approval_threshold", ""},
		"fees count to the maximum":     {withFee(pay("a", "feed.example", 9*usd, addrA), usd+1), payment.Denied, "max_payment approval_threshold", ""},
		"a negative fee is no discount": {withFee(pay("a", "feed.example", 9*usd, addrA), -8*usd), payment.Denied, "amount_overflow max_payment approval_threshold", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := p.Evaluate(tt.pay, now, policy.History{})
			if v.Status != tt.status || codes(v) != tt.codes {
				t.Errorf("got %v [%s], want %v [%s]", v.Status, codes(v), tt.status, tt.codes)
			}
			if tt.reason != "" && v.Reason() != tt.reason {
				t.Errorf("got %q, want %q", v.Reason(), tt.reason)
			}
			if v.Policy != p.Hash() || v.Cost != tt.pay.Terms.Cost() {
				t.Errorf("policy %v, cost %v", v.Policy, v.Cost)
			}
		})
	}
}

// Every recipient that is not allowed has a reason of its own, with its address.
func TestEvaluateNamesEveryRecipient(t *testing.T) {
	t.Parallel()
	p, err := policy.New(policy.Config{Tables: map[string]policy.Table{"default": {Caps: []string{"none"}, Allow: []string{"host:h.example", "address:" + addrB.String()}}}})
	if err != nil {
		t.Fatal(err)
	}
	addrD := payment.Address{0xdd}
	at := "%s of Host h.example (payee " + addrA.String() + ") is not on the allow list"
	v := p.Evaluate(pay("a", "h.example", usd, addrA, addrC, addrB, addrD, addrC), now, policy.History{})
	var texts []string
	for _, r := range v.Reasons {
		texts = append(texts, r.Code+": "+r.Text)
	}
	want := []string{
		"split_not_allowed: Further recipient " + fmt.Sprintf(at, addrC),
		"split_not_allowed: Further recipient " + fmt.Sprintf(at, addrD),
	}
	if !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
	v = p.Evaluate(pay("a", "other.example", usd, addrA, addrC, addrB, addrD), now, policy.History{})
	if got, want := codes(v), "not_allowed split_not_allowed split_not_allowed"; got != want {
		t.Errorf("at another host: %s, want %s", got, want)
	}
}

func proof(p payment.Payment) payment.Payment {
	p.Terms.Rail, p.Terms.Scheme = "mpp", payment.SchemeProof
	return p
}

func fetchWithoutHost() payment.Payment {
	p := pay("a", "", usd, addrB)
	p.Terms.Method = "GET"
	return p
}

func onChain(p payment.Payment, c payment.ChainID) payment.Payment {
	p.Terms.Asset.Chain = c
	return p
}

func huge(p payment.Payment) payment.Payment {
	p.Terms.Amount, _ = payment.ParseUnits("115792089237316195423570985008687907853269984665640564039457584007913129639935")
	return p
}

func withFee(p payment.Payment, fee payment.USD) payment.Payment {
	p.Terms.FeeBound = fee
	return p
}

func TestLimits(t *testing.T) {
	t.Parallel()
	p := parse(t, document)
	show := func(v policy.Verdict) []string {
		var out []string
		for _, l := range v.Limits {
			out = append(out, fmt.Sprintf("%s | %s | %s", l.Text, l.Scope.Key(), l.Window))
		}
		return out
	}
	got := show(p.Evaluate(pay("x", "feed.example", usd, addrA, addrB, addrA), now, policy.History{}))
	want := []string{
		"$20 / 24h | agent:default | 24h",
		"$100 / month | agent:default | month",
		"200 payments / 1h | agent:default | 1h",
		"$10 / 24h per host | agent:default host:feed.example | 24h",
		"$9 / ever per payee | agent:default payee:0x00000000000000000000000000000000000000aa | ever",
		"$9 / ever per payee | agent:default payee:0x00000000000000000000000000000000000000bb | ever",
		"$50 / 24h | org | 24h",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got = show(p.Evaluate(pay("trader", "", usd, addrB), now, policy.History{}))
	want = []string{
		"$20 / 24h | agent:trader | 24h",
		"$100 / month | agent:trader | month Europe/Berlin",
		"200 payments / 1h | agent:trader | 1h",
		"$9 / ever per payee | agent:trader payee:0x00000000000000000000000000000000000000bb | ever",
		"$50 / 24h | org | 24h",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	v := p.Evaluate(pay("x", "feed.example", usd, addrA), now, policy.History{})
	if !v.Shared || !v.Limits[0].Scope.Shared || v.MaxValidity != time.Minute || v.DuplicateWindow != 10*time.Minute ||
		v.ApprovalTTL != 24*time.Hour || v.MaxPending != 20 {
		t.Errorf("verdict %+v", v)
	}
	if n := len(v.Limits); cap(v.Limits) != n {
		t.Errorf("room for %d limits, want %d: what a caller appends would be shared", cap(v.Limits), n)
	}
	if got := len(p.Limits("trader")); got != 4 {
		t.Errorf("%d limits, want 3 of the agent and 1 of the org", got)
	}
}

func TestNoPolicy(t *testing.T) {
	t.Parallel()
	one := parse(t, "[policy.a]\ncaps=[\"none\"]\nallow=[\"*\"]\n")
	empty := parse(t, "")
	for name, v := range map[string]policy.Verdict{
		"nil":     (*policy.Policy)(nil).Evaluate(pay("a", "h.example", usd, addrA), now, policy.History{}),
		"zero":    new(policy.Policy).Evaluate(pay("a", "h.example", usd, addrA), now, policy.History{}),
		"empty":   empty.Evaluate(pay("a", "h.example", usd, addrA), now, policy.History{}),
		"unknown": one.Evaluate(pay("b", "h.example", usd, addrA), now, policy.History{}),
	} {
		if v.Status != payment.Denied || codes(v) != "no_policy" {
			t.Errorf("%s: %v [%s]", name, v.Status, codes(v))
		}
	}
	if v := one.Evaluate(pay("a", "h.example", usd, addrA), now, policy.History{}); v.Status != payment.Allowed || v.Shared {
		t.Errorf("named: %+v", v)
	}
	org := parse(t, "[org]\nfrozen = true\n[policy.a]\ncaps=[\"none\"]\nallow=[\"*\"]\n")
	if v := parse(t, "[policy.a]\ncaps=[\"none\"]\n").Evaluate(pay("a", "", usd, addrA), now, policy.History{}); v.Reason() !=
		"Payee 0x00000000000000000000000000000000000000AA is not allowed: the policy has no allow list" {
		t.Errorf("no list: %q", v.Reason())
	}
	if v := org.Evaluate(pay("b", "h.example", usd, addrA), now, policy.History{}); codes(v) != "frozen no_policy" {
		t.Errorf("frozen: [%s]", codes(v))
	}
	if v := org.Evaluate(pay("a", "h.example", usd, addrA), now, policy.History{}); codes(v) != "frozen" || v.Status != payment.Denied {
		t.Errorf("frozen: [%s]", codes(v))
	}
}

// TestAllow goes through the meaning of entries, one by one.
func TestAllow(t *testing.T) {
	t.Parallel()
	a, b := addrA.Lower(), addrB.Lower()
	usdc := "asset:eip155:8453/" + base.Address.String()
	fetch := func(host string, payees ...payment.Address) payment.Payment { return pay("x", host, usd, payees...) }
	transfer := pay("x", "", usd, addrA)
	for name, tt := range map[string]struct {
		allow []string
		pay   payment.Payment
		want  bool
	}{
		"nothing":                          {[]string{}, fetch("h.example", addrA), false},
		"everything":                       {[]string{"*"}, fetch("h.example", addrA, addrB), true},
		"everything, transfer":             {[]string{"*"}, transfer, true},
		"everything on one chain":          {[]string{"*", "chain:eip155:8453"}, fetch("h.example", addrA), true},
		"everything on another":            {[]string{"*", "chain:eip155:1"}, fetch("h.example", addrA), false},
		"one of two chains":                {[]string{"*", "chain:eip155:1", "chain:eip155:8453"}, fetch("h.example", addrA), true},
		"one token":                        {[]string{"*", usdc}, fetch("h.example", addrA), true},
		"another token":                    {[]string{"*", "asset:eip155:8453/" + a}, fetch("h.example", addrA), false},
		"the token's address elsewhere":    {[]string{"*", "asset:eip155:1/" + base.Address.String()}, fetch("h.example", addrA), false},
		"chain and token narrow both":      {[]string{"*", "chain:eip155:1", usdc}, fetch("h.example", addrA), false},
		"a chain alone allows nothing":     {[]string{"chain:eip155:8453"}, fetch("h.example", addrA), false},
		"host":                             {[]string{"host:h.example"}, fetch("h.example", addrA), true},
		"host, case and dot":               {[]string{"host:H.Example."}, fetch("h.example", addrA), true},
		"another host":                     {[]string{"host:h.example"}, fetch("g.example", addrA), false},
		"host and its port":                {[]string{"host:h.example:443"}, fetch("h.example", addrA), true},
		"host and another port":            {[]string{"host:h.example:8443"}, fetch("h.example", addrA), false},
		"wildcard":                         {[]string{"host:*.example"}, fetch("a.b.example", addrA), true},
		"wildcard, the name itself":        {[]string{"host:*.h.example"}, fetch("h.example", addrA), false},
		"wildcard, a longer name":          {[]string{"host:*.h.example"}, fetch("evilh.example", addrA), false},
		"host, transfer":                   {[]string{"host:h.example"}, transfer, false},
		"host, split":                      {[]string{"host:h.example"}, fetch("h.example", addrA, addrB), false},
		"host, split allowed":              {[]string{"host:h.example", "address:" + b}, fetch("h.example", addrA, addrB), true},
		"host, any split":                  {[]string{"host:h.example splits:any"}, fetch("h.example", addrA, addrB), true},
		"any split at another host":        {[]string{"host:g.example splits:any", "host:h.example"}, fetch("h.example", addrA, addrB), false},
		"address":                          {[]string{"address:" + a}, fetch("h.example", addrA), true},
		"address, transfer":                {[]string{"address:" + a}, transfer, true},
		"address, split to a stranger":     {[]string{"address:" + a}, fetch("h.example", addrA, addrB), false},
		"address, stranger first":          {[]string{"address:" + b}, fetch("h.example", addrA, addrB), false},
		"both addresses":                   {[]string{"address:" + a, "address:" + b}, fetch("h.example", addrA, addrB), true},
		"bound":                            {[]string{"host:h.example address:" + a}, fetch("h.example", addrA), true},
		"bound, another payee":             {[]string{"host:h.example address:" + a}, fetch("h.example", addrB), false},
		"bound, another host":              {[]string{"host:h.example address:" + a}, fetch("g.example", addrA), false},
		"bound, transfer":                  {[]string{"host:h.example address:" + a}, transfer, false},
		"bound, any split":                 {[]string{"host:h.example address:" + a + " splits:any"}, fetch("h.example", addrA, addrB), true},
		"bound, any split, other first":    {[]string{"host:h.example address:" + a + " splits:any"}, fetch("h.example", addrB, addrA), false},
		"bound, any split, of another":     {[]string{"host:h.example address:" + a + " splits:any", "address:" + b}, fetch("h.example", addrB, addrC), false},
		"bound to a chain":                 {[]string{"host:h.example chain:eip155:8453"}, fetch("h.example", addrA), true},
		"bound to another chain":           {[]string{"host:h.example chain:eip155:1"}, fetch("h.example", addrA), false},
		"bound to a chain, others are not": {[]string{"host:h.example chain:eip155:1", "host:*.example"}, fetch("h.example", addrA), true},
		"an entry for a split elsewhere":   {[]string{"host:h.example", "host:g.example address:" + b}, fetch("h.example", addrA, addrB), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.New(policy.Config{Tables: map[string]policy.Table{"default": {Caps: []string{"none"}, Allow: tt.allow}}})
			if err != nil {
				t.Fatal(err)
			}
			v := p.Evaluate(tt.pay, now, policy.History{})
			if got := v.Status == payment.Allowed; got != tt.want {
				t.Errorf("got %v (%s), want %v", got, v.Reason(), tt.want)
			}
		})
	}
}

func TestDeny(t *testing.T) {
	t.Parallel()
	b := addrB.Lower()
	for name, tt := range map[string]struct {
		deny []string
		pay  payment.Payment
		want int // reasons
	}{
		"none":                      {nil, pay("x", "h.example", usd, addrA), 0},
		"everything":                {[]string{"*"}, pay("x", "h.example", usd, addrA), 1},
		"host":                      {[]string{"host:h.example"}, pay("x", "h.example", usd, addrA), 1},
		"each alone":                {[]string{"host:g.example", "address:" + b}, pay("x", "h.example", usd, addrB), 1},
		"both":                      {[]string{"host:h.example", "address:" + b}, pay("x", "h.example", usd, addrA, addrB), 2},
		"any recipient":             {[]string{"address:" + b}, pay("x", "h.example", usd, addrA, addrB), 1},
		"a chain":                   {[]string{"chain:eip155:8453"}, pay("x", "h.example", usd, addrA), 1},
		"a token":                   {[]string{"asset:eip155:8453/" + base.Address.Lower()}, pay("x", "", usd, addrA), 1},
		"bound":                     {[]string{"host:h.example address:" + b}, pay("x", "h.example", usd, addrB), 1},
		"bound, one part":           {[]string{"host:h.example address:" + b}, pay("x", "h.example", usd, addrA), 0},
		"a host denies no transfer": {[]string{"host:*.example"}, pay("x", "", usd, addrA), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.New(policy.Config{Tables: map[string]policy.Table{"x": {Caps: []string{"none"}, Allow: []string{"*"}, Deny: tt.deny}}})
			if err != nil {
				t.Fatal(err)
			}
			v := p.Evaluate(tt.pay, now, policy.History{})
			if len(v.Reasons) != tt.want || (v.Status == payment.Denied) != (tt.want > 0) {
				t.Errorf("got %v [%s], want %d reasons", v.Status, codes(v), tt.want)
			}
			for _, r := range v.Reasons {
				if !slices.Contains(tt.deny, r.Rule) {
					t.Errorf("rule %q", r.Rule)
				}
			}
		})
	}
}
