package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// What is chosen from a list is told, and completed.
func TestChoices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	contains(t, w.want(2, "ledger", "list", "--state", "paid").err, "claimed", "needs_operator")
	to := "0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C"
	for _, command := range []string{"preview", "pay"} {
		contains(t, w.want(2, command, to, "1", "--chain", "mars").err, `"mars" is not a chain`, "base-sepolia", "eip155:8453")
		contains(t, w.want(0, "__complete", command, "--chain", "").out, "base\n", "base-sepolia\n")
	}
	contains(t, w.want(0, "__complete", "ledger", "list", "--state", "").out, "in_doubt\n", "denied\n")
}

// What is not there, or was decided, is said once.
func TestSaidOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dear", 150*payment.Cent))
	now := w.chain.Clock().Now()
	for _, r := range []result{
		w.want(1, "ledger", "show", string(payment.NewID(now))), w.want(1, "approvals", "show", string(payment.NewApprovalID(now))),
	} {
		if strings.Contains(r.err, "not found") {
			t.Errorf("twice: %s", r.err)
		}
	}
	id := w.want(3, "fetch", w.url+"/dear", "--json").object(t)["approval_id"].(string)
	w.want(0, "approvals", "deny", id, "--yes", "--by", "ana")
	r := w.want(1, "approvals", "approve", id, "--yes", "--by", "ana")
	if !strings.HasSuffix(r.err, "is denied already\n") {
		t.Errorf("got %s", r.err)
	}
	contains(t, w.want(0, "ledger", "verify").out, "1 payment, 2 events")
	contains(t, w.want(2, "--json", "fetch").object(t)["error"].(string), "; See canopy fetch --help")
}

func TestAsk(t *testing.T) {
	t.Parallel()
	var terms payment.Terms
	terms.Origin = "https://feed.example"
	terms.Recipients = []payment.Recipient{{Address: payment.Address{1}}}
	got := ask(true, ledger.Approval{Agent: "default", Cost: 6 * payment.Dollar, Terms: terms})
	if want := "Approve $6.00 to feed.example (0x0100000000000000000000000000000000000000) for agent default?"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAckHealthy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	r := w.want(0, "ledger", "ack", "--reason", "looked", "--yes", "--by", "ana")
	contains(t, r.err, "Nothing is wrong")
	if v := w.want(0, "ledger", "ack", "--reason", "looked", "--yes", "--by", "ana", "--json").object(t); v["needed"] != false {
		t.Errorf("got %v", v)
	}
}

// An error of the policy is a problem of the configuration.
func TestConfigCheckError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(testPolicy, `["host:127.0.0.1", "host:localhost"]`, "[]", 1))
	r := w.want(2, "config", "check")
	contains(t, r.out, "problem: "+w.config+":13: policy.", "allows_nothing", "counts as spent", "It is not right: 1 problem.")
	if strings.Contains(r.out, "It is right") {
		t.Errorf("got %s", r.out)
	}
	if v := w.want(2, "config", "check", "--json").object(t); v["ok"] != false || len(v["problems"].([]any)) == 0 {
		t.Errorf("got %v", v)
	}
	bad := filepath.Join(w.dir, "proxy.toml")
	if err := os.WriteFile(bad, []byte("[network]\nproxy = \"proxy\"\n"+testPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, w.want(2, "config", "check", "--config", bad).err, "http://proxy.example:3128")
}

func TestInitShortPassword(t *testing.T) {
	for password, warns := range map[string]bool{"sevench": true, "eight ch": false} {
		t.Setenv("CANOPY_PASSWORD", password)
		r := call(t, t.Context(), "", "init", "--config", filepath.Join(t.TempDir(), "canopy.toml"))
		if r.code != 0 || strings.Contains(r.err, "fewer than 8") != warns {
			t.Errorf("%q: %+v", password, r)
		}
	}
}
