package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/payment"
)

// What init leaves as comments is right as it stands, once it is none.
func TestInitDocument(t *testing.T) {
	t.Parallel()
	for _, private := range [][]string{nil, {"127.0.0.0/8"}} {
		d := document{KeyEnv: keyEnv, Allow: []string{"host:feed.example"}, Caps: []string{"$5 / 24h"}, MaxPayment: "$1", AllowPrivate: private}
		text := string(d.text())
		if n := strings.Count(text, "\n"); n > 40 {
			t.Errorf("%d lines", n)
		}
		open := regexp.MustCompile(`(?m)^# (\[|[a-z_]+ = )`).ReplaceAllString(text, "$1")
		f, err := config.Parse("canopy.toml", []byte(open))
		if err != nil {
			t.Fatalf("%v in\n%s", err, open)
		}
		if len(f.Chains) != 2 || f.Chains[0].ID != payment.Base || f.Chains[0].Facilitator == "" || len(f.Chains[0].RPC) != 2 || f.Chains[1].ID != payment.Tempo || len(f.Chains[1].RPC) != 2 {
			t.Errorf("chains %+v", f.Chains)
		}
		if f.MPP.Lanes != 64 || f.MPP.Fees.Gas != 1_200_000 || len(f.Network.AllowPrivate) != 1 || len(f.Notes)+len(f.Warnings) != 0 {
			t.Errorf("mpp %+v, network %+v, %q, %q", f.MPP, f.Network, f.Notes, f.Warnings)
		}
		if err := f.Check(); err != nil {
			t.Error(err)
		}
	}
}

// What is wrong with a setting names no line of a file that is not there.
func TestInitRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "canopy.toml")
	r := call(t, t.Context(), "", "init", "--config", path, "--key-env", keyEnv, "--approve-above", "0.9")
	contains(t, r.err, "init: nothing was made: ", "approve_above: ")
	if r.code != 2 || strings.Contains(r.err, path+":") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was made")
	}
}

// A host on this machine is not dialled by itself: init tells what to add.
func TestInitPrivate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string // in the hint; empty where there is none
	}{
		"loopback":          {[]string{"--allow", "host:127.0.0.1:8402"}, `To let 127.0.0.1 be dialled, add allow_private = ["127.0.0.0/8"] below [network]`},
		"a name of it":      {[]string{"--allow", "host:feed.example", "--allow", "host:localhost"}, `To let localhost be dialled, add allow_private = ["127.0.0.0/8"]`},
		"IPv6":              {[]string{"--allow", "host:[::1]"}, `To let ::1 be dialled, add allow_private = ["::1"]`},
		"private":           {[]string{"--allow", "host:10.1.2.3 splits:any"}, `To let 10.1.2.3 be dialled, add allow_private = ["10.1.2.3"]`},
		"listed":            {[]string{"--allow", "host:127.0.0.1", "--allow-private", "127.0.0.0/8"}, ""},
		"another is listed": {[]string{"--allow", "host:127.0.0.1", "--allow-private", "10.0.0.0/8"}, `To let 127.0.0.1`},
		"public":            {[]string{"--allow", "host:feed.example", "--allow", "host:*.mpp.example"}, ""},
		"everything":        {[]string{"--allow", "*"}, ""},
	} {
		path := filepath.Join(t.TempDir(), "canopy.toml")
		r := call(t, t.Context(), "", append([]string{"init", "--config", path, "--key-env", keyEnv}, tt.args...)...)
		if r.code != 0 || strings.Contains(r.out, "be dialled") != (tt.want != "") || !strings.Contains(r.out, tt.want) {
			t.Errorf("%s: exit %d, want %q in\n%s%s", name, r.code, tt.want, r.out, r.err)
		}
		contains(t, r.out, "USDC on Base", "on Tempo")
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
