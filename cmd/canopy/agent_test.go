package main

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

func TestAgentNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	for _, name := range []string{"", "a b", "trader ", "../x", "agent:x", "é", strings.Repeat("a", 65)} {
		for _, args := range [][]string{{"ping"}, {"fetch", w.url + "/cent"}, {"freeze", "--reason", "x"}, {"ledger", "list"}} {
			r := w.want(2, append(args, "--agent", name)...)
			contains(t, r.err, "1 to 64")
		}
	}
	contains(t, w.want(0, "freeze", "--agent", "tarder", "--reason", "x").err, "no policy table and no payment", "tarder")
	if r := w.want(0, "freeze", "--agent", "chatty", "--reason", "x"); r.err != "" {
		t.Errorf("a table's name: %s", r.err)
	}
	w.want(0, "fetch", w.url+"/cent", "--agent", strings.Repeat("a", 64))
	if r := w.want(0, "freeze", "--agent", strings.Repeat("a", 64), "--reason", "x"); r.err != "" {
		t.Errorf("a payment's name: %s", r.err)
	}
}

// A group of commands by itself is not a command.
func TestNoCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--json"}, {"ledger"}, {"ledger", "--json"}, {"approvals"}, {"config"}, {"policy"}} {
		r := call(t, t.Context(), "", args...)
		if r.code != 2 {
			t.Errorf("canopy %v: exit %d", args, r.code)
		}
		contains(t, r.out+r.err, "needs a command")
	}
}
