package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/mpp"
)

const key = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318" // a test key, known to everybody

const policyTables = `
[policy.default]
max_payment = "$1"
caps = ["$5 / 24h"]
allow = ["*"]
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "canopy.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	path := write(t, policyTables+`
[treasury]
keystore = "keys/key.json"
password_cmd = ["pass", "show", "canopy"]
[ledger]
path = "data/canopy.db"
foreign_use = "freeze"
[[chain]]
id = "base"
rpc = ["https://rpc.example", "https://rpc2.example"]
max_gas = "0.0005"
[[chain]]
id = "eip155:31337"
[[asset]]
chain = "eip155:31337"
address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
symbol = "TUSD"
decimals = 6
name = "Test Dollar"
version = "2"
[network]
allow_private = ["127.0.0.0/8", "::1", "::ffff:10.0.0.1"]
proxy = "http://127.0.0.1:3128"
`)
	t.Setenv("XDG_STATE_HOME", "/var/state")
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	if diff := cmp.Diff(config.Treasury{Keystore: dir + "/keys/key.json", PasswordCmd: []string{"pass", "show", "canopy"}}, f.Treasury); diff != "" {
		t.Errorf("treasury (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(config.Ledger{Path: dir + "/data/canopy.db", StateDir: "/var/state/canopy", ForeignUse: "freeze"}, f.Ledger); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	want := []config.Chain{
		{ID: "eip155:8453", RPC: []string{"https://rpc.example", "https://rpc2.example"}, MaxGas: "0.0005"}, {ID: "eip155:31337"},
	}
	if diff := cmp.Diff(want, f.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	var private []string
	for _, p := range f.Network.AllowPrivate {
		private = append(private, p.String())
	}
	if diff := cmp.Diff([]string{"127.0.0.0/8", "::1/128", "10.0.0.1/32"}, private); diff != "" {
		t.Errorf("allow_private (-want +got):\n%s", diff)
	}
	if len(f.Assets.On("eip155:31337")) != 1 || len(f.Warnings) != 0 || len(f.Notes) != 0 || f.Policy == nil {
		t.Errorf("assets %v, warnings %q, notes %q", f.Assets.On("eip155:31337"), f.Warnings, f.Notes)
	}
}

// Attack 83: what is wrong in a file is told with its line, its key and what
// would be right.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"not TOML":                    {"[treasury\n", ":1: "},
		"YAML":                        {"treasury:\n  key_env: X\n", ":1: not TOML"},
		"JSON":                        {`{"treasury":{}}`, ":1: not TOML"},
		"empty":                       {"", "polic"},
		"no policy":                   {"[treasury]\nkey_env = \"K\"\n", "polic"},
		"unknown table":               {"[treasry]\n", "did you mean"},
		"unknown top-level key":       {"agent = \"x\"\n", ":1: agent: unknown key"},
		"unknown key":                 {"[treasury]\nkey_evn = \"K\"\n", ":2: treasury.key_evn: unknown key: did you mean key_env?"},
		"unknown key, nothing near":   {"[network]\nzzzzzzzz = 1\n", "unknown key: there are allow_private, proxy"},
		"case of a key":               {"[treasury]\nKey_Env = \"K\"\n", "did you mean key_env?"},
		"policy key in treasury":      {"[treasury]\nmax_payment = \"$1\"\n", ":2: treasury.max_payment: unknown key"},
		"twice":                       {"[treasury]\nkey_env = \"A\"\nkey_env = \"B\"\n", ":3: "},
		"table twice":                 {"[treasury]\n[treasury]\n", ":2: "},
		"table as list":               {"[[treasury]]\n", "treasury: is one table, not a list: write [treasury]"},
		"table as text":               {"treasury = \"x\"\n", ":1: treasury: is a table: write [treasury]"},
		"chain as one table":          {"[chain]\nid = \"base\"\n", ":1: chain: is a list of tables: write [[chain]]"},
		"chain as list of texts":      {"chain = [\"base\"]\n", "chain[0]: is a table: write [[chain]]"},
		"key_env is a number":         {"[treasury]\nkey_env = 7\n", ":2: treasury.key_env: is text: write it in quotes, not a number"},
		"key_env is empty":            {"[treasury]\nkey_env = \"\"\n", "treasury.key_env: is empty"},
		"key_env is a value":          {"[treasury]\nkey_env = \"$CANOPY_KEY\"\n", "names an environment variable"},
		"two keys":                    {"[treasury]\nkey_env = \"A\"\nkeystore = \"k\"\n", "name two keys: keep one"},
		"password of nothing":         {"[treasury]\npassword_env = \"A\"\n", "add keystore"},
		"command of nothing":          {"[treasury]\npassword_cmd = [\"pass\"]\n", "add keystore"},
		"two passwords":               {"[treasury]\nkeystore = \"k\"\npassword_env = \"A\"\npassword_cmd = [\"p\"]\n", "keep one"},
		"empty command":               {"[treasury]\nkeystore = \"k\"\npassword_cmd = []\n", "is empty: name a command"},
		"command as text":             {"[treasury]\nkeystore = \"k\"\npassword_cmd = \"pass show x\"\n", "is a list: write"},
		"password in the file":        {"[treasury]\nkeystore = \"k\"\npassword = \"hunter2hunter2\"\n", "a secret does not stand in the file: name the environment variable that holds it, as password_env"},
		"key in the file":             {"[treasury]\nkey = \"0x" + key + "\"\n", ":2: this line holds what looks like a private key"},
		"key without 0x":              {"[treasury]\nkey_env = \"" + key + "\"\n", ":2: this line holds"},
		"key in a comment":            {"# was " + strings.ToUpper(key) + "\n" + policyTables, ":1: this line holds"},
		"key in the policy":           {"[policy.default]\ncaps=[\"$5 / 24h\"]\nallow = [\"address:0x" + key + "\"]\n", ":3: this line holds"},
		"key as a number":             {"[treasury]\nkey = 0x" + key + "\n", ":2: this line holds"},
		"mnemonic":                    {"[treasury]\nmnemonic = \"test test test junk\"\n", "a secret does not stand in the file"},
		"postgres":                    {"[ledger]\nurl_env = \"DB\"\n", ":2: ledger.url_env: Postgres is not in this version"},
		"postgres url":                {"[ledger]\nurl = \"postgres://u:hunter2@h/d\"\n", "name the environment variable that holds it, as url_env"},
		"path is a url":               {"[ledger]\npath = \"sqlite://x\"\n", "is the path of a file, not a URL"},
		"foreign_use":                 {"[ledger]\nforeign_use = \"ignore\"\n", `is "freeze" or "warn"`},
		"chain without id":            {"[[chain]]\nrpc = [\"https://r.example\"]\n", ":1: chain[0].id: is missing"},
		"chain by number":             {"[[chain]]\nid = 8453\n", ":2: chain[0].id: is text"},
		"chain unknown":               {"[[chain]]\nid = \"bass\"\n", `chain[0].id: is a chain such as "eip155:8453" or "base", not "bass"`},
		"chain twice":                 {"[[chain]]\nid = \"base\"\n[[chain]]\nid = \"eip155:8453\"\n", ":4: chain[1].id: eip155:8453 stands in chain[0] already"},
		"chain without dollar":        {"[[chain]]\nid = \"eip155:5\"\n", "no dollar is known on eip155:5: add it as [[asset]]"},
		"rpc as text":                 {"[[chain]]\nid = \"base\"\nrpc = \"https://r.example\"\n", ":3: chain[0].rpc: is a list"},
		"rpc is no URL":               {"[[chain]]\nid = \"base\"\nrpc = [\"https://r.example\",\n\"rpc.example\"]\n", ":4: chain[0].rpc[1]: is a URL"},
		"rpc with a password":         {"[[chain]]\nid = \"base\"\nrpc = [\"https://u:hunter2@r.example\"]\n", "has a user or a password in it"},
		"rpc ftp":                     {"[[chain]]\nid = \"base\"\nrpc = [\"ftp://r.example\"]\n", "is a URL such as"},
		"rpc twice":                   {"[[chain]]\nid = \"base\"\nrpc = [\"https://r.example/x\",\n\"https://R.example:443/x/\"]\n", ":4: chain[0].rpc[1]: stands there twice: a node cannot confirm itself"},
		"rpc_env twice":               {"[[chain]]\nid = \"base\"\nrpc_env = [\"A\", \"B\", \"A\"]\n", ":3: chain[0].rpc_env[2]: names A again"},
		"Base as Tempo":               {"[[chain]]\nid = \"base\"\ntempo = true\n", ":3: chain[0].tempo: is true, and base is no Tempo network: leave the key out"},
		"Celo as Tempo":               {"[[chain]]\nid = \"eip155:42220\"\ntempo = true\nfacilitator = \"https://f.example\"\n", ":3: chain[0].tempo: is true"},
		"Tempo as another":            {"[[chain]]\nid = \"tempo\"\ntempo = false\n", ":3: chain[0].tempo: is false, and tempo is a Tempo network: leave the key out"},
		"the test network as another": {"[[chain]]\nid = \"eip155:42431\"\ntempo = false\n", ":3: chain[0].tempo: is false"},
		"gas beyond a block":          {"[mpp]\ngas = 99999999999\n", ":2: mpp.gas: is a limit of gas from 21000 to 30000000, such as 1200000, not 99999999999"},
		"gas of nothing":              {"[mpp]\ngas = 1\n", ":2: mpp.gas: is a limit of gas from 21000 to 30000000, such as 1200000, not 1"},
		"gas below zero":              {"[mpp]\ngas = -1\n", ":2: mpp.gas: is a limit of gas from 21000 to 30000000, such as 1200000, not -1"},
		"gas_per_call beyond":         {"[mpp]\nlanes = 4\ngas_per_call = 30000001\n", ":3: mpp.gas_per_call: is a limit of gas from 21000 to 30000000"},
		"gas_price without its unit":  {"[mpp]\ngas_price = 25\n", ":2: mpp.gas_price: is text with its unit, from \"1 gwei\" to \"1000 gwei\", not 25"},
		"gas_price in fractions":      {"[mpp]\ngas_price = \"0.5 gwei\"\n", ":2: mpp.gas_price: is a price of gas from \"1 gwei\" to \"1000 gwei\""},
		"gas_price beyond":            {"[mpp]\ngas_price = \"1001 gwei\"\n", ":2: mpp.gas_price: is a price of gas"},
		"gas_tip above gas_price":     {"[mpp]\ngas_price = \"1 gwei\"\ngas_tip = \"2 gwei\"\n", ":3: mpp.gas_tip: is \"1 gwei\" to gas_price, which is \"1 gwei\", not \"2 gwei\""},
		"gas_tip above the default":   {"[mpp]\ngas_tip = \"26 gwei\"\n", ":2: mpp.gas_tip: is \"1 gwei\" to gas_price, which is \"25 gwei\", not \"26 gwei\""},
		"no lane":                     {"[mpp]\nlanes = 0\n", ":2: mpp.lanes: is 1 to 1024, not 0"},
		"lanes without end":           {"[mpp]\nlanes = 1025\n", ":2: mpp.lanes: is 1 to 1024, not 1025"},
		"client_id with spaces":       {"[mpp]\nclient_id = \" acme\"\n", ":2: mpp.client_id: is a name of 1 to 128 bytes"},
		"client_id with a tab":        {"[mpp]\nclient_id = \"a\\tb\"\n", ":2: mpp.client_id: is a name"},
		"client_id without end":       {"[mpp]\nclient_id = \"" + strings.Repeat("a.", 65) + "\"\n", ":2: mpp.client_id: is a name"},
		"a realm is a URL":            {"[mpp]\nproof_realms = [\"a.example\",\n\"https://Api.example/v1\"]\n", ":3: mpp.proof_realms[1]: is a realm as the challenge names it, not a URL: write \"api.example\""},
		"a realm is half a URL":       {"[mpp]\nproof_realms = [\"//api.example\"]\n", "not a URL: write \"api.example\""},
		"a realm has a path":          {"[mpp]\nproof_realms = [\"api.example:8443/pay\"]\n", "not a URL: write \"api.example:8443\""},
		"a realm is a pattern":        {"[mpp]\nproof_realms = [\"*.example\"]\n", ":2: mpp.proof_realms[0]: is no pattern"},
		"every realm":                 {"[mpp]\nproof_realms = [\"*\"]\n", "is no pattern"},
		"a realm with a line end":     {"[mpp]\nproof_realms = [\"a\\nb\"]\n", "is a realm as the challenge names it"},
		"an empty realm":              {"[mpp]\nproof_realms = [\"a.example\", \"\"]\n", "mpp.proof_realms[1]: is empty: leave it out, or give it a value"},
		"a realm is a number":         {"[mpp]\nproof_realms = [7]\n", "mpp.proof_realms[0]: is text: write it in quotes, not a number"},
		"gas is no whole number":      {"[mpp]\ngas = 1e6\n", "mpp.gas: is a whole number, written in digits alone"},
		"a realm twice":               {"[mpp]\nproof_realms = [\"a.example\", \"a.example\"]\n", "mpp.proof_realms[1]: stands there twice"},
		"realms without proofs":       {"[mpp]\nproofs = false\nproof_realms = [\"a.example\"]\n", ":3: mpp.proof_realms: are realms that a proof is given for, and proofs = false gives none"},
		"gas_per_day alone":           {"[[chain]]\nid = \"base\"\nrpc = [\"https://rpc.example\"]\ngas_per_day = \"0.1\"\n", "belongs to max_gas"},
		"gas_per_day below max_gas":   {"[[chain]]\nid = \"base\"\nrpc = [\"https://rpc.example\"]\nmax_gas = \"0.2\"\ngas_per_day = \"0.1\"\n", "is less than max_gas"},
		"max_gas of nothing":          {"[[chain]]\nid = \"base\"\nrpc = [\"https://rpc.example\"]\nmax_gas = \"0.0\"\n", "leave it out"},
		"max_gas without nodes":       {"[[chain]]\nid = \"base\"\nmax_gas = \"0.1\"\n", "add rpc"},
		"max_gas on Tempo":            {"[[chain]]\nid = \"tempo\"\nrpc = [\"https://rpc.example\"]\nmax_gas = \"0.1\"\n", "is of no use on a Tempo network"},
		"max_gas in dollars":          {"[[chain]]\nid = \"base\"\nmax_gas = \"$1\"\n", `is an amount of the chain's own coin, such as "0.0005"`},
		"max_gas is a float":          {"[[chain]]\nid = \"base\"\nmax_gas = 0.0005\n", "is text: write it in quotes, not a number"},
		"headers of no facilitator":   {"[[chain]]\nid = \"base\"\nfacilitator_headers_env = \"H\"\n", "add facilitator"},
		"asset without decimals":      {"[[asset]]\nchain = \"base\"\naddress = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\nsymbol = \"T\"\nname = \"T\"\nversion = \"1\"\n", "decimals: is missing"},
		"asset with 3 decimals":       {"[[asset]]\nchain = \"base\"\naddress = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\nsymbol = \"T\"\nname = \"T\"\nversion = \"1\"\ndecimals = 3\n", ":7: asset[0].decimals: must be 6 to 18"},
		"asset with a wrong checksum": {"[[asset]]\nchain = \"base\"\naddress = \"0x5fbDB2315678afecb367f032d93F642f64180aa3\"\nsymbol = \"T\"\nname = \"T\"\nversion = \"1\"\ndecimals = 6\n", "asset[0].address: the mixed-case checksum"},
		"asset that is pinned":        {"[[asset]]\nchain = \"base\"\naddress = \"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913\"\nsymbol = \"USDC\"\nname = \"USD Coin\"\nversion = \"2\"\ndecimals = 18\n", "which is known with other values"},
		"asset without a domain":      {"[[asset]]\nchain = \"base\"\naddress = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\nsymbol = \"T\"\ndecimals = 6\n", "EIP-712"},
		"private host name":           {"[network]\nallow_private = [\"localhost\"]\n", ":2: network.allow_private[0]: is an address or a range"},
		"private with bits":           {"[network]\nallow_private = [\"127.0.0.1/8\"]\n", "is an address or a range"},
		"private as true":             {"[network]\nallow_private = true\n", "is a list of texts, not true or false"},
		"private item":                {"[network]\nallow_private = [127]\n", "allow_private[0]: is text"},
		"proxy":                       {"[network]\nproxy = \"environment\"\n", "network.proxy: is a URL"},
		"amount without unit":         {"[policy.default]\nmax_payment = \"1\"\ncaps = [\"$5 / 24h\"]\n", ":2: policy.default.max_payment:"},
		"amount as a number":          {"[policy.default]\nmax_payment = 1\ncaps = [\"$5 / 24h\"]\n", ":2: policy.default.max_payment:"},
		"no cap":                      {"[policy.default]\nallow = [\"*\"]\n", "caps"},
		"cap without window":          {"[policy.default]\ncaps = [\"$5\"]\n", ":2: policy.default.caps:"},
		"policy key unknown":          {"[policy.default]\nmax_paymnt = \"$1\"\ncaps = [\"$5 / 24h\"]\n", "did you mean max_payment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tt.text
			if !strings.Contains(text, "[policy") && name != "empty" && name != "no policy" && !strings.HasPrefix(name, "unknown top") {
				text += policyTables
			}
			f, err := config.Parse("canopy.toml", []byte(text))
			if err == nil {
				t.Fatalf("read, with the policy %v", f.Policy)
			}
			var e *config.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			if got := err.Error(); !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want it to tell %q", got, tt.want)
			}
			for _, secret := range []string{key, strings.ToUpper(key), "hunter2", "junk"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error repeats a secret: %v", err)
				}
			}
		})
	}
}

// What a person may well write is taken as it is.
func TestGoodMPP(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("canopy.toml", []byte(policyTables+`
[[chain]]
id = "eip155:4711"
tempo = true
[[chain]]
id = "tempo"
tempo = true
[[asset]]
chain = "eip155:4711"
address = "0x20c0000000000000000000000000000000000000"
symbol = "pathUSD"
decimals = 6
[mpp]
gas = 30000000
gas_per_call = 21000
gas_price = "1000 gwei"
gas_tip = "1000 gwei"
lanes = 1024
client_id = "Acme Research, 2"
proof_realms = ["api.example", "api.example:8443", "Acme/Store", "MPP Payment"]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := config.MPP{
		Fees: mpp.Fees{Gas: 30_000_000, GasPerCall: 21_000, MaxPrice: 1e12, Tip: 1e12}, ClientID: "Acme Research, 2", Lanes: 1024,
		ProofRealms: []string{"api.example", "api.example:8443", "Acme/Store", "MPP Payment"},
	}
	if diff := cmp.Diff(want, f.MPP); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !f.Chains[0].Tempo || !f.Chains[1].Tempo || f.Line("chain[1].tempo") != 12 || f.Line("mpp.lanes") != 23 || f.Line("nothing") != 0 {
		t.Errorf("chains %+v, lines %d, %d", f.Chains, f.Line("chain[1].tempo"), f.Line("mpp.lanes"))
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}

// Every problem is told at once, in the order of the file.
func TestProblemsTogether(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("canopy.toml", []byte("[network]\nprxy = 1\n[treasury]\nkey_evn = 1\n[policy.default]\nmax_payment = \"1\"\ncaps = []\n"))
	var e *config.Error
	if !errors.As(err, &e) || len(e.Problems) < 3 {
		t.Fatalf("got %v", err)
	}
	for i, p := range e.Problems {
		if i > 0 && p.Line < e.Problems[i-1].Line {
			t.Errorf("line %d after %d", p.Line, e.Problems[i-1].Line)
		}
	}
}

func TestFind(t *testing.T) {
	t.Setenv(config.Env, "")
	if got := config.Find(""); got != "canopy.toml" {
		t.Errorf("nothing named: %s", got)
	}
	t.Setenv(config.Env, "/etc/canopy.toml")
	if got := config.Find(""); got != "/etc/canopy.toml" {
		t.Errorf("by environment: %s", got)
	}
	if got := config.Find("here.toml"); got != "here.toml" {
		t.Errorf("by name: %s", got)
	}
}

func TestLoadFiles(t *testing.T) {
	t.Parallel()
	_, err := config.Load(filepath.Join(t.TempDir(), "canopy.toml"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "canopy init") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := config.Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := config.Load(write(t, strings.Repeat("#\n", 1<<20))); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large file: %v", err)
	}
	path := write(t, policyTables)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(path)
	if err != nil || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "chmod go-w") {
		t.Errorf("a file that others can write: %v, %v", f, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(policyTables)
	f.Add("[[chain]]\nid = \"base\"\nrpc = [{a=[1,[2]]}]\n[chain.x]\n[[chain.y]]\na.b.c = 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.Parse("canopy.toml", []byte(text))
		if (file == nil) == (err == nil) {
			t.Fatalf("%v, %v", file, err)
		}
	})
}
