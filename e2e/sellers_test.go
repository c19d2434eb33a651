//go:build e2e

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// quote is the first offer of a 402, v1 and v2 alike, and the offer as it came.
type quote struct {
	Scheme, Network, Asset, PayTo string
	Amount, MaxAmountRequired     string
	MaxTimeoutSeconds             uint64
	Extra                         struct{ Name, Version, PaymentFlow string }

	raw      json.RawMessage
	resource json.RawMessage
}

func (q quote) units(t testing.TB) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(q.Amount+q.MaxAmountRequired, 10, 64)
	if err != nil {
		t.Fatalf("amount: %v", err)
	}
	return n
}

// TestPeersServe402 asks every priced route without paying: the version's own way of saying 402, and the
// price, the payee and the token that the tests count on.
func TestPeersServe402(t *testing.T) {
	for _, version := range []int{2, 1} {
		s := shared.Seller(version)
		for _, p := range s.Prices() {
			t.Run(fmt.Sprintf("v%d %s", version, p.Path), func(t *testing.T) {
				q := askPrice(t, s, p)
				if got := q.units(t); got != p.Units {
					t.Errorf("amount %d, want %d", got, p.Units)
				}
				if common.HexToAddress(q.PayTo) != s.PayTo || common.HexToAddress(q.Asset) != shared.Chain.Token {
					t.Errorf("payTo %s and asset %s, want %v and %v", q.PayTo, q.Asset, s.PayTo, shared.Chain.Token)
				}
				if q.Scheme != "exact" || q.Extra.Name != "USD Coin" || q.Extra.Version != "2" {
					t.Errorf("scheme %s, extra %+v", q.Scheme, q.Extra)
				}
				if got, want := q.Network, map[int]string{1: "base", 2: "eip155:8453"}[version]; got != want {
					t.Errorf("network %s, want %s", got, want)
				}
			})
		}
		t.Run(fmt.Sprintf("v%d /free", version), func(t *testing.T) {
			resp, _ := send(t, s, "GET", "/free", nil, nil)
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d, want 200", resp.StatusCode)
			}
		})
	}
	if shared.V1.PayTo == shared.V2.PayTo {
		t.Error("both sellers have one payee")
	}
}

// TestPeersTakePayment pays each seller with a payment written by hand, so that a failure of the client's
// tests is not a failure of the peers.
func TestPeersTakePayment(t *testing.T) {
	c := shared.Chain
	for _, version := range []int{2, 1} {
		s := shared.Seller(version)
		for _, p := range s.Prices() {
			t.Run(fmt.Sprintf("v%d %s", version, p.Path), func(t *testing.T) {
				payer := c.Payer(t, p.Units)
				want, units, used := http.StatusOK, p.Units, true
				switch p.Path {
				case "/broken":
					want, units, used = http.StatusInternalServerError, 0, false
				case "/upfront-broken":
					want = http.StatusInternalServerError
				}
				body := []byte(`{"café": [1, 2, 3]}`)
				c.Moves(t, s.PayTo, units, func() {
					header, a := payByHand(t, s, p, payer)
					resp, got := send(t, s, p.Method, p.Path, header, body)
					if resp.StatusCode != want {
						t.Fatalf("status %d, want %d: %s", resp.StatusCode, want, got)
					}
					if state := c.AuthorizationState(t, a.from, a.nonce); state != used {
						t.Errorf("authorizationState %v, want %v", state, used)
					}
					receipt := resp.Header.Get(map[int]string{1: "X-Payment-Response", 2: "Payment-Response"}[version])
					if (receipt != "") != used {
						t.Errorf("receipt %q, want one: %v", receipt, used)
					}
					if p.Path == "/echo" && !bytes.Equal(got, body) {
						t.Errorf("body %q, want %q", got, body)
					}
					if lines := strings.Count(string(got), "\n"); p.Path == "/stream" && (lines != 20 || len(got) != 20*4096) {
						t.Errorf("%d bytes in %d lines, want 20 of 4096", len(got), lines)
					}
				})
				if got, want := c.BalanceOf(t, payer.Address), p.Units-units; got != want {
					t.Errorf("payer has %d left, want %d", got, want)
				}
			})
		}
	}
}

// TestPeersTakeTwentyAtOnce pins that the facilitators' own accounts bear many payments at the same time.
func TestPeersTakeTwentyAtOnce(t *testing.T) {
	const payments = 20
	price := Prices[0]
	for _, version := range []int{2, 1} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			s := shared.Seller(version)
			payer := shared.Chain.Payer(t, payments*price.Units)
			headers := make([]http.Header, payments)
			for i := range headers {
				headers[i], _ = payByHand(t, s, price, payer)
			}
			shared.Chain.Moves(t, s.PayTo, payments*price.Units, func() {
				failed := make(chan error, payments)
				for _, h := range headers {
					go func() {
						resp, body, err := trySend(http.DefaultClient, s, price.Method, price.Path, h, nil)
						if err == nil && resp.StatusCode != http.StatusOK {
							err = fmt.Errorf("status %d: %s", resp.StatusCode, body)
						}
						failed <- err
					}()
				}
				for range headers {
					if err := <-failed; err != nil {
						t.Error(err)
					}
				}
			})
			if got := shared.Chain.AuthorizationsUsed(t, payer.Address); got != payments {
				t.Errorf("%d authorizations used, want %d", got, payments)
			}
		})
	}
}

// TestPeersRefuseASecondUse pins how each seller answers a header that was already settled.
func TestPeersRefuseASecondUse(t *testing.T) {
	price := Prices[0]
	for _, version := range []int{2, 1} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			s := shared.Seller(version)
			payer := shared.Chain.Payer(t, 2*price.Units)
			header, _ := payByHand(t, s, price, payer)
			send(t, s, price.Method, price.Path, header, nil)
			shared.Chain.Moves(t, s.PayTo, 0, func() {
				resp, body := send(t, s, price.Method, price.Path, header, nil)
				if resp.StatusCode != http.StatusPaymentRequired {
					t.Errorf("status %d, want 402", resp.StatusCode)
				}
				reason := string(body)
				if version == 2 {
					raw, _ := base64.StdEncoding.DecodeString(resp.Header.Get("Payment-Required"))
					reason = string(raw)
				}
				want := map[int]string{
					1: "Failed to settle payment: 500 Internal Server Error",
					2: "invalid_exact_evm_nonce_already_used",
				}[version]
				if !strings.Contains(reason, want) {
					t.Errorf("got %s, want %s", reason, want)
				}
			})
		})
	}
}

// TestPeersSettleForAClientThatIsGone pins that hanging up does not stop the money, and that held blocks
// delay it.
func TestPeersSettleForAClientThatIsGone(t *testing.T) {
	const payments = 3
	price := Prices[0]
	p := NewPeers(t)
	for _, version := range []int{2, 1} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			s := p.Seller(version)
			payer := p.Chain.Payer(t, payments*price.Units)
			headers := make([]http.Header, payments)
			for i := range headers {
				headers[i], _ = payByHand(t, s, price, payer)
			}
			release := p.Chain.HoldBlocks(t)
			impatient := &http.Client{Timeout: 500 * time.Millisecond}
			var calls sync.WaitGroup
			for _, h := range headers {
				calls.Go(func() {
					if resp, body, err := trySend(impatient, s, price.Method, price.Path, h, nil); err == nil {
						t.Errorf("answered %d without a block: %s", resp.StatusCode, body)
					}
				})
			}
			calls.Wait()
			if got := p.Chain.BalanceOf(t, s.PayTo); got != 0 {
				t.Errorf("payee has %d before the block, want 0", got)
			}
			release()
			p.Chain.WaitBalance(t, s.PayTo, payments*price.Units, 10*time.Second)
		})
	}
}

// askPrice sends the request unpaid and reads the 402.
func askPrice(t testing.TB, s *Seller, p Price) quote {
	t.Helper()
	resp, body := send(t, s, p.Method, p.Path, nil, nil)
	if resp.StatusCode != http.StatusPaymentRequired {
		t.Fatalf("status %d, want 402: %s", resp.StatusCode, body)
	}
	header := resp.Header.Get("Payment-Required")
	if (header != "") != (s.Version == 2) {
		t.Fatalf("PAYMENT-REQUIRED %q from a v%d seller", header, s.Version)
	}
	if s.Version == 2 {
		raw, err := base64.StdEncoding.DecodeString(header)
		if err != nil {
			t.Fatalf("PAYMENT-REQUIRED: %v", err)
		}
		body = raw
	}
	var required struct {
		X402Version int
		Resource    json.RawMessage
		Accepts     []json.RawMessage
	}
	if err := json.Unmarshal(body, &required); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if required.X402Version != s.Version || len(required.Accepts) != 1 {
		t.Fatalf("version %d with %d offers, want %d with 1", required.X402Version, len(required.Accepts), s.Version)
	}
	q := quote{raw: required.Accepts[0], resource: required.Resource}
	if err := json.Unmarshal(q.raw, &q); err != nil {
		t.Fatalf("%v in %s", err, q.raw)
	}
	return q
}

// payByHand asks the price and returns the header that pays it.
func payByHand(t testing.TB, s *Seller, p Price, payer Account) (http.Header, authorization) {
	t.Helper()
	q := askPrice(t, s, p)
	a := authorization{
		from: payer.Address, to: s.PayTo, value: q.units(t),
		validBefore: uint64(time.Now().Unix()) + q.MaxTimeoutSeconds, nonce: newNonce(t),
	}
	payload := map[string]any{
		"signature": hexutil.Encode(payer.sign(t, a.digest(shared.Chain.domain(), "TransferWithAuthorization"))),
		"authorization": map[string]any{
			"from": a.from, "to": a.to, "value": fmt.Sprint(a.value), "validAfter": fmt.Sprint(a.validAfter),
			"validBefore": fmt.Sprint(a.validBefore), "nonce": hexutil.Encode(a.nonce[:]),
		},
	}
	name, message := "Payment-Signature", map[string]any{
		"x402Version": 2, "accepted": q.raw, "resource": q.resource, "payload": payload,
	}
	if s.Version == 1 {
		name, message = "X-Payment", map[string]any{
			"x402Version": 1, "scheme": q.Scheme, "network": q.Network, "payload": payload,
		}
	}
	raw, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return http.Header{name: {base64.StdEncoding.EncodeToString(raw)}}, a
}

func send(t testing.TB, s *Seller, method, path string, header http.Header, body []byte) (*http.Response, []byte) {
	t.Helper()
	resp, got, err := trySend(http.DefaultClient, s, method, path, header, body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, got
}

func trySend(
	client *http.Client, s *Seller, method, path string, header http.Header, body []byte,
) (*http.Response, []byte, error) {
	if method == http.MethodGet {
		body = nil
	}
	req, err := http.NewRequest(method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp, got, err
}
