//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
)

// TestMPPDenied asks for what the policy, the caller or the configuration does not let be paid: nothing is signed.
func TestMPPDenied(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	base := func(keys string) string { return "[policy.default]\n" + keys }
	const allowed, caps = "allow = [\"host:127.0.0.1\"]\n", "caps = [\"$100 / 24h\"]\n"
	for _, tc := range []struct {
		name, doc, path, code, reason string
		opts                          []canopy.Option
	}{
		{"a split to a stranger", base("max_payment = \"$10\"\n" + allowed + caps), "/splits", "split_not_allowed", "Further recipient " + p.Seller.Partner.Hex(), nil},
		{"one of two splits", base("max_payment = \"$10\"\nallow = [\"host:127.0.0.1\", \"address:" + p.Seller.Partner.Hex() + "\"]\n" + caps), "/splits", "split_not_allowed", "Further recipient " + p.Seller.Sponsor.Hex(), nil},
		{"a recipient that is denied", base("max_payment = \"$10\"\nallow = [\"*\"]\ndeny = [\"address:" + p.Seller.Partner.Hex() + "\"]\n" + caps), "/splits", "denied_destination", "", nil},
		{"another chain", openPolicy, "/elsewhere", "no_usable_offer", "", nil},
		{"a chain that is not allowed", base("max_payment = \"$10\"\nallow = [\"host:127.0.0.1\", \"chain:eip155:8453\"]\n" + caps), "/cent", "chain_not_allowed", "Chain eip155:42431", nil},
		{"the most, with the fee", base("max_payment = \"$0.039999\"\n" + allowed + caps), "/cent", "max_payment", "Amount $0.04 exceeds the maximum of $0.039999 per payment", nil},
		{"a cap, with the fee", base("max_payment = \"$10\"\ncaps = [\"$0.039 / 24h\"]\n" + allowed), "/cent", "cap_exceeded", "Spend cap exceeded: $0.00 + $0.04 > $0.039 / 24h", nil},
		{"the caller's maximum", openPolicy, "/cent", "max_price", "", []canopy.Option{canopy.WithMaxPrice(39_999)}},
		{"another host", base("max_payment = \"$10\"\nallow = [\"host:goods.example\"]\n" + caps), "/cent", "not_allowed", "Host 127.0.0.1", nil}, // which is the realm
		{"a proof for another host", base("max_payment = \"$10\"\nallow = [\"host:goods.example\"]\n" + caps), "/zero", "not_allowed", "Host 127.0.0.1", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newRailed(t, p.Chain, tc.doc, 1_000_000)
			_, _, err := b.get(t, p.Seller.URL+tc.path, tc.opts...)
			if d := denied(t, err, tc.code); !strings.Contains(d.Result.Reason, tc.reason) {
				t.Errorf("reason %q, want %q", d.Result.Reason, tc.reason)
			}
			for _, e := range entries(t, b.store) {
				if e.State != ledger.Denied || !e.Slot.IsZero() {
					t.Errorf("payment %s is %v by %v", e.ID, e.State, e.Slot)
				}
			}
			if got := b.chain.spendings(t, b.account.Address); len(got) != 0 {
				t.Errorf("moved %+v", got)
			}
		})
	}
}

// TestMPPEnoughExactly pays at the very edge of the maximum, the cap and the balance, which the fee is part of.
func TestMPPEnoughExactly(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	const doc = `
[policy.default]
max_payment = "$0.04"
caps        = ["$0.04 / 24h"]
allow       = ["host:127.0.0.1"]
`
	b := newRailed(t, p.Chain, doc, 40_000)
	resp, _, err := b.get(t, p.Seller.URL+"/cent", canopy.WithMaxPrice(40_000))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := canopy.PaymentOf(resp)
	_, _, err = b.get(t, p.Seller.URL+"/pull")
	denied(t, err, "cap_exceeded")
	// What the chain did not take of the fee counts no more.
	e := b.one(t, r.PaymentID, 10_000)
	left, err := b.Budget(t.Context())
	if err != nil || left.Spent != e.Spent || left.Spent >= 40_000 || left.Spent <= 10_000 {
		t.Errorf("budget %+v, %v, want what was spent: %v", left, err, e.Spent)
	}
}

// TestMPPPoor asks with less than price and fee on the chain: denied before anything is signed.
func TestMPPPoor(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	for _, units := range []uint64{0, 39_999} {
		b := newRailed(t, p.Chain, openPolicy, units)
		_, _, err := b.get(t, p.Seller.URL+"/cent")
		denied(t, err, "insufficient_balance")
		if got := b.spent(t); got != 0 {
			t.Errorf("%d left the account", got)
		}
	}
}

// TestMPPApprovedIsPaid puts a payment with splits to a person, who sees every recipient, and pays what was
// approved under the challenge that comes then.
func TestMPPApprovedIsPaid(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	_, _, err := b.get(t, p.Seller.URL+"/splits", canopy.WithApproval())
	asked := pending(t, err)
	a, err := b.ApprovalStatus(t.Context(), asked.ApprovalID)
	if err != nil || len(a.Terms.Recipients) != 3 || common.Address(a.Terms.Recipients[1].Address) != p.Seller.Partner || a.Terms.FeeBound != 30_000+2*7_500 {
		t.Errorf("approval %+v, %v", a.Terms, err)
	}
	(&buyer{Client: b.Client, store: b.store}).rule(t, asked.ApprovalID, true)
	resp, _, err := b.get(t, p.Seller.URL+"/splits")
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := canopy.PaymentOf(resp); r.PaymentID != asked.PaymentID || r.State != ledger.Claimed {
		t.Errorf("%+v, want %s", r, asked.PaymentID)
	}
}

// TestMPPAndX402ShareACap spends one cap over both rails and both chains.
func TestMPPAndX402ShareACap(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	x := NewSeller(t, shared.Chain, 2)
	const doc = `
[policy.default]
max_payment = "$10"
caps        = ["$0.05 / 24h"]
allow       = ["host:127.0.0.1"]
`
	b := newRailed(t, p.Chain, doc, 1_000_000)
	shared.Chain.Mint(t, b.account.Address, 1_000_000)
	get := func(url string) (canopy.Result, error) {
		t.Helper()
		resp, _, err := b.get(t, url)
		if err != nil {
			return canopy.Result{}, err
		}
		r, _ := canopy.PaymentOf(resp)
		if resp.StatusCode != http.StatusOK || r.State != ledger.Claimed {
			t.Errorf("%s, %+v", resp.Status, r)
		}
		return r, nil
	}
	first, err := get(x.URL + "/cent")
	if err != nil || first.Rail != "x402" {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := get(p.Seller.URL + "/cent") // $0.01 and at most $0.03 of fee
	if err != nil || second.Rail != "mpp" {
		t.Fatalf("%+v, %v", second, err)
	}
	for _, url := range []string{x.URL + "/subcent", x.URL + "/upfront", p.Seller.URL + "/cent"} {
		_, err := get(url)
		if d := denied(t, err, "cap_exceeded"); !strings.HasPrefix(d.Result.Reason, "Spend cap exceeded: $0.05 + ") {
			t.Errorf("reason %q", d.Result.Reason)
		}
	}
	shared.Chain.Mine(t, 3)
	b.settle(t, 20*time.Second)
	if left, err := b.Budget(t.Context()); err != nil || left.Spent <= 20_000 || left.Spent >= 30_000 {
		t.Errorf("budget %+v, %v, want two cents and a fee", left, err)
	}
	// What the chain did not take of the fee is there again, for either rail.
	for _, url := range []string{x.URL + "/cent", p.Seller.URL + "/sponsored"} {
		if _, err := get(url); err != nil {
			t.Error(err)
		}
	}
	_, err = get(p.Seller.URL + "/sponsored")
	denied(t, err, "cap_exceeded")
}

// TestMPPOrX402 asks a seller that offers both rails on one 402: what is paid is on the chain that has the
// money, and the cheaper one where both have.
func TestMPPOrX402(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	for _, tc := range []struct {
		name            string
		onTempo, onBase uint64
		rail            string // "" where it is denied
		why             string // the other was not taken
	}{
		{"money on Tempo", 1_000_000, 0, "mpp", "balance"},
		{"money on Base", 0, 1_000_000, "x402", "balance"},
		{"money on both", 1_000_000, 1_000_000, "x402", "it costs more"},
		{"money for the price on Tempo, and not for its fee", 39_999, 10_000, "x402", "balance"},
		{"no money", 39_999, 9_999, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newRailed(t, p.Chain, openPolicy, tc.onTempo)
			if tc.onBase > 0 {
				shared.Chain.Mint(t, b.account.Address, tc.onBase)
			}
			k, err := b.CheckURL(t.Context(), p.Seller.URL+"/dual")
			if err != nil || k.Rail != tc.rail && tc.rail != "" || (k.Status == canopy.Allowed) != (tc.rail != "") {
				t.Errorf("check %+v, %v, want %q", k, err, tc.rail)
			}
			if tc.rail != "" && (len(k.Others) != 1 || !strings.Contains(strings.ToLower(k.Others[0].Reason), tc.why)) {
				t.Errorf("others %+v, want one for %q", k.Others, tc.why)
			}
			resp, body, err := b.get(t, p.Seller.URL+"/dual")
			if tc.rail == "" {
				denied(t, err, "insufficient_balance")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r, _ := canopy.PaymentOf(resp)
			if resp.StatusCode != http.StatusOK || body != `{"path":"/dual","query":{}}` || r.Rail != tc.rail || r.State != ledger.Claimed {
				t.Errorf("%s %s, %+v, want %s", resp.Status, body, r, tc.rail)
			}
			onTempo, onBase := b.chain.spendings(t, b.account.Address), shared.Chain.transfers(t, b.account.Address)
			if want := map[string][2]int{"mpp": {1, 0}, "x402": {0, 1}}[tc.rail]; len(onTempo) != want[0] || len(onBase) != want[1] {
				t.Errorf("%d transfers on Tempo and %d on Base", len(onTempo), len(onBase))
			}
		})
	}
}

// TestMPPFrozen freezes between two payments.
func TestMPPFrozen(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	if err := b.Freeze(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/cent", "/zero", "/push", "/sponsored"} {
		_, err := b.HTTPClient().Get(p.Seller.URL + path)
		var d *canopy.DeniedError
		if !errors.As(err, &d) || d.Result.Code != "frozen" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := fmt.Sprint(b.chain.spendings(t, b.account.Address)); got != "[]" {
		t.Errorf("moved %s", got)
	}
}
