package canopytest_test

import (
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

var cent = []canopytest.Route{{Pattern: "GET /cent", Price: payment.Cent}}

var versions = []canopytest.Version{canopytest.V2, canopytest.V1}

func TestSellerTakesAPaymentOnce(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent})
		header, paid := w.buy(url + "/cent")
		if paid.StatusCode != 200 || string(paid.body) != "{\"path\":\"/cent\"}\n" {
			t.Fatalf("version %d: %d %s %v", v, paid.StatusCode, paid.body, paid.Header)
		}
		got := decode(t, receiptOf(paid))
		tx, ok := w.chain.Tx(got["transaction"].(string))
		if got["success"] != true || !ok || tx.Pending || tx.Err != nil {
			t.Errorf("version %d: receipt %v, tx %v", v, got, tx)
		}
		w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: canopytest.Address("seller"), Amount: payment.Cent})

		again := w.get(url+"/cent", header...)
		want, served := "invalid_exact_evm_nonce_already_used", 1
		if v == canopytest.V1 {
			want, served = "Failed to settle payment: 500 Internal Server Error", 2
		}
		if again.StatusCode != 402 || errorOf(t, again) != want || receiptOf(again) != "" {
			t.Errorf("version %d again: %d %s %s", v, again.StatusCode, errorOf(t, again), again.body)
		}
		if n := s.Count("GET /cent"); n != (canopytest.Count{Requests: 3, Paid: 2, Served: served, Settled: 1}) {
			t.Errorf("version %d: counts %+v", v, n)
		}
		w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
	}
}

func receiptOf(r reply) string {
	return r.Header.Get("Payment-Response") + r.Header.Get("X-Payment-Response")
}

func TestChallengeV2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{
		PaymentID: canopytest.PaymentIDRequired, Extensions: map[string]json.RawMessage{"bazaar": json.RawMessage(`{"info":{"input":{"type":"http"}}}`)},
		Routes: []canopytest.Route{{Pattern: "GET /a", Price: 2 * payment.Dollar, Description: "d", MimeType: "m", Upfront: true,
			Verbatim: []json.RawMessage{json.RawMessage(`{"scheme":"odd"}`)}, Also: []canopytest.Accept{{Price: 3 * payment.Dollar, PayTo: canopytest.Address("b"), Timeout: 30 * time.Second}}}},
	})
	r := w.get(url + "/a?q=1")
	if r.StatusCode != 402 || string(r.body) != "{}" || r.Header.Get("Cache-Control") != "no-store" || receiptOf(r) != "" {
		t.Errorf("%d %s %v", r.StatusCode, r.body, r.Header)
	}
	raw, err := base64.StdEncoding.DecodeString(r.Header.Get("Payment-Required"))
	if err != nil {
		t.Fatal(err)
	}
	payee, b := canopytest.Address("seller").String(), canopytest.Address("b").String()
	want := `{"x402Version":2,"error":"Payment required","resource":{"url":"` + url + `/a?q=1","description":"d","mimeType":"m"},"accepts":[` +
		`{"scheme":"odd"},` +
		`{"scheme":"exact","network":"eip155:8453","amount":"2000000","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"` + payee + `","maxTimeoutSeconds":60,"extra":{"name":"USD Coin","version":"2","paymentFlow":"upfront"}},` +
		`{"scheme":"exact","network":"eip155:8453","amount":"3000000","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"` + b + `","maxTimeoutSeconds":30,"extra":{"name":"USD Coin","version":"2","paymentFlow":"upfront"}}],` +
		`"extensions":{"bazaar":{"info":{"input":{"type":"http"}}},"payment-identifier":{"info":{"required":true},"schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"required":{"type":"boolean"},"id":{"type":"string","minLength":16,"maxLength":128,"pattern":"^[a-zA-Z0-9_-]+$"}},"required":["required"]}}}}`
	if string(raw) != want {
		t.Errorf("terms\ngot  %s\nwant %s", raw, want)
	}
}

func TestChallengeV1(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Version: canopytest.V1, Routes: cent})
	r := w.get(url + "/cent?q=1")
	want := `{"x402Version":1,"error":"X-PAYMENT header is required","accepts":[{"scheme":"exact","network":"base","maxAmountRequired":"10000","resource":"` + url + `/cent","description":"","mimeType":"",` +
		`"payTo":"` + canopytest.Address("seller").String() + `","maxTimeoutSeconds":60,"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","outputSchema":{"input":{"type":"http","method":"GET","discoverable":true}},"extra":{"name":"USD Coin","version":"2"}}]}`
	if r.StatusCode != 402 || string(r.body) != want || r.Header.Get("Payment-Required") != "" {
		t.Errorf("%d %s\nwant %s", r.StatusCode, r.body, want)
	}
}

// What the facilitators were measured to say to each defect of a payment.
func TestVerification(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) payment.Units { return payment.UnitsOf(uint64(start.Add(d).Unix())) }
	unsigned := func(f func(*canopytest.Authorization)) func(wallet, payment.Asset, *canopytest.Authorization) {
		return func(_ wallet, _ payment.Asset, a *canopytest.Authorization) { f(a) }
	}
	signed := func(f func(*canopytest.Authorization)) func(wallet, payment.Asset, *canopytest.Authorization) {
		return func(w wallet, asset payment.Asset, a *canopytest.Authorization) {
			f(a)
			*a = w.sign(asset, *a)
		}
	}
	for _, tc := range []struct {
		name   string
		edit   func(wallet, payment.Asset, *canopytest.Authorization)
		v2, v1 string // empty: paid
	}{
		{"nothing", signed(func(*canopytest.Authorization) {}), "", ""},
		{"a changed signature", unsigned(func(a *canopytest.Authorization) { a.Signature[40] ^= 1 }), "invalid_exact_evm_signature", "invalid_exact_evm_payload_signature"},
		{"another payer", unsigned(func(a *canopytest.Authorization) { a.From = canopytest.Address("x") }), "invalid_exact_evm_signature", "invalid_exact_evm_payload_signature"},
		{"another payee", signed(func(a *canopytest.Authorization) { a.To = canopytest.Address("x") }), "invalid_exact_evm_recipient_mismatch", "invalid_exact_evm_payload_recipient_mismatch"},
		{"less", signed(func(a *canopytest.Authorization) { a.Value = payment.UnitsOf(9_999) }), "invalid_exact_evm_payload_authorization_value_mismatch", "invalid_exact_evm_payload_authorization_value"},
		{"more", signed(func(a *canopytest.Authorization) { a.Value = payment.UnitsOf(20_000) }), "invalid_exact_evm_payload_authorization_value_mismatch", ""},
		{"5 s left", signed(func(a *canopytest.Authorization) { a.ValidBefore = at(5 * time.Second) }), "invalid_exact_evm_payload_authorization_valid_before", "invalid_exact_evm_payload_authorization_valid_before"},
		{"6 s left", signed(func(a *canopytest.Authorization) { a.ValidBefore = at(6 * time.Second) }), "", ""},
		{"a year left", signed(func(a *canopytest.Authorization) { a.ValidBefore = at(365 * 24 * time.Hour) }), "", ""},
		{"valid since a second", signed(func(a *canopytest.Authorization) { a.ValidAfter = at(-time.Second) }), "", ""},
		{"valid since now", signed(func(a *canopytest.Authorization) { a.ValidAfter = at(0) }), "invalid_exact_evm_transaction_simulation_failed", "Failed to settle payment: 500 Internal Server Error"},
		{"valid in a second", signed(func(a *canopytest.Authorization) { a.ValidAfter = at(time.Second) }), "invalid_exact_evm_payload_authorization_valid_after", "invalid_exact_evm_payload_authorization_valid_after"},
		{"v 0 or 1", unsigned(func(a *canopytest.Authorization) { a.Signature[64] -= 27 }), "invalid_exact_evm_transaction_simulation_failed", ""},
		{"high s", unsigned(func(a *canopytest.Authorization) {
			s := new(big.Int).SetBytes(a.Signature[32:64])
			s.Sub(crypto.S256().Params().N, s).FillBytes(a.Signature[32:64])
			a.Signature[64] = 55 - a.Signature[64]
		}), "invalid_exact_evm_transaction_simulation_failed", "Failed to settle payment: 500 Internal Server Error"},
	} {
		for _, v := range versions {
			w := newWorld(t)
			s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent})
			q := w.quote(w.get(url + "/cent"))
			a := w.authorizeQuote(q)
			tc.edit(w.wallet, w.chain.Dollar(), &a)
			want, header := tc.v2, []string{"PAYMENT-SIGNATURE", payload2(q, a)}
			if v == canopytest.V1 {
				want, header = tc.v1, []string{"X-PAYMENT", payload1(q, a)}
			}
			r := w.get(url+"/cent", header...)
			if want == "" {
				if r.StatusCode != 200 || s.Count("").Settled != 1 {
					t.Errorf("version %d, %s: %d %s, want paid", v, tc.name, r.StatusCode, errorOf(t, r))
				}
				if w.chain.Spent(a.From) != payment.USD(mustUint(a.Value)) {
					t.Errorf("version %d, %s: spent %v", v, tc.name, w.chain.Spent(a.From))
				}
				continue
			}
			if r.StatusCode != 402 || errorOf(t, r) != want || receiptOf(r) != "" {
				t.Errorf("version %d, %s: %d %s, want 402 %s", v, tc.name, r.StatusCode, errorOf(t, r), want)
			}
			if reqs := s.Requests(); reqs[1].Code != want || reqs[1].Served && !strings.HasPrefix(want, "Failed") {
				t.Errorf("version %d, %s: request %+v", v, tc.name, reqs[1])
			}
			w.chain.AssertTransfers(t)
		}
	}
}

func mustUint(u payment.Units) uint64 { n, _ := u.Uint64(); return n }

// The payer is poor: both facilitators look at the balance before settling.
func TestPoorPayer(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		_, url := w.seller(canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /", Price: 101 * payment.Dollar}}})
		header, r := w.buy(url + "/")
		want := map[canopytest.Version]string{canopytest.V2: "invalid_exact_evm_insufficient_balance", canopytest.V1: "insufficient_funds"}[v]
		if r.StatusCode != 402 || errorOf(t, r) != want {
			t.Errorf("version %d: %d %s", v, r.StatusCode, errorOf(t, r))
		}
		if v == canopytest.V1 && unmarshal(t, r.body)["payer"] != w.wallet.Address().String() {
			t.Errorf("a refusal by verification names no payer: %s", r.body)
		}
		w.chain.Fund(w.wallet.Address(), payment.Dollar)
		if r := w.get(url+"/", header...); r.StatusCode != 200 {
			t.Errorf("version %d, the same payment once it is covered: %d %s", v, r.StatusCode, errorOf(t, r))
		}
	}
}

// Drained between verifying and settling: the handler ran, nothing moved, and
// the same payment is good again once the money is back.
func TestSettlementFails(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		thief, once := canopytest.Address("thief"), true
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent, Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if once {
				once = false
				if err := w.chain.Send(w.chain.Dollar(), w.wallet.Address(), thief, payment.UnitsOf(100_000_000)); err != nil {
					t.Error(err)
				}
			}
			rw.Write([]byte("goods"))
		})}}})
		header, r := w.buy(url + "/")
		if r.StatusCode != 402 || s.Count("").Served != 1 {
			t.Errorf("version %d: %d, %+v", v, r.StatusCode, s.Count(""))
		}
		if v == canopytest.V2 {
			receipt := decode(t, r.Header.Get("Payment-Response"))
			if string(r.body) != "{}" || r.Header.Get("Payment-Required") != "" || receipt["success"] != false || receipt["transaction"] != "" ||
				receipt["errorReason"] != "invalid_exact_evm_insufficient_balance" {
				t.Errorf("%s %v", r.body, receipt)
			}
		} else if m := unmarshal(t, r.body); m["error"] != "insufficient_funds" || m["payer"] != nil || receiptOf(r) != "" {
			t.Errorf("%s %v", r.body, r.Header)
		}
		w.chain.Fund(w.wallet.Address(), payment.Dollar)
		if r := w.get(url+"/", header...); r.StatusCode != 200 || string(r.body) != "goods" {
			t.Errorf("version %d, again: %d %s", v, r.StatusCode, r.body)
		}
		w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: thief, Amount: 100 * payment.Dollar},
			canopytest.Move{From: w.wallet.Address(), To: canopytest.Address("seller"), Amount: payment.Cent})
	}
}

// A handler that fails is not paid, unless the route is paid up front.
func TestBrokenHandler(t *testing.T) {
	t.Parallel()
	broken := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) })
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })
	for _, v := range versions {
		w := newWorld(t)
		_, url := w.seller(canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{
			{Pattern: "GET /broken", Price: payment.Cent, Handler: broken}, {Pattern: "GET /panics", Price: payment.Cent, Handler: panics},
		}})
		for _, path := range []string{"/broken", "/panics"} {
			if _, r := w.buy(url + path); r.StatusCode != 500 || receiptOf(r) != "" {
				t.Errorf("version %d %s: %d %v", v, path, r.StatusCode, r.Header)
			}
		}
		w.chain.AssertTransfers(t)
	}
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Routes: []canopytest.Route{
		{Pattern: "GET /broken", Price: payment.Cent, Handler: broken, Upfront: true}, {Pattern: "GET /good", Price: payment.Cent, Upfront: true},
	}})
	header, r := w.buy(url + "/broken")
	if r.StatusCode != 500 || decode(t, r.Header.Get("Payment-Response"))["success"] != true || string(r.body) != "broken\n" || r.Header.Get("Cache-Control") != "private" {
		t.Errorf("up front: %d %s %v", r.StatusCode, r.body, r.Header)
	}
	w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
	if r := w.get(url+"/broken", header...); r.StatusCode != 402 || errorOf(t, r) != "invalid_exact_evm_nonce_already_used" {
		t.Errorf("up front again: %d %s", r.StatusCode, errorOf(t, r))
	}
	if _, r := w.buy(url + "/good"); r.StatusCode != 200 || decode(t, r.Header.Get("Payment-Response"))["success"] != true {
		t.Errorf("up front, good: %d", r.StatusCode)
	}
}

// Lifetime is judged again after the handler.
func TestSlowHandlerOutlivesTheAuthorization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent, Timeout: 7 * time.Second, Handler: http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { w.clock.Advance(2 * time.Second) })}}})
	_, r := w.buy(url + "/")
	if r.StatusCode != 402 || s.Count("").Served != 1 || decode(t, r.Header.Get("Payment-Response"))["errorReason"] != "invalid_exact_evm_payload_authorization_valid_before" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
}

func TestHeadAndFreeRoutesAreServedUnpaid(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: append([]canopytest.Route{{Pattern: "GET /free"}}, cent...)})
		if r, err := w.do("HEAD", url+"/cent"); err != nil || r.StatusCode != 200 {
			t.Errorf("version %d: HEAD %v, %v", v, r.StatusCode, err)
		}
		if r := w.get(url + "/free"); r.StatusCode != 200 {
			t.Errorf("version %d: free %d", v, r.StatusCode)
		}
		if r := w.get(url + "/nothing"); r.StatusCode != 404 || len(s.Requests()) != 2 {
			t.Errorf("version %d: no route %d", v, r.StatusCode)
		}
	}
}

func TestSetPriceAndPayTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: cent})
	q := w.quote(w.get(url + "/cent"))
	a := w.authorizeQuote(q)
	s.SetPrice("GET /cent", 2*payment.Cent)
	s.SetPayTo("GET /cent", canopytest.Address("new"))
	if r := w.get(url+"/cent", "PAYMENT-SIGNATURE", payload2(q, a)); r.StatusCode != 402 || errorOf(t, r) != "No matching payment requirements" {
		t.Errorf("the old terms: %d %s", r.StatusCode, errorOf(t, r))
	}
	if _, r := w.buy(url + "/cent"); r.StatusCode != 200 {
		t.Errorf("the new terms: %d", r.StatusCode)
	}
	w.chain.AssertTransfers(t, canopytest.Move{From: a.From, To: canopytest.Address("new"), Amount: 2 * payment.Cent})
}

func TestRequestsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "POST /echo", Price: payment.Cent, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Control", "no-cache")
		r.Write(rw)
	})}}})
	r, err := w.do("POST", url+"/echo?q=1", "X-Canary", "secret")
	if err != nil {
		t.Fatal(err)
	}
	q := w.quote(r)
	a := w.authorizeQuote(q)
	if r, err = w.do("POST", url+"/echo?q=1", "PAYMENT-SIGNATURE", payload2(q, a)); err != nil || r.StatusCode != 200 || !strings.HasSuffix(string(r.body), "\r\n\r\nbody") {
		t.Fatalf("%v %v %s", r.StatusCode, err, r.body)
	}
	if r.Header.Get("Cache-Control") != "no-cache, private" {
		t.Errorf("Cache-Control %q", r.Header.Get("Cache-Control"))
	}
	reqs := s.Requests()
	if len(reqs) != 2 || reqs[0].Paid || !reqs[1].Paid || reqs[1].Target != "/echo?q=1" || string(reqs[1].Body) != "body" || reqs[1].Method != "POST" ||
		!reqs[1].Served || reqs[1].Status != 200 || reqs[1].TxHash == "" || reqs[1].Authorization.Nonce != a.Nonce || !reqs[0].Time.Equal(start) {
		t.Errorf("requests %+v", reqs)
	}
	if !reqs[0].Contains("secret") || !reqs[0].Contains("X-Canary") || reqs[1].Contains("secret") || !reqs[1].Contains("q=1") || !reqs[1].Contains("body") {
		t.Error("Contains does not find what was received")
	}
	if h := s.Harvest().All(); len(h) != 1 || h[0].Nonce != a.Nonce || len(s.Harvest().Unsettled()) != 0 || len(s.Harvest().Nonces()) != 1 {
		t.Errorf("harvest %v", h)
	}
}
