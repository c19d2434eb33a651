package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/dial"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

const password = "canary-password-2b1c"

// The short program: from the file to a paid answer.
func TestShortProgram(t *testing.T) {
	chain, url := seller(t)
	path := write(t, policyTables+"[treasury]\nkey_env = \"CANOPY_TEST_KEY\"\n[ledger]\nstate_dir = \"state\"\n[network]\nallow_private = [\"127.0.0.1\"]\n")
	t.Setenv("CANOPY_TEST_KEY", key)

	file, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := file.Open(t.Context(), "trader")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	resp, err := client.HTTPClient().Get(url + "/cent")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || !strings.Contains(string(b), "cent") {
		t.Errorf("%s: %s", resp.Status, b)
	}
	if r, ok := canopy.PaymentOf(resp); !ok || r.Amount != payment.Cent {
		t.Errorf("paid %+v, %v", r, ok)
	}
	chain.AssertSpent(t, client.Address(), payment.Cent)
}

func seller(t *testing.T) (*canopytest.Chain, string) {
	t.Helper()
	k, err := signer.FromHex(key)
	if err != nil {
		t.Fatal(err)
	}
	chain := canopytest.NewChain(canopytest.ChainConfig{})
	chain.Fund(k.Address(), payment.Dollar)
	s := canopytest.NewSeller(chain, canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /cent", Price: payment.Cent}}})
	return chain, s.Start(t)
}

// Without [network] nothing on this machine is reached.
func TestOpenDialsNothingPrivate(t *testing.T) {
	_, url := seller(t)
	t.Setenv("CANOPY_TEST_KEY", key)
	file, err := config.Load(write(t, policyTables+"[treasury]\nkey_env = \"CANOPY_TEST_KEY\"\n[ledger]\nstate_dir = \"state\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := file.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.HTTPClient().Get(url)
	var blocked *dial.BlockedError
	if !errors.As(err, &blocked) {
		t.Errorf("got %v, want a *dial.BlockedError", err)
	}
}

// keystore writes the test key's keystore, of the weakest derivation there is.
func keystore(t *testing.T, dir string) {
	t.Helper()
	b, err := os.ReadFile("testdata/key.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSignerSources(t *testing.T) {
	dir := t.TempDir()
	keystore(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "pass.txt"), []byte(password+"\r\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CANOPY_TEST_KEY", key)
	t.Setenv("CANOPY_TEST_BAD", key+"0")
	t.Setenv("CANOPY_TEST_PASSWORD", password)
	t.Setenv("CANOPY_TEST_WRONG", password+"!")
	byKey, _ := signer.FromHex(key)
	want := byKey.Address()
	asked := func(answer string, err error) func(context.Context, string) (string, error) {
		return func(context.Context, string) (string, error) { return answer, err }
	}
	for name, tt := range map[string]struct {
		treasury string
		ask      func(context.Context, string) (string, error)
		want     payment.Address
		err      string
	}{
		"none":                {"", nil, payment.Address{}, ""},
		"key":                 {`key_env = "CANOPY_TEST_KEY"`, nil, byKey.Address(), ""},
		"key not set":         {`key_env = "CANOPY_TEST_NONE"`, nil, payment.Address{}, "treasury.key_env: signer: there is no key: environment variable CANOPY_TEST_NONE is not set"},
		"key malformed":       {`key_env = "CANOPY_TEST_BAD"`, nil, payment.Address{}, "treasury.key_env"},
		"password":            {"keystore = \"key.json\"\npassword_env = \"CANOPY_TEST_PASSWORD\"", nil, want, ""},
		"wrong password":      {"keystore = \"key.json\"\npassword_env = \"CANOPY_TEST_WRONG\"", nil, payment.Address{}, "treasury.keystore"},
		"password not set":    {"keystore = \"key.json\"\npassword_env = \"CANOPY_TEST_NONE\"", nil, payment.Address{}, "treasury.password_env: environment variable CANOPY_TEST_NONE is not set"},
		"password asked":      {"keystore = \"key.json\"\npassword_env = \"CANOPY_TEST_NONE\"", asked(password, nil), want, ""},
		"nobody to ask":       {`keystore = "key.json"`, nil, payment.Address{}, "treasury.keystore: the file names no password_env"},
		"asked":               {`keystore = "key.json"`, asked(password, nil), want, ""},
		"asked and empty":     {`keystore = "key.json"`, asked("", nil), payment.Address{}, "no password was given"},
		"asked and failed":    {`keystore = "key.json"`, asked("", errors.New("gone")), payment.Address{}, "gone"},
		"command":             {"keystore = \"key.json\"\npassword_cmd = [\"cat\", \"" + dir + "/pass.txt\"]", nil, want, ""},
		"command fails":       {"keystore = \"key.json\"\npassword_cmd = [\"false\"]", nil, payment.Address{}, "treasury.password_cmd: false"},
		"command is not":      {"keystore = \"key.json\"\npassword_cmd = [\"canopy-no-such-command\"]", nil, payment.Address{}, "treasury.password_cmd"},
		"command is silent":   {"keystore = \"key.json\"\npassword_cmd = [\"true\"]", nil, payment.Address{}, "printed no password"},
		"no shell":            {"keystore = \"key.json\"\npassword_cmd = [\"echo $CANOPY_TEST_PASSWORD\"]", nil, payment.Address{}, "treasury.password_cmd"},
		"keystore is missing": {"keystore = \"none.json\"\npassword_env = \"CANOPY_TEST_PASSWORD\"", nil, payment.Address{}, "treasury.keystore"},
	} {
		file, err := config.Parse(filepath.Join(dir, "canopy.toml"), []byte("[treasury]\n"+tt.treasury+policyTables))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		file.Ask = tt.ask
		k, err := file.Signer(t.Context())
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %v, want %q", name, err, tt.err)
			continue
		}
		if err != nil {
			for _, secret := range []string{key, password} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s: the error tells a secret: %v", name, err)
				}
			}
			continue
		}
		if k == nil != tt.want.IsZero() || k != nil && k.Address() != tt.want {
			t.Errorf("%s: got %v, want %v", name, k, tt.want)
		}
	}
}

// Looking needs no password.
func TestView(t *testing.T) {
	_, url := seller(t)
	dir := t.TempDir()
	keystore(t, dir)
	text := fmt.Sprintf("[treasury]\nkeystore = \"key.json\"\n[ledger]\nstate_dir = \"state\"\n[network]\nallow_private = [\"127.0.0.1\"]\n%s", policyTables)
	file, err := config.Parse(filepath.Join(dir, "canopy.toml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	view, err := file.View(t.Context(), "trader")
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if want, _ := signer.FromHex(key); view.Address() != want.Address() {
		t.Errorf("account %v, want %v", view.Address(), want.Address())
	}
	check, err := view.CheckURL(t.Context(), url+"/cent")
	if err != nil || check.Status != canopy.Allowed {
		t.Errorf("%+v, %v", check, err)
	}
	if b, err := view.Budget(t.Context()); err != nil || b.Remaining != 5*payment.Dollar {
		t.Errorf("%+v, %v", b, err)
	}
}

// What is acknowledged about an account's ledger needs the account.
func TestOpenAccountLedger(t *testing.T) {
	dir := t.TempDir()
	keystore(t, dir)
	b, err := os.ReadFile(filepath.Join(dir, "key.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "address")
	if b, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "silent.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CANOPY_TEST_KEY", key)
	t.Setenv("CANOPY_TEST_PASSWORD", password)
	byKey, _ := signer.FromHex(key)
	for name, tt := range map[string]struct {
		treasury string
		fails    string
		marked   bool
	}{
		"a key":                          {`key_env = "CANOPY_TEST_KEY"`, "", true},
		"no key":                         {`key_env = "CANOPY_TEST_NONE"`, "environment variable CANOPY_TEST_NONE is not set", false},
		"a keystore":                     {`keystore = "key.json"`, "", true},
		"a silent keystore":              {`keystore = "silent.json"`, "nobody can be asked", false},
		"a silent keystore and password": {"keystore = \"silent.json\"\npassword_env = \"CANOPY_TEST_PASSWORD\"", "", true},
		"no treasury":                    {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			text := fmt.Sprintf("[treasury]\n%s\n[ledger]\nstate_dir = %q\n%s", tt.treasury, state, policyTables)
			file, err := config.Parse(filepath.Join(dir, "canopy.toml"), []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			s, err := file.OpenAccountLedger(t.Context())
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got %v, want %q", err, tt.fails)
				}
			} else if err != nil {
				t.Error(err)
			}
			if err == nil {
				defer s.Close()
			}
			_, err = os.Stat(filepath.Join(state, "ledger-"+byKey.Address().Lower()+".json"))
			if marked := err == nil; marked != tt.marked {
				t.Errorf("the ledger is remembered: %v, want %v", marked, tt.marked)
			}
		})
	}
}
