package config_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/payment"
)

// open writes a configuration and opens it.
func open(t *testing.T, text string) (*config.Client, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "canopy.toml")
	text += "\n[ledger]\nstate_dir = \"state\"\n[network]\nallow_private = [\"127.0.0.0/8\"]\n[policy.default]\ncaps = [\"$5 / 24h\"]\nallow = [\"*\"]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Open(t.Context(), "")
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// TestChains asks the nodes that the file and the environment name, and submits
// through the facilitator with its headers.
func TestChains(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	rpc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path]++
		mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		var calls []struct {
			ID     int
			Method string
		}
		json.Unmarshal(body, &calls)
		out := []map[string]any{}
		for _, c := range calls {
			var result any = "0x" + strings.Repeat("0", 63) + "5"
			switch c.Method {
			case "eth_chainId":
				result = "0x2105"
			case "eth_getBlockByNumber":
				result = map[string]any{"number": "0x10", "hash": "0x" + strings.Repeat("11", 32), "timestamp": "0x10"}
			}
			out = append(out, map[string]any{"id": c.ID, "result": result})
		}
		json.NewEncoder(w).Encode(out)
	}))
	defer rpc.Close()
	t.Setenv("CANOPY_TEST_RPC", rpc.URL+"/second")
	t.Setenv("CANOPY_TEST_KEY", strings.Repeat("1", 64))
	c, err := open(t, "[treasury]\nkey_env = \"CANOPY_TEST_KEY\"\n[[chain]]\nid = \"base\"\nrpc = [\""+rpc.URL+"/first\"]\nrpc_env = [\"CANOPY_TEST_RPC\"]")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Chains) != 1 || c.Chains[0].ID() != payment.Base || c.Chains[0].(canopy.Reconciler).Sources() != 2 {
		t.Fatalf("chains %v", c.Chains)
	}
	r, err := c.Preview(t.Context(), canopy.Transfer{To: payment.Address{19: 7}, Amount: payment.Cent})
	if err != nil || r.Code != "insufficient_balance" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.Reconcile(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["/first"] == 0 || seen["/second"] == 0 {
		t.Errorf("asked %v", seen)
	}
}

func TestChainsMissing(t *testing.T) {
	t.Setenv("CANOPY_TEST_EMPTY", "")
	t.Setenv("CANOPY_TEST_SAME", "https://s3cr3t.example:443/")
	t.Setenv("CANOPY_TEST_ODD", "no colon in s3cr3t")
	t.Setenv("CANOPY_TEST_JSON", `{"a":1,"s3cr3t"`)
	t.Setenv("CANOPY_TEST_SPLIT", `{"X-Key":"a\r\nX-Other: s3cr3t"}`)
	for text, want := range map[string]string{
		"[[chain]]\nid = \"base\"\nrpc_env = [\"CANOPY_TEST_EMPTY\"]":                                                    "chain[0].rpc_env[0]: environment variable CANOPY_TEST_EMPTY is not set",
		"[[chain]]\nid = \"base\"\nrpc = [\"https://s3cr3t.example\"]\nrpc_env = [\"CANOPY_TEST_SAME\"]":                 "canopy.toml:4: chain[0].rpc_env[0]: stands there twice: a node cannot confirm itself",
		"[[chain]]\nid = \"base\"\nfacilitator = \"https://f.example\"\nfacilitator_headers_env = \"CANOPY_TEST_EMPTY\"": "chain[0].facilitator_headers_env: environment variable CANOPY_TEST_EMPTY is not set",
		"[[chain]]\nid = \"base\"\nfacilitator = \"https://f.example\"\nfacilitator_headers_env = \"CANOPY_TEST_ODD\"":   `"Name: value"`,
		"[[chain]]\nid = \"base\"\nfacilitator = \"https://f.example\"\nfacilitator_headers_env = \"CANOPY_TEST_JSON\"":  "JSON object",
		"[[chain]]\nid = \"base\"\nfacilitator = \"https://f.example\"\nfacilitator_headers_env = \"CANOPY_TEST_SPLIT\"": "no header can have",
	} {
		_, err := open(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s:\n%v, want %s", text, err, want)
		}
		f, perr := config.Parse("canopy.toml", []byte(text+"\n[policy.default]\ncaps = [\"$5 / 24h\"]\n"))
		if perr != nil {
			t.Fatal(perr)
		}
		var bad *config.Error
		if err := f.Check(); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || bad.Problems[0].Key == "" || bad.Problems[0].Line == 0 {
			t.Errorf("%s:\ncheck: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"[[chain]]\nid = \"base\"\nfacilitator = \"http://f.example\"\n": "chain[0].facilitator: is plain http",
	} {
		if _, err := config.Parse("canopy.toml", []byte(text+"[policy.default]\ncaps = [\"$5 / 24h\"]\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f, err := config.Parse("canopy.toml", []byte("[[chain]]\nid = \"base\"\nrpc = [\"http://rpc.example\", \"http://127.0.0.1:1\"]\n[policy.default]\ncaps = [\"$5 / 24h\"]\n"))
	if err != nil || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "chain[0].rpc[0]: is plain http") {
		t.Errorf("%q, %v", f.Warnings, err)
	}
}
