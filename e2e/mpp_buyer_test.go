//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

// railed is a program with both rails: a client of one key, which may hold money on both chains, on a SQLite
// ledger of its own. Both chains tell it what became of its payments.
type railed struct {
	*canopy.Client
	account Account
	store   ledger.Store
	chain   *Tempo
	policy  string
	wallet  uint64 // what the account held on Tempo at first
	second  string // one more node of Tempo; its word is asked for too

}

// openPolicy lets everything that the seller sells be paid.
const openPolicy = `
[policy.default]
max_payment = "$10"
caps        = ["$100 / 24h"]
allow       = ["host:127.0.0.1 splits:any"]
`

// newRailed returns one with that many base units on Tempo. When the test ends, its ledger is held against the
// chain.
func newRailed(t testing.TB, c *Tempo, policyDoc string, units uint64) *railed {
	t.Helper()
	b := &railed{account: c.Payer(t, units), chain: c, policy: policyDoc, wallet: units}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "canopy.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.store = store
	b.Client = b.client(t, nil)
	t.Cleanup(func() {
		b.reckon(t)
		if err := store.Close(); err != nil {
			t.Errorf("closing the ledger: %v", err)
		}
	})
	return b
}

// client returns one more client on b's key and ledger.
func (b *railed) client(t testing.TB, transport http.RoundTripper) *canopy.Client {
	t.Helper()
	return b.clientOf(t, transport, "x402", "mpp")
}

// clientOf is client with these rails.
func (b *railed) clientOf(t testing.TB, transport http.RoundTripper, names ...string) *canopy.Client {
	t.Helper()
	rules, err := policy.Parse("e2e", []byte(b.policy))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.FromHex(b.account.HexKey())
	if err != nil {
		t.Fatal(err)
	}
	base, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{shared.Chain.URL}})
	if err != nil {
		t.Fatal(err)
	}
	nodes := []string{b.chain.URL}
	if b.second != "" {
		nodes = append(nodes, b.second)
	}
	onTempo, err := chain.New(chain.Config{ID: payment.TempoTest, URLs: nodes})
	if err != nil {
		t.Fatal(err)
	}
	first, err := x402.New(x402.Config{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := mpp.New(mpp.Config{
		Chains: []payment.ChainID{payment.Base, payment.TempoTest},
		Nodes:  map[payment.ChainID]mpp.Node{payment.TempoTest: onTempo},

		ProofRealms: []string{"goods.example"}, // as the seller calls itself
	})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]canopy.Rail{"x402": first, "mpp": second}
	var rails []canopy.Rail
	for _, name := range names {
		rails = append(rails, all[name])
	}
	c, err := canopy.New(canopy.Config{
		Treasury: canopy.Treasury{Signer: key, Chains: []canopy.Chain{base, onTempo}},
		Policy:   rules, Store: b.store, Rails: rails, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// get fetches a URL and reads the answer whole.
func (b *railed) get(t testing.TB, url string, opts ...canopy.Option) (*http.Response, string, error) {
	t.Helper()
	return fetch(t, b.Client, http.MethodGet, url, nil, opts...)
}

// settle reconciles until the chain has told what became of every payment that it can tell about.
func (b *railed) settle(t testing.TB, atMost time.Duration) {
	t.Helper()
	for end := time.Now().Add(atMost); ; time.Sleep(200 * time.Millisecond) {
		r, err := b.Reconcile(t.Context())
		if err != nil || len(r.Problems)+len(r.Foreign) > 0 || r.Operator > 0 {
			t.Fatalf("reconcile: %+v, %v", r, err)
		}
		open := 0
		for _, e := range entries(t, b.store) {
			if e.Slot.Kind != payment.SlotProof && (e.State == ledger.Claimed || e.State.Live()) {
				open++
			}
		}
		if open == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d payments are open after %v: %+v", open, atMost, r)
		}
	}
}

// spent is what the account has spent on Tempo.
func (b *railed) spent(t testing.TB) uint64 {
	t.Helper()
	return b.wallet - b.chain.BalanceOf(t, b.account.Address)
}

// reckon holds the ledger against Tempo: everything that moved was committed before, to the unit, the payees and
// the lane; nothing moved twice for one payment or one key; a settled payment counts exactly what left the
// account; and the ledger's own checks find nothing.
func (b *railed) reckon(t testing.TB) {
	t.Helper()
	report, err := b.store.(ledger.Verifier).Verify(context.Background())
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("ledger verify: %v, %q", err, report.Problems)
	}
	if moved := reckonTempo(t, b.chain, b.store, b.account.Address); moved != b.spent(t) {
		t.Errorf("%d left the account, and %d are known from events", b.spent(t), moved)
	}
}

// reckonTempo returns what left the account, fees too.
func reckonTempo(t testing.TB, c *Tempo, s ledger.Store, account common.Address) (moved uint64) {
	t.Helper()
	type lane struct {
		key   common.Hash
		nonce uint64
	}
	byLane, byMemo, counted := map[lane]ledger.Entry{}, map[common.Hash]ledger.Entry{}, uint64(0)
	for _, e := range entries(t, s) {
		switch e.Slot.Kind {
		case payment.SlotLane:
			l := lane{common.Hash(e.Slot.NonceID), e.Slot.Nonce}
			// A lane's nonce may have been another's before, whose payment never moved.
			if old, taken := byLane[l]; taken && old.State != ledger.ExpiredUnused {
				t.Errorf("payments %s (%v) and %s have lane %x and nonce %d", old.ID, old.State, e.ID, l.key, l.nonce)
			}
			byLane[l] = e
		case payment.SlotExpiring:
			byMemo[common.Hash(e.Slot.NonceID)] = e
		default:
			continue
		}
		if e.State.Live() || e.State.Paid() {
			counted += uint64(e.Spent)
		}
	}
	once, keys := map[canopy.PaymentID]bool{}, map[string]int{}
	for _, m := range c.spendings(t, account) {
		e, known := byLane[lane{m.lane, m.nonce}]
		if m.lane == (common.Hash{}) && len(m.to) > 0 {
			e, known = byMemo[m.to[0].memo]
		}
		moved += m.fee
		for _, to := range m.to {
			moved += to.units
		}
		if !known || once[e.ID] {
			t.Errorf("%v by lane %x, nonce %d, moved %+v: in the ledger %v, twice %v", m.hash, m.lane, m.nonce, m.to, known, once[e.ID])
			continue
		}
		once[e.ID] = true
		if len(m.to) == 0 { // it failed, and paid its fee
			continue
		}
		if len(m.to) != len(e.Terms.Recipients) {
			t.Errorf("payment %s moved %+v, and is to %+v", e.ID, m.to, e.Terms.Recipients)
			continue
		}
		for i, r := range e.Terms.Recipients {
			if n, ok := r.Amount.Uint64(); !ok || n != m.to[i].units || common.Address(r.Address) != m.to[i].to {
				t.Errorf("payment %s moved %+v, and is to %+v", e.ID, m.to, e.Terms.Recipients)
			}
		}
		amount, _ := e.Terms.Amount.Uint64()
		if m.fee > uint64(e.Terms.FeeBound) {
			t.Errorf("payment %s paid a fee of %d, above its bound of %d", e.ID, m.fee, e.Terms.FeeBound)
		}
		if e.State == ledger.Settled && (uint64(e.Spent) != amount+m.fee || e.Receipt.TxHash != m.hash.Hex()) {
			t.Errorf("payment %s counts %v and names %s, and %d left by %v", e.ID, e.Spent, e.Receipt.TxHash, amount+m.fee, m.hash)
		}
		if e.State == ledger.ExpiredUnused || e.State == ledger.Cancelled {
			t.Errorf("payment %s is %v and moved by %v", e.ID, e.State, m.hash)
		}
		if e.Key != "" {
			if keys[e.Key]++; keys[e.Key] > 1 {
				t.Errorf("key %q was paid for %d times", e.Key, keys[e.Key])
			}
		}
	}
	if moved > counted {
		t.Errorf("%d base units left and the ledger counts %d", moved, counted)
	}
	return moved
}

// entry reads a payment of b.
func (b *railed) entry(t testing.TB, id canopy.PaymentID) ledger.Entry {
	t.Helper()
	e, err := b.store.Entry(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// credentialed reports whether a request carries a credential of the Payment scheme.
func credentialed(req *http.Request) bool {
	for _, name := range []string{"Authorization", "Payment-Authorization"} {
		if v := req.Header.Get(name); len(v) > 8 && v[:8] == "Payment " {
			return true
		}
	}
	return false
}

// inDoubt fails t unless err says that the payment is in doubt.
func inDoubt(t testing.TB, err error) *canopy.InDoubtError {
	t.Helper()
	var doubt *canopy.InDoubtError
	if !errors.As(err, &doubt) {
		t.Fatalf("got %v, want *InDoubtError", err)
	}
	return doubt
}

// paidBefore fails t unless err says that this payment was made.
func paidBefore(t testing.TB, err error, id canopy.PaymentID) {
	t.Helper()
	var made *canopy.PaidError
	if !errors.As(err, &made) || made.Result.PaymentID != id {
		t.Fatalf("got %v, want *PaidError of %s", err, id)
	}
}
