//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// mppRoute is a priced route of the mppx seller, and what paying for it is.
type mppRoute struct {
	method, path string
	units        uint64
	scheme       string
	slot         payment.SlotKind
	status       int
	body         string // "" for the path, as JSON
	bearer       string
	splits       bool
	description  string
}

// mppRoutes are all of them that Tempo pays for.
var mppRoutes = []mppRoute{
	{path: "/cent", units: 10_000},
	{path: "/two", units: 2_000_000},
	{path: "/echo", method: "POST", units: 20_000, body: "{\"café\": [1, 2, 3]}\n"},
	{path: "/splits", units: 30_000, splits: true},
	{path: "/opaque", units: 10_000},
	{path: "/auth", units: 10_000, bearer: "Bearer reader", body: `{"path":"/auth","query":{},"authorization":"Bearer reader"}`},
	{path: "/zero", scheme: "tempo/proof", slot: payment.SlotProof},
	{path: "/push", units: 10_000},
	{path: "/pull", units: 10_000},
	{path: "/both", units: 10_000},
	{path: "/several", units: 10_000},
	{path: "/words", units: 10_000, description: `Zwölf Seiten — 十二頁 "😀" \ € Payment id="x"`},
	{path: "/sponsored", units: 10_000, slot: payment.SlotExpiring},
	{path: "/broken", units: 10_000, status: http.StatusInternalServerError, body: `{"error":"broken on purpose"}`},
}

// TestMPPPriceList checks the price of each route and pays it twice, by Fetch and under an http.Client, where no
// word names a rail: each time the price and the fee leave the account and nothing else, the recipients get what
// is theirs, the seller's receipt names the transaction, and the chain settles it to the unit.
func TestMPPPriceList(t *testing.T) {
	t.Parallel()
	for _, r := range mppRoutes {
		if r.method == "" {
			r.method = http.MethodGet
		}
		if r.scheme == "" {
			r.scheme = "tempo/charge"
		}
		if r.slot == payment.SlotNone {
			r.slot = payment.SlotLane
		}
		if r.status == 0 {
			r.status = http.StatusOK
		}
		if r.body == "" {
			r.body = fmt.Sprintf(`{"path":"%s","query":{}}`, r.path)
		}
		t.Run(r.path[1:], func(t *testing.T) {
			t.Parallel()
			p := tempoPeers(t)
			b := newRailed(t, p.Chain, openPolicy, 5_000_000)
			if r.method == http.MethodGet {
				r.check(t, b, p.Seller)
			}
			clients := []func(*http.Request) (*http.Response, error){
				func(req *http.Request) (*http.Response, error) { return b.Fetch(t.Context(), req) },
				b.HTTPClient().Do,
			}
			if r.status != http.StatusOK { // what was paid and not delivered answers an equal call
				clients = clients[:1]
			}
			for i, do := range clients {
				r.pay(t, b, p.Seller, i, do)
			}
			if r.status != http.StatusOK {
				_, _, err := b.get(t, p.Seller.URL+r.path)
				paidBefore(t, err, entries(t, b.store)[0].ID)
			}
			b.settle(t, 20*time.Second)
			spent := uint64(0)
			for _, e := range entries(t, b.store) {
				if want := ledger.Settled; r.slot != payment.SlotProof && e.State != want {
					t.Errorf("payment %s is %v, want %v", e.ID, e.State, want)
				}
				spent += uint64(e.Spent)
			}
			if got := b.spent(t); got != spent {
				t.Errorf("%d left the account, and %d count as spent", got, spent)
			}
		})
	}
}

// check asks for the price, which signs nothing.
func (r mppRoute) check(t *testing.T, b *railed, s *MPPSeller) {
	t.Helper()
	k, err := b.CheckURL(t.Context(), s.URL+r.path)
	if err != nil {
		if r.bearer != "" {
			return // the seller says nothing to who shows no ticket
		}
		t.Fatal(err)
	}
	if r.bearer != "" {
		if k.HTTP != http.StatusUnauthorized {
			t.Errorf("check %+v, want 401", k)
		}
		return
	}
	if k.Status != canopy.Allowed || uint64(k.Amount) != r.units || k.Rail != "mpp" || k.Scheme != r.scheme ||
		k.Chain != payment.TempoTest || k.Recipient != canopy.Address(s.PayTo) || k.HTTP != 402 {
		t.Errorf("check %+v, want %d units to %v", k, r.units, s.PayTo)
	}
	if fee := k.Fee > 0; fee != (r.slot == payment.SlotLane) {
		t.Errorf("a fee of %v on a slot %v", k.Fee, r.slot)
	}
	if k.Description != r.description {
		t.Errorf("description %q, want %q", k.Description, r.description)
	}
	if want := map[bool]string{false: "goods.example", true: "Café — 日本"}[r.path == "/words"]; k.Realm != want {
		t.Errorf("realm %q, want %q", k.Realm, want)
	}
	if n := len(entries(t, b.store)); n != 0 {
		t.Errorf("a check recorded %d payments", n)
	}
}

// pay pays once, for the i-th time.
func (r mppRoute) pay(t *testing.T, b *railed, s *MPPSeller, i int, do func(*http.Request) (*http.Response, error)) {
	t.Helper()
	before := b.chain.spendings(t, b.account.Address)
	var body io.Reader
	if r.method == http.MethodPost {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequest(r.method, s.URL+r.path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-e2e")
	if r.bearer != "" {
		req.Header.Set("Authorization", r.bearer)
	}
	resp, err := do(req)
	if err != nil {
		t.Fatalf("payment %d: %v", i+1, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != r.status || string(got) != r.body {
		t.Errorf("payment %d: %s %q, %v, want %d %q", i+1, resp.Status, got, err, r.status, r.body)
	}
	if credentialed(resp.Request) || resp.Request.Header.Get("Authorization") != r.bearer {
		t.Errorf("payment %d: the answer's request shows the credential, or lost the caller's own", i+1)
	}
	result, ok := canopy.PaymentOf(resp)
	state := ledger.Claimed
	if r.slot == payment.SlotProof {
		state = ledger.Settled // with its receipt
	}
	if !ok || result.State != state || result.Status != canopy.Allowed || uint64(result.Amount) != r.units ||
		result.Rail != "mpp" || result.Chain != payment.TempoTest || result.Warning != "" ||
		result.Recipient != canopy.Address(s.PayTo) || result.Settlement != canopy.SettlementClaimed {
		t.Fatalf("payment %d: %+v, want %d units %s", i+1, result, r.units, state)
	}
	after := b.chain.spendings(t, b.account.Address)
	if r.slot == payment.SlotProof {
		if len(after) != 0 || result.TxHash != "" {
			t.Errorf("payment %d: %+v moved by %q, want nothing", i+1, after, result.TxHash)
		}
		return
	}
	if len(after) != len(before)+1 {
		t.Fatalf("payment %d: %d transactions, want 1", i+1, len(after)-len(before))
	}
	m := after[len(after)-1]
	if m.hash.Hex() != result.TxHash {
		t.Errorf("payment %d: moved by %v, and the result names %s", i+1, m.hash, result.TxHash)
	}
	want := []transferTo{{to: s.PayTo, units: r.units}}
	if r.splits {
		want = []transferTo{{to: s.PayTo, units: 19_500}, {to: s.Partner, units: 10_000}, {to: s.Sponsor, units: 500}}
	}
	if len(m.to) != len(want) {
		t.Fatalf("payment %d: moved %+v, want %+v", i+1, m.to, want)
	}
	for n, to := range m.to {
		if to.to != want[n].to || to.units != want[n].units {
			t.Errorf("payment %d: transfer %d moved %d to %v, want %+v", i+1, n, to.units, to.to, want[n])
		}
		switch memo := to.memo.Hex(); {
		case n == 0 && !strings.HasPrefix(memo, "0xef1ed71201"):
			t.Errorf("payment %d: memo %s is not of the challenge", i+1, memo)
		case n == 1 && to.memo != common.Hash{}:
			t.Errorf("payment %d: memo %s, want none", i+1, memo)
		case n == 2 && memo != "0x"+strings.Repeat("ab", 32):
			t.Errorf("payment %d: memo %s is not the seller's", i+1, memo)
		}
	}
	if sponsored := r.slot == payment.SlotExpiring; sponsored != (m.fee == 0) || sponsored != (result.Fee == 0) || canopy.USD(m.fee) > result.Fee {
		t.Errorf("payment %d: a fee of %d, bound by %v", i+1, m.fee, result.Fee)
	}
}

// TestMPPThirtySixAtOnce makes 36 equal calls at once of a seller that answers each with a challenge of its own:
// 36 purchases, 36 transfers, 36 lanes.
func TestMPPThirtySixAtOnce(t *testing.T) {
	t.Parallel()
	const calls, units = 36, 10_000
	p := tempoPeers(t)
	s := NewMPPSeller(t, p.Chain, p.Chain.URL)
	b := newRailed(t, p.Chain, openPolicy, 5_000_000)
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			req, _ := http.NewRequest(http.MethodGet, s.URL+"/cent", nil)
			resp, err := b.Fetch(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if r, _ := canopy.PaymentOf(resp); resp.StatusCode != http.StatusOK || r.State != ledger.Claimed {
				t.Errorf("%s, %+v", resp.Status, r)
			}
		})
	}
	wg.Wait()
	if got := s.Served(t, "GET /cent"); got != calls {
		t.Errorf("%d were served, want %d", got, calls)
	}
	moved := b.chain.spendings(t, b.account.Address)
	lanes := map[common.Hash]bool{}
	for _, m := range moved {
		lanes[m.lane] = true
	}
	if len(moved) != calls || len(lanes) != calls || b.chain.BalanceOf(t, s.PayTo) != calls*units {
		t.Errorf("%d transfers by %d lanes, and %d with the payee, want %d", len(moved), len(lanes), b.chain.BalanceOf(t, s.PayTo), calls)
	}
	b.settle(t, 20*time.Second)

	// The chain has shown what became of them, so the lanes serve again and no new one is taken.
	resp, _, err := b.get(t, s.URL+"/cent")
	if err != nil {
		t.Fatal(err)
	}
	r, _ := canopy.PaymentOf(resp)
	if e := b.entry(t, r.PaymentID); !lanes[common.Hash(e.Slot.NonceID)] || e.Slot.Nonce != 1 {
		t.Errorf("slot %v, want the second nonce of a lane that was used", e.Slot)
	}
}

// TestMPPOnTheOtherChain pays mppx by a dollar of the chain with the ID of Base, which it sells for by both
// protocols: by an authorization whose nonce the challenge binds, and by x402's, whichever rail there is or comes
// first.
func TestMPPOnTheOtherChain(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 0)
	shared.Chain.Mint(t, b.account.Address, 1_000_000)
	for i, rails := range [][]string{{"mpp"}, {"mpp", "x402"}, {"x402", "mpp"}, {"x402"}} {
		resp, body, err := fetch(t, b.clientOf(t, nil, rails...), http.MethodGet, p.Seller.URL+"/evm", nil)
		if err != nil {
			t.Fatalf("%q: %v", rails, err)
		}
		r, _ := canopy.PaymentOf(resp)
		if resp.StatusCode != http.StatusOK || body != `{"path":"/evm","query":{}}` || r.State != ledger.Claimed || r.Rail != rails[0] || r.Chain != payment.Base {
			t.Errorf("%q: %s %s, %+v", rails, resp.Status, body, r)
		}
		moved := shared.Chain.transfers(t, b.account.Address)
		if len(moved) != i+1 || moved[i].units != 10_000 || moved[i].to != p.Seller.PayTo || r.TxHash == "" {
			t.Fatalf("%q: moved %+v", rails, moved)
		}
		e, nonce := b.entry(t, r.PaymentID), crypto.Keccak256Hash([]byte(b.entry(t, r.PaymentID).ChallengeID+"goods.example"))
		if moved[i].nonce != common.Hash(e.Slot.NonceID) || (moved[i].nonce == nonce) != (rails[0] == "mpp") {
			t.Errorf("%q: nonce %v, slot %v", rails, moved[i].nonce, e.Slot)
		}
	}
	shared.Chain.Mine(t, 3)
	b.settle(t, 20*time.Second)
}

// TestMPPTransfer sends a plain dollar transfer on Tempo, and the same again under its key.
func TestMPPTransfer(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	to := NewAccount(t).Address
	doc := fmt.Sprintf("[policy.default]\nmax_payment = \"$10\"\ncaps = [\"$20 / 24h\"]\nallow = [\"address:%s\"]\n", to.Hex())
	b := newRailed(t, p.Chain, doc, 5_000_000)
	transfer := canopy.Transfer{To: canopy.Address(to), Amount: canopy.Dollar + 1, Chain: payment.TempoTest, Key: "rent", Memo: "December"}
	var first canopy.Result
	for i := range 2 {
		r, err := b.Pay(t.Context(), transfer)
		if err != nil || r.Status != canopy.Allowed || !r.State.Paid() {
			t.Fatalf("%+v, %v", r, err)
		}
		if i == 0 {
			first = r
		} else if r.PaymentID != first.PaymentID || r.TxHash != first.TxHash {
			t.Errorf("%+v, want the payment that was made: %+v", r, first)
		}
	}
	moved := b.chain.spendings(t, b.account.Address)
	if len(moved) != 1 || len(moved[0].to) != 1 || moved[0].to[0].units != 1_000_001 || moved[0].hash.Hex() != first.TxHash {
		t.Fatalf("moved %+v, want $1.000001 by %s", moved, first.TxHash)
	}
	if memo := moved[0].to[0].memo; strings.TrimRight(string(memo[:]), "\x00") != "December" {
		t.Errorf("memo %v", memo)
	}
	b.settle(t, 20*time.Second)
	other := transfer
	other.To, other.Key = canopy.Address(p.Seller.PayTo), "other"
	if r, err := b.Pay(t.Context(), other); err != nil || r.Status != canopy.Denied {
		t.Errorf("%+v, %v: a stranger was paid", r, err)
	}
}
