package main

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

// An approver lets one payment go over a cap, once, with a reason, and nothing
// else of the policy yields.
func TestApprovalsOverride(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
[org]
caps = ["$9 / 24h"]
[policy.default]
max_payment = "$2"
caps = ["$3 / 24h"]
allow = ["host:127.0.0.1"]
approvers = ["ana"]
[policy.open]
max_payment = "$8"
caps = ["$3 / 24h"]
allow = ["host:127.0.0.1"]
`, route("GET /a", 150*payment.Cent), route("GET /b", 150*payment.Cent), route("GET /c", 150*payment.Cent), route("GET /dear", 7*payment.Dollar))
	ana, eve := w.person("ana"), w.person("eve")
	w.want(0, "fetch", w.url+"/a")
	w.want(0, "fetch", w.url+"/b")
	w.want(4, "fetch", w.url+"/c")
	last := func() string {
		list := w.entries()
		return list[len(list)-1]["transactionId"].(string)
	}
	id := last()
	over := func(id, file string, args ...string) result {
		return w.run(append([]string{"approvals", "override", id, "--reason", "the invoice is due", "--yes", "--credential-file", file}, args...)...)
	}
	w.want(2, "approvals", "override", id, "--yes", "--credential-file", ana) // no reason
	w.want(2, "approvals", "override", "x", "--reason", "x", "--yes", "--credential-file", ana)
	w.want(2, "approvals", "override", id, "--reason", "x", "--yes") // no credential
	w.want(2, "approvals", "override", id, "--reason", "x", "--credential-file", ana)
	if r := over(id, eve, "--json"); r.code != 1 || r.object(t)["code"] != "not_named" {
		t.Errorf("who is not named: %d, %s", r.code, r.out)
	}
	r := over(id, ana)
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.out, "Spend cap exceeded: $3.00 + $1.50 > $3 / 24h", "approved by ana, over the cap, as payment")
	contains(t, r.err, "same call again pays it, once")
	if r := over(id, ana, "--json"); r.code != 1 || r.object(t)["code"] != "not_overridable" {
		t.Errorf("twice: %d, %s", r.code, r.out)
	}
	list := w.entries()
	approval := list[len(list)-1]["approvalId"].(string)
	contains(t, w.want(0, "approvals", "show", approval).out, "over the cap", "the invoice is due", "yes by ana via cli")
	contains(t, w.want(0, "approvals", "list", "--all", "--json").out, `"override": true`)
	if v := w.want(0, "approvals", "show", approval, "--json").object(t); v["next"] != "call_canopy_fetch" {
		t.Errorf("what is next: %v", v["next"])
	}
	w.want(0, "fetch", w.url+"/c")
	if got := last(); got == id {
		t.Errorf("the denied payment itself was paid")
	}
	contains(t, w.want(0, "ledger", "show", last()).out, "$1.50")
	w.want(4, "fetch", w.url+"/c")
	w.want(0, "ledger", "verify")

	// The maximum, a policy without approvers and the cap of all do not yield.
	w.want(4, "fetch", w.url+"/dear")
	if r := over(last(), ana, "--json"); r.code != 1 || r.object(t)["code"] != "not_overridable" || !strings.Contains(r.out, "exceeds the maximum") {
		t.Errorf("above the maximum: %d, %s", r.code, r.out)
	}
	w.want(4, "fetch", w.url+"/dear", "--agent", "open")
	if r := over(last(), ana, "--json"); r.code != 1 || r.object(t)["code"] != "no_approvers" {
		t.Errorf("without approvers: %d, %s", r.code, r.out)
	}
	w.want(4, "fetch", w.url+"/c")
	w.want(0, "freeze", "--agent", "default", "--reason", "a look")
	if r := over(last(), ana, "--json"); r.code != 1 || r.object(t)["code"] != "frozen" {
		t.Errorf("frozen: %d, %s", r.code, r.out)
	}
}
