package canopytest_test

import (
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// wallet signs by hand, with go-ethereum.
type wallet struct {
	key *ecdsa.PrivateKey
	n   *atomic.Uint64
}

func newWallet() wallet {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("canopytest wallet")))
	if err != nil {
		panic(err)
	}
	return wallet{key, new(atomic.Uint64)}
}

func (w wallet) Address() payment.Address {
	return payment.Address(crypto.PubkeyToAddress(w.key.PublicKey))
}

// authorize signs value to to, valid from the start of time until before.
func (w wallet) authorize(asset payment.Asset, to payment.Address, value payment.Units, before time.Time) canopytest.Authorization {
	a := canopytest.Authorization{
		Token: asset.Address, From: w.Address(), To: to, Value: value,
		ValidBefore: payment.UnitsOf(uint64(before.Unix())),
		Nonce:       [32]byte(crypto.Keccak256(big.NewInt(int64(w.n.Add(1))).Bytes())),
	}
	return w.sign(asset, a)
}

func (w wallet) sign(asset payment.Asset, a canopytest.Authorization) canopytest.Authorization {
	digest := a.Digest(asset)
	sig, err := crypto.Sign(digest[:], w.key)
	if err != nil {
		panic(err)
	}
	sig[64] += 27
	a.Signature = sig
	return a
}

// wire is an authorization as it stands in payloads.
func wire(a canopytest.Authorization) map[string]any {
	return map[string]any{
		"signature": "0x" + hex.EncodeToString(a.Signature),
		"authorization": map[string]any{
			"from": a.From.String(), "to": a.To.String(), "value": a.Value.String(),
			"validAfter": a.ValidAfter.String(), "validBefore": a.ValidBefore.String(),
			"nonce": "0x" + hex.EncodeToString(a.Nonce[:]),
		},
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func decode(t *testing.T, header string) map[string]any {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		t.Fatalf("header %q: %v", header, err)
	}
	return unmarshal(t, b)
}

func unmarshal(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return m
}

// world is a chain that stands at a whole second, a funded wallet and a client
// that follows no redirect.
type world struct {
	*testing.T
	clock  *canopytest.Clock
	chain  *canopytest.Chain
	wallet wallet
	client *http.Client
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	clock := canopytest.NewStillClock(start)
	w := &world{T: t, clock: clock, chain: canopytest.NewChain(canopytest.ChainConfig{Clock: clock}), wallet: newWallet()}
	w.chain.Fund(w.wallet.Address(), 100*payment.Dollar)
	w.client = newClient(t)
	return w
}

func newClient(t *testing.T) *http.Client {
	client := &http.Client{
		// Without this net/http sends a GET again by itself when a connection
		// that it used before is dropped.
		Transport:     &http.Transport{DisableKeepAlives: true},
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func (w *world) seller(c canopytest.SellerConfig) (*canopytest.Seller, string) {
	s := canopytest.NewSeller(w.chain, c)
	return s, s.Start(w)
}

type reply struct {
	*http.Response
	body []byte
}

func (w *world) do(method, url string, header ...string) (reply, error) {
	req, err := http.NewRequest(method, url, strings.NewReader("body"))
	if err != nil {
		w.Fatal(err)
	}
	if method == "GET" || method == "HEAD" {
		req.Body, req.ContentLength, req.GetBody = http.NoBody, 0, nil
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return reply{resp, body}, err
}

func (w *world) get(url string, header ...string) reply {
	w.Helper()
	r, err := w.do("GET", url, header...)
	if err != nil {
		w.Fatalf("GET %s: %v", url, err)
	}
	return r
}

// quote reads the first entry of a challenge, of either version.
func (w *world) quote(r reply) map[string]any {
	w.Helper()
	if r.StatusCode != 402 {
		w.Fatalf("status %d, want 402: %s", r.StatusCode, r.body)
	}
	var terms map[string]any
	if h := r.Header.Get("Payment-Required"); h != "" {
		terms = decode(w.T, h)
	} else {
		terms = unmarshal(w.T, r.body)
	}
	return terms["accepts"].([]any)[0].(map[string]any)
}

// authorizeQuote signs what q asks for.
func (w *world) authorizeQuote(q map[string]any) canopytest.Authorization {
	w.Helper()
	amount, ok := q["amount"].(string)
	if !ok {
		amount = q["maxAmountRequired"].(string)
	}
	value, err := payment.ParseUnits(amount)
	if err != nil {
		w.Fatal(err)
	}
	to, err := payment.ParseAddress(q["payTo"].(string))
	if err != nil {
		w.Fatal(err)
	}
	before := w.clock.Now().Add(time.Duration(q["maxTimeoutSeconds"].(float64)) * time.Second)
	return w.wallet.authorize(w.chain.Dollar(), to, value, before)
}

// payload2 and payload1 are the headers that pay q with a.
func payload2(q map[string]any, a canopytest.Authorization) string {
	return encode(map[string]any{"x402Version": 2, "accepted": q, "payload": wire(a)})
}

func payload1(q map[string]any, a canopytest.Authorization) string {
	return encode(map[string]any{"x402Version": 1, "scheme": q["scheme"], "network": q["network"], "payload": wire(a)})
}

// buy asks, signs and pays, and returns the header it paid with.
func (w *world) buy(url string) (header []string, r reply) {
	w.Helper()
	first := w.get(url)
	q := w.quote(first)
	a := w.authorizeQuote(q)
	header = []string{"PAYMENT-SIGNATURE", payload2(q, a)}
	if first.Header.Get("Payment-Required") == "" {
		header = []string{"X-PAYMENT", payload1(q, a)}
	}
	return header, w.get(url, header...)
}

func errorOf(t *testing.T, r reply) string {
	t.Helper()
	switch {
	case r.Header.Get("Payment-Response") != "":
		s, _ := decode(t, r.Header.Get("Payment-Response"))["errorReason"].(string)
		return s
	case r.Header.Get("Payment-Required") != "":
		s, _ := decode(t, r.Header.Get("Payment-Required"))["error"].(string)
		return s
	}
	s, _ := unmarshal(t, r.body)["error"].(string)
	return s
}

// firstTerms is the first entry of a version 2 challenge.
func firstTerms(resp *http.Response) (map[string]any, error) {
	raw, err := base64.StdEncoding.DecodeString(resp.Header.Get("Payment-Required"))
	if err != nil {
		return nil, err
	}
	var terms struct{ Accepts []map[string]any }
	if err := json.Unmarshal(raw, &terms); err != nil {
		return nil, err
	}
	return terms.Accepts[0], nil
}
