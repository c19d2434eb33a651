//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/canopy-go/canopy/ledger"
)

// newTempoShell is a shell whose account holds that many base units on Tempo, and whose configuration names no
// rail: only the chain's RPC.
func newTempoShell(t testing.TB, c *Tempo, policyDoc string, units uint64) *shell {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	sh := &shell{dir: t.TempDir(), payer: c.Payer(t, units), chain: c.Chain, path: path}
	doc := fmt.Sprintf("[treasury]\nkey_env = \"CANOPY_KEY\"\n%s[[chain]]\nid = \"eip155:42431\"\nrpc = [%q]\n%s", allowLoopback, c.URL, policyDoc)
	if err := os.WriteFile(filepath.Join(sh.dir, "canopy.toml"), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	return sh
}

// TestMPPBinary goes through a day with the program on Tempo.
func TestMPPBinary(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	to := NewAccount(t).Address
	doc := fmt.Sprintf(`
[mpp]
proof_realms = ["goods.example"]
[policy.default]
max_payment   = "$10"
caps          = ["$9 / 24h"]
approve_above = "$5"
allow         = ["host:127.0.0.1", "address:%s"]
`, to.Hex())
	const wallet = 5_000_000
	sh := newTempoShell(t, p.Chain, doc, wallet)
	s := p.Seller

	sh.run(t, 0, "check", s.URL+"/cent").has(t, "allowed", "$0.01 and a fee of at most $0.03", s.PayTo.Hex())
	sh.run(t, 0, "ledger", "list").has(t, "No payments")
	if r := sh.run(t, 0, "fetch", s.URL+"/cent?q=1").has(t, "paid $0.01 and a fee of at most $0.03 to", "tx 0x"); r.out != `{"path":"/cent","query":{"q":"1"}}` {
		t.Errorf("%s\nwant the body and nothing else on standard output", r)
	}
	if r := sh.run(t, 0, "fetch", "-s", "-X", "POST", "-H", "Content-Type: text/x-e2e", "-d", "hello, seller", s.URL+"/echo"); r.out != "hello, seller" {
		t.Errorf("%s\nwant the body and nothing else", r)
	}
	sh.run(t, 0, "fetch", "-s", "-H", "Authorization: Bearer reader", s.URL+"/auth").has(t, `"authorization":"Bearer reader"`)
	sh.run(t, 0, "fetch", s.URL+"/push").has(t, "paid $0.01 and a fee of at most $0.03 to", "tx 0x")
	sh.run(t, 0, "fetch", s.URL+"/sponsored").has(t, "paid $0.01 to", "tx 0x")
	sh.run(t, 0, "fetch", s.URL+"/zero")
	sh.run(t, 4, "fetch", s.URL+"/splits").has(t, "denied: Further recipient "+s.Partner.Hex())
	sh.run(t, 4, "fetch", s.URL+"/elsewhere").has(t, "denied")
	sh.run(t, 4, "fetch", "--max-price", "0.03", s.URL+"/cent").has(t, "exceeds the caller's maximum")
	sh.run(t, 6, "fetch", s.URL+"/broken").has(t, "paid $0.01 and a fee of at most $0.03 to", "The seller answered 500")
	var got struct {
		TransactionID string      `json:"transaction_id"`
		CostUSD       json.Number `json:"cost_usd"`
		PaymentState  string      `json:"payment_state"`
	}
	sh.run(t, 0, "--json", "fetch", "--key", "k1", s.URL+"/pull").json(t, &got)
	if got.PaymentState != "claimed" || got.CostUSD != "0.04" {
		t.Errorf("%+v", got)
	}
	sh.run(t, 6, "fetch", "--key", "k1", s.URL+"/pull").has(t, "was made and delivered before")
	sh.run(t, 0, "pay", to.Hex(), "1", "--chain", "tempo-testnet", "--memo", "invoice 17", "--key", "rent").has(t, "$1.00 and a fee of at most $0.03", to.Hex())
	sh.run(t, 0, "pay", to.Hex(), "1", "--chain", "tempo-testnet", "--memo", "invoice 17", "--key", "rent")
	sh.run(t, 4, "pay", s.PayTo.Hex(), "1", "--chain", "tempo-testnet").has(t, "denied")
	if units := p.Chain.BalanceOf(t, to); units != 1_000_000 {
		t.Errorf("%d with the payee of the transfer, want 1000000", units)
	}
	settleByShell(t, sh, 20*time.Second)
	sh.run(t, 0, "ledger", "show", got.TransactionID).has(t, got.TransactionID, "settled")
	sh.run(t, 0, "ledger", "verify").has(t, "All is well.")

	store := sh.open(t)
	defer store.Close()
	moved := reckonTempo(t, p.Chain, store, sh.payer.Address)
	if left := p.Chain.BalanceOf(t, sh.payer.Address); wallet-left != moved || moved <= 1_080_000 || moved > 1_090_000 {
		t.Errorf("%d left the account, and events tell of %d", wallet-left, moved)
	}
}

// settleByShell reconciles by the program until nothing waits.
func settleByShell(t testing.TB, sh *shell, atMost time.Duration) {
	t.Helper()
	for end := time.Now().Add(atMost); ; time.Sleep(500 * time.Millisecond) {
		var r struct{ Waiting, NeedsOperator int }
		last := sh.run(t, 0, "--json", "reconcile").json(t, &r)
		if r.NeedsOperator > 0 {
			t.Fatalf("%s", last)
		}
		if r.Waiting == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s\nafter %v", last, atMost)
		}
	}
}

const (
	tempoKillers   = 2 // each with a key and a ledger of its own
	tempoKills     = 20
	leastInDoubt   = 6 // kills after the credential left, of all
	leastUndecided = 6 // and before
)

// TestMPPKill kills the program with SIGKILL 40 times while it pays mppx, at moments before and after its
// credential left. After each the ledger has every transaction that moved money, and when the chain has told, no
// key was paid for twice, and what is settled is to the unit what left the account.
func TestMPPKill(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	t.Logf("E2E_SEED=%d", seed)
	p := tempoPeers(t)
	var fell [2]int
	var mu sync.Mutex
	t.Run("kills", func(t *testing.T) {
		for i := range tempoKillers {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				k := newTempoKiller(t, p, seed+uint64(i))
				for k.kills < tempoKills && !t.Failed() {
					k.kill(t)
				}
				k.end(t)
				mu.Lock()
				defer mu.Unlock()
				fell[0] += k.fell[0]
				fell[1] += k.fell[1]
			})
		}
	})
	if !t.Failed() && (fell[0] < leastUndecided || fell[1] < leastInDoubt) {
		t.Errorf("%d kills fell before the credential left and %d after", fell[0], fell[1])
	}
	t.Logf("%d kills before the credential left, %d after", fell[0], fell[1])
}

// tempoKiller is one payer, and the line on which its runs are watched.
type tempoKiller struct {
	*shell
	chain  *Tempo
	url    string
	rand   *rand.Rand
	wallet uint64

	mu   sync.Mutex
	call *call

	runs, kills int
	fell        [2]int        // before the credential left, and after
	whole       time.Duration // what a run takes, about
}

func newTempoKiller(t *testing.T, p *mppPeers, seed uint64) *tempoKiller {
	const doc = `
[policy.default]
max_payment  = "$1"
caps         = ["$5 / 24h"]
allow        = ["host:127.0.0.1"]
max_validity = "20s"
`
	const wallet = 5_000_000
	k := &tempoKiller{
		shell: newTempoShell(t, p.Chain, doc, wallet), chain: p.Chain, wallet: wallet, whole: 1500 * time.Millisecond,
		rand: rand.New(rand.NewPCG(seed, 3)), call: newCall(),
	}
	target, err := url.Parse(p.Seller.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the program is gone
	line := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		call := k.call
		k.mu.Unlock()
		call.reach(call.came)
		last := call.quoted
		if credentialed(r) {
			call.reach(call.sent)
			last = call.answered
		}
		proxy.ServeHTTP(w, r)
		call.reach(last)
	}))
	t.Cleanup(line.Close)
	k.url = line.URL
	return k
}

func (k *tempoKiller) fetch() []string {
	path := []string{"/cent", "/pull", "/sponsored"}[k.runs%3]
	return []string{"fetch", "-s", "-o", os.DevNull, "--key", fmt.Sprint("key-", k.runs), fmt.Sprintf("%s%s?%d", k.url, path, k.runs)}
}

// kill starts a purchase and kills it. Where it ended before, no kill is counted.
func (k *tempoKiller) kill(t *testing.T) {
	k.runs++
	call := newCall()
	k.mu.Lock()
	k.call = call
	k.mu.Unlock()
	cmd := k.command(k.fetch()...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var from chan struct{}
	var within time.Duration
	switch k.rand.IntN(6) {
	case 0:
		within = k.whole
	case 1:
		within = k.whole / 10 // while it starts
	case 2, 3:
		from, within = call.quoted, 10*time.Millisecond
	case 4:
		from, within = call.sent, time.Second
	case 5:
		from, within = call.answered, 5*time.Millisecond
	}
	delay := time.Duration(k.rand.Int64N(int64(within)))
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		if from != nil {
			select {
			case <-from:
			case <-ended:
				return
			}
		}
		select {
		case <-time.After(delay):
			cmd.Process.Kill() // it may have ended
		case <-ended:
		}
	})
	err := cmd.Wait()
	close(ended)
	killer.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("run %d ended with %d", k.runs, code)
		}
		return
	}
	k.kills++
	if reached(call.sent) {
		k.fell[1]++
	} else {
		k.fell[0]++
	}
	switch k.kills % 3 {
	case 0: // the same purchase: the same bytes, or what became of it
		if r := k.exec(t, 0, k.fetch()...); r.code != 0 && r.code != 5 && r.code != 6 {
			t.Errorf("%s\nafter a kill", r)
		}
	case 1:
		k.run(t, 0, "reconcile")
	}
	k.look(t)
}

// look opens the ledger: everything that moved has to be there, and nothing in it has an owner that is dead.
func (k *tempoKiller) look(t *testing.T) {
	t.Helper()
	s := k.open(t)
	defer s.Close()
	reckonTempo(t, k.chain, s, k.payer.Address)
	for _, e := range entries(t, s) {
		if e.State == ledger.Authorized {
			t.Errorf("payment %s of a dead process is still authorized", e.ID)
		}
	}
}

// end waits until the chain has told of every payment, and holds the ledger against it.
func (k *tempoKiller) end(t *testing.T) {
	t.Helper()
	settleByShell(t, k.shell, 40*time.Second)
	k.run(t, 0, "ledger", "verify").has(t, "All is well.")
	s := k.open(t)
	defer s.Close()
	moved := reckonTempo(t, k.chain, s, k.payer.Address)
	spent, paid, lanes := uint64(0), map[string]bool{}, map[common.Hash]bool{}
	for _, e := range entries(t, s) {
		lanes[common.Hash(e.Slot.NonceID)] = true
		switch e.State {
		case ledger.Settled:
			if spent += uint64(e.Spent); paid[e.Key] {
				t.Errorf("%s was paid twice", e.Key)
			}
			paid[e.Key] = true
		case ledger.ExpiredUnused, ledger.Denied:
		default:
			t.Errorf("payment %s is %v at the end", e.ID, e.State)
		}
	}
	if left := k.wallet - k.chain.BalanceOf(t, k.payer.Address); left != moved || left != spent || len(paid) == 0 {
		t.Errorf("%d left the account, events tell of %d, and the ledger settled %d for %d keys", left, moved, spent, len(paid))
	}
	t.Logf("%d runs, %d kills, %d keys paid, %d units spent", k.runs, k.kills, len(paid), spent)
}
