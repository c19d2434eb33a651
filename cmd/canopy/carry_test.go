package main

import (
	"os"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// TestPayCarried pays by transactions of the treasury's own, as a user does: the
// gas is bounded in what pay prints, counted in 24 hours, and told by the ledger.
func TestPayCarried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, payPolicy)
	a, b := canopytest.NewNode(w.chain), canopytest.NewNode(w.chain)
	file, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	text := string(file) + "[[chain]]\nid = \"base\"\nrpc = [\"" + a.Start(t) + "\", \"" + b.Start(t) + "\"]\nmax_gas = \"0.001\"\ngas_per_day = \"0.002\"\n"
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	to := payee(t)
	contains(t, w.want(0, "config", "check").out, "direct transfers go by transactions of our own, of at most 0.001 of the chain's coin each, and 0.002 in 24 h")
	r := w.want(4, "pay", to, "0.10", "--key", "poor")
	contains(t, r.out, "Insufficient gas: 0.001 can be needed, and the account holds 0 of the coin of base")

	w.chain.FundCoin(w.payer, payment.UnitsOf(1e18))
	contains(t, w.want(0, "preview", to, "0.10").out, "allowed", "at most 0.001 of the chain's own coin")
	r = w.want(0, "pay", to, "0.10", "--key", "one")
	contains(t, r.out, "allowed", "at most 0.001 of the chain's own coin, by a transaction of ours")
	v := w.want(0, "pay", to, "0.10", "--key", "two", "--json").object(t)
	w.chain.AssertSpent(t, w.payer, 20*payment.Cent)
	if n := len(w.chain.Carried()); n != 2 {
		t.Errorf("%d transactions", n)
	}
	contains(t, w.want(4, "pay", to, "0.10", "--key", "three").out, "Gas cap exceeded: 0.002 + 0.001 > 0.002 / 24h of the coin of base", "; it frees on ")
	contains(t, w.want(4, "preview", to, "0.15").out, "Gas cap exceeded: 0.002 + 0.001 > 0.002 / 24h of the coin of base", "at most 0.001 of the chain's own coin")
	show := w.want(0, "ledger", "show", v["transactionId"].(string)).out
	contains(t, show, "at most 0.001 of the chain's own coin, by 1 transaction of ours")
	detail := w.want(0, "ledger", "show", v["transactionId"].(string), "--json").object(t)
	if detail["gasBound"] != "0.001" || detail["gasTransactions"] == nil {
		t.Errorf("%v, %v", detail["gasBound"], detail["gasTransactions"])
	}
	w.want(0, "ledger", "verify")

	// A person is told of the gas, which is not part of the terms.
	b2, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.config, []byte(strings.Replace(string(b2), `gas_per_day = "0.002"`, `gas_per_day = "0.01"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := w.want(0, "preview", to, "0.15", "--json").object(t); v["gasBound"] != "0.001" {
		t.Errorf("%v", v)
	}
	asked := w.want(3, "pay", to, "1.50", "--json").object(t)
	contains(t, w.want(0, "approvals", "show", asked["approvalId"].(string)).out, "note: beside it at most 0.001 of the chain's own coin, by a transaction of ours")
}
