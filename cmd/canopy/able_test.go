package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
)

// Where nothing can be paid, budget and ping say so and why.
func TestCannotPay(t *testing.T) {
	t.Parallel()
	for code, tt := range map[string]struct {
		policy string
		do     func(t *testing.T, w *world)
		text   string
	}{
		"frozen":               {testPolicy, func(t *testing.T, w *world) { w.want(0, "freeze", "--reason", "strange prices") }, "strange prices"},
		"frozen by the policy": {strings.Replace(testPolicy, "max_payment", "frozen = true\nmax_payment", 1), func(*testing.T, *world) {}, "frozen"},
		"count_exceeded":       {strings.Replace(testPolicy, "100 payments", "1 payments", 1), func(_ *testing.T, w *world) { w.want(0, "fetch", w.url+"/cent") }, "1 payments / 1h"},
		"ledger_missing": {testPolicy, func(t *testing.T, w *world) {
			w.want(0, "fetch", w.url+"/cent")
			files, _ := filepath.Glob(filepath.Join(w.dir, "canopy.db*"))
			for _, f := range files {
				os.Remove(f)
			}
		}, "canopy ledger ack"},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.policy, route("GET /cent", payment.Cent))
			tt.do(t, w)
			code, _, _ := strings.Cut(code, " ")
			for _, command := range []string{"budget", "ping"} {
				v := w.want(0, command, "--json").object(t)
				reasons, _ := v["reasons"].([]any)
				if v["canPay"] != false || len(reasons) != 1 || reasons[0].(map[string]any)["code"] != code {
					t.Errorf("%s: canPay %v, reasons %v", command, v["canPay"], reasons)
				}
				r := w.want(0, command)
				contains(t, r.out, "Nothing can be paid now", tt.text, code)
				if strings.Contains(r.err, "can spend") {
					t.Errorf("%s: %s", command, r.err)
				}
			}
		})
	}
	w := newWorld(t, testPolicy)
	b, _ := os.ReadFile(w.config)
	none := filepath.Join(w.dir, "none.toml")
	os.WriteFile(none, []byte(strings.Replace(string(b), "key_env = \""+keyEnv+"\"", "", 1)), 0o600)
	for _, command := range []string{"budget", "ping"} {
		contains(t, w.want(0, command, "--config", none).out, "no_signer")
	}
}
