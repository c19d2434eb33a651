package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// with adds to the configuration.
func (w *world) with(format string, args ...any) *world {
	w.t.Helper()
	f, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, format, args...)
	return w
}

// node is the URL of a node of chain.
func (w *world) node(chain *canopytest.Chain) string { return canopytest.NewNode(chain).Start(w.t) }

// How the chains stand is told, and which cannot be reached.
func TestReach(t *testing.T) {
	t.Parallel()
	w, _ := connected(t)
	contains(t, w.want(0, "ping").out, "base", "2 nodes agree", "holds $100.00 of USDC")
	r := w.want(0, "ping", "--json")
	wantKeys(t, r, "ok agent org latencyMs canPay chains")
	r = w.want(0, "config", "check", "--reach")
	contains(t, r.out, "2 nodes agree", "It is right.")
	w.chain.SetDown(context.DeadlineExceeded)
	contains(t, w.want(0, "ping").out, "NOT REACHED")
	r = w.want(1, "config", "check", "--reach")
	contains(t, r.out, "chain[0].rpc[0]: not reached: ", "chain[0].rpc[1]: not reached: ", "problem: "+w.config+":16: ", "The file is right, and not all that it names is reached.")
	if strings.Contains(r.out, "It is right.") {
		t.Errorf("got %s", r.out)
	}
	v := w.want(1, "config", "check", "--reach", "--json").object(t)
	if v["ok"] != false || len(v["problems"].([]any)) != 2 || v["chains"].([]any)[0].(map[string]any)["ok"] != false {
		t.Errorf("got %v", v)
	}
	if out := w.want(0, "config", "check").out; strings.Contains(out, "reached") {
		t.Errorf("asked without --reach:\n%s", out)
	}
}

// On Tempo every known dollar is shown: each can be paid with, and pays the fee.
func TestReachTempo(t *testing.T) {
	t.Parallel()
	w := onTempo(t, testPolicy)
	base := canopytest.NewChain(canopytest.ChainConfig{})
	base.Fund(w.payer, 3*payment.Dollar)
	w.with("[[chain]]\nid = \"base\"\nrpc = [%q]\n", w.node(base))
	for _, args := range [][]string{{"ping"}, {"config", "check", "--reach"}} {
		out := w.want(0, args...).out
		contains(t, out, "holds $0.00 of alphaUSD, $10.00 of pathUSD", "holds $3.00 of USDC")
		aligned(t, out)
		chains := w.want(0, append(args, "--json")...).object(t)["chains"].([]any)
		held := chains[0].(map[string]any)["balances"].([]any)
		if len(chains) != 2 || len(held) != 2 || fmt.Sprint(held[1].(map[string]any)["usd"]) != "10.00" {
			t.Errorf("%v: %v", args, chains)
		}
	}
}

// aligned fails where the values of a table do not begin in one column.
func aligned(t *testing.T, out string) {
	t.Helper()
	column := 0
	for line := range strings.Lines(out) {
		name, value, ok := strings.Cut(line, "  ")
		if !ok || strings.Contains(name, ":") {
			continue
		}
		at := len(line) - len(strings.TrimLeft(value, " "))
		if column == 0 {
			column = at
		}
		if at != column {
			t.Errorf("a value at %d, not %d, in\n%s", at, column, out)
			return
		}
	}
	if column == 0 {
		t.Errorf("no table in\n%s", out)
	}
}

// A node that serves another chain, or none, is named by its key.
func TestReachWrongNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	other := canopytest.NewChain(canopytest.ChainConfig{ID: payment.BaseSepolia})
	const key = ".rpc[1]: not reached: "
	t.Run("two, and one serves another chain", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc = [%q, %q]\n", w.node(w.chain), w.node(other))
		out := w.want(1, "config", "check", "--reach").out
		contains(t, out, "problem: "+w.config+":20: chain[0]"+key, "serves eip155:84532, not eip155:8453", "base           NOT REACHED")
		if strings.Contains(out, "problem: : ") || strings.Contains(out, "It is right") || strings.Contains(out, "rpc[0]: not") {
			t.Errorf("got %s", out)
		}
	})
	t.Run("three, and one serves another chain", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc = [%q, %q, %q]\n", w.node(w.chain), w.node(other), w.node(w.chain))
		contains(t, w.want(1, "config", "check", "--reach").out, "problem: "+w.config+":20: chain[0]"+key, "2 nodes agree")
	})
	t.Run("three, and one is down", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc = [%q, %q, %q]\n", w.node(w.chain), "http://127.0.0.1:1/", w.node(w.chain))
		contains(t, w.want(0, "config", "check", "--reach").out, "warning: chain[0]"+key, "2 nodes agree", "It is right.")
	})
	t.Run("the environment holds none", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc_env = [\"CANOPY_TEST_NO_RPC\"]\n")
		contains(t, w.want(0, "config", "check").out, "warning: chain[0].rpc_env[0]: environment variable CANOPY_TEST_NO_RPC is not set here")
		contains(t, w.want(1, "config", "check", "--reach").out, "problem: "+w.config+":20: chain[0].rpc_env[0]: environment variable CANOPY_TEST_NO_RPC is not set")
	})
}

// Two spellings of one machine are one source, and one node twice is refused.
func TestConfigCheckNodes(t *testing.T) {
	t.Parallel()
	for _, two := range []string{
		`"http://127.0.0.1:8545", "http://localhost:8545"`, `"http://127.0.0.1:8545", "http://127.0.0.2:8546"`,
		`"http://[::1]:8545", "http://LocalHost:8546"`, `"https://rpc.example/a", "https://RPC.example/b"`,
	} {
		w := newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc = [%s]\n", two)
		contains(t, w.want(0, "config", "check").out, "warning: chain[0]: has two nodes at ", "whose word then counts twice")
	}
	w := newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc = [\"https://rpc.example\", \"https://rpc.example.org\"]\n")
	if out := w.want(0, "config", "check").out; strings.Contains(out, "two nodes") {
		t.Errorf("got %s", out)
	}
	w = newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc = [\"https://rpc.example\", \"https://rpc.example:443/\"]\n")
	contains(t, w.want(2, "config", "check").err, ":20: chain[0].rpc[1]: stands there twice")
	contains(t, w.want(2, "ping").err, ":20: chain[0].rpc[1]: stands there twice")
}

// What the environment holds is looked at as opening does.
func TestConfigCheckEnvironment(t *testing.T) {
	t.Setenv("CANOPY_TEST_SAME_RPC", "https://RPC.example:443")
	w := newWorld(t, testPolicy).with("[[chain]]\nid = \"base\"\nrpc = [\"https://rpc.example\"]\nrpc_env = [\"CANOPY_TEST_SAME_RPC\"]\n")
	for _, args := range [][]string{{"config", "check"}, {"config", "check", "--reach"}} {
		out := w.want(2, args...).out
		contains(t, out, "problem: "+w.config+":21: chain[0].rpc_env[0]: stands there twice", "It is not right: 1 problem.")
	}
	contains(t, w.want(2, "ping").err, w.config+":21: chain[0].rpc_env[0]: stands there twice")
}
