package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// onTempo is a world whose seller is one of MPP, with a node of its chain.
func onTempo(t *testing.T, policy string, routes ...canopytest.Route) *world {
	t.Helper()
	w := newWorld(t, policy)
	w.chain = canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest})
	w.chain.Fund(w.payer, 10*payment.Dollar)
	w.seller = canopytest.NewSeller(w.chain, canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: routes})
	w.url = w.seller.Start(t)
	f, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "[[chain]]\nid = \"eip155:42431\"\nrpc = [%q]\n[mpp]\ngas_price = \"21 gwei\"\nlanes = 4\n", canopytest.NewNode(w.chain).Start(t))
	return w
}

// A seller of MPP is paid without a word about its rail; reconcile settles it, and
// what counts in the end is the price and the fee that was paid.
func TestMPP(t *testing.T) {
	t.Parallel()
	w := onTempo(t, testPolicy, canopytest.Route{Pattern: "GET /forecast", Price: payment.Cent})

	check := w.want(0, "check", w.url+"/forecast", "--json").object(t)
	if check["rail"] != "mpp" || check["status"] != "allowed" || fmt.Sprint(check["chainId"]) != "42431" {
		t.Errorf("check: %v", check)
	}
	if r := w.want(0, "fetch", w.url+"/forecast"); !strings.Contains(r.out, "/forecast") {
		t.Errorf("fetch printed %q", r.out)
	}
	for range 20 {
		w.chain.Mine()
	}
	again := w.want(0, "reconcile", "--json").object(t)
	if fmt.Sprint(again["settled"]) != "1" {
		t.Fatalf("reconcile: %v", again)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(w.want(0, "ledger", "list", "--json").out), &list); err != nil || len(list) != 1 {
		t.Fatalf("ledger list: %v, %v", list, err)
	}
	spent := payment.USD(list[0]["spentUsd"].(float64)*1e6 + 0.5)
	if want := w.chain.Spent(w.payer); spent != want || list[0]["state"] != "settled" || list[0]["costUsd"] != 0.0352 {
		t.Errorf("counts %s of %v, the chain says %s", spent, list[0], want)
	}
	story := w.want(0, "ledger", "show", list[0]["transactionId"].(string)).out
	for _, want := range []string{"by", "mpp, tempo/charge", "lane/eip155:42431/", "With the fee it cost " + spent.String() + ", of the $0.0352 that were set aside."} {
		if !strings.Contains(story, want) {
			t.Errorf("the story does not say %q:\n%s", want, story)
		}
	}
	w.want(0, "ledger", "verify")
	if b := w.want(0, "budget", "--json").object(t); fmt.Sprint(b["spentUsd"]) != spent.Decimal() {
		t.Errorf("budget: %v, want %s spent", b, spent)
	}
}

// A denial that counts the fee tells the parts of the cost, and so does the list.
func TestFetchTellsTheFee(t *testing.T) {
	t.Parallel()
	w := onTempo(t, testPolicy, canopytest.Route{Pattern: "GET /dear", Price: 2 * payment.Dollar})
	r := w.want(4, "fetch", w.url+"/dear")
	contains(t, r.err, "denied: Amount $2.0252 exceeds the maximum of $2", "cost      $2.0252 ($2.00 and a fee of at most $0.0252)", "The figures count the fee at its bound of $0.0252")
	contains(t, w.want(0, "ledger", "list").out, "$2.0252 with a fee of at most $0.0252")
}

// A transfer on Tempo is broadcast by the node, with a memo for the payee.
func TestPayOnTempo(t *testing.T) {
	t.Parallel()
	w := onTempo(t, "[policy.default]\nmax_payment = \"$2\"\ncaps = [\"$3 / 24h\"]\nallow = [\"address:0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C\"]\n")
	to := "0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C"
	paid := w.want(0, "pay", to, "0.50", "--chain", "tempo-testnet", "--memo", "invoice 17", "--key", "i17", "--json").object(t)
	if paid["status"] != "allowed" || paid["txHash"] == nil {
		t.Errorf("pay: %v", paid)
	}
	payee, _ := payment.ParseAddress(to)
	w.chain.AssertTransfers(t, canopytest.Move{From: w.payer, To: payee, Amount: 50 * payment.Cent})
	same := w.want(0, "pay", to, "0.50", "--chain", "tempo-testnet", "--memo", "invoice 17", "--key", "i17", "--json").object(t)
	if same["transactionId"] != paid["transactionId"] {
		t.Errorf("the same key paid again: %v", same)
	}
	w.want(2, "pay", to, "0.50", "--chain", "tempo-testnet", "--memo", strings.Repeat("x", 33))
	// The configuration names one network, and so means that one alone.
	contains(t, w.want(2, "pay", to, "0.50", "--chain", "tempo").err, `no rail of this client transfers on tempo`, `needs a [[chain]] with id = "eip155:4217"`)
	contains(t, w.want(4, "preview", to, "0.50", "--chain", "tempo-testnet", "--memo", "invoice 17").out, "Duplicate of payment "+paid["transactionId"].(string))
	w.want(0, "preview", to, "0.50", "--chain", "tempo-testnet", "--memo", "invoice 17", "--key", "i18")
	contains(t, w.want(2, "preview", to, "0.50", "--chain", "tempo-testnet", "--memo", "0x1234").err, "--memo: ")
}

// A limit that the fee bound takes part in is explained: the reasons name the
// cost, and beside them stand its parts.
func TestPayTellsTheFee(t *testing.T) {
	t.Parallel()
	w := onTempo(t, "[policy.default]\nmax_payment = \"$2\"\ncaps = [\"$3 / 24h\"]\napprove_above = \"$1\"\nallow = [\"*\"]\n")
	to := "0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C"
	hint := "The figures count the fee at its bound of $0.0252, which gas and gas_price in [mpp] of " + w.config + " set."
	for _, verb := range []string{"pay", "preview"} {
		r := w.want(3, verb, to, "1", "--chain", "tempo-testnet")
		contains(t, r.out, "  $1.0252 ($1.00 and a fee of at most $0.0252)", "Amount $1.0252 exceeds approval threshold of $1")
		contains(t, r.err, hint)
		r = w.want(4, verb, to, "2", "--chain", "tempo-testnet")
		contains(t, r.out, "$2.0252 ($2.00 and a fee of at most $0.0252)", "Amount $2.0252 exceeds the maximum of $2 per payment")
		contains(t, r.err, hint, "The limit is max_payment in")
		v := w.want(4, verb, to, "2", "--chain", "tempo-testnet", "--json").object(t)
		if fmt.Sprint(v["amountUsd"], v["feeUsd"], v["costUsd"]) != "2.000.02522.0252" {
			t.Errorf("%s: %v", verb, v)
		}
	}
	if r := w.want(0, "preview", to, "0.50", "--chain", "tempo-testnet"); strings.Contains(r.err, "The figures") {
		t.Errorf("allowed, and %s", r.err)
	}
}

// Proofs that are turned off are told by the key of the file that does it, whole.
func TestNoProofs(t *testing.T) {
	t.Parallel()
	w := onTempo(t, testPolicy, canopytest.Route{Pattern: "GET /who", Proof: true})
	contains(t, w.want(0, "fetch", w.url+"/who").err, "paid $0.00")
	doc, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.config, append(doc, "proofs = false\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	const says = "the seller wants a proof of the account, and proofs are turned off (proofs in [mpp], mpp.Config.NoProofs)"
	contains(t, w.want(4, "fetch", w.url+"/who").err, says)
	contains(t, w.want(4, "check", w.url+"/who").out, says)
	contains(t, w.want(4, "fetch", w.url+"/who", "--json").out, says)
}
