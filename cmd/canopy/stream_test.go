package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// A body is printed as it comes, and ctrl-C in the middle of one is an answer
// that broke off.
func TestFetchStreams(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	stream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	w := newWorld(t, testPolicy)
	srv := httptest.NewServer(stream) // canopytest's sellers hold their answers back
	t.Cleanup(func() { close(stop); srv.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	pr, pw := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int)
	go func() {
		code := run(ctx, []string{"--config", w.config, "fetch", srv.URL}, strings.NewReader(""), pw, &errs)
		pw.Close()
		done <- code
	}()
	buf := make([]byte, 6)
	if _, err := io.ReadFull(pr, buf); err != nil || string(buf) != "first\n" {
		t.Fatalf("%q, %v", buf, err)
	}
	cancel()
	go io.Copy(io.Discard, pr)
	select {
	case code := <-done:
		if code != 1 {
			t.Errorf("exit %d: %s", code, errs.String())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("ctrl-C is not heard")
	}
}

// A cancel while the seller settles leaves a payment in doubt, recorded.
func TestFetchCancelledWhilePaying(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, canopytest.Route{
		Pattern: "GET /slow", Price: payment.Cent,
		Faults: canopytest.Plan{canopytest.Always(canopytest.Delay(20 * time.Second).At(canopytest.OnPaid))},
	})
	r := w.want(5, "fetch", w.url+"/slow", "--max-time", "0.5", "--json")
	if v := r.object(t); v["code"] != "in_doubt" {
		t.Errorf("got %s", r.out)
	}
	if e := w.entries(); len(e) != 1 || e[0]["state"] != "in_doubt" {
		t.Errorf("ledger %v", e)
	}
}

// What sellers write reaches a terminal as text only.
func TestSellersWords(t *testing.T) {
	t.Parallel()
	hostile := "\x1b]0;pwned\x07\x1b[2Jpay \u202eevil\u202c to\u200b me\r\nHTTP/1.1 200 OK"
	w := newWorld(t, testPolicy, canopytest.Route{
		Pattern: "GET /dear", Price: 250 * payment.Cent, Description: hostile,
		Faults: canopytest.Plan{canopytest.Always(canopytest.HostileText(hostile))},
	}, canopytest.Route{
		Pattern: "GET /failed", Price: payment.Cent,
		Faults: canopytest.Plan{canopytest.Always(canopytest.SayFailed(hostile))},
	})
	for _, r := range []result{
		w.run("check", w.url+"/dear"), w.run("fetch", w.url+"/dear"), w.run("fetch", w.url+"/failed"), w.run("ledger", "list"),
	} {
		for _, c := range r.out + r.err {
			if c < ' ' && c != '\n' && c != '\t' || c == '\u202e' || c == '\u200b' || c == 0x7f {
				t.Errorf("%U reaches the terminal:\n%q\n%q", c, r.out, r.err)
				break
			}
		}
	}
	for _, e := range w.entries() {
		r := w.want(0, "ledger", "show", e["transactionId"].(string))
		if strings.ContainsAny(r.out, "\x1b\x07\u202e\u200b\r") {
			t.Errorf("ledger show: %q", r.out)
		}
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 7, 1000} {
		var out bytes.Buffer
		s := &screen{w: &out}
		in := "a\tb\n\x1b[31mred é世界\u202e\u200b \xff\xfe🙂\r\n  two"
		for b := []byte(in); len(b) > 0; {
			n := min(size, len(b))
			if m, err := s.Write(b[:n]); m != n || err != nil {
				t.Fatalf("%d, %v", m, err)
			}
			b = b[n:]
		}
		if want := "a\tb\n[31mred é世界 ??🙂\n  two"; out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
}

// sentByOthers is a chain with a facilitator, which nobody asks.
const sentByOthers = "[[chain]]\nid = \"base\"\nfacilitator = \"http://127.0.0.1:1/\"\n[[chain]]\nid = \"base-sepolia\"\nfacilitator = \"http://127.0.0.1:1/\"\n"

func TestPreview(t *testing.T) {
	t.Parallel()
	to := canopytest.Address("friend").String()
	w := newWorld(t, strings.Replace(testPolicy, `"host:localhost"`, `"address:`+to+`"`, 1)+sentByOthers)
	r := w.want(0, "preview", to, "0.10", "--json")
	wantKeys(t, r, "status txHash transactionId costUsd dryRun amountUsd feeUsd")
	if v := r.object(t); v["status"] != "allowed" || v["costUsd"] != json.Number("0.10") || v["dryRun"] != true || v["txHash"] != nil || v["transactionId"] != nil {
		t.Errorf("got %s", r.out)
	}
	r = w.want(3, "preview", to, "$1.50", "--chain", "base-sepolia", "--json")
	wantKeys(t, r, "status approvalId reason dryRun code reasons amountUsd feeUsd costUsd")
	if v := r.object(t); v["status"] != "pending_approval" || v["approvalId"] != nil || v["reason"] != "Amount $1.50 exceeds approval threshold of $1" {
		t.Errorf("got %s", r.out)
	}
	r = w.want(4, "preview", to, "5", "--json")
	wantKeys(t, r, "status reason dryRun code reasons amountUsd feeUsd costUsd")
	contains(t, w.want(4, "preview", canopytest.Address("stranger").String(), "0.10").out, "denied", "because")
	if len(w.entries()) != 0 {
		t.Error("a preview left something in the ledger")
	}
}
