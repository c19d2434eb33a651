package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// configured writes the configuration anew, with more at its end, and gives it back
// as it was.
func (w *world) configured(more string) (before string) {
	w.t.Helper()
	b, err := os.ReadFile(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.config, append(b, more...), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func lacks(t *testing.T, text string, none ...string) {
	t.Helper()
	for _, s := range none {
		if strings.Contains(text, s) {
			t.Errorf("%q stands in:\n%s", s, text)
		}
	}
}

// What is told of a payment goes by the nodes that are named now, and by what was
// recorded as past: an rpc may come after a payment, and go.
func TestStoryByNodesOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, canopytest.Route{Pattern: "GET /lost", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}})
	w.want(5, "fetch", w.url+"/lost")
	first := w.entries()[0]["transactionId"].(string)
	contains(t, w.want(0, "ledger", "show", first).out, "It is not asked: no [[chain]] names an rpc for it.", "unless an operator knows better")
	contains(t, w.want(0, "reconcile").out, "On chains without an rpc: 1.", "unless an operator knows better")

	without := w.configured("[[chain]]\nid = \"base\"\nrpc = [\"" + canopytest.NewNode(w.chain).Start(t) + "\"]\n")
	show := w.want(0, "ledger", "show", first).out
	contains(t, show, "no [[chain]] named an rpc for it when the payment was made. One does now", "Then canopy reconcile asks the chain")
	lacks(t, show, "It is not asked", "operator")
	held := w.want(0, "reconcile").out
	contains(t, held, "waiting 1", "Then canopy reconcile asks the chain")
	lacks(t, held, "without an rpc", "operator knows")
	w.want(5, "fetch", w.url+"/lost?2")
	second := w.entries()[1]["transactionId"].(string)
	contains(t, w.want(0, "ledger", "show", second).out, "Nothing final yet.")

	// It goes again: what was made with it waits for the chain's word, or a person's.
	with := w.configured("")
	if err := os.WriteFile(w.config, []byte(without), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, w.want(0, "ledger", "show", second).out, "cannot be asked now", "One did when the payment was made", "name an rpc for it in [[chain]]", "ledger resolve", "the same call sends the same bytes again")
	contains(t, w.want(0, "reconcile").out, "name an rpc for it in [[chain]]")
	if err := os.WriteFile(w.config, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	w.chain.Finalize()
	contains(t, w.want(0, "reconcile").out, first+"  $0.01  settled", second+"  $0.01  settled")
	contains(t, w.want(0, "ledger", "show", first).out, "is there and final", "Nothing: it is settled.")
}

// A proof is told as what it is, wherever it stands, and is not held for ever.
func TestProofStory(t *testing.T) {
	t.Parallel()
	w := onTempo(t, testPolicy, canopytest.Route{Pattern: "GET /in", Proof: true, Faults: canopytest.Plan{
		canopytest.First(canopytest.NoReceipt()),
	}})
	w.want(0, "fetch", w.url+"/in?1")
	w.want(0, "fetch", w.url+"/in?2")
	list := w.entries()
	if list[0]["state"] != "in_doubt" || list[1]["state"] != "settled" || list[1]["spentUsd"] != 0.0 {
		t.Fatalf("%v", list)
	}
	held := w.want(0, "reconcile").out
	contains(t, held, "waiting 1", "Then canopy reconcile ends it, as one payment of $0.00")
	lacks(t, held, "without an rpc", list[1]["transactionId"].(string))
	contains(t, w.want(0, "ledger", "show", list[0]["transactionId"].(string)).out, "a proof is on no chain", "Then canopy reconcile ends it, as one payment of $0.00")
	contains(t, w.want(0, "ledger", "show", list[1]["transactionId"].(string)).out,
		"It is a proof that the account is ours", "it moved nothing, and counts as one payment", "a proof is on no chain", "Nothing: it ended, moved nothing, and counts as one payment of $0.00.")
	w.want(0, "ledger", "verify")

	dead := ledger.Entry{State: ledger.InDoubt, Slot: payment.Slot{Kind: payment.SlotProof}, ValidBefore: time.Now().Add(-time.Minute)}
	contains(t, (&app{}).whatNext(dead), "moved nothing and cannot be used any more: canopy reconcile ends it")
}

// A note of why a payment was in doubt is not told of it once it is claimed.
func TestNoteOfBefore(t *testing.T) {
	t.Parallel()
	w, _ := connected(t, canopytest.Route{Pattern: "GET /lost", Price: payment.Cent, Faults: canopytest.Plan{canopytest.First(canopytest.DropAfterSettling())}})
	w.want(5, "fetch", w.url+"/lost", "--key", "k")
	note := "EOF"
	contains(t, w.want(0, "reconcile").out, "in doubt (", note)
	w.want(6, "fetch", w.url+"/lost", "--key", "k")
	held := w.want(0, "reconcile").out
	contains(t, held, "claimed: GET "+w.url+"/lost")
	lacks(t, held, note)
	contains(t, w.want(0, "ledger", "show", w.entries()[0]["transactionId"].(string)).out, "Noted while it was in doubt: ")
}

// A list has what counts, with the fee that was paid, or may be.
func TestListCounts(t *testing.T) {
	t.Parallel()
	w := onTempo(t, testPolicy, canopytest.Route{Pattern: "GET /forecast", Price: payment.Cent})
	w.want(0, "fetch", w.url+"/forecast")
	contains(t, w.want(0, "ledger", "list").out, "$0.0352 with a fee of at most $0.0252")
	for range 20 {
		w.chain.Mine()
	}
	w.want(0, "reconcile")
	spent := w.chain.Spent(w.payer)
	contains(t, w.want(0, "ledger", "list").out, spent.String()+" with a fee of "+(spent-payment.Cent).String())
	for _, tt := range []struct {
		e    ledger.Entry
		want string
	}{
		{ledger.Entry{State: ledger.Denied, Cost: 2 * payment.Cent}, "$0.02"},
		{ledger.Entry{State: ledger.ExpiredUnused, Cost: 2 * payment.Cent, AuthorizedAt: time.Now()}, "$0.00"},
		{ledger.Entry{State: ledger.Cancelled, Cost: 2 * payment.Cent, Spent: payment.Cent, AuthorizedAt: time.Now()}, "$0.01, its fee"},
	} {
		if got := costs(tt.e); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.e.State, got, tt.want)
		}
	}
}
