package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

const moneyPolicy = `
[policy.default]
max_payment = "$2"
caps = ["$10 / 24h"]
approve_above = "$1"
allow = ["host:127.0.0.1", "address:0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C"]
`

// onBoth is a world whose seller takes both rails, on Base without a node and
// at one of three addresses, and on Tempo.
func onBoth(t *testing.T, policy string, routes ...canopytest.Route) *world {
	t.Helper()
	w := onTempo(t, policy)
	base := canopytest.NewChain(canopytest.ChainConfig{})
	base.Fund(w.payer, 10*payment.Dollar)
	for i := range routes {
		routes[i].Chain, routes[i].Also = base, []canopytest.Accept{{Chain: w.chain}, {Chain: base, PayTo: canopytest.Address("b")}, {Chain: base, PayTo: canopytest.Address("c")}}
	}
	w.seller = canopytest.NewSeller(w.chain, canopytest.SellerConfig{Protocol: canopytest.X402 | canopytest.MPP, Routes: routes})
	w.url = w.seller.Start(t)
	return w
}

// Of a payment amountUsd is what its recipients get, feeUsd what a fee can add at
// most, and costUsd both, in every output of every command.
func TestMoneyHasOneMeaning(t *testing.T) {
	t.Parallel()
	drop := canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}
	splits := []canopytest.Split{{To: canopytest.Address("a"), Price: payment.Cent}, {To: canopytest.Address("b"), Price: payment.Cent}}
	w := onTempo(t, moneyPolicy,
		route("GET /dime", 10*payment.Cent), route("GET /dear", 120*payment.Cent), route("GET /dearer", 130*payment.Cent), route("GET /most", 250*payment.Cent),
		canopytest.Route{Pattern: "GET /lost", Price: 10 * payment.Cent, Faults: drop},
		canopytest.Route{Pattern: "GET /splits", Price: 10 * payment.Cent, Splits: splits},
	)
	to := "0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C"
	seen := map[string]bool{}
	says := func(code int, amount string, args ...string) result {
		t.Helper()
		r := w.want(code, append(args, "--json")...)
		d := json.NewDecoder(strings.NewReader(r.out))
		for d.More() {
			var v any
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, r.out)
			}
			m := money{t: t, args: strings.Join(args, " "), amount: amount}
			m.walk(v)
			if m.told == 0 {
				t.Errorf("canopy %s tells no amount:\n%s", m.args, r.out)
			}
			seen[args[0]] = true
		}
		return r
	}

	says(0, "0.10", "check", w.url+"/dime")
	says(3, "1.20", "check", w.url+"/dear")
	says(4, "2.50", "check", w.url+"/most")
	says(4, "0.10", "check", w.url+"/splits")
	says(4, "0.10", "check", w.url+"/dime", "--max-price", "0.11")
	says(0, "0.10", "preview", to, "0.10", "--chain", "tempo-testnet")
	says(3, "1.20", "preview", to, "1.20", "--chain", "tempo-testnet")
	says(4, "2.50", "preview", to, "2.50", "--chain", "tempo-testnet")
	says(0, "0.10", "pay", to, "0.10", "--chain", "tempo-testnet", "--key", "a")
	says(3, "1.20", "pay", to, "1.20", "--chain", "tempo-testnet", "--key", "b")
	says(4, "2.50", "pay", to, "2.50", "--chain", "tempo-testnet", "--key", "c")

	says(0, "0.10", "fetch", w.url+"/dime", "--key", "k")
	says(6, "0.10", "fetch", w.url+"/dime", "--key", "k")
	says(5, "0.10", "fetch", w.url+"/lost")
	says(4, "0.10", "fetch", w.url+"/splits")
	says(4, "0.10", "fetch", w.url+"/dime", "--max-price", "0.11")
	asked := says(3, "1.20", "fetch", w.url+"/dear").object(t)["approval_id"].(string)
	says(3, "1.20", "fetch", w.url+"/dear", "--wait", "1")
	says(0, "1.20", "approvals", "show", asked)
	says(3, "1.20", "approvals", "wait", asked, "--timeout", "1")
	w.want(0, "approvals", "deny", asked, "--yes", "--by", "ana")
	says(4, "1.20", "approvals", "wait", asked)
	w.want(3, "fetch", w.url+"/dearer")
	says(0, "", "approvals", "list")
	for range 20 {
		w.chain.Mine()
	}
	says(0, "0.10", "reconcile")
	says(0, "", "ledger", "list", "--limit", "0")
	says(0, "", "ledger", "export")
	for _, e := range w.entries() {
		says(0, "", "ledger", "show", e["transactionId"].(string))
	}
	if want := []string{"approvals", "check", "fetch", "ledger", "pay", "preview", "reconcile"}; !slices.Equal(sorted(seen), want) {
		t.Errorf("looked at %v", seen)
	}
}

func sorted(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// money looks at what one output tells.
type money struct {
	t            *testing.T
	args, amount string // that every amount has to be; empty for any
	told         int
}

func (m *money) walk(v any) {
	m.t.Helper()
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			m.walk(x)
		}
	case map[string]any:
		if _, reason := v["text"]; !reason {
			m.object(v)
		}
		for k, x := range v {
			if k != "recipients" {
				m.walk(x)
			}
		}
	}
}

// object holds what v tells of a payment against the one meaning.
func (m *money) object(v map[string]any) {
	m.t.Helper()
	amount, has := m.get(v, "amount")
	fee, hasFee := m.get(v, "fee")
	cost, hasCost := m.get(v, "cost")
	if terms, ok := v["terms"].(map[string]any); ok && hasCost && !has {
		amount, has = m.get(terms, "amount")
		fee, hasFee = m.get(terms, "fee")
	}
	if !has && !hasFee && !hasCost {
		return
	}
	m.told++
	if !has || !hasFee || !hasCost || fee == 0 || cost != amount+fee {
		m.t.Errorf("canopy %s: an amount of %s, a fee of %s, a cost of %s: %v", m.args, amount, fee, cost, v)
	}
	if m.amount != "" && amount.Decimal() != m.amount {
		m.t.Errorf("canopy %s: an amount of %s, want %s", m.args, amount, m.amount)
	}
	if spent, ok := m.get(v, "spent"); ok && spent != 0 && (spent <= amount || spent > cost) {
		m.t.Errorf("canopy %s: %s of %s spent", m.args, spent, cost)
	}
	if to, ok := v["recipients"].([]any); ok {
		var sum payment.USD
		for _, r := range to {
			part, _ := m.get(r.(map[string]any), "amount")
			sum += part
		}
		if sum != amount {
			m.t.Errorf("canopy %s: the recipients get %s of %s: %v", m.args, sum, amount, to)
		}
	}
}

// get is a figure of v, in either case.
func (m *money) get(v map[string]any, name string) (payment.USD, bool) {
	m.t.Helper()
	for _, key := range []string{name + "Usd", name + "_usd"} {
		if n, ok := v[key].(json.Number); ok {
			usd, err := payment.ParseUSD(n.String())
			if err != nil {
				m.t.Errorf("canopy %s: %s: %v", m.args, key, err)
			}
			return usd, true
		}
	}
	return 0, false
}

// A check tells all recipients, what it costs and the other offers, and why a
// person has to widen the list.
func TestCheckTellsAll(t *testing.T) {
	t.Parallel()
	a, b := canopytest.Address("a").String(), canopytest.Address("b").String()
	splits := []canopytest.Split{{To: canopytest.Address("a"), Price: payment.Cent}, {To: canopytest.Address("b"), Price: 2 * payment.Cent}}
	w := onTempo(t, moneyPolicy, canopytest.Route{Pattern: "GET /", Price: 10 * payment.Cent, Splits: splits})

	r := w.want(4, "check", w.url+"/")
	contains(t, r.out, canopytest.Address("seller").String()+" gets $0.07, "+a+" gets $0.01, "+b+" gets $0.02",
		"because      Further recipient "+a, "because      Further recipient "+b)
	hint := `Each further recipient needs an entry of its own in allow in ` + w.config + `, "address:0x…", or splits:any in the host's: "host:` + strings.TrimPrefix(w.url, "http://") + ` splits:any".`
	if contains(t, r.err, hint); strings.Count(r.err, "splits:any") != 2 || strings.Contains(r.err, "To allow it") {
		t.Errorf("hints:\n%s", r.err)
	}
	r = w.want(4, "fetch", w.url+"/")
	contains(t, r.err, "denied: Further recipient "+a, "and: Further recipient "+b, hint)

	v := w.want(4, "check", w.url+"/", "--json").object(t)
	want := fmt.Sprintf("[map[address:%s amountUsd:0.07] map[address:%s amountUsd:0.01] map[address:%s amountUsd:0.02]]", canopytest.Address("seller"), a, b)
	if fmt.Sprint(v["recipients"]) != want || v["recipient"].(map[string]any)["address"] != canopytest.Address("seller").String() || len(v["reasons"].([]any)) != 2 {
		t.Errorf("%v, want %s", v, want)
	}

	// What the hint says lets it go, and a person sees all recipients.
	doc, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	doc = []byte(strings.Replace(string(doc), `"host:127.0.0.1"`, `"host:`+strings.TrimPrefix(w.url, "http://")+` splits:any"`, 1))
	if err := os.WriteFile(w.config, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	r = w.want(3, "fetch", w.url+"/", "--ask")
	contains(t, r.err, a+" gets $0.01, "+b+" gets $0.02", "and a fee of at most")
	id := ""
	for _, word := range strings.Fields(r.err) {
		if strings.HasPrefix(word, "appr_") {
			id = strings.TrimSuffix(word, ",")
		}
	}
	contains(t, w.want(0, "approvals", "show", id).out, canopytest.Address("seller").String()+" gets $0.07, "+a+" gets $0.01, "+b+" gets $0.02")
	terms := w.want(0, "approvals", "show", id, "--json").object(t)["terms"].(map[string]any)
	if fmt.Sprint(terms["recipients"]) != want {
		t.Errorf("approvals show: %v, want %s", terms, want)
	}
}

// A denial tells nothing of which offer was chosen: none is paid.
func TestDenialNamesNoChoice(t *testing.T) {
	t.Parallel()
	w := onBoth(t, moneyPolicy, route("GET /", 10*payment.Cent))
	w.want(0, "freeze", "--reason", "lunch")
	r := w.want(4, "fetch", w.url+"/")
	contains(t, r.err, "denied: ", "lunch")
	if strings.Contains(r.err, "was chosen") {
		t.Errorf("%s", r.err)
	}
}

// The other offers stand beside the one that is chosen, in text and as JSON.
func TestCheckTellsTheOthers(t *testing.T) {
	t.Parallel()
	w := onBoth(t, moneyPolicy, route("GET /", 10*payment.Cent))
	r := w.want(0, "check", w.url+"/")
	contains(t, r.out, "mpp", "or           $0.10, x402 with USDC on base to "+canopytest.Address("c").String()+": the balance on base is unknown: no rpc is configured for that chain")
	w.want(0, "fetch", w.url+"/")
	story := w.want(0, "ledger", "show", w.entries()[0]["transactionId"].(string)).out
	contains(t, story, "mpp on tempo-testnet was chosen, at a cost of $0.1252 ($0.10 and a fee of at most $0.0252)"+
		strings.Repeat("; not x402 on base, at a cost of $0.10: the balance on base is unknown: no rpc is configured for that chain", 3))
	v := w.want(0, "check", w.url+"/", "--json").object(t)
	others := v["others"].([]any)
	if len(others) != 3 || v["rail"] != "mpp" {
		t.Fatalf("%v", v)
	}
	other := others[0].(map[string]any)
	if other["rail"] != "x402" || fmt.Sprint(other["chainId"], other["amountUsd"], other["feeUsd"], other["costUsd"]) != "84530.100.000.10" || other["network"] != "base" ||
		other["reason"] != "the balance on base is unknown: no rpc is configured for that chain" || other["status"] != "allowed" {
		t.Errorf("%v", other)
	}
}
