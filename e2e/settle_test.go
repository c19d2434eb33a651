//go:build e2e

package e2e

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

// watched is a buyer's client that asks the chain, and, where it is not empty, submits through a facilitator.
func (b *buyer) watched(t *testing.T, transport http.RoundTripper, facilitator string) *canopy.Client {
	t.Helper()
	rules, err := policy.Parse("e2e", []byte(b.setup.Policy))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.FromHex(b.setup.Key)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{b.chain.URL}})
	if err != nil {
		t.Fatal(err)
	}
	var cfg x402.Config
	if facilitator != "" {
		cfg.Facilitators = map[payment.ChainID]x402.Facilitator{payment.Base: {URL: facilitator}}
	}
	rail, err := x402.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := canopy.New(canopy.Config{
		Treasury: canopy.Treasury{Signer: key, Chains: []canopy.Chain{nodes}}, Policy: rules, Store: b.store, Rails: []canopy.Rail{rail}, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func reconciled(t *testing.T, c *canopy.Client, settled, released, waiting int) {
	t.Helper()
	r, err := c.Reconcile(t.Context())
	if err != nil || len(r.Problems)+len(r.Foreign) > 0 || r.Settled != settled || r.Released != released || r.Waiting != waiting {
		t.Fatalf("%+v, %v; want %d settled, %d released, %d waiting", r, err, settled, released, waiting)
	}
}

// A real node tells what became of payments: one that moved although its answer was lost, and one that never
// left. Its clock, ahead of ours, stops everything new.
func TestReconcileWithANode(t *testing.T) {
	t.Parallel()
	c := NewChain(t)
	s := NewSeller(t, c, 2)
	b := newBuyer(t, c, generous, 1_000_000)
	client := b.watched(t, nil, "")
	lost := newMeddler(t, s, func(w http.ResponseWriter, _, _ *http.Response) { panic(http.ErrAbortHandler) })
	_, _, err := fetch(t, client, http.MethodGet, lost.URL+"/cent", nil)
	var doubt *canopy.InDoubtError
	if !errors.As(err, &doubt) {
		t.Fatalf("%v", err)
	}
	reconciled(t, client, 0, 0, 1)
	c.Mine(t, 3)
	reconciled(t, client, 1, 0, 0)
	e, err := b.store.Entry(t.Context(), doubt.Result.PaymentID)
	if err != nil || e.State != ledger.Settled || e.Receipt.TxHash == "" || e.SpentAt.IsZero() || e.Assumed {
		t.Fatalf("%+v, %v", e, err)
	}
	c.settled(t, b.payer)

	never := b.watched(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Payment-Signature") != "" {
			return nil, errors.New("unplugged")
		}
		return http.DefaultTransport.RoundTrip(req)
	}), "")
	if _, _, err := fetch(t, never, http.MethodGet, s.URL+"/cent", nil); !errors.As(err, &doubt) {
		t.Fatalf("%v", err)
	}
	c.Advance(t, 30*time.Second)
	c.Mine(t, 3)
	reconciled(t, client, 0, 0, 1) // still valid, by the chain's clock
	c.Advance(t, 60*time.Second)
	reconciled(t, client, 0, 0, 1) // dead, and not final
	c.Mine(t, 3)
	reconciled(t, client, 0, 1, 0)
	if e, err = b.store.Entry(t.Context(), doubt.Result.PaymentID); err != nil || e.State != ledger.ExpiredUnused || !e.Assumed {
		t.Fatalf("%+v, %v", e, err)
	}
	b.spent(t, 10_000)

	fresh := b.watched(t, nil, "")
	if _, _, err := fetch(t, fresh, http.MethodGet, s.URL+"/cent", nil); !errors.Is(err, canopy.ErrClockSkew) {
		t.Errorf("a chain that is ahead of us: %v", err)
	}
}

// Transfers go through a real facilitator, once, whatever is asked again.
func TestPayThroughAFacilitator(t *testing.T) {
	t.Parallel()
	c := NewChain(t)
	account, err := newAccount()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.fund(account.Address); err != nil {
		t.Fatal(err)
	}
	p, ready, err := startProcess([]string{"FACILITATOR_KEY=" + account.HexKey()}, "settleserver.mjs", "--rpc", c.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	b := newBuyer(t, c, "[policy.default]\nmax_payment = \"$10\"\ncaps = [\"$100 / 24h\"]\nallow = [\"*\"]\n", 1_000_000)
	client := b.watched(t, nil, ready.URL)
	to := NewAccount(t).Address
	pay := func() canopy.Result {
		t.Helper()
		r, err := client.Pay(t.Context(), canopy.Transfer{To: payment.Address(to), Amount: 250_000, Key: "rent"})
		if err != nil || r.Status != canopy.Allowed || r.TxHash == "" {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	first := pay()
	if got := c.BalanceOf(t, common.Address(to)); got != 250_000 {
		t.Errorf("the payee holds %d", got)
	}
	if again := pay(); again.PaymentID != first.PaymentID || again.TxHash != first.TxHash {
		t.Errorf("%+v, want %+v", again, first)
	}
	c.Mine(t, 3)
	reconciled(t, client, 1, 0, 0)
	if r := pay(); r.Settlement != canopy.SettlementConfirmed {
		t.Errorf("%+v", r)
	}
	// Used already: whoever submits it again is told so, and nothing moves.
	b.spent(t, 250_000)
	if r, err := client.Pay(t.Context(), canopy.Transfer{To: payment.Address(to), Amount: 5 * payment.Dollar, Key: "more"}); err != nil || r.Code != "insufficient_balance" {
		t.Errorf("%+v, %v", r, err)
	}
}
