package main

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// A claim is shown, and only set aside by a flag that says so.
func TestResolveClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	w.want(0, "fetch", w.url+"/cent")
	e := w.entries()[0]
	id := e["transactionId"].(string)
	tx := e["txHash"].(string)
	r := w.want(2, "ledger", "resolve", id, "--unused", "--reason", "x", "--by", "ana", "--yes")
	contains(t, r.out, "claimed", "HTTP 200", "seller claims", "paid", tx)
	contains(t, r.err, "--despite-claim", tx, "look for it on the chain")
	contains(t, w.want(1, "ledger", "resolve", id, "--unused", "--despite-claim", "--reason", "x", "--by", "ana", "--yes").err, "can still move money until")
	w.want(2, "ledger", "resolve", id, "--settled", tx, "--despite-claim", "--reason", "x", "--by", "ana", "--yes")
	contains(t, w.want(0, "ledger", "resolve", "--help").out, "in_doubt", "needs_operator", "claimed", "--despite-claim")
	if e := w.entries()[0]; e["state"] != "claimed" {
		t.Errorf("state %v", e["state"])
	}
}

// An agent has no say in what only an operator may do.
func TestOperatorIsNotTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, canopytest.Route{Pattern: "GET /lost", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}})
	w.want(5, "fetch", w.url+"/lost", "--agent", "chatty")
	id := w.entries()[0]["transactionId"].(string)
	tx := "0x" + strings.Repeat("ab", 32)
	for _, by := range []string{"chatty", " Chatty", payment.AgentID("chatty")} {
		for _, args := range [][]string{
			{"ledger", "resolve", id, "--settled", tx, "--yes"}, {"ledger", "ack", "--yes"},
			{"unfreeze", "--agent", "chatty"}, {"unfreeze", "--all"},
		} {
			r := w.want(2, append(args, "--reason", "x", "--by", by)...)
			contains(t, r.err, "the agent itself")
		}
	}
	w.want(0, "ledger", "resolve", id, "--settled", tx, "--yes", "--reason", "x", "--by", "ana")
}

// What ledger show proposes can be typed as it stands.
func TestLedgerShowHint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, canopytest.Route{Pattern: "GET /lost", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}})
	w.want(5, "fetch", w.url+"/lost")
	id := w.entries()[0]["transactionId"].(string)
	r := w.want(0, "ledger", "show", id)
	contains(t, r.out, "outcome")
	_, hint, ok := strings.Cut(r.out, "canopy --config")
	if !ok {
		t.Fatalf("no command in\n%s", r.out)
	}
	hint, _, _ = strings.Cut(hint, ", or --settled")
	args := words(t, "canopy --config"+hint)
	contains(t, call(t, t.Context(), "", append(args[1:], "--yes", "--by", "ana")...).err, "can still move money until")
}

// words are those of a line of a shell, its quotes resolved.
func words(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, open = c, true
		case quote == 0 && c == ' ':
			if open {
				out = append(out, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteRune(c)
			open = true
		}
	}
	if quote != 0 {
		t.Errorf("an open quote in %s", line)
	}
	if open {
		out = append(out, word.String())
	}
	return out
}
