//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// handmade is a credential written by hand, so that a failure of the rail is not one of the peers.
type handmade struct {
	challenge map[string]string
	tx        tempo.Transaction
	source    string
}

// byHand asks the price of a route of one recipient and returns what pays it, on a lane of its own.
func byHand(t testing.TB, p *mppPeers, path string, units uint64, payer Account) handmade {
	t.Helper()
	resp, _ := send(t, p.Seller.Seller, http.MethodGet, path, nil, nil)
	line := resp.Header.Get("WWW-Authenticate")
	if resp.StatusCode != http.StatusPaymentRequired || !strings.HasPrefix(line, "Payment ") {
		t.Fatalf("%s %q", resp.Status, line)
	}
	h := handmade{challenge: map[string]string{}, source: fmt.Sprintf("did:pkh:eip155:42431:%s", payer.Address.Hex())}
	for _, m := range regexp.MustCompile(`(\w+)="([^"\\]*)"`).FindAllStringSubmatch(line, -1) {
		h.challenge[m[1]] = m[2]
	}
	h.tx = tempo.Transaction{
		ChainID: 42431, MaxFeePerGas: 25_000_000_000, MaxPriorityFeePerGas: 1_000_000_000, Gas: 1_200_000,
		NonceKey: newNonce(t), ValidBefore: uint64(time.Now().Unix()) + 25, FeeToken: payment.Address(p.Chain.Token),
	}
	h.pays(p, p.Seller.PayTo, units)
	return h
}

// pays makes it one transfer, with the memo of its challenge.
func (h *handmade) pays(p *mppPeers, to common.Address, units uint64) {
	h.tx.Calls = []tempo.Call{tempo.Transfer{
		Token: payment.Address(p.Chain.Token), To: payment.Address(to), Amount: payment.UnitsOf(units),
		HasMemo: true, Memo: tempo.Attribution(h.challenge["realm"], "", h.challenge["id"]),
	}.Call()}
}

// header signs it.
func (h *handmade) header(t testing.TB, payer Account) http.Header {
	t.Helper()
	digest := h.tx.SigningHash()
	sig, err := crypto.Sign(digest[:], payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	sig[64] += 27
	h.tx.Signature = sig
	b, err := json.Marshal(map[string]any{
		"challenge": h.challenge, "source": h.source,
		"payload": map[string]string{"type": "transaction", "signature": hexutil.Encode(h.tx.Encode())},
	})
	if err != nil {
		t.Fatal(err)
	}
	return http.Header{"Authorization": {"Payment " + base64.RawURLEncoding.EncodeToString(b)}}
}

// TestMPPPeersTakePayment pays by hand, asks for the same again in every way, and has broken credentials refused:
// what the tests of the client build on. Nothing but the one good payment moves.
func TestMPPPeersTakePayment(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	payer := p.Chain.Payer(t, 1_000_000)
	stranger := NewAccount(t).Address
	refused := func(name, path string, header http.Header, status int, kind, detail string) {
		t.Helper()
		resp, body := send(t, p.Seller.Seller, http.MethodGet, path, header, nil)
		var problem struct{ Type, Detail string }
		json.Unmarshal(body, &problem)
		if resp.StatusCode != status || !strings.HasSuffix(problem.Type, "/"+kind) || !strings.Contains(problem.Detail, detail) {
			t.Errorf("%s: %s %s, want %d %s %q", name, resp.Status, body, status, kind, detail)
		}
		if resp.Header.Get("WWW-Authenticate") == "" || resp.Header.Get("Payment-Receipt") != "" {
			t.Errorf("%s: no fresh challenge, or a receipt", name)
		}
	}
	for _, tc := range []struct {
		name   string
		change func(h *handmade)
		status int
		kind   string
	}{
		{"a unit less", func(h *handmade) { h.pays(p, p.Seller.PayTo, 9_999) }, 402, "verification-failed"},
		{"a unit more", func(h *handmade) { h.pays(p, p.Seller.PayTo, 10_001) }, 402, "verification-failed"},
		{"another recipient", func(h *handmade) { h.pays(p, stranger, 10_000) }, 402, "verification-failed"},
		{"the memo of another challenge", func(h *handmade) {
			h.tx.Calls[0].Data[99] ^= 1
		}, 402, "verification-failed"},
		{"no memo", func(h *handmade) {
			h.tx.Calls[0] = tempo.Transfer{Token: payment.Address(p.Chain.Token), To: payment.Address(p.Seller.PayTo), Amount: payment.UnitsOf(10_000)}.Call()
		}, 402, "verification-failed"},
		{"another chain", func(h *handmade) { h.tx.ChainID = 4217 }, 500, "internal-payment-error"},
		{"too late", func(h *handmade) { h.tx.ValidBefore = uint64(time.Now().Unix()) - 1 }, 500, "internal-payment-error"},
		{"another realm", func(h *handmade) { h.challenge["realm"] = "else.example" }, 402, "invalid-challenge"},
		{"a later expiry", func(h *handmade) { h.challenge["expires"] = "2099-01-01T00:00:00.000Z" }, 402, "invalid-challenge"},
	} {
		h := byHand(t, p, "/cent", 10_000, payer)
		tc.change(&h)
		refused(tc.name, "/cent", h.header(t, payer), tc.status, tc.kind, "")
	}
	lost := byHand(t, p, "/opaque", 10_000, payer)
	delete(lost.challenge, "opaque")
	refused("no opaque", "/opaque", lost.header(t, payer), 402, "invalid-challenge", "")
	if got := p.Chain.spendings(t, payer.Address); len(got) != 0 {
		t.Fatalf("moved %+v", got)
	}

	good := byHand(t, p, "/cent", 10_000, payer)
	header := good.header(t, payer)
	refused("at another route", "/two", header, 402, "invalid-challenge", "amount does not match")
	if resp, body := send(t, p.Seller.Seller, http.MethodGet, "/cent", header, nil); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Status, body)
	} else {
		raw, err := base64.RawURLEncoding.DecodeString(resp.Header.Get("Payment-Receipt"))
		var receipt struct{ Method, Status, Reference string }
		if err != nil || json.Unmarshal(raw, &receipt) != nil || receipt.Method != "tempo" || receipt.Status != "success" ||
			receipt.Reference != crypto.Keccak256Hash(good.tx.Encode()).Hex() {
			t.Errorf("receipt %s, %v", raw, err)
		}
	}
	refused("again", "/cent", header, 402, "verification-failed", "already been used")
	refused("again, at another route", "/two", header, 402, "invalid-challenge", "amount does not match")
	// Another transaction in the same lane, with the same nonce, for a fresh challenge: the lane has moved on.
	next := byHand(t, p, "/cent", 10_000, payer)
	next.tx.NonceKey = good.tx.NonceKey
	refused("the lane's nonce again", "/cent", next.header(t, payer), 500, "internal-payment-error", "")

	moved := p.Chain.spendings(t, payer.Address)
	if len(moved) != 1 || len(moved[0].to) != 1 || moved[0].to[0].units != 10_000 || moved[0].to[0].to != p.Seller.PayTo ||
		moved[0].lane != common.Hash(good.tx.NonceKey) {
		t.Errorf("moved %+v, want 10000 once", moved)
	}
}

// TestTempoFinality pins what the tests count on: a block each second, by the clock of this machine, and the
// second one below it final.
func TestTempoFinality(t *testing.T) {
	t.Parallel()
	c := tempoPeers(t).Chain
	first := c.BlockNumber(t, "latest")
	time.Sleep(3 * time.Second)
	last := c.BlockNumber(t, "latest")
	if last < first+2 || last > first+5 {
		t.Errorf("%d blocks in three seconds", last-first)
	}
	if off := time.Now().Unix() - c.Now(t); off < -2 || off > 3 {
		t.Errorf("the latest block is %d s behind the clock", off)
	}
	if final := c.BlockNumber(t, "finalized"); final+1 < last-2 || final > last {
		t.Errorf("block %d is final at %d", final, last)
	}
	var code hexutil.Bytes
	if err := c.RPC(context.Background(), &code, "eth_getCode", c.Token, "latest"); err != nil || len(code) == 0 {
		t.Errorf("no token at %v: %v", c.Token, err)
	}
}
