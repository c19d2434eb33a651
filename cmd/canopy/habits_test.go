package main

import (
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// A policy in shadow pays, and every place that tells a payment says what would
// have been.
func TestPolicyInShadow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
[policy.default]
mode        = "shadow"
max_payment = "$1"
caps        = ["$1 / 24h"]
new_payee   = "approve"
`, route("GET /dear", 150*payment.Cent))
	contains(t, w.run("policy", "lint").out, `mode = "shadow": nothing of this table is enforced`, "NOTHING bounds what is spent", "in_shadow")
	contains(t, w.want(0, "check", w.url+"/dear").out, "allowed", "In shadow, would have been denied: Amount $1.50 exceeds the maximum of $1 per payment")
	r := w.want(0, "fetch", w.url+"/dear")
	contains(t, r.err, "paid $1.50", "In shadow, would have been denied: Amount $1.50 exceeds the maximum of $1 per payment", "In shadow, a person would have been asked: Payee ")
	w.chain.AssertSpent(t, w.payer, 150*payment.Cent)
	r = w.want(0, "ledger", "list")
	contains(t, r.out, "claimed", "(in shadow: denied, not_allowed)")
	contains(t, r.err, "In shadow, 1 of these would have been decided so")
	id := w.entries()[0]["transactionId"].(string)
	contains(t, w.want(0, "ledger", "show", id).out, "In shadow, it would have been denied (max_payment)", "In shadow, a person would have been asked (new_payee)", "The policy is in shadow, and so allowed it.")
	reasons := w.want(0, "ledger", "show", id, "--json").object(t)["reasons"].([]any)
	for _, r := range reasons {
		if m := r.(map[string]any); m["shadow"] != true {
			t.Errorf("a reason that decided: %v", m)
		}
	}
	if len(reasons) != 4 {
		t.Errorf("%d reasons, want 4: %v", len(reasons), reasons)
	}
}

// The first payment to somebody waits for a person; what was approved is ready
// to be carried out, and the next one is paid at once.
func TestFirstPaymentToSomebody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
[policy.default]
max_payment = "$5"
caps        = ["$20 / 24h"]
allow       = ["*"]
new_payee   = "approve"
price_jump  = "2x"
`, route("GET /data", payment.Dollar), route("GET /other", payment.Dollar))
	r := w.want(3, "fetch", w.url+"/data", "--json")
	v := r.object(t)
	if v["code"] != "new_payee" {
		t.Errorf("got %s", r.out)
	}
	id := v["approval_id"].(string)
	contains(t, w.want(0, "approvals", "show", id).out, "Payee "+canopytest.Address("seller").String()+" of "+w.url+" was never paid before")
	w.want(0, "approvals", "approve", id, "--yes", "--by", "ana")
	if v := w.want(0, "approvals", "show", id, "--json").object(t); v["next"] != "call_canopy_fetch" {
		t.Errorf("approved, and next is %v", v["next"])
	}
	w.want(0, "fetch", w.url+"/data")
	w.want(0, "fetch", w.url+"/other")
	w.chain.AssertSpent(t, w.payer, 2*payment.Dollar)
}

// Outside the hours nothing is paid, and the command says when it is.
func TestFetchOutsideHours(t *testing.T) {
	t.Parallel()
	hours := time.Now().UTC().AddDate(0, 0, 3).Format("Mon") + " 00:00-00:01 Pacific/Kiritimati" // on no day that is near
	w := newWorld(t, `
[policy.default]
caps  = ["$20 / 24h"]
allow = ["*"]
hours = "`+hours+`"
`, route("GET /data", payment.Cent))
	r := w.want(4, "fetch", w.url+"/data")
	contains(t, r.err, "Payments by policy default are made "+hours+" only", "it opens again at ")
	w.chain.AssertSpent(t, w.payer, 0)
}
