package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// TestNoPolicyAtAll pins that a nil Policy answers, and denies.
func TestNoPolicyAtAll(t *testing.T) {
	t.Parallel()
	for _, p := range []*policy.Policy{nil, {}} {
		_, found := p.Table("a")
		if p.Name() != "" || p.Org() != "" || p.Agents() != nil || p.MaxPayment("a") != 0 || p.ChatApproval("a") || found ||
			p.Limits("a") != nil || !p.Hash().IsZero() || p.String() != "# no policy\n" {
			t.Errorf("%#v has an opinion", p)
		}
	}
	if v := (policy.Verdict{}); v.Reason() != "" || v.Code() != "" || v.Status != payment.Denied {
		t.Errorf("the zero verdict: %v", v)
	}
}

func TestVerdictTellsTheDecisiveReason(t *testing.T) {
	t.Parallel()
	p := parse(t, document)
	v := p.Evaluate(pay("a", "feed.example", 6*usd, addrA), now, policy.History{})
	if v.Code() != "approval_threshold" {
		t.Errorf("code %q", v.Code())
	}
	full := v.Apply([]policy.Use{{Limit: v.Limits[0], USD: 20 * usd}})
	if full.Code() != "cap_exceeded" || codes(full) != "cap_exceeded approval_threshold" {
		t.Errorf("code %q of [%s]", full.Code(), codes(full))
	}
}

// TestBoundsOfDocuments pins limits that no person reaches.
func TestBoundsOfDocuments(t *testing.T) {
	t.Parallel()
	caps := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("$10 / %ds", i+1))
		}
		return "[policy.a]\ncaps = " + quoted(list) + "\n"
	}
	chain := func(n int) string {
		doc := "[policy.a0]\ncaps = [\"none\"]\n"
		for i := range n {
			doc += fmt.Sprintf("[policy.a%d]\nfrom = \"a%d\"\n", i+1, i)
		}
		return doc
	}
	backwards := func(n int) string {
		doc := ""
		for i := range n {
			doc += fmt.Sprintf("[policy.a%d]\nfrom = \"a%d\"\ndeny = [\"*\"]\n", i, i+1)
		}
		return doc + fmt.Sprintf("[policy.a%d]\ncaps = [\"none\"]\n", n)
	}
	keys := func(n int) string {
		return "x = {" + strings.TrimSuffix(strings.Repeat("a=1,", n), ",") + "}\n"
	}
	for name, tt := range map[string]struct{ doc, want string }{
		"64 caps":         {caps(64), ""},
		"65 caps":         {caps(65), "x.toml:2: policy.a.caps: more than 64 caps"},
		"8 steps":         {chain(8), ""},
		"9 steps":         {chain(9), "inherit from one another over more than 8 steps"},
		"1000 steps":      {chain(1000), "x.toml:20: policy.a9.from: tables inherit from one another over more than 8 steps"},
		"800 steps back":  {backwards(800), "inherit from one another over more than 8 steps"},
		"a table's parts": {"[x" + strings.Repeat(".y", 16) + "]\n", "x.toml:1: more than 4096 keys and tables, or one of more than 16 parts"},
		"5000 inline":     {keys(5000), "x.toml:1: more than 4096 keys"},
		"5000 in a list":  {"x = [[{}, " + keys(5000)[4:len(keys(5000))-1] + "]]\n", "x.toml:1: more than 4096 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.Parse("x.toml", []byte(tt.doc), "x")
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestScopesMeet pins that payee caps judge each recipient once, at the whole
// cost, and host caps the host whatever its port.
func TestScopesMeet(t *testing.T) {
	t.Parallel()
	p := parse(t, "[policy.default]\ncaps = [\"$10 / 24h per payee\", \"$9 / 24h per host\", \"$100 / ever\"]\nallow = [\"*\"]\nmax_payment = \"$50\"\n")
	past := []past{{deal: deal{
		agent: "x", host: "a.example", port: 8443, chain: string(payment.Base), token: base.Address.Lower(),
		units: micros("$6"), decimals: 6, to: []string{addrA.Lower(), addrB.Lower()},
	}, from: now.Add(-time.Hour), until: now.Add(-time.Hour)}}
	for name, tt := range map[string]struct {
		pay  payment.Payment
		want string
	}{
		"the second of its recipients": {pay("y", "b.example", 5*usd, addrC, addrB, addrB), "cap_exceeded"},
		"both of them":                 {pay("y", "b.example", 5*usd, addrA, addrB), "cap_exceeded cap_exceeded"},
		"the host, another port":       {pay("y", "a.example", 4*usd, addrC), "cap_exceeded"},
		"a transfer":                   {pay("y", "", 4*usd, addrA), ""},
		"a stranger":                   {pay("y", "b.example", 9*usd, addrC), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := p.Evaluate(tt.pay, now, policy.History{})
			if v = v.Apply(uses(t, p, v.Limits, past, now)); codes(v) != tt.want {
				t.Errorf("got [%s], want [%s]", codes(v), tt.want)
			}
		})
	}
	odd := policy.Scope{Kind: 99, Agent: "x"}
	if odd.Covers(policy.Facts{Agent: "x"}) {
		t.Error("a scope of no kind covers something")
	}
}

// Row 59: a policy is what was read. Whoever changes the document, or the values
// that it was made of, changes nothing of it, nor its hash.
func TestAttack59_PolicyIsReadOnce(t *testing.T) {
	t.Parallel()
	doc := []byte("[policy.default]\nmax_payment = \"$1\"\ncaps = [\"$2 / 24h\"]\nallow = [\"host:a.example\"]\nhours = \"Mon-Sun\"\napprovers = [\"ana\"]\napprove_above_total = \"$1 / 24h\"\n")
	p := parse(t, string(doc))
	read, err := policy.Parse("test", doc)
	if err != nil {
		t.Fatal(err)
	}
	hash, text := read.Hash(), read.String()
	for i := range doc {
		doc[i] = '9'
	}
	if read.Hash() != hash || read.String() != text || p.Hash() != hash {
		t.Error("the document was kept, and not what it said")
	}
	c := policy.Config{Tables: map[string]policy.Table{"default": {
		Caps: []string{"$2 / 24h"}, Allow: []string{"host:a.example"}, Hours: []string{"Mon-Sun"}, Approvers: []string{"ana"}, ApproveAboveTotal: []string{"$1 / 24h"},
	}}}
	made, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	hash, text = made.Hash(), made.String()
	table := c.Tables["default"]
	for _, list := range [][]string{table.Caps, table.Allow, table.Hours, table.Approvers, table.ApproveAboveTotal} {
		list[0] = "*"
	}
	given, _ := made.Table("default")
	for _, list := range [][]string{given.Caps, given.Allow, given.Hours, given.Approvers, given.ApproveAboveTotal} {
		list[0] = "*"
	}
	if again, _ := made.Table("default"); made.Hash() != hash || made.String() != text || again.Approvers[0] != "ana" || again.Hours[0] != "Mon-Sun" {
		t.Error("the values were kept, and not what they said")
	}
	v := made.Evaluate(pay("x", "b.example", usd, addrA), now, policy.History{})
	if v.Status != payment.Denied || v.Policy != hash {
		t.Errorf("verdict %+v", v)
	}
}
