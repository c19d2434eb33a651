package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// Attacks 79, 84 and 85: what is written is private, and holds neither the key
// nor a signature nor an approver's credential; nor does a log.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent), route("GET /dear", 150*payment.Cent), canopytest.Route{
		Pattern: "GET /lost", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(canopytest.DropAfterSettling())},
	})
	ana := w.person("ana")
	dear := w.asks(w.url + "/dear")
	said := ""
	for _, args := range [][]string{
		{"-v", "approvals", "approve", dear, "--yes", "--credential-file", ana}, {"-v", "approvals", "deny", dear, "--yes", "--credential-file", ana, "--json"},
		{"-v", "approvers", "list"}, {"-v", "approvers", "list", "--json"}, {"-v", "fetch", w.url + "/dear"},
		{"-v", "fetch", "-i", w.url + "/cent"}, {"-v", "fetch", w.url + "/lost"}, {"-v", "fetch", w.url + "/lost", "--json"},
		{"-v", "ledger", "list", "--json"}, {"-v", "ping"}, {"-v", "config", "check"},
	} {
		r := w.run(args...)
		said += r.out + r.err
	}
	for _, e := range w.entries() {
		said += w.run("ledger", "show", e["transactionId"].(string)).out + w.run("ledger", "show", "--json", e["transactionId"].(string)).out
	}
	raw, _ := hex.DecodeString(canaryKey)
	secrets := map[string]string{"key": canaryKey, "key as bytes": string(raw), "credential": credentialIn(t, ana)[len("canopy_ana_"):]}
	for _, r := range w.seller.Requests() {
		if v := r.Header.Get("PAYMENT-SIGNATURE"); v != "" {
			secrets["header"] = v
			var p struct {
				Payload struct {
					Signature string `json:"signature"`
				} `json:"payload"`
			}
			if b, err := base64.StdEncoding.DecodeString(v); err == nil && json.Unmarshal(b, &p) == nil {
				secrets["signature"] = strings.TrimPrefix(p.Payload.Signature, "0x")
			}
		}
	}
	if len(secrets["signature"]) != 130 {
		t.Fatalf("no signature seen: %v", secrets)
	}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.dir {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if b, err := os.ReadFile(path); err == nil {
			for name, secret := range secrets {
				if strings.Contains(string(b), secret) {
					t.Errorf("%s holds the %s", path, name)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range secrets {
		if strings.Contains(said, secret) {
			t.Errorf("the %s is printed", name)
		}
	}
}
