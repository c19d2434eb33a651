package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

const friend = "0x2096a1Dd90dd45F9b6C2Fb2c3cF0e0d1C7c4287C"

const payPolicy = `
[policy.default]
max_payment = "$2"
caps = ["$3 / 24h"]
approve_above = "$1"
allow = ["*"]
`

// connected is a world whose configuration names two nodes and a facilitator.
func connected(t *testing.T, routes ...canopytest.Route) (*world, *canopytest.Facilitator) {
	t.Helper()
	w := newWorld(t, payPolicy, routes...)
	f := canopytest.NewFacilitator(w.chain, canopytest.FacilitatorConfig{})
	a, b := canopytest.NewNode(w.chain), canopytest.NewNode(w.chain)
	file, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	text := string(file) + "[[chain]]\nid = \"base\"\nrpc = [\"" + a.Start(t) + "\", \"" + b.Start(t) + "\"]\nfacilitator = \"" + f.Start(t) + "\"\n"
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, f
}

// payee is friend with its checksum.
func payee(t *testing.T) string {
	t.Helper()
	a, err := payment.ParseAddressLoose(friend)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func TestPay(t *testing.T) {
	t.Parallel()
	w, f := connected(t)
	to := payee(t)
	r := w.want(0, "pay", to, "0.10", "--key", "invoice-7", "--purpose", "lunch", "--json")
	wantKeys(t, r, "status txHash transactionId costUsd amountUsd feeUsd spentUsd")
	v := r.object(t)
	if v["status"] != "allowed" || v["costUsd"].(json.Number) != "0.10" || !strings.HasPrefix(v["txHash"].(string), "0x") {
		t.Errorf("%v", v)
	}
	again := w.want(0, "pay", to, "0.10", "--key", "invoice-7", "--json").object(t)
	if again["transactionId"] != v["transactionId"] || again["txHash"] != v["txHash"] {
		t.Errorf("again %v, want %v", again, v)
	}
	contains(t, w.want(1, "pay", to, "0.20", "--key", "invoice-7").err, "key")
	w.chain.AssertSpent(t, w.payer, 10*payment.Cent)
	r = w.want(4, "pay", to, "0.10")
	contains(t, r.out, "Duplicate of payment "+v["transactionId"].(string))
	r = w.want(0, "pay", to, "0.25", "--key", "other")
	contains(t, r.out, "allowed", "$0.25", to, "base")

	r = w.want(3, "pay", to, "1.50", "--key", "dear", "--json")
	contains(t, r.out, `"status": "pending_approval"`, "exceeds approval threshold of $1")
	id := r.object(t)["approvalId"].(string)
	w.want(0, "approvals", "approve", id, "--yes", "--by", "ana")
	w.want(0, "pay", to, "1.50", "--key", "dear")
	w.chain.AssertSpent(t, w.payer, 185*payment.Cent)

	r = w.want(4, "pay", to, "1.90", "--json")
	contains(t, r.out, `"status": "denied"`, "Spend cap exceeded")
	w.want(4, "preview", to, "1.90")

	f.SetMissteps(canopytest.Refuse)
	r = w.want(5, "pay", to, "0.05", "--key", "doubt", "--json")
	wantKeys(t, r, "status error code transactionId amountUsd safeAfter feeUsd costUsd")
	story := w.want(0, "ledger", "show", r.object(t)["transactionId"].(string)).out
	contains(t, story, "The facilitator claims that the payment did not settle, which proves nothing", "the same canopy pay submits the same bytes again", "Nothing final yet")
	w.want(0, "pay", to, "0.05", "--key", "doubt")
	w.chain.AssertSpent(t, w.payer, 190*payment.Cent)

	for _, args := range [][]string{
		{"pay"}, {"pay", to}, {"pay", "nobody", "1"}, {"pay", to, "much"}, {"pay", to, "1", "--chain", "moon"},
	} {
		w.want(2, args...)
	}
}

// What is wrong with a transfer is told in the words of the command line, with
// what to do about it, and is a mistake of usage; nothing is recorded.
func TestPayUsage(t *testing.T) {
	t.Parallel()
	w, _ := connected(t)
	to, own := payee(t), w.payer.String()
	for name, tt := range map[string]struct{ args, says string }{
		"nothing":             {to + "|0", `USD: "0" is no amount to pay: write dollars from 0.000001`},
		"below zero":          {to + "|-1", `USD: "-1" is no amount to pay`},
		"below zero, cents":   {to + "|-0.5", `USD: "-0.5" is no amount to pay`},
		"below zero, dollars": {to + "|-$5", `USD: "-$5" is no amount to pay`},
		"after the flags":     {"--|" + to + "|-1", `USD: "-1" is no amount to pay`},
		"too fine":            {to + "|0.0000001", `USD: "0.0000001" is no amount to pay`},
		"in words":            {to + "|1,50", `USD: "1,50" is no amount to pay`},
		"an unknown flag":     {to + "|1|-z", "unknown shorthand flag: 'z'"},
		"nobody":              {"0x0000000000000000000000000000000000000000|1", "TO: nobody holds the zero address"},
		"no address":          {"bob|1", `TO: payment: not an address: "bob" is not 0x and 40 hex digits`},
		"no chain":            {to + "|1|--chain|moon", `--chain: "moon" is not a chain: there are base, base-sepolia, tempo`},
		"unknown chain":       {to + "|1|--chain|eip155:999", `--chain: no rail of this client transfers on eip155:999: ` + w.config + ` needs a [[chain]] with id = "eip155:999", and an [[asset]]`},
		"a chain to name":     {to + "|1|--chain|polygon", `--chain: no rail of this client transfers on polygon: ` + w.config + ` needs a [[chain]] with id = "eip155:137"` + "\n"},
		"no node":             {to + "|1|--chain|tempo", "--chain: mpp: no node to broadcast by: a transaction on tempo is sent by ourselves, to the nodes that are configured for it (rpc in its [[chain]]"},
		"no facilitator":      {to + "|1|--chain|base-sepolia", "--chain: x402: no facilitator is configured for base-sepolia (facilitator in its [[chain]]"},
		"a memo on base":      {to + "|1|--memo|hello", "--memo: a transfer of USDC on base carries none: transfers on Tempo do"},
		"half-typed hex":      {to + "|1|--chain|tempo|--memo|0x1234", `--memo: "0x1234" begins as hex does, and is not 32 bytes of it: a memo is 0x and 64 hex digits, or text of at most 32 bytes`},
		"a long memo":         {to + "|1|--chain|tempo|--memo|" + strings.Repeat("x", 33), "--memo: it has 33 bytes: a memo is"},
		"a memo's line break": {to + "|1|--chain|tempo|--memo|a\nb", "--memo: it has the character U+000A, which is not seen"},
		"a memo's bytes":      {to + "|1|--chain|tempo|--memo|a\xff", "--memo: it is not UTF-8"},
		"a long key":          {to + "|1|--key|" + strings.Repeat("k", 257), "--key: a key has 1 to 256 bytes, not 257"},
		"an empty key":        {to + "|1|--key|", "--key: it is empty"},
		"a long purpose":      {to + "|1|--purpose|" + strings.Repeat("p", 513), "--purpose: it has 513 bytes, and 512 at most"},
	} {
		args := strings.Split(tt.args, "|")
		r := w.want(2, append([]string{"pay"}, args...)...)
		contains(t, r.err, tt.says, "See canopy pay --help")
		if r.out != "" || strings.Contains(r.err, "Transfer.") {
			t.Errorf("%s: %+v", name, r)
		}
		// A preview takes all that shapes the terms, and says the same of it.
		switch {
		case strings.Contains(tt.args, "--purpose"):
		default:
			contains(t, w.want(2, append([]string{"preview"}, args...)...).err, tt.says, "See canopy preview --help")
		}
	}
	w.want(2, "pay", to, "0", "--json")
	contains(t, w.want(2, "pay", to, "1", "--chain", "tempo", "--memo", "0x1234", "--json").out, `"error": "--memo: \"0x1234\" begins`)
	for _, verb := range []string{"pay", "preview"} {
		contains(t, w.want(4, verb, own, "0.10").out, "because  the payee "+own+" is the paying account", "$0.10")
	}
	if list := w.entries(); len(list) > 0 {
		t.Errorf("recorded %v", list)
	}
}

// A transfer in doubt says what to do, and until when.
func TestPayInDoubt(t *testing.T) {
	t.Parallel()
	w, f := connected(t)
	f.SetMissteps(canopytest.Refuse)
	r := w.want(5, "pay", payee(t), "0.05")
	id := w.entries()[0]["transactionId"].(string)
	contains(t, r.err, "payment "+id+" of $0.05 is in doubt", "The money stays held. The same command again submits the same bytes", "Pay by no other means before ", "canopy ledger show "+id)
	if r.out != "" || strings.Count(r.err, "is in doubt") != 1 {
		t.Errorf("%+v", r)
	}
	if r := w.want(0, "pay", payee(t), "0.05"); !strings.Contains(r.out, id) {
		t.Errorf("the same command again: %+v", r)
	}
	w.chain.AssertSpent(t, w.payer, 5*payment.Cent)
}

// Of nothing no money is held, and a time that has passed is told as one.
func TestDoubtIsTold(t *testing.T) {
	t.Parallel()
	a := &app{}
	doubt := &canopy.InDoubtError{Result: canopy.Result{PaymentID: "01J9ZC3V5Y8Q2T4W6X8Z0A1B2C", Amount: payment.Cent}, SafeAfter: time.Now().Add(time.Hour)}
	text := a.doubtful(doubt, "fetch again sends")
	contains(t, text, "The money stays held. The same fetch again sends the same bytes", "Pay by no other means before ")
	doubt.Result.Amount, doubt.SafeAfter = 0, time.Now().Add(-6*time.Second)
	text = a.doubtful(doubt, "fetch again sends")
	contains(t, text, "It was to be paid by no other means before ", "6s ago", "canopy ledger show 01J9")
	if strings.Contains(text, "held") || strings.Contains(text, "Pay by") {
		t.Errorf("%q", text)
	}
	f := &fetch{app: a, key: "k"}
	past := &canopy.PaidError{SafeAfter: time.Now().Add(-time.Minute)}
	if text := f.afterPaid(past); text != "This --key stays with this purchase. Another --key makes a new one." {
		t.Errorf("%q", text)
	}
	f.key = ""
	if text := f.afterPaid(past); text != "An equal fetch is a new purchase." {
		t.Errorf("%q", text)
	}
}

// A denial of a transfer says how its payee would be let.
func TestPayHint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy+"[[chain]]\nid = \"base\"\nfacilitator = \"http://127.0.0.1:1/\"\n")
	for _, verb := range []string{"pay", "preview"} {
		contains(t, w.want(4, verb, payee(t), "0.10").err, `add "address:`+payee(t)+`" to allow in `+w.config)
	}
}

// TestReconcile unplugs the network mid-payment, and asks what happened.
func TestReconcile(t *testing.T) {
	t.Parallel()
	w, _ := connected(t,
		canopytest.Route{Pattern: "GET /lost", Price: 20 * payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}},
		canopytest.Route{Pattern: "GET /never", Price: 30 * payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropBeforeSettling())}},
	)
	contains(t, w.want(0, "reconcile").out, "No payment is held.")
	w.want(5, "fetch", w.url+"/lost")
	w.want(5, "fetch", w.url+"/never")
	r := w.want(0, "reconcile", "--json")
	wantKeys(t, r, "looked recovered settled released cancelled needsOperator waiting unwatched changed foreign problems proofs knownForeign frozen")
	if v := r.object(t); v["waiting"].(json.Number) != "2" {
		t.Errorf("%v", v)
	}
	ids := []string{}
	for _, e := range w.entries() {
		ids = append(ids, e["transactionId"].(string))
	}
	contains(t, w.want(0, "ledger", "show", ids[1]).out, "stays held", "Until ", "Then canopy reconcile asks the chain")
	w.chain.Finalize()
	r = w.want(0, "reconcile")
	contains(t, r.out, ids[0]+"  $0.20  settled: the chain shows the transfer 0x", "waiting 1")
	contains(t, w.want(0, "ledger", "show", ids[0]).out, "the transfer 0x", "is there and final", "Nothing: it is settled.")

	// A chain that cannot be asked is a problem, and changes nothing.
	w.chain.SetDown(context.DeadlineExceeded)
	contains(t, w.want(1, "reconcile").out, "problem: base")
	w.chain.SetDown(nil)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result)
	go func() { done <- call(t, ctx, "", "--config", w.config, "reconcile", "--every", "1s", "--json") }()
	time.Sleep(500 * time.Millisecond)
	cancel()
	if r := <-done; r.code != 0 || !strings.Contains(r.out, `"looked": 1`) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	w.want(2, "reconcile", "--every", "1ms")
}

func TestExport(t *testing.T) {
	t.Parallel()
	w, _ := connected(t, route("GET /cent", payment.Cent))
	w.want(0, "fetch", w.url+"/cent?=formula")
	w.want(0, "pay", payee(t), "0.10", "--purpose", "=HYPERLINK(\"x\")")
	w.want(4, "pay", payee(t), "5", "--purpose", "above max_payment")
	r := w.want(0, "ledger", "export")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) < 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || v["transactionId"] == nil || v["events"] == nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(w.want(0, "ledger", "export", "--format", "csv").out)).ReadAll()
	if err != nil || len(rows) != len(lines)+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	if rows[1][at["cost_usd"]] != "0.01" || rows[1][at["state"]] != "claimed" || rows[2][at["purpose"]] != "'=HYPERLINK(\"x\")" {
		t.Errorf("%v", rows[1:])
	}
	if last := rows[0][len(rows[0])-5:]; strings.Join(last, " ") != "spent_usd memo key realm further_payees" {
		t.Errorf("the last columns are %v", last)
	}
	if rows[1][at["spent_usd"]] != "0.01" || rows[3][at["spent_usd"]] != "0.00" || rows[3][at["cost_usd"]] != "5.00" || rows[1][at["url"]] == "" {
		t.Errorf("%v", rows[1:])
	}
	if out := w.want(0, "ledger", "export", "--since", "2020-01-01", "--until", "2020-01-02").out; out != "" {
		t.Errorf("%q", out)
	}
	w.want(2, "ledger", "export", "--format", "xml")
}

// An export tells what a payment counts for, its memo, its key, the name that its
// seller gives, and all of its payees.
func TestExportTellsAll(t *testing.T) {
	t.Parallel()
	w := onTempo(t, "[policy.default]\nmax_payment = \"$2\"\ncaps = [\"$3 / 24h\"]\nallow = [\"*\"]\n", canopytest.Route{
		Pattern: "GET /split", Price: 10 * payment.Cent, Splits: []canopytest.Split{{To: canopytest.Address("partner"), Price: 3 * payment.Cent}},
	})
	w.want(0, "fetch", w.url+"/split", "--key", "s1")
	w.want(0, "pay", payee(t), "0.50", "--chain", "tempo-testnet", "--memo", "invoice 17", "--key", "i17")
	for range 20 {
		w.chain.Mine()
	}
	w.want(0, "reconcile")
	rows, err := csv.NewReader(strings.NewReader(w.want(0, "ledger", "export", "--format", "csv").out)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	col := func(row int, name string) string {
		for i, n := range rows[0] {
			if n == name {
				return rows[row][i]
			}
		}
		t.Fatalf("no column %s", name)
		return ""
	}
	list := w.entries()
	for i, want := range []map[string]string{
		{"key": "s1", "memo": "", "further_payees": canopytest.Address("partner").String() + " 0.03", "url": w.url + "/split"},
		{"key": "i17", "memo": "invoice 17", "realm": "", "further_payees": "", "url": ""},
	} {
		for name, value := range want {
			if got := col(i+1, name); got != value {
				t.Errorf("%s of payment %d is %q, want %q", name, i+1, got, value)
			}
		}
		if spent, cost := col(i+1, "spent_usd"), col(i+1, "cost_usd"); list[i]["state"] != "settled" || spent >= cost || spent == "" {
			t.Errorf("payment %d is %s and counts for %s of %s", i+1, list[i]["state"], spent, cost)
		}
	}
	if col(1, "realm") == "" {
		t.Error("the seller's name is missing")
	}
	lines := w.want(0, "ledger", "export").out
	contains(t, lines, `"spentUsd":`, `"memo":"invoice 17"`, `"key":"i17"`, `"key":"s1"`, `"realm":"`, `{"address":"`+canopytest.Address("partner").String()+`","amountUsd":0.03}`)
}
