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
	w.want(1, "pay", to, "0.50", "--chain", "tempo-testnet", "--memo", strings.Repeat("x", 33))
}
