package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/payment"
)

// A process with a token in its environment pays under the budget that was
// granted, can divide it, and cannot widen it.
func TestBudgetGrant(t *testing.T) {
	w := newWorld(t, testPolicy, route("GET /dollar", payment.Dollar))
	r := w.want(0, "budget", "grant", "--name", "reader", "--usd", "1.50", "--ttl", "1h", "--by", "ana", "--json")
	wantKeys(t, r, "status id name agent parent limitUsd expiresAt token")
	g := r.object(t)
	id, token := g["id"].(string), g["token"].(string)
	if g["status"] != "granted" || g["agent"] != "default" || g["parent"] != nil || g["limitUsd"] != json.Number("1.50") || !strings.HasPrefix(token, "canopy_budget_") {
		t.Errorf("granted %s", r.out)
	}
	for _, all := range []result{w.want(0, "budget"), w.want(0, "budget", "--json"), w.want(0, "ledger", "verify")} {
		if strings.Contains(all.out+all.err, token) {
			t.Errorf("the token is told again: %s", all.out)
		}
	}
	contains(t, w.want(0, "budget").out, "BUDGET", "reader", "$1.50", id, "until")

	t.Setenv(config.BudgetEnv, token)
	w.want(0, "fetch", w.url+"/dollar")
	r = w.want(4, "fetch", w.url+"/dollar?2")
	contains(t, r.out+r.err, "Budget exceeded: $1.00 + $1.00 > $1.50 of budget reader")
	contains(t, w.want(4, "check", w.url+"/dollar?2").out, "Budget exceeded")
	b := w.want(0, "budget", "--json").object(t)["budgets"].([]any)
	if len(b) != 1 || b[0].(map[string]any)["spentUsd"] != json.Number("1.00") || b[0].(map[string]any)["remainingUsd"] != json.Number("0.50") || b[0].(map[string]any)["grantedBy"] != "ana" {
		t.Errorf("the tree is %v", b)
	}
	// Narrower, and never wider.
	r = w.want(1, "budget", "grant", "--name", "more", "--usd", "0.51")
	contains(t, r.err, "$0.50 left")
	part := w.want(0, "budget", "grant", "--name", "part", "--usd", "0.20", "--json").object(t)
	if part["parent"] != id {
		t.Errorf("the part is of %v", part["parent"])
	}
	contains(t, w.want(0, "budget").out, "- part")
	t.Setenv(config.BudgetEnv, part["token"].(string))
	w.want(2, "budget", "grant", "--name", "up", "--usd", "0.01", "--from", id)
	w.want(4, "fetch", w.url+"/dollar?3")

	t.Setenv(config.BudgetEnv, "")
	r = w.want(0, "budget", "end", id, "--by", "ben", "--reason", "done", "--json")
	wantKeys(t, r, "status id name endedAt why")
	if e := r.object(t); e["status"] != "ended" || e["why"] != "ended by ben: done" {
		t.Errorf("ended %s", r.out)
	}
	contains(t, w.want(0, "budget", "end", id).out, "ended by ben: done") // once
	for _, tok := range []string{token, part["token"].(string), token[:len(token)-1] + "x"} {
		t.Setenv(config.BudgetEnv, tok)
		r := w.want(1, "fetch", w.url+"/dollar?4")
		if strings.Contains(r.err, tok) {
			t.Errorf("the error tells the token: %s", r.err)
		}
		w.want(2, "budget", "grant", "--name", "x", "--usd", "0.01")
	}
	t.Setenv(config.BudgetEnv, "")
	w.want(0, "fetch", w.url+"/dollar?5")
	contains(t, w.want(0, "ledger", "verify").out, "4 payments")
}

func TestBudgetUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	for _, args := range []string{
		"grant", "grant --name x", "grant --usd 1", "grant --name x --usd much", "grant --name x --usd -1", "grant --name x --usd 1 --from x",
		"grant --name x --usd 1 --from bgt_01JD7W0000000000000000000A", "grant --name x --usd 1 --ttl soon", "end", "end x", "end bgt_01JD7W0000000000000000000A", "widen",
	} {
		w.want(2, append([]string{"budget"}, strings.Fields(args)...)...)
	}
	short := w.want(0, "budget", "grant", "--name", "short", "--usd", "$1", "--ttl", "1ms", "--json").object(t)
	time.Sleep(5 * time.Millisecond)
	w.want(2, "budget", "grant", "--name", "late", "--usd", "1", "--from", short["id"].(string))
}
