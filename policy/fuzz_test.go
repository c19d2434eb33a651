package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		document, tenRules, "", "[org]\ncaps=[\"none\"]", "policy.a={caps=[\"none\"],allow=[\"*\"]}",
		"[policy.a]\nfrom=\"b\"\n[policy.b]\nfrom=\"a\"\n", "[policy.\"\\u0000\"]\n", "[[policy.a]]\nx=1", "x=[[[[", "\"a\\x41\"=1",
		"policy.a.caps=[\"none\"]\npolicy.\"a\".allow=[]\n[org]\nname='Ümlaut \U0001F600 \\ \"'\n", "[policy]\na={caps=[\"none\"],mode=\"enforce\"}\nb.caps=[\"none\"]\nb.deny=['*']\n",
		"policy=1\n[policy.a]\n", "policy.a=1\npolicy.a.b=2\n",
		"[treasury]\nx=1979-05-27T07:32:00Z\n[policy.a]\nmax_pending=0x10\ncaps=['$1 / ever']\ntimezone='UTC'\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := policy.Parse("fuzz.toml", doc, "treasury")
		if err != nil {
			if p != nil || len(err.Error()) > 50_000 {
				t.Fatalf("a policy beside an error, or %d bytes of error", len(err.Error()))
			}
			return
		}
		again, err := policy.Parse("again.toml", []byte(p.String()))
		if err != nil || again.String() != p.String() {
			t.Fatalf("does not read back: %v\n%s", err, p)
		}
		if diff := cmp.Diff(ours(t, doc), ours(t, []byte(p.String()))); diff != "" {
			t.Fatalf("read otherwise than TOML says (-document +policy):\n%s", diff)
		}
		policy.Lint(p)
		for _, agent := range append(p.Agents(), "nobody") {
			v := p.Evaluate(pay(agent, "a.example", usd, addrA, addrB), now, policy.History{})
			w := again.Evaluate(pay(agent, "a.example", usd, addrA, addrB), now, policy.History{})
			if v.Status != w.Status || codes(v) != codes(w) || len(v.Limits) != len(w.Limits) {
				t.Fatalf("%v [%s], read back %v [%s]", v.Status, codes(v), w.Status, codes(w))
			}
			for _, l := range v.Limits {
				if _, _, err := l.Window.Bounds(now); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// ours is what go-toml reads of a policy's tables, without what String leaves
// out.
func ours(t *testing.T, doc []byte) map[string]map[string]any {
	var all map[string]any
	if err := toml.Unmarshal(doc, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	if org, ok := all["org"].(map[string]any); ok && len(org) > 0 {
		out["org"] = org
	}
	tables, _ := all["policy"].(map[string]any)
	for name, table := range tables {
		out["policy."+name] = table.(map[string]any)
		delete(out["policy."+name], "mode")
	}
	return out
}

func FuzzCap(f *testing.F) {
	for _, seed := range []string{"$10 / 24h", "200 payments / 1h per host", "$0/ever per payee", "1 payment / 90s", "$1e3 / day", "$10 / 24h / 1h", "$5 / month", "none"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := policy.New(policy.Config{Org: policy.Org{Caps: []string{"$1 / ever"}}, Tables: map[string]policy.Table{"a": {Caps: []string{text}}}})
		if err != nil || text == "none" {
			return
		}
		v := p.Evaluate(pay("a", "a.example", usd, addrA), now, policy.History{})
		l := v.Limits[0]
		if l.Text != text || l.USD < 0 || l.Count < 0 || l.Counting != strings.Contains(text, "payment") || l.Counting == strings.Contains(text, "$") {
			t.Fatalf("%q was read as %+v", text, l)
		}
		// What it was read as, written plainly, is read as the same.
		plain := l
		plain.Text = ""
		if plain.Window.Zone = ""; l.Counting && l.Count == 1 {
			return // one payment, 1 payments
		}
		q, err := policy.New(policy.Config{Org: policy.Org{Caps: []string{"$1 / ever"}}, Tables: map[string]policy.Table{"a": {Caps: []string{plain.String()}}}})
		if err != nil {
			t.Fatalf("%q, written plainly %q: %v", text, plain.String(), err)
		}
		m := q.Evaluate(pay("a", "a.example", usd, addrA), now, policy.History{}).Limits[0]
		if m.Text = l.Text; m != l {
			t.Fatalf("%q is %+v, %q is %+v", text, l, plain.String(), m)
		}
	})
}

func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		"*", "host:a.example", "host:*.a.example:443 address:0x00000000000000000000000000000000000000aa splits:any", "chain:eip155:8453",
		"asset:eip155:8453/0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "host:[::1]:8080", "host:xn--bcher-kva.example", "host:bücher.example",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		build := func(allow, deny []string) (*policy.Policy, error) {
			return policy.New(policy.Config{Tables: map[string]policy.Table{"a": {Caps: []string{"none"}, Allow: allow, Deny: deny}}})
		}
		allow, err := build([]string{text}, nil)
		if err != nil {
			return
		}
		deny, err := build([]string{"*"}, []string{text})
		if err != nil && !strings.Contains(text, "splits:any") {
			t.Fatalf("%q is an entry of allow and not of deny: %v", text, err)
		}
		for _, p := range []payment.Payment{
			pay("a", "a.example", usd, addrA), pay("a", "x.a.example", usd, addrA), pay("a", "", usd, addrA), pay("a", "xn--bcher-kva.example", usd, addrB),
		} {
			admitted := allow.Evaluate(p, now, policy.History{}).Status == payment.Allowed
			if err == nil && admitted && deny.Evaluate(p, now, policy.History{}).Status != payment.Denied {
				t.Fatalf("%q allows and does not deny %+v", text, p)
			}
		}
	})
}
