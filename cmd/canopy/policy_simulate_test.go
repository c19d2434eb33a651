package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// other writes another configuration file beside w's, with another policy.
func (w *world) other(name, policy string) string {
	w.t.Helper()
	b, err := os.ReadFile(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "[policy.")
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(head+policy), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func TestPolicyDiff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy)
	other := w.other("new.toml", strings.Replace(strings.Replace(testPolicy, `"$2"`, `"$1.50"`, 1), `"host:localhost"`, `"host:*.localhost"`, 1))
	r := w.want(0, "policy", "diff", other)
	for _, want := range []string{"[policy.default]", "tighter  max_payment: $2 -> $1.50", "tighter  allow: - host:localhost", "looser   allow: + host:*.localhost", "4 tighter, 2 looser, 0 mixed"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	o := w.want(0, "policy", "diff", other, w.config, "--json").object(t)
	if o["old"] != other || o["new"] != w.config || fmt.Sprint(o["looser"], o["tighter"]) != "42" || len(o["differences"].([]any)) != 6 {
		t.Errorf("%v", o)
	}
	if r := w.want(0, "policy", "diff", w.config); !strings.Contains(r.out, "decide the same") {
		t.Errorf("with itself: %s", r.out)
	}
	w.want(2, "policy", "diff", "nothere.toml")
	w.want(2, "policy", "diff")
}

func TestPolicySimulate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testPolicy, canopytest.Route{Pattern: "/a", Price: 400_000}, canopytest.Route{Pattern: "/b", Price: 900_000}, canopytest.Route{Pattern: "/c", Price: 3 * payment.Dollar})
	if r := w.want(0, "policy", "simulate", "--since", "30d"); !strings.Contains(r.out, "No payments") {
		t.Errorf("of nothing: %s", r.out)
	}
	w.want(0, "fetch", w.url+"/a")
	w.want(0, "fetch", w.url+"/b")
	w.want(0, "fetch", w.url+"/a?2")
	w.want(4, "fetch", w.url+"/c")
	other := w.other("new.toml", strings.NewReplacer(`"$2"`, `"$4"`, `"$3 / 24h"`, `"$1 / 24h"`, `"$1"`, `"$0.50"`).Replace(testPolicy))
	r := w.want(0, "policy", "simulate", "--policy", other, "--since", "30d")
	for _, want := range []string{"4 payments, decided from", "allowed  allowed   2         $0.80", "allowed  denied    1         $0.90  changed", "Spend cap exceeded: $0.40 + $0.90 > $1 / 24h", "was    $1.70 ████", "would  $0.80 ███", "was    $1.70 " + strings.Repeat("█", 40) + "\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	o := w.want(0, "policy", "simulate", "--policy", other, "--json").object(t)
	if fmt.Sprint(o["payments"], o["others"]) != "40" || len(o["changed"].([]any)) != 1 || len(o["days"].([]any)) != 1 {
		t.Errorf("%v", o)
	}
	c := o["changed"].([]any)[0].(map[string]any)
	if c["was"] != "allowed" || c["wouldBe"] != "denied" || fmt.Sprint(c["costUsd"]) != "0.90" || c["host"] != "127.0.0.1" || !strings.HasPrefix(c["reason"].(string), "Spend cap exceeded") {
		t.Errorf("%v", c)
	}
	// The policy that decided changes nothing.
	if o := w.want(0, "policy", "simulate", "--json").object(t); len(o["changed"].([]any)) != 0 || fmt.Sprint(o["payments"]) != "4" {
		t.Errorf("by itself: %v", o)
	}
	w.want(2, "policy", "simulate", "--since", "yesterday")
	w.want(2, "policy", "simulate", "--limit", "-1")
	w.want(2, "policy", "simulate", "--policy", "nothere.toml")
}
