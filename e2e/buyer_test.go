//go:build e2e

package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

// generous is a policy under which everything on the price list is paid.
const generous = `
[policy.default]
max_payment = "$10"
caps        = ["$100 / 24h"]
allow       = ["host:127.0.0.1"]
`

// buyer is a program that pays: a client of its own key, on a SQLite ledger of its own.
type buyer struct {
	*canopy.Client
	payer  common.Address
	store  ledger.Store
	chain  *Chain
	setup  setup
	wallet uint64 // what the account held at first
}

// setup is what a client is made of, in a form that goes to another process.
type setup struct {
	Ledger, Policy, Key string
}

// newBuyer returns one with that many base units. When the test ends, its ledger is held against the chain:
// see reckon.
func newBuyer(t testing.TB, c *Chain, policyDoc string, units uint64) *buyer {
	t.Helper()
	a := c.Payer(t, units)
	b := &buyer{
		payer: a.Address, chain: c, wallet: units,
		setup: setup{filepath.Join(t.TempDir(), "canopy.db"), policyDoc, a.HexKey()},
	}
	var err error
	if b.Client, b.store, err = b.setup.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		reckon(t, c, b.store, b.payer)
		if err := b.store.Close(); err != nil {
			t.Errorf("closing the ledger: %v", err)
		}
	})
	return b
}

// open returns the client, on its default transport, and its ledger.
func (s setup) open() (*canopy.Client, ledger.Store, error) {
	store, err := sqlite.Open(s.Ledger, sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	c, err := s.client(store, nil)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return c, store, nil
}

func (s setup) client(store ledger.Store, transport http.RoundTripper) (*canopy.Client, error) {
	rules, err := policy.Parse("e2e", []byte(s.Policy))
	if err != nil {
		return nil, err
	}
	key, err := signer.FromHex(s.Key)
	if err != nil {
		return nil, err
	}
	rail, err := x402.New(x402.Config{})
	if err != nil {
		return nil, err
	}
	return canopy.New(canopy.Config{
		Treasury: canopy.Treasury{Signer: key}, Policy: rules, Store: store, Rails: []canopy.Rail{rail}, Transport: transport,
	})
}

// get fetches a URL and reads the answer whole.
func (b *buyer) get(t testing.TB, url string, opts ...canopy.Option) (*http.Response, string, error) {
	t.Helper()
	return fetch(t, b.Client, http.MethodGet, url, nil, opts...)
}

// hangUp fetches a URL and leaves some time after the authorization did. It returns the call's error.
func (b *buyer) hangUp(t testing.TB, after time.Duration, url, key string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := b.setup.client(b.store, roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Payment-Signature")+req.Header.Get("X-Payment") != "" {
			time.AfterFunc(after, cancel)
		}
		return http.DefaultTransport.RoundTrip(req)
	}))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Fetch(ctx, req, canopy.WithKey(key))
	if err == nil {
		resp.Body.Close()
	}
	return err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func fetch(
	t testing.TB, c *canopy.Client, method, url string, body io.Reader, opts ...canopy.Option,
) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Fetch(t.Context(), req, opts...)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the answer: %v", method, url, err)
	}
	return resp, string(got), nil
}

// paid fails t unless resp was paid for, with that state and those base units.
func paid(t testing.TB, resp *http.Response, state canopy.State, units uint64) canopy.Result {
	t.Helper()
	r, ok := canopy.PaymentOf(resp)
	if !ok {
		t.Fatalf("no payment for the answer %s", resp.Status)
	}
	if r.State != state || uint64(r.Amount) != units || r.Status != canopy.Allowed || r.Warning != "" {
		t.Errorf("payment %+v, want %v of %d units", r, state, units)
	}
	if claimed := r.TxHash != "" && r.Settlement == canopy.SettlementClaimed; claimed != (state == ledger.Claimed) {
		t.Errorf("transaction %q and settlement %q in state %v", r.TxHash, r.Settlement, r.State)
	}
	return r
}

// rule answers an approval as the command line does.
func (b *buyer) rule(t testing.TB, id canopy.ApprovalID, approve bool) {
	t.Helper()
	_, err := approvals.NewDesk(b.store, "cli", nil).Rule(t.Context(), id, canopy.Ruling{Approve: approve, By: "ana", Reason: "e2e"})
	if err != nil {
		t.Fatalf("ruling on %s: %v", id, err)
	}
}

// spent fails t unless the payer has spent exactly that many base units.
func (b *buyer) spent(t testing.TB, units uint64) {
	t.Helper()
	if got := b.wallet - b.chain.BalanceOf(t, b.payer); got != units {
		t.Errorf("the payer has spent %d, want %d", int64(got), units)
	}
}

// entries are all payments of the ledger, oldest first.
func entries(t testing.TB, s ledger.Store) []ledger.Entry {
	t.Helper()
	var all []ledger.Entry
	for e, err := range s.Entries(context.Background(), ledger.Query{Oldest: true}) {
		if err != nil {
			t.Fatalf("reading the ledger: %v", err)
		}
		all = append(all, e)
	}
	return all
}

// transfer is what an authorization of a payer moved.
type transfer struct {
	nonce common.Hash
	to    common.Address
	units uint64
}

// transfers are the authorizations of from that moved money, with what they moved, by the token's events.
func (c *Chain) transfers(t testing.TB, from common.Address) []transfer {
	t.Helper()
	type log struct {
		TransactionHash common.Hash
		LogIndex        string
		Topics          []common.Hash
		Data            string
	}
	latest := hexutil.Uint64(c.BlockNumber(t, "latest")) // sellers may be settling
	logs := func(event string) (out []log) {
		c.do(t, &out, "eth_getLogs", map[string]any{
			"address": c.Token, "fromBlock": "0x0", "toBlock": latest,
			"topics": []common.Hash{crypto.Keccak256Hash([]byte(event)), common.BytesToHash(from[:])},
		})
		return out
	}
	used, moved := logs("AuthorizationUsed(address,bytes32)"), logs("Transfer(address,address,uint256)")
	if len(used) != len(moved) {
		t.Fatalf("%d authorizations and %d transfers of %v", len(used), len(moved), from)
	}
	out := make([]transfer, len(used))
	for i := range used {
		if used[i].TransactionHash != moved[i].TransactionHash {
			t.Fatalf("authorization and transfer %d of %v are not of one transaction", i, from)
		}
		value := common.HexToHash(moved[i].Data).Big()
		out[i] = transfer{used[i].Topics[2], common.BytesToAddress(moved[i].Topics[2][:]), value.Uint64()}
	}
	return out
}

// reckon holds a ledger against the chain: everything that moved was committed before, to the unit and the
// payee; nobody was paid twice for one payment or one key; what counts as spent or held is at least what
// moved; and the ledger's own checks find nothing. Whoever calls it has waited for what sellers still settle.
func reckon(t testing.TB, c *Chain, s ledger.Store, payer common.Address) {
	t.Helper()
	report, err := s.(ledger.Verifier).Verify(context.Background())
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("ledger verify: %v, %q", err, report.Problems)
	}
	bySlot, counted := map[string]ledger.Entry{}, uint64(0)
	for _, e := range entries(t, s) {
		if !e.Slot.IsZero() {
			bySlot[hex.EncodeToString(e.Slot.NonceID[:])] = e
		}
		if e.State.Live() || e.State.Paid() {
			counted += uint64(e.Cost)
		}
	}
	moved, keys := uint64(0), map[string]int{}
	for _, m := range c.transfers(t, payer) {
		moved += m.units
		e, ok := bySlot[hex.EncodeToString(m.nonce[:])]
		if !ok {
			t.Errorf("authorization %v moved %d and is not in the ledger", m.nonce, m.units)
			continue
		}
		if to := common.Address(e.Terms.Payee()); to != m.to || fmt.Sprint(m.units) != e.Terms.Amount.String() {
			t.Errorf("payment %s is of %v to %v, and %d moved to %v", e.ID, e.Terms.Amount, to, m.units, m.to)
		}
		if e.Key != "" {
			if keys[e.Key]++; keys[e.Key] > 1 {
				t.Errorf("key %q was paid for %d times", e.Key, keys[e.Key])
			}
		}
	}
	if moved > counted {
		t.Errorf("%d base units moved and the ledger counts %d", moved, counted)
	}
}

// settled waits until the payer's balance stands still, for what sellers settle after their client has gone.
func (c *Chain) settled(t testing.TB, payer common.Address) {
	t.Helper()
	last, since := c.BalanceOf(t, payer), time.Now()
	for time.Since(since) < 2500*time.Millisecond {
		time.Sleep(100 * time.Millisecond)
		if now := c.BalanceOf(t, payer); now != last {
			last, since = now, time.Now()
		}
	}
}

// eachSeller runs f against both shared sellers at the same time; their payees differ.
func eachSeller(t *testing.T, f func(t *testing.T, s *Seller)) {
	for _, version := range []int{2, 1} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			t.Parallel()
			f(t, shared.Seller(version))
		})
	}
}

// ownSellers runs f against sellers of its own, beside other tests.
func ownSellers(t *testing.T, f func(t *testing.T, s *Seller)) {
	t.Parallel()
	for _, version := range []int{2, 1} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			t.Parallel()
			f(t, NewSeller(t, shared.Chain, version))
		})
	}
}

// denied fails t unless err is a denial with that code, for which nothing was signed.
func denied(t testing.TB, err error, code string) *canopy.DeniedError {
	t.Helper()
	var d *canopy.DeniedError
	if !errors.As(err, &d) {
		t.Fatalf("got %v, want a denial with %s", err, code)
	}
	if d.Result.Code != code || d.Result.Status != canopy.Denied {
		t.Errorf("denied with %s (%s), want %s", d.Result.Code, d.Result.Reason, code)
	}
	return d
}

// pending fails t unless err says that a person is asked.
func pending(t testing.TB, err error) canopy.Result {
	t.Helper()
	var p *canopy.PendingError
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want *PendingError", err)
	}
	if p.Result.Status != canopy.PendingApproval || !p.Result.ApprovalID.Valid() {
		t.Errorf("pending with %+v", p.Result)
	}
	return p.Result
}

// lines is what GET /stream and /free-stream answer.
var lines = func() string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "%-4095s\n", fmt.Sprintf("line %d", i))
	}
	return b.String()
}()
