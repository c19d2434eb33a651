package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
)

// A pinned policy decides alone: a file that was changed denies until it is
// pinned again, by an approver where the pinned one names any.
func TestPolicyPin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, canopytest.Route{Pattern: "/a", Price: 10_000})
	change := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(w.config)
		if err != nil || !strings.Contains(string(b), from) {
			t.Fatal(err, from)
		}
		if err := os.WriteFile(w.config, []byte(strings.Replace(string(b), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := w.want(0, "policy", "versions"); !strings.Contains(r.out, "No policy was ever pinned") {
		t.Errorf("%s", r.out)
	}
	w.want(2, "policy", "pin") // needs a reason
	w.want(2, "policy", "pin", "--reason", "x", "--by", "default")
	w.want(0, "policy", "pin", "--reason", "reviewed", "--by", "ana")
	w.want(0, "fetch", w.url+"/a")

	change(`"$3 / 24h"`, `"$3000 / 24h"`)
	r := w.want(4, "fetch", w.url+"/a?2", "--json")
	if !strings.Contains(r.out, `"policy_not_pinned"`) {
		t.Errorf("%s", r.out)
	}
	if r := w.want(4, "check", w.url+"/a"); !strings.Contains(r.out, "not the one that is pinned") {
		t.Errorf("check: %s", r.out)
	}
	if r := w.want(4, "fetch", w.url+"/a?3"); !strings.Contains(r.err, "canopy policy pin") {
		t.Errorf("no hint: %s", r.err)
	}
	if r := w.want(0, "policy", "versions"); !strings.Contains(r.out, "holds") || !strings.Contains(r.out, "reviewed") || !strings.Contains(r.err, "not the pinned one") {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := w.want(0, "policy", "versions", "--document"); !strings.Contains(r.out, `"$3 / 24h"`) {
		t.Errorf("%s", r.out)
	}
	change(`"$3000 / 24h"`, `"$3 / 24h"`)
	w.want(0, "fetch", w.url+"/a?4")

	// With approvers, only they pin.
	change(`approve_above = "$1"`, "approve_above = \"$1\"\napprovers = [\"ana\"]")
	credential := filepath.Join(w.dir, "ana")
	other := filepath.Join(w.dir, "ben")
	for name, path := range map[string]string{"ana": credential, "ben": other} {
		var made struct{ Credential string }
		if err := json.Unmarshal([]byte(w.want(0, "approvers", "add", name, "--json").out), &made); err != nil || made.Credential == "" {
			t.Fatal(err, made)
		}
		if err := os.WriteFile(path, []byte(made.Credential+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.want(0, "policy", "pin", "--reason", "people", "--by", "root") // the pinned one names nobody yet
	change(`"$3 / 24h"`, `"$4 / 24h"`)
	w.want(2, "policy", "pin", "--reason", "more", "--by", "root")
	w.want(1, "policy", "unpin", "--reason", "more", "--credential-file", other)
	w.want(4, "fetch", w.url+"/a?5")
	o := w.want(0, "policy", "pin", "--reason", "more", "--credential-file", credential, "--json").object(t)
	if o["by"] != "ana" || o["holds"] != true || o["policySha256"] == nil {
		t.Errorf("%v", o)
	}
	w.want(0, "fetch", w.url+"/a?5")
	w.want(0, "policy", "unpin", "--reason", "done", "--credential-file", credential)
	var all []map[string]any
	if err := json.Unmarshal([]byte(w.want(0, "policy", "versions", "--json").out), &all); err != nil || len(all) != 4 || all[0]["policySha256"] != nil || all[0]["holds"] != false {
		t.Errorf("%v, %v", all, err)
	}
}
