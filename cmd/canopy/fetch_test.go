package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

func TestFetchPays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	r := w.want(0, "fetch", w.url+"/cent")
	if r.out != "{\"path\":\"/cent\"}\n" {
		t.Errorf("body %q", r.out)
	}
	contains(t, r.err, "paid $0.01", "payment 01", "tx 0x")
	w.chain.AssertSpent(t, w.payer, payment.Cent)

	if r := w.want(0, "fetch", "-s", w.url+"/cent"); r.err != "" {
		t.Errorf("-s says %q", r.err)
	}
	r = w.want(0, "fetch", "-i", w.url+"/cent")
	contains(t, r.out, "HTTP/1.1 200 OK\n", "Content-Type: application/json\n", "\n\n{\"path\"")
	w.chain.AssertSpent(t, w.payer, 3*payment.Cent)
}

func TestFetchJSON(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 40_000) // 80,000 bytes
	w := newWorld(t, testPolicy,
		route("GET /cent", payment.Cent),
		canopytest.Route{Pattern: "GET /long", Price: payment.Cent, Handler: text("text/plain; charset=utf-8", []byte("x"+long))},
		canopytest.Route{Pattern: "GET /png", Price: payment.Cent, Handler: text("image/png", []byte("\x89PNG\x00\xff"))},
		canopytest.Route{Pattern: "GET /big", Price: payment.Cent, Handler: text("application/octet-stream", make([]byte, 70_000))},
		canopytest.Route{Pattern: "GET /free", Handler: text("text/html", []byte("<b>free</b>"))},
	)
	r := w.want(0, "fetch", "--json", w.url+"/cent")
	wantKeys(t, r, "status headers content_length body body_encoding truncated transaction_id cost_usd payment_state amount_usd fee_usd spent_usd")
	v := r.object(t)
	if v["status"] != json.Number("200") || v["cost_usd"] != json.Number("0.01") || v["payment_state"] != "claimed" ||
		v["body"] != "{\"path\":\"/cent\"}\n" || v["body_encoding"] != "text" || v["truncated"] != false || v["content_length"] != json.Number("17") {
		t.Errorf("got %s", r.out)
	}
	if h := v["headers"].(map[string]any); h["content-type"] != "application/json" {
		t.Errorf("headers %v", h)
	}

	v = w.want(0, "--json", "fetch", w.url+"/long").object(t)
	body := v["body"].(string)
	if v["truncated"] != true || len(body) != 65_535 || !strings.HasSuffix(body, "é") || v["body_encoding"] != "text" {
		t.Errorf("long text: %d bytes, truncated %v, %v", len(body), v["truncated"], v["body_encoding"])
	}
	v = w.want(0, "fetch", w.url+"/png", "--json").object(t)
	if v["body"] != base64.StdEncoding.EncodeToString([]byte("\x89PNG\x00\xff")) || v["body_encoding"] != "base64" || v["truncated"] != false {
		t.Errorf("binary: %v", v)
	}
	v = w.want(0, "fetch", w.url+"/big", "--json").object(t)
	if v["body"] != nil || v["body_encoding"] != "omitted" || v["truncated"] != true {
		t.Errorf("large binary: %v %v %v", v["body"], v["body_encoding"], v["truncated"])
	}
	r = w.want(0, "fetch", w.url+"/free", "--json")
	wantKeys(t, r, "status headers content_length body body_encoding truncated")
	if v := r.object(t); v["body"] != "<b>free</b>" {
		t.Errorf("free: %s", r.out)
	}
}

func TestFetchPendingThenApproved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dear", 150*payment.Cent))
	r := w.want(3, "fetch", w.url+"/dear", "--purpose", "the report", "--json")
	wantKeys(t, r, "status approval_id transaction_id recipient_name amount_usd expires_at chat_approval_enabled message code reasons fee_usd cost_usd")
	v := r.object(t)
	id := v["approval_id"].(string)
	if v["status"] != "pending_approval" || v["amount_usd"] != json.Number("1.50") || v["chat_approval_enabled"] != false || v["recipient_name"] != "127.0.0.1" {
		t.Errorf("got %s", r.out)
	}
	contains(t, v["message"].(string), "Amount $1.50 exceeds approval threshold of $1", "canopy approvals approve "+id)

	r = w.want(3, "fetch", w.url+"/dear") // the same approval
	contains(t, r.err, "waits for approval", id, "canopy approvals approve "+id)
	r = w.want(3, "approvals", "wait", id, "--timeout", "10ms", "--json")
	wantKeys(t, r, "status decidedAt expiresAt transactionId txHash reason next terms")
	if v := r.object(t); v["status"] != "pending" || v["next"] != "wait" || v["decidedAt"] != nil {
		t.Errorf("got %s", r.out)
	}

	contains(t, w.want(0, "approvals", "list").out, id, "$1.50", "/dear")
	contains(t, w.want(0, "__complete", "--config", w.config, "approvals", "approve", "").out, id+"\t$1.50 for GET ")
	contains(t, w.want(0, "__complete", "--config", w.config, "ping", "--agent", "").out, "chatty\n", "default\n")
	contains(t, w.want(0, "approvals", "show", id).out, "GET "+w.url+"/dear", "$1.50", "the report", canopytest.Address("seller").String(), "nothing on this ledger was paid")
	w.want(2, "approvals", "approve", id) // nobody to confirm
	r = w.want(0, "approvals", "approve", id, "--yes", "--by", "ana", "--reason", "fine", "--json")
	wantKeys(t, r, "status approval_id transaction_id")
	if v := r.object(t); v["status"] != "approved" || v["approval_id"] != id {
		t.Errorf("got %s", r.out)
	}
	r = w.want(1, "approvals", "deny", id, "--yes", "--json")
	if v := r.object(t); v["code"] != "already_decided" || v["status"] != "error" {
		t.Errorf("got %s", r.out)
	}
	if v := w.want(0, "approvals", "wait", id, "--json").object(t); v["next"] != "call_canopy_fetch" || v["status"] != "approved" {
		t.Errorf("got %v", v)
	}
	w.want(0, "freeze", "--reason", "a moment")
	if v := w.want(0, "approvals", "show", id, "--json").object(t); v["next"] != "retry_later" {
		t.Errorf("while frozen: %v", v)
	}
	w.want(0, "unfreeze", "--reason", "over")
	w.want(0, "fetch", w.url+"/dear")
	w.chain.AssertSpent(t, w.payer, 150*payment.Cent)
	v = w.want(0, "approvals", "show", id, "--json").object(t)
	if v["next"] != "paid" || !strings.HasPrefix(v["txHash"].(string), "0x") {
		t.Errorf("got %v", v)
	}
	r = w.want(0, "ledger", "show", id)
	contains(t, r.out, "claimed", "Amount $1.50 exceeds approval threshold of $1", "authorized -> claimed", "HTTP 200", "approved by ana (cli)", "fine")
}

// An approved payment that no longer fits keeps its approval.
func TestApprovedButFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dear", 150*payment.Cent), route("GET /dollar", payment.Dollar))
	id := w.want(3, "fetch", w.url+"/dear", "--json").object(t)["approval_id"].(string)
	w.want(0, "approvals", "approve", id, "--yes", "--by", "ana")
	w.want(0, "fetch", w.url+"/dollar")
	w.want(0, "fetch", w.url+"/dollar")
	if v := w.want(0, "approvals", "show", id, "--json").object(t); v["next"] != "retry_later" || v["status"] != "approved" {
		t.Errorf("got %v", v)
	}
	contains(t, w.want(0, "approvals", "wait", id).err, "Spend cap exceeded: $2.00 + $1.50 > $3 / 24h")
	w.want(4, "fetch", w.url+"/dear")
	if v := w.want(0, "approvals", "show", id, "--json").object(t); v["next"] != "retry_later" {
		t.Errorf("after the denial: %v", v)
	}
	w.chain.AssertSpent(t, w.payer, 2*payment.Dollar)
}

func TestFetchWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dear", 150*payment.Cent), route("GET /other", 120*payment.Cent))
	r := w.want(3, "fetch", w.url+"/dear", "--wait", "50ms", "--json")
	wantKeys(t, r, "status approval_id reason code reasons amount_usd fee_usd cost_usd")
	if v := r.object(t); v["status"] != "approval_timeout" {
		t.Errorf("got %s", r.out)
	}
	rule := func(verb string) {
		for range 100 {
			var list []map[string]any
			if err := json.Unmarshal([]byte(w.run("approvals", "list", "--json").out), &list); err == nil && len(list) > 0 {
				w.run("approvals", verb, list[0]["approvalId"].(string), "--yes", "--by", "ana", "--reason", "not now")
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); rule("approve") }()
	w.want(0, "fetch", w.url+"/dear", "--wait", "20s")
	<-done
	w.chain.AssertSpent(t, w.payer, 150*payment.Cent)

	done = make(chan struct{})
	go func() { defer close(done); rule("deny") }()
	r = w.want(4, "fetch", w.url+"/other", "--wait", "20s", "--json")
	<-done
	wantKeys(t, r, "status approval_id reason code reasons amount_usd fee_usd cost_usd")
	if v := r.object(t); v["status"] != "denied" || !strings.Contains(v["reason"].(string), "not now") {
		t.Errorf("got %s", r.out)
	}
}

func TestFetchDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dear", 250*payment.Cent), route("GET /cent", payment.Cent), route("GET /dollar", payment.Dollar))
	r := w.want(4, "fetch", w.url+"/dear", "--json")
	wantKeys(t, r, "status reason transaction_id code reasons amount_usd fee_usd cost_usd")
	if v := r.object(t); v["status"] != "denied" {
		t.Errorf("got %s", r.out)
	}
	contains(t, w.want(4, "fetch", w.url+"/dear").err, "denied:", "max_payment")
	contains(t, w.want(4, "fetch", w.url+"/cent", "--max-price", "0.005").err, "denied:")
	for range 3 {
		w.want(0, "fetch", w.url+"/dollar")
	}
	r = w.want(4, "fetch", w.url+"/cent", "--json")
	if v := r.object(t); v["reason"] != "Spend cap exceeded: $3.00 + $0.01 > $3 / 24h" {
		t.Errorf("got %s", r.out)
	}
	w.chain.AssertSpent(t, w.payer, 3*payment.Dollar)

	none := newWorld(t, strings.Replace(testPolicy, `"host:127.0.0.1", `, "", 1), route("GET /cent", payment.Cent))
	r = none.want(4, "fetch", none.url+"/cent")
	contains(t, r.err, `add "host:127.0.0.1:`, "canopy.toml")
}

func TestFetchInDoubtAndPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy,
		canopytest.Route{Pattern: "GET /dropped", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())}},
		canopytest.Route{Pattern: "GET /again", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())}},
		canopytest.Route{Pattern: "GET /paid500", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.StatusWithReceipt(500))}},
		canopytest.Route{Pattern: "GET /lost500", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.StatusAfterSettling(500))}},
		canopytest.Route{Pattern: "GET /noreceipt", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.NoReceipt())}},
	)
	r := w.want(5, "fetch", w.url+"/dropped", "--json")
	wantKeys(t, r, "status error code transaction_id amount_usd safe_after fee_usd cost_usd")
	if v := r.object(t); v["status"] != "error" || v["code"] != "in_doubt" || v["amount_usd"] != json.Number("0.01") {
		t.Errorf("got %s", r.out)
	}
	contains(t, w.want(5, "fetch", w.url+"/again").err, "in doubt", "canopy ledger show")
	r = w.want(6, "fetch", w.url+"/paid500", "--json")
	if v := r.object(t); v["status"] != json.Number("500") || v["payment_state"] != "claimed" {
		t.Errorf("got %s", r.out)
	}
	r = w.want(5, "fetch", w.url+"/lost500", "--json")
	if v := r.object(t); v["status"] != json.Number("500") || v["payment_state"] != "in_doubt" {
		t.Errorf("got %s", r.out)
	}
	r = w.want(0, "fetch", w.url+"/noreceipt")
	contains(t, r.err, "in doubt: the seller gave no receipt")

	for _, e := range w.entries() {
		id := e["transactionId"].(string)
		contains(t, w.want(0, "ledger", "show", id).out, "Decided", "Signed", "What came back", "Next", "Record")
		if e["state"] == "in_doubt" {
			contains(t, w.want(1, "ledger", "resolve", id, "--unused", "--reason", "x", "--yes").err, "can still move money until")
		}
	}
	id := w.entries()[0]["transactionId"].(string)
	tx := "0x" + strings.Repeat("ab", 32)
	w.want(2, "ledger", "resolve", id, "--settled", tx, "--reason", "seen") // nobody to confirm
	r = w.want(0, "ledger", "resolve", id, "--settled", tx, "--reason", "seen on the explorer", "--by", "ana", "--yes", "--json")
	if v := r.object(t); v["state"] != "settled" || v["assumed"] != true || v["txHash"] != tx {
		t.Errorf("got %s", r.out)
	}
	w.want(1, "ledger", "resolve", id, "--settled", tx, "--reason", "again", "--yes")
	contains(t, w.want(0, "ledger", "show", id).out, "seen on the explorer", "in_doubt -> settled", "operator", "assumed")
	w.want(0, "ledger", "verify")
}

func TestFetchKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent), route("GET /two", 2*payment.Cent))
	w.want(0, "fetch", w.url+"/cent", "--key", "k1")
	r := w.want(6, "fetch", w.url+"/cent", "--key", "k1", "--json")
	if v := r.object(t); v["code"] != "already_delivered" || v["status"] != "error" {
		t.Errorf("got %s", r.out)
	}
	contains(t, w.want(6, "fetch", w.url+"/cent", "--key", "k1").err, "delivered before", "Another --key makes a new purchase", "canopy ledger show")
	w.chain.AssertSpent(t, w.payer, payment.Cent)
	r = w.want(1, "fetch", w.url+"/two", "--key", "k1", "--json")
	if v := r.object(t); v["code"] != "key_conflict" {
		t.Errorf("got %s", r.out)
	}
	contains(t, w.run("fetch", w.url+"/cent", "--key", "").err, "key")
}

func TestFetchAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	w.want(3, "fetch", w.url+"/cent", "--ask")
	v := w.want(3, "--agent", "chatty", "fetch", w.url+"/cent", "--ask", "--json").object(t)
	if v["chat_approval_enabled"] != true || !strings.Contains(v["message"].(string), "canopy_approve") {
		t.Errorf("got %v", v)
	}
}

func TestFetchOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent), canopytest.Route{Pattern: "GET /png", Price: payment.Cent, Handler: text("image/png", make([]byte, 200_000))})
	file := filepath.Join(w.dir, "out")
	if err := os.WriteFile(file, []byte(strings.Repeat("old", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.want(0, "fetch", w.url+"/cent", "-o", file); r.out != "" {
		t.Errorf("stdout %q", r.out)
	}
	if b, _ := os.ReadFile(file); string(b) != "{\"path\":\"/cent\"}\n" {
		t.Errorf("file %q", b)
	}
	v := w.want(0, "fetch", w.url+"/png", "-o", file, "--json").object(t)
	if v["body"] != nil || v["body_encoding"] != "omitted" || v["truncated"] != false || v["content_length"] != json.Number("200000") {
		t.Errorf("got %v", v)
	}
	if info, _ := os.Stat(file); info.Size() != 200_000 {
		t.Errorf("%d bytes", info.Size())
	}
	// What was there stays where no answer comes, and nothing new is left.
	w.run("fetch", "http://127.0.0.1:1/", "-o", file)
	if info, _ := os.Stat(file); info.Size() != 200_000 {
		t.Error("a failed fetch emptied the file")
	}
	w.run("fetch", "http://127.0.0.1:1/", "-o", file+".new")
	if _, err := os.Stat(file + ".new"); !os.IsNotExist(err) {
		t.Error("a failed fetch left a file")
	}
	if r := w.want(0, "fetch", w.url+"/cent", "-o", "-"); r.out == "" {
		t.Error("-o - prints nothing")
	}
}

func TestFetchRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	other := httptest.NewServer(http.RedirectHandler(w.url+"/cent", http.StatusFound))
	defer other.Close()
	r := w.want(0, "fetch", "-i", other.URL)
	contains(t, r.out, "302 Found", "Location: "+w.url+"/cent")
	contains(t, w.want(4, "fetch", "-L", other.URL).err, "redirected to")
	if v := w.want(0, "fetch", "--json", other.URL).object(t); v["status"] != json.Number("302") || v["headers"].(map[string]any)["location"] != w.url+"/cent" {
		t.Errorf("got %v", v)
	}
	w.chain.AssertSpent(t, w.payer, 0)
}

func TestFetchUnpaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/402":
			rw.WriteHeader(http.StatusPaymentRequired)
			io.WriteString(rw, "pay me in shells")
		case "/404":
			rw.WriteHeader(http.StatusNotFound)
			io.WriteString(rw, "nothing")
		case "/cut":
			rw.Header().Set("Content-Length", "100")
			io.WriteString(rw, "half")
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
		}
	}))
	defer srv.Close()
	r := w.want(1, "fetch", srv.URL+"/402")
	contains(t, r.err, "Nothing was paid")
	if r.out != "pay me in shells" {
		t.Errorf("body %q", r.out)
	}
	w.want(0, "fetch", srv.URL+"/404")
	w.want(1, "fetch", "-f", srv.URL+"/404")
	contains(t, w.want(1, "fetch", srv.URL+"/cut").err, "broke off")
	if v := w.want(1, "fetch", srv.URL+"/cut", "--json").object(t); v["status"] != "error" {
		t.Errorf("got %v", v)
	}
	start := time.Now()
	w.want(1, "fetch", srv.URL+"/slow", "--max-time", "0.05")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if r := call(t, ctx, "", "--config", w.config, "fetch", srv.URL+"/slow"); r.code != 1 {
		t.Errorf("cancelled: %+v", r)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	w.want(1, "fetch", "http://10.255.255.1/")
	contains(t, w.want(1, "fetch", "http://10.255.255.1/").err, "allow_private", `10.255.255.1/32`)
}
