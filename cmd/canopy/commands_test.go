package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/payment"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy,
		route("GET /cent", payment.Cent), route("GET /dear", 150*payment.Cent), route("GET /no", 250*payment.Cent),
		canopytest.Route{Pattern: "GET /free", Handler: text("text/html", nil)},
	)
	const keys = "status rail chainId amountUsd recipient resourceUrl scheme network realm cached"
	const more = " feeUsd costUsd recipients others"
	r := w.want(0, "check", w.url+"/cent", "--json")
	wantKeys(t, r, keys+more)
	v := r.object(t)
	if v["status"] != "allowed" || v["rail"] != "x402" || v["chainId"] != json.Number("8453") || v["amountUsd"] != json.Number("0.01") ||
		v["scheme"] != "exact" || v["network"] != "base" || v["realm"] != nil || v["cached"] != false || v["resourceUrl"] != w.url+"/cent" {
		t.Errorf("got %s", r.out)
	}
	if to := v["recipient"].(map[string]any); to["address"] != canopytest.Address("seller").String() || to["slug"] != nil || to["name"] != nil {
		t.Errorf("recipient %v", to)
	}
	r = w.want(0, "check", w.url+"/free", "--json")
	wantKeys(t, r, keys+more)
	if v := r.object(t); v["status"] != "allowed" || v["rail"] != nil || v["amountUsd"] != json.Number("0.00") || v["recipient"] != nil {
		t.Errorf("free: %s", r.out)
	}
	r = w.want(3, "check", w.url+"/dear", "--json")
	wantKeys(t, r, keys+" reason code reasons"+more)
	if v := r.object(t); v["status"] != "pending_approval" || v["reason"] != "Amount $1.50 exceeds approval threshold of $1" {
		t.Errorf("got %s", r.out)
	}
	contains(t, w.want(4, "check", w.url+"/no").out, "denied", "$2.50", "because")
	contains(t, w.want(0, "check", w.url+"/cent").out, "allowed", "$0.01", "x402")
	contains(t, w.want(0, "check", w.url+"/free").out, "is free")
	w.want(4, "check", w.url+"/cent", "--max-price", "0.001")
	if len(w.entries()) != 0 {
		t.Error("a check left something in the ledger")
	}
	w.want(2, "check")
	w.want(2, "check", "a", "b")
}

func TestBudgetAndPing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dollar", payment.Dollar))
	w.want(0, "fetch", w.url+"/dollar")
	r := w.want(0, "budget", "--json")
	wantKeys(t, r, "capUsd spentUsd remainingUsd periodHours periodResetsAt heldUsd caps budgets canPay")
	v := r.object(t)
	if v["capUsd"] != json.Number("3.00") || v["spentUsd"] != json.Number("1.00") || v["remainingUsd"] != json.Number("2.00") || v["periodHours"] != json.Number("24") {
		t.Errorf("got %s", r.out)
	}
	if caps := v["caps"].([]any); len(caps) != 2 || caps[1].(map[string]any)["maxCount"] != json.Number("100") || caps[1].(map[string]any)["capUsd"] != nil {
		t.Errorf("caps %v", v["caps"])
	}
	contains(t, w.want(0, "budget").out, "$3 / 24h", "$1.00", "$2.00", "100 payments / 1h", "99")

	r = w.want(0, "ping", "--agent", "chatty", "--json")
	wantKeys(t, r, "ok agent org latencyMs canPay")
	v = r.object(t)
	if agent := v["agent"].(map[string]any); v["ok"] != true || agent["name"] != "chatty" || agent["status"] != "active" || !strings.HasPrefix(agent["id"].(string), "agt_") {
		t.Errorf("got %s", r.out)
	}
	if org := v["org"].(map[string]any); org["treasuryAddress"] != w.payer.String() || org["name"] != nil {
		t.Errorf("got %s", r.out)
	}
	contains(t, w.want(0, "ping").out, w.payer.String(), "active")

	none := newWorld(t, strings.Replace(testPolicy, `"$3 / 24h", "100 payments / 1h"`, `"none"`, 1))
	if v := none.want(0, "budget", "--json").object(t); v["capUsd"] != nil || v["remainingUsd"] != nil || v["periodHours"] != nil || v["periodResetsAt"] != nil {
		t.Errorf("without a cap: %v", v)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	w.want(2, "freeze")
	w.want(2, "freeze", "--all", "--agent", "x", "--reason", "y")
	r := w.want(0, "freeze", "--reason", "strange prices", "--by", "ana", "--json")
	wantKeys(t, r, "status agent by reason")
	if v := r.object(t); v["status"] != "frozen" || v["agent"] != "default" {
		t.Errorf("got %s", r.out)
	}
	contains(t, w.want(4, "fetch", w.url+"/cent").err, "strange prices")
	w.want(0, "fetch", w.url+"/cent", "--agent", "chatty")
	if v := w.want(0, "ping", "--json").object(t); v["agent"].(map[string]any)["status"] != "frozen" {
		t.Errorf("got %v", v)
	}
	if v := w.want(0, "freeze", "--all", "--reason", "weekend", "--json").object(t); v["agent"] != nil {
		t.Errorf("got %v", v)
	}
	w.want(4, "fetch", w.url+"/cent", "--agent", "chatty")
	contains(t, w.want(0, "unfreeze", "--reason", "explained").err, "Still frozen: everybody")
	w.want(4, "fetch", w.url+"/cent")
	w.want(0, "unfreeze", "--all", "--reason", "monday")
	w.want(0, "fetch", w.url+"/cent")
	w.chain.AssertSpent(t, w.payer, 2*payment.Cent)
}

func TestLedgerList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent), route("GET /no", 250*payment.Cent))
	if r := w.want(0, "ledger", "list"); r.out != "No payments.\n" || r.err != "" {
		t.Errorf("an empty ledger: %q, and on standard error %q", r.out, r.err)
	}
	if r := w.want(0, "ledger", "list", "--json"); r.out != "[]\n" || r.err != "" {
		t.Errorf("an empty ledger as JSON: %q, and on standard error %q", r.out, r.err)
	}
	w.want(0, "fetch", w.url+"/cent", "--purpose", "a cent")
	w.want(4, "fetch", w.url+"/no", "--agent", "chatty")
	if got := w.entries(); len(got) != 2 || got[0]["state"] != "claimed" || got[1]["state"] != "denied" || got[0]["purpose"] != "a cent" {
		t.Errorf("got %v", got)
	}
	for name, tt := range map[string]struct {
		args string
		rows int
	}{
		"all":      {"", 2},
		"agent":    {"--agent chatty", 1},
		"state":    {"--state claimed", 1},
		"states":   {"--state claimed --state denied", 2},
		"host":     {"--host 127.0.0.1", 2},
		"no host":  {"--host feed.example", 0},
		"since":    {"--since 1h", 2},
		"until":    {"--until 1h", 0},
		"date":     {"--since 2020-01-01", 2},
		"instant":  {"--until 2020-01-01T00:00:00Z", 0},
		"limit":    {"--limit 1", 1},
		"no limit": {"--limit 0", 2},
	} {
		r := w.want(0, append([]string{"ledger", "list", "--json"}, strings.Fields(tt.args)...)...)
		var list []map[string]any
		if err := json.Unmarshal([]byte(r.out), &list); err != nil || len(list) != tt.rows {
			t.Errorf("%s: %d rows, want %d (%v)", name, len(list), tt.rows, err)
		}
	}
	for _, args := range []string{"--state paid", "--since yesterday", "--limit -1", "extra"} {
		w.want(2, append([]string{"ledger", "list"}, strings.Fields(args)...)...)
	}
	w.want(2, "ledger", "show", "../../etc/passwd")
	w.want(2, "ledger", "show", "01J9ZC3V5Y8Q2T4W6X8Z0A1B2")
	contains(t, w.want(1, "ledger", "show", string(payment.NewID(w.chain.Clock().Now()))).err, "no payment")
	w.want(2, "approvals", "show", "appr_x")
	w.want(1, "approvals", "show", string(payment.NewApprovalID(w.chain.Clock().Now())))
	r := w.want(0, "ledger", "verify", "--json")
	wantKeys(t, r, "ok payments events problems")
	if v := r.object(t); v["ok"] != true || v["payments"] != json.Number("2") {
		t.Errorf("got %s", r.out)
	}
	w.want(2, "ledger", "ack", "--reason", "x") // nobody to confirm
	w.want(2, "ledger", "ack", "--yes")
	wantKeys(t, w.want(0, "ledger", "ack", "--reason", "looked", "--yes", "--json"), "status by reason needed")
}

// F25: the ledger is gone, and its caps with it.
func TestLedgerMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dollar", payment.Dollar))
	w.want(0, "fetch", w.url+"/dollar")
	files, _ := filepath.Glob(filepath.Join(w.dir, "canopy.db*"))
	for _, f := range files {
		os.Remove(f)
	}
	if r := w.run("fetch", w.url+"/dollar"); !strings.Contains(r.err, "canopy ledger ack") || strings.Contains(r.err, "Get ") {
		t.Errorf("got %s", r.err)
	}
	if v := w.want(1, "fetch", w.url+"/dollar", "--json").object(t); v["code"] != "ledger_missing" {
		t.Errorf("got %v", v)
	}
	w.chain.AssertSpent(t, w.payer, payment.Dollar)
	w.want(0, "ledger", "ack", "--reason", "the disk died", "--yes")
	w.want(0, "fetch", w.url+"/dollar")
}

func TestInit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "canopy.toml")
	t.Setenv("CANOPY_PASSWORD", canaryPassword)
	r := call(t, t.Context(), "", "init", "--config", path, "--allow", "host:feed.example", "--org", `A "b" \ c`, "--json")
	if r.code != 0 {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	wantKeys(t, r, "config keystore address ledger next")
	v := r.object(t)
	for _, name := range []string{path, v["keystore"].(string)} {
		info, err := os.Stat(name)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if v["keystore"] != filepath.Join(dir, "sub", "key.json") || !strings.HasPrefix(v["address"].(string), "0x") {
		t.Errorf("got %s", r.out)
	}
	f, err := config.Load(path)
	if err != nil || f.Policy.Org() != `A "b" \ c` || len(f.Warnings) != 0 {
		t.Fatalf("%v, %v", f, err)
	}
	before, _ := os.ReadFile(path)
	for name, args := range map[string][]string{
		"again":       {"--config", path},
		"same key":    {"--config", path + ".2"},
		"no password": {"--config", path + ".2", "--keystore", "k2.json", "--password-env", "CANOPY_NONE"},
		"bad policy":  {"--config", path + ".2", "--keystore", "k2.json", "--cap", "5"},
		"bad allow":   {"--config", path + ".2", "--keystore", "k2.json", "--allow", "feed.example"},
		"two keys":    {"--config", path + ".2", "--keystore", "k2.json", "--key-env", "K"},
		"no such key": {"--config", path + ".2", "--keystore", "k2.json", "--existing-key"},
		"a key":       {"--config", path + ".2", "--key-env", canaryKey},
	} {
		if r := call(t, t.Context(), "", append([]string{"init"}, args...)...); r.code != 2 {
			t.Errorf("%s: exit %d: %s%s", name, r.code, r.out, r.err)
		}
	}
	entries, _ := fs.Glob(os.DirFS(filepath.Join(dir, "sub")), "*")
	if after, _ := os.ReadFile(path); string(after) != string(before) || len(entries) != 2 {
		t.Errorf("a refused init changed something: %v", entries)
	}

	// What init made works as it is.
	for _, args := range [][]string{{"config", "check"}, {"ping"}, {"budget"}, {"policy", "lint"}} {
		if r := call(t, t.Context(), "", append(args, "--config", path)...); r.code != 0 {
			t.Errorf("canopy %v: exit %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	r = call(t, t.Context(), "", "init", "--config", path+".2", "--existing-key")
	if r.code != 0 || !strings.Contains(r.out, v["address"].(string)) {
		t.Errorf("an existing key: %+v", r)
	}
	r = call(t, t.Context(), "", "init", "--config", path+".3", "--key-env", keyEnv, "--json")
	if v := r.object(t); r.code != 0 || v["keystore"] != nil || v["address"] == nil {
		t.Errorf("a key of the environment: %+v", r)
	}

	// A wrong password is an error of the configuration; looking needs none.
	t.Setenv("CANOPY_PASSWORD", "wrong")
	if r := call(t, t.Context(), "", "ping", "--config", path); r.code != 2 || !strings.Contains(r.err, "does not open") {
		t.Errorf("a wrong password: %+v", r)
	}
	t.Setenv("CANOPY_PASSWORD", "")
	if r := call(t, t.Context(), "", "ping", "--config", path); r.code != 2 || !strings.Contains(r.err, "treasury.password_env") {
		t.Errorf("no password: %+v", r)
	}
	if r := call(t, t.Context(), "", "budget", "--config", path); r.code != 0 {
		t.Errorf("budget without a password: %+v", r)
	}
}

func TestConfigCheckAndLint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	r := w.want(0, "config", "check", "--json")
	wantKeys(t, r, "ok config problems warnings notes agents address ledger policySha256")
	if v := r.object(t); v["ok"] != true || v["address"] != w.payer.String() || len(v["agents"].([]any)) != 2 {
		t.Errorf("got %s", r.out)
	}
	wantKeys(t, w.want(0, "policy", "lint", "--json"), "ok file problems findings")

	bad := filepath.Join(w.dir, "bad.toml")
	os.WriteFile(bad, []byte("[treasury]\nkey = \""+canaryKey+"\"\nkey_evn = 1\n"+testPolicy), 0o666)
	for _, args := range [][]string{{"config", "check"}, {"policy", "lint"}, {"fetch", "http://127.0.0.1:1"}, {"budget"}} {
		r := call(t, t.Context(), "", append(args, "--config", bad)...)
		if r.code != 2 {
			t.Errorf("canopy %v: exit %d", args, r.code)
		}
		contains(t, r.err, "private key")
		r = call(t, t.Context(), "", append(args, "--config", bad, "--json")...)
		if r.code != 2 || r.err != "" {
			t.Errorf("canopy %v --json: %+v", args, r)
		}
		r.object(t)
	}
	contains(t, w.want(2, "budget", "--config", filepath.Join(w.dir, "none.toml")).err, "canopy init")
	w.want(2, "policy", "lint", filepath.Join(w.dir, "none.toml"))

	open := filepath.Join(w.dir, "open.toml")
	os.WriteFile(open, []byte(testPolicy), 0o600)
	os.Chmod(open, 0o666)
	contains(t, call(t, t.Context(), "", "config", "check", "--config", open).out, "chmod go-w", "names no key")
}

// TestConfigCheckSharedHost warns of two nodes that may be one source.
func TestConfigCheckSharedHost(t *testing.T) {
	const warning = "two nodes at rpc.example: they may be one source"
	path := filepath.Join(t.TempDir(), "canopy.toml")
	for second, warns := range map[string]bool{
		"https://rpc.example/b3ta": true, "http://RPC.example.:8545/b3ta": true, "https://rpc2.example/b3ta": false, "": false,
	} {
		t.Setenv("CANOPY_TEST_SECOND", second)
		text := "[[chain]]\nid = \"base\"\nrpc = [\"https://rpc.example/4lpha\"]\nrpc_env = [\"CANOPY_TEST_SECOND\"]\n"
		if err := os.WriteFile(path, []byte(text+testPolicy), 0o600); err != nil {
			t.Fatal(err)
		}
		r := call(t, t.Context(), "", "config", "check", "--config", path)
		if r.code != 0 || strings.Contains(r.out, warning) != warns || strings.Contains(r.out, "b3ta") || strings.Contains(r.out, "4lpha") {
			t.Errorf("%s: %+v", second, r)
		}
	}
}
