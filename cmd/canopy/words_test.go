package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Every reason is told, to people and in JSON.
func TestFetchReasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(testPolicy, `"$3 / 24h"`, `"$2.20 / 24h", "$2 / 1h per host"`, 1), route("GET /no", 250*payment.Cent))
	r := w.want(4, "fetch", w.url+"/no")
	contains(t, r.err, "denied: Amount $2.50 exceeds the maximum", "and: Spend cap exceeded: $0.00 + $2.50 > $2.20 / 24h (denied)", "$2 / 1h per host", "and: Amount $2.50 exceeds approval threshold of $1 (pending_approval)")
	for _, command := range []string{"fetch", "check"} {
		r := w.want(4, command, w.url+"/no", "--json")
		v := r.object(t)
		reasons := v["reasons"].([]any)
		if v["code"] != "max_payment" || len(reasons) != 4 {
			t.Errorf("%s: code %v, %d reasons\n%s", command, v["code"], len(reasons), r.out)
		}
		contains(t, r.out, "2.20", `"cap_exceeded"`, map[string]string{"fetch": `"limit_usd"`, "check": `"limitUsd"`}[command])
	}
}

func TestFetchFailsLikeCurl(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
			return
		}
		rw.WriteHeader(http.StatusNotFound)
		io.WriteString(rw, "nothing")
	}))
	defer srv.Close()
	r := w.want(1, "fetch", "-f", srv.URL+"/404")
	if r.out != "" {
		t.Errorf("-f prints %q", r.out)
	}
	contains(t, r.err, "404")
	contains(t, w.want(1, "fetch", "-m", "0.05", srv.URL+"/slow").err, "--max-time 50ms is over")
	contains(t, w.want(1, "fetch", "-m", "0.05", srv.URL+"/slow", "--json").object(t)["error"].(string), "--max-time 50ms is over")
	w.want(2, "fetch", "-m", "0", srv.URL)
	w.want(2, "fetch", "--wait", "soon", srv.URL)
	w.want(2, "fetch", "--wait", "-1", srv.URL)
}

// A payment of the caller's own is the caller's.
func TestFetchOwnPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	for _, header := range []string{"X-PAYMENT: e30=", "payment-signature: e30=", "Authorization: Payment e30="} {
		name, _, _ := strings.Cut(header, ":")
		r := w.want(1, "fetch", "-H", header, w.url+"/cent")
		contains(t, r.err, "-H '"+name+": …'", "canopy pays nothing beside it")
	}
	w.chain.AssertSpent(t, w.payer, 0)
}

// Who ends a wait early is told what waits; only a wait that ran out timed out.
func TestFetchWaitCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /dear", 150*payment.Cent))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	r := call(t, ctx, "", "--config", w.config, "fetch", w.url+"/dear", "--wait", "60", "--json")
	if v := r.object(t); r.code != 3 || v["status"] != "pending_approval" {
		t.Errorf("exit %d: %s", r.code, r.out)
	}
	if v := w.want(3, "fetch", w.url+"/dear", "--wait", "0.05", "--json").object(t); v["status"] != "approval_timeout" {
		t.Errorf("got %v", v)
	}
	w.want(3, "approvals", "wait", w.run("fetch", w.url+"/dear", "--json").object(t)["approval_id"].(string), "--timeout", "0.01")
}

func TestScreenLine(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"": "", "a": "a\n", "a\n": "a\n", "a\nb": "a\nb\n", "\x1b": ""} {
		var b bytes.Buffer
		s := &screen{w: &b}
		out := &output{w: s, seen: s}
		if _, err := out.copy(strings.NewReader(body)); err != nil {
			t.Fatal(err)
		}
		out.endLine()
		if b.String() != want {
			t.Errorf("%q: %q, want %q", body, b.String(), want)
		}
	}
}
