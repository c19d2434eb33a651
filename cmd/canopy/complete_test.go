package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// offered are the words that a shell would offer.
func (w *world) offered(args ...string) []string {
	w.t.Helper()
	r := w.want(0, append([]string{"__complete"}, args...)...)
	var out []string
	for line := range strings.Lines(r.out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); word != "" && word[0] != ':' && word[0] != '-' {
			out = append(out, word)
		}
	}
	return out
}

func TestCompleteIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent), route("GET /dear", 150*payment.Cent),
		canopytest.Route{Pattern: "GET /lost", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}})
	w.want(4, "fetch", "--max-price", "0.001", w.url+"/cent")
	w.want(0, "fetch", w.url+"/cent", "--agent", "chatty")
	w.want(5, "fetch", w.url+"/lost")
	waits := w.want(3, "fetch", w.url+"/dear", "--json").object(t)["approval_id"].(string)
	gone := w.want(3, "fetch", w.url+"/dear?2", "--json").object(t)["approval_id"].(string)
	w.want(0, "approvals", "deny", gone, "--yes", "--by", "ana")

	all := w.offered("ledger", "show", "")
	entries := w.entries()
	if len(all) != len(entries) || all[0] != entries[len(entries)-1]["transactionId"] {
		t.Errorf("ledger show: %v of %d", all, len(entries))
	}
	contains(t, w.want(0, "__complete", "ledger", "show", "").out, "in_doubt, $0.01 for GET "+w.url+"/lost")
	for _, tt := range []struct {
		args string
		want int
	}{
		{"ledger resolve", 2}, {"ledger resolve --agent default", 1}, {"ledger resolve x", 0}, {"ledger show --agent nobody", 0},
		{"approvals show", 2}, {"approvals approve", 1}, {"approvals deny", 1}, {"approvals wait", 1}, {"approvals wait --agent chatty", 0},
	} {
		if got := w.offered(append(strings.Fields(tt.args), "")...); len(got) != tt.want {
			t.Errorf("%s: %v, want %d", tt.args, got, tt.want)
		}
	}
	if got := w.offered("approvals", "approve", ""); len(got) != 1 || got[0] != waits {
		t.Errorf("approvals approve: %v, want %s", got, waits)
	}
}

// A key that completes makes no ledger, is told no error, and is soon done.
func TestCompleteNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	quiet := func() {
		t.Helper()
		for _, args := range [][]string{{"ledger", "show", ""}, {"approvals", "approve", ""}} {
			start := time.Now()
			r := w.want(0, append([]string{"__complete"}, args...)...)
			if strings.Contains(r.out, "\t") || strings.Contains(strings.ToLower(r.out+r.err), "error") || time.Since(start) > 5*completeTime {
				t.Errorf("%v: %+v after %v", args, r, time.Since(start))
			}
		}
	}
	quiet()
	made, err := filepath.Glob(filepath.Join(w.dir, "*"))
	if err != nil || len(made) != 1 {
		t.Errorf("made %v, %v", made, err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "canopy.db"), []byte("not a ledger"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet()
	if err := os.WriteFile(w.config, []byte("[treasry]"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet()
	if got := w.offered("pay", "--chain", ""); len(got) != 4 {
		t.Errorf("--chain: %v", got)
	}
}

// What is one of few words is offered, and no file for an address.
func TestCompleteWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	if got := strings.Join(w.offered("ledger", "export", "--format", ""), " "); got != "jsonl csv" {
		t.Errorf("--format: %s", got)
	}
	for _, verb := range []string{"pay", "preview"} {
		contains(t, w.want(0, "__complete", verb, "").out, ":4") // no files
	}
}

func TestCompleteBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	for range completeMost + 2 {
		w.want(0, "fetch", w.url+"/cent")
	}
	if got := w.offered("ledger", "show", ""); len(got) != completeMost {
		t.Errorf("%d are offered", len(got))
	}
}

func TestCompleteChains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy).with("[[chain]]\nid = \"eip155:42220\"\n[[chain]]\nid = \"base\"\n")
	for _, command := range []string{"pay", "preview"} {
		if got := strings.Join(w.offered(command, "--chain", ""), " "); got != "base base-sepolia tempo tempo-testnet "+payment.ChainID("eip155:42220").Name() {
			t.Errorf("%s: %s", command, got)
		}
	}
}
