package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

// Secrets that no output may hold: a test key, known to everybody, and a
// password.
const (
	canaryKey      = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
	canaryPassword = "canary-password-7f3a"
	keyEnv         = "CANOPY_TEST_CANARY_KEY"
	passwordEnv    = "CANOPY_TEST_CANARY_PASSWORD"
)

func TestMain(m *testing.M) {
	os.Setenv(keyEnv, canaryKey)
	os.Setenv(passwordEnv, canaryPassword)
	os.Unsetenv("CANOPY_CONFIG")
	os.Exit(m.Run())
}

// world is a configuration, a seller and a chain.
type world struct {
	t      *testing.T
	dir    string
	config string
	chain  *canopytest.Chain
	seller *canopytest.Seller
	url    string
	payer  payment.Address
}

const testPolicy = `
[policy.default]
max_payment = "$2"
caps = ["$3 / 24h", "100 payments / 1h"]
approve_above = "$1"
allow = ["host:127.0.0.1", "host:localhost"]
deny = ["host:evil.example"]
[policy.chatty]
from = "default"
chat_approval = true
`

func newWorld(t *testing.T, policy string, routes ...canopytest.Route) *world {
	t.Helper()
	key, err := signer.FromHex(canaryKey)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), chain: canopytest.NewChain(canopytest.ChainConfig{}), payer: key.Address()}
	w.chain.Fund(w.payer, 100*payment.Dollar)
	w.seller = canopytest.NewSeller(w.chain, canopytest.SellerConfig{Routes: routes})
	w.url = w.seller.Start(t)
	w.config = filepath.Join(w.dir, "canopy.toml")
	text := fmt.Sprintf(`[treasury]
key_env = %q
[ledger]
path = "canopy.db"
state_dir = "state"
[network]
allow_private = ["127.0.0.0/8"]
%s`, keyEnv, policy)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// result is what one run printed.
type result struct {
	code     int
	out, err string
}

// call runs the program in this process.
func call(t *testing.T, ctx context.Context, stdin string, args ...string) result {
	t.Helper()
	var out, errw bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &errw)
	r := result{code, out.String(), errw.String()}
	for _, secret := range []string{canaryKey, strings.ToUpper(canaryKey), canaryPassword} {
		if strings.Contains(r.out, secret) || strings.Contains(r.err, secret) {
			t.Errorf("canopy %s prints a secret", strings.Join(args, " "))
		}
	}
	return r
}

func (w *world) run(args ...string) result {
	w.t.Helper()
	return call(w.t, w.t.Context(), "", append([]string{"--config", w.config}, args...)...)
}

// want runs the program and compares the exit code.
func (w *world) want(code int, args ...string) result {
	w.t.Helper()
	r := w.run(args...)
	if r.code != code {
		w.t.Fatalf("canopy %s: exit %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), r.code, code, r.out, r.err)
	}
	return r
}

// object is standard output as one JSON object, and nothing else.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(r.out))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not a JSON object: %v\n%s", err, r.out)
	}
	if d.More() {
		t.Fatalf("more than one JSON value:\n%s", r.out)
	}
	return v
}

// keys are an object's keys, in the order of the text.
func (r result) keys(t *testing.T) []string {
	t.Helper()
	var keys []string
	d := json.NewDecoder(strings.NewReader(r.out))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("not a JSON object:\n%s", r.out)
	}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, tok.(string))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func wantKeys(t *testing.T, r result, want string) {
	t.Helper()
	if got := r.keys(t); !slices.Equal(got, strings.Fields(want)) {
		t.Errorf("keys %v, want %s\n%s", got, want, r.out)
	}
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, s := range want {
		if !strings.Contains(text, s) {
			t.Errorf("%q is missing in:\n%s", s, text)
		}
	}
}

// entries are the payments on the ledger, oldest first.
func (w *world) entries() []map[string]any {
	w.t.Helper()
	r := w.want(0, "ledger", "list", "--json", "--limit", "0")
	var list []map[string]any
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		w.t.Fatalf("%v\n%s", err, r.out)
	}
	slices.Reverse(list)
	return list
}

func route(pattern string, price payment.USD) canopytest.Route {
	return canopytest.Route{Pattern: pattern, Price: price}
}

func text(contentType string, b []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Write(b)
	})
}
