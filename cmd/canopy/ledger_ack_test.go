package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

// TestAckWithoutKey: where the account cannot be told nothing is acknowledged,
// and nothing says so.
func TestAckWithoutKey(t *testing.T) {
	w := newWorld(t, testPolicy, route("GET /cent", payment.Cent))
	w.want(0, "fetch", w.url+"/cent")
	for _, name := range []string{"canopy.db", "canopy.db-wal", "canopy.db-shm"} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if r := w.run("fetch", w.url+"/cent?2"); r.code == 0 {
		t.Fatalf("a new ledger pays: %s", r.out)
	}
	t.Setenv(keyEnv, "")
	os.Unsetenv(keyEnv)
	r := w.want(2, "ledger", "ack", "--yes", "--reason", "lost", "--by", "ana")
	if !strings.Contains(r.err, keyEnv+" is not set") || strings.Contains(r.out, "acknowledged") {
		t.Errorf("ack says %q, %q", r.out, r.err)
	}
	t.Setenv(keyEnv, canaryKey)
	if r := w.run("fetch", w.url+"/cent?3"); r.code == 0 {
		t.Errorf("not acknowledged, and it pays: %s", r.out)
	}
	w.want(0, "ledger", "ack", "--yes", "--reason", "lost", "--by", "ana")
	w.want(0, "fetch", w.url+"/cent?4")
}
