package policy_test

import (
	"strings"
	"testing"
	"time"

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
		"[policy.a]\ncaps=['none']\nhours='Mon-Fri 08:00-20:00,Sat 10:00-12:00'\nnew_payee='approve'\nprice_jump='1.5x'\nmode='shadow'\napprovers=['ana','ben']\nquorum=2\napprove_above_total='$1 / day per host'\n",
		"[policy.a]\ncaps=['none']\nallow=['*']\nhours=['22:00-06:00 Europe/Berlin','Sun']\napprove_above_total=[]\nnew_payee='deny'\n[policy.b]\nfrom='a'\napprovers=[]\n",
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

// FuzzHours holds what is accepted as hours against the clock on the wall.
func FuzzHours(f *testing.F) {
	for _, seed := range append([]string{"Sat", "24:00-01:00", "Mon 8:00-9:00", ",", "00:00-00:00", "Mon-Fri 08:00-20:00 CET", "Mon, Tue 01:00-02:00,, UTC"}, worldHours...) {
		f.Add(seed, int64(1_790_000_000))
		f.Add(seed, int64(1_792_893_000)) // around a change of the clock in Europe
	}
	f.Fuzz(func(t *testing.T, text string, at int64) {
		p, err := policy.New(policy.Config{Tables: map[string]policy.Table{"default": {MaxPayment: "$1", Caps: []string{"none"}, Allow: []string{"*"}, Hours: []string{text}}}})
		if err != nil {
			return
		}
		now := time.Unix(at%4_102_444_800, 0) // to 2100
		until, is := closed(p, now)
		if is && !until.IsZero() {
			if _, later := closed(p, until); later {
				t.Fatalf("%q at %v opens at %v, and is closed then", text, now, until)
			}
			if _, before := closed(p, until.Add(-1)); !before || !until.After(now) {
				t.Fatalf("%q at %v opens at %v, and was open before", text, now, until)
			}
		}
		words := strings.Fields(strings.ReplaceAll(text, ",", " "))
		last := words[len(words)-1]
		if strings.ContainsAny(last, "0123456789/") || last == "UTC" || len(last) == 3 || len(last) == 7 && last[3] == '-' { // else a zone that the oracle takes for a day
			if _, err := time.LoadLocation(last); err == nil && last != "UTC" && !strings.Contains(last, "/") {
				return
			}
			if want := !isOpen([]string{text}, "UTC", now); is != want {
				t.Fatalf("%q at %v: closed %v, the wall says %v", text, now, is, want)
			}
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
