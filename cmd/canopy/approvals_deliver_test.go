package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
)

func TestApprovalsDeliver(t *testing.T) {
	const secretText = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	t.Setenv("CANOPY_TEST_HOOK_SECRET", secretText)
	secret, err := approvals.ParseHookSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	got := make(chan approvals.Message, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if down.Load() || secret.Verify(r.Header, body, time.Now()) != nil {
			w.WriteHeader(503)
			return
		}
		var m approvals.Message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		got <- m
	}))
	defer srv.Close()
	w := newWorld(t, testPolicy, canopytest.Route{Pattern: "/a", Price: 1_500_000})
	w.want(2, "approvals", "deliver") // the file has none
	file, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(file, "[[webhook]]\nurl = %q\nsecret_env = \"CANOPY_TEST_HOOK_SECRET\"\n", srv.URL+"/hook")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	w.want(3, "fetch", w.url+"/a")
	m := <-got
	if m.Type != "approval.requested" || m.Data.AmountUSD != 1_500_000 || m.Data.URL != w.url+"/a" {
		t.Errorf("%+v", m)
	}
	if r := w.want(0, "approvals", "deliver"); !strings.Contains(r.out, "Everything was delivered") {
		t.Errorf("%s", r.out)
	}
	down.Store(true)
	w.want(0, "approvals", "deny", string(m.Data.ApprovalID), "--by", "ana", "--yes")
	r := w.want(1, "approvals", "deliver")
	if !strings.Contains(r.out, string(m.Data.ApprovalID)) || !strings.Contains(r.out, "answered 503") {
		t.Errorf("%s", r.out)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(w.want(1, "approvals", "deliver", "--json").out), &list); err != nil || len(list) != 1 || list[0]["webhook"] != "webhook" || list[0]["attempts"] != 1.0 || list[0]["nextAt"] == nil {
		t.Errorf("%v, %v", list, err)
	}
	t.Setenv("CANOPY_TEST_HOOK_SECRET", "")
	if r := w.want(2, "fetch", w.url+"/a?2"); !strings.Contains(r.err, "webhook[0].secret_env") {
		t.Errorf("without the secret: %s", r.err)
	}
	w.want(3, "check", w.url+"/a") // looks only, and asks nobody
}
