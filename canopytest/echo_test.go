package canopytest_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// deep copies JSON.
func deep(m map[string]any) map[string]any {
	b, _ := json.Marshal(m)
	var out map[string]any
	json.Unmarshal(b, &out)
	return out
}

// accepted is compared as JSON: nothing may be changed, dropped or added,
// except inside extra, which may gain keys.
func TestAcceptedIsCompared(t *testing.T) {
	t.Parallel()
	const mismatch = "No matching payment requirements"
	for _, tc := range []struct {
		name string
		edit func(map[string]any)
		want string
	}{
		{"as it was", func(map[string]any) {}, ""},
		{"60.0 for 60", func(q map[string]any) { q["maxTimeoutSeconds"] = json.Number("60.0") }, ""},
		{"a key added to extra", func(q map[string]any) { q["extra"].(map[string]any)["note"] = 1 }, ""},
		{"payTo in lower case", func(q map[string]any) { q["payTo"] = strings.ToLower(q["payTo"].(string)) }, mismatch},
		{"asset in lower case", func(q map[string]any) { q["asset"] = strings.ToLower(q["asset"].(string)) }, mismatch},
		{"amount as a number", func(q map[string]any) { q["amount"] = 10000 }, mismatch},
		{"another amount", func(q map[string]any) { q["amount"] = "9999" }, mismatch},
		{"timeout as text", func(q map[string]any) { q["maxTimeoutSeconds"] = "60" }, mismatch},
		{"another timeout", func(q map[string]any) { q["maxTimeoutSeconds"] = 30 }, mismatch},
		{"no timeout", func(q map[string]any) { delete(q, "maxTimeoutSeconds") }, mismatch},
		{"a key added", func(q map[string]any) { q["note"] = 1 }, mismatch},
		{"a key dropped from extra", func(q map[string]any) { delete(q["extra"].(map[string]any), "version") }, mismatch},
		{"a key changed in extra", func(q map[string]any) { q["extra"].(map[string]any)["name"] = "USDC" }, mismatch},
		{"no extra", func(q map[string]any) { delete(q, "extra") }, mismatch},
	} {
		w := newWorld(t)
		_, url := w.seller(canopytest.SellerConfig{Routes: cent})
		q := w.quote(w.get(url + "/cent"))
		a := w.authorizeQuote(q)
		echo := deep(q)
		tc.edit(echo)
		r := w.get(url+"/cent", "PAYMENT-SIGNATURE", payload2(echo, a))
		if got := errorOf(t, r); got != tc.want || (r.StatusCode == 200) != (tc.want == "") {
			t.Errorf("%s: %d %q, want %q", tc.name, r.StatusCode, got, tc.want)
		}
	}
}

// The rest of the payload, and the forms of its header.
func TestPayloads(t *testing.T) {
	t.Parallel()
	standard := func(v any) string { return encode(v) }
	text := func(s string) func(any) string { return func(any) string { return s } }
	for _, tc := range []struct {
		name   string
		edit   func(map[string]any)
		encode func(any) string
		want   string
	}{
		{"an unknown key", func(p map[string]any) { p["x"] = 1 }, standard, ""},
		{"another resource", func(p map[string]any) { p["resource"] = map[string]any{"url": "http://elsewhere.test/"} }, standard, ""},
		{"unadvertised extensions", func(p map[string]any) { p["extensions"] = map[string]any{"x": map[string]any{"info": 1}} }, standard, ""},
		{"version 1", func(p map[string]any) { p["x402Version"] = 1 }, standard, "Unsupported x402 version: 1"},
		{"no version", func(p map[string]any) { delete(p, "x402Version") }, standard, "Unsupported x402 version: undefined"},
		{"no accepted", func(p map[string]any) { delete(p, "accepted") }, standard, "No matching payment requirements"},
		{"no payload", func(p map[string]any) { delete(p, "payload") }, standard, "invalid_payload"},
		{"no authorization", func(p map[string]any) { delete(p["payload"].(map[string]any), "authorization") }, standard, "invalid_payload"},
		{"value with zeros before", func(p map[string]any) { auth(p)["value"] = "010000" }, standard, ""},
		{"value in hex", func(p map[string]any) { auth(p)["value"] = "0x2710" }, standard, ""},
		{"validAfter as a number", func(p map[string]any) { auth(p)["validAfter"] = 0 }, standard, ""},
		{"value with an exponent", func(p map[string]any) { auth(p)["value"] = "1e4" }, standard, "invalid_payload"},
		{"value with a sign", func(p map[string]any) { auth(p)["value"] = "-10000" }, standard, "invalid_payload"},
		{"payer in lower case", func(p map[string]any) { auth(p)["from"] = strings.ToLower(auth(p)["from"].(string)) }, standard, ""},
		{"signature in upper case", func(p map[string]any) {
			b := p["payload"].(map[string]any)
			b["signature"] = "0x" + strings.ToUpper(b["signature"].(string)[2:])
		}, standard, ""},
		{"a short nonce", func(p map[string]any) { auth(p)["nonce"] = "0x01" }, standard, "invalid_payload"},
		{"unpadded", nil, func(v any) string { return strings.TrimRight(encode(v), "=") }, ""},
		{"for URLs", nil, func(v any) string {
			b, _ := base64.StdEncoding.DecodeString(encode(v))
			return base64.RawURLEncoding.EncodeToString(b)
		}, ""},
		{"not base64", nil, text("%%%"), "Payment required"},
		{"not JSON", nil, text(base64.StdEncoding.EncodeToString([]byte("{"))), "Payment required"},
		{"an empty object", nil, text("e30="), "Unsupported x402 version: undefined"},
	} {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Routes: cent})
		q := w.quote(w.get(url + "/cent"))
		p := deep(map[string]any{"x402Version": 2, "accepted": q, "payload": wire(w.authorizeQuote(q))})
		if tc.edit != nil {
			tc.edit(p)
		}
		r := w.get(url+"/cent", "PAYMENT-SIGNATURE", tc.encode(p))
		if got := errorOf(t, r); got != tc.want || (r.StatusCode == 200) != (tc.want == "") {
			t.Errorf("%s: %d %q, want %q", tc.name, r.StatusCode, got, tc.want)
		}
		if !s.Requests()[1].Paid {
			t.Errorf("%s: not counted as paid", tc.name)
		}
	}
}

func auth(p map[string]any) map[string]any {
	return p["payload"].(map[string]any)["authorization"].(map[string]any)
}

func TestPayloadsV1(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(map[string]any)
		want string
	}{
		{"unknown keys", func(p map[string]any) { p["accepted"], p["x"] = 1, 2 }, ""},
		{"the network as CAIP-2", func(p map[string]any) { p["network"] = "eip155:8453" }, "Invalid network"},
		{"an unknown network", func(p map[string]any) { p["network"] = "moon" }, "Invalid network"},
		{"another network", func(p map[string]any) { p["network"] = "polygon" }, "Unable to find matching payment requirements"},
		{"another scheme", func(p map[string]any) { p["scheme"] = "upto" }, "Unable to find matching payment requirements"},
		{"no payload", func(p map[string]any) { delete(p, "payload") }, "Invalid input"},
	} {
		w := newWorld(t)
		_, url := w.seller(canopytest.SellerConfig{Version: canopytest.V1, Routes: cent})
		q := w.quote(w.get(url + "/cent"))
		p := deep(map[string]any{"x402Version": 1, "scheme": "exact", "network": "base", "payload": wire(w.authorizeQuote(q))})
		tc.edit(p)
		r := w.get(url+"/cent", "X-PAYMENT", encode(p))
		if got := errorOf(t, r); got != tc.want || (r.StatusCode == 200) != (tc.want == "") {
			t.Errorf("%s: %d %q, want %q", tc.name, r.StatusCode, got, tc.want)
		}
	}
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Version: canopytest.V1, Routes: cent})
	if r := w.get(url+"/cent", "X-PAYMENT", "%%%"); errorOf(t, r) != "Invalid character" {
		t.Errorf("garbage: %s", r.body)
	}
	if r := w.get(url+"/cent", "PAYMENT-SIGNATURE", "e30="); errorOf(t, r) != "X-PAYMENT header is required" {
		t.Errorf("the other version's header: %s", r.body)
	}
}

// A header that is sent twice is joined, and then cannot be decoded.
func TestPaymentSentTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Routes: cent})
	q := w.quote(w.get(url + "/cent"))
	h := payload2(q, w.authorizeQuote(q))
	if r := w.get(url+"/cent", "PAYMENT-SIGNATURE", h, "PAYMENT-SIGNATURE", h); errorOf(t, r) != "Payment required" {
		t.Errorf("%d %s", r.StatusCode, errorOf(t, r))
	}
}

func TestExtensionsAreCompared(t *testing.T) {
	t.Parallel()
	declared := map[string]json.RawMessage{"bazaar": json.RawMessage(`{"info":{"input":{"type":"http","method":"GET"}},"schema":{}}`)}
	for _, tc := range []struct {
		name, extensions, want string
	}{
		{"none", ``, ""},
		{"as they were", `{"bazaar":{"info":{"input":{"type":"http","method":"GET"}},"schema":{}}}`, ""},
		{"without the schema", `{"bazaar":{"info":{"input":{"type":"http","method":"GET"}}}}`, ""},
		{"a key added", `{"bazaar":{"info":{"input":{"type":"http","method":"GET","x":1},"y":2}}}`, ""},
		{"a key changed", `{"bazaar":{"info":{"input":{"type":"http","method":"POST"}}}}`, "extension_echo_mismatch"},
		{"a key dropped", `{"bazaar":{"info":{"input":{"type":"http"}}}}`, "extension_echo_mismatch"},
		{"others", `{"x":{}}`, ""},
	} {
		w := newWorld(t)
		_, url := w.seller(canopytest.SellerConfig{Routes: cent, Extensions: declared})
		q := w.quote(w.get(url + "/cent"))
		p := map[string]any{"x402Version": 2, "accepted": q, "payload": wire(w.authorizeQuote(q))}
		if tc.extensions != "" {
			p["extensions"] = json.RawMessage(tc.extensions)
		}
		if r := w.get(url+"/cent", "PAYMENT-SIGNATURE", encode(p)); errorOf(t, r) != tc.want {
			t.Errorf("%s: %d %q, want %q", tc.name, r.StatusCode, errorOf(t, r), tc.want)
		}
	}
}

func TestPaymentIdentifier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: cent, PaymentID: canopytest.PaymentIDRequired})
	q := w.quote(w.get(url + "/cent"))
	header := func(id any) string {
		info := map[string]any{"required": true}
		if id != nil {
			info["id"] = id
		}
		return encode(map[string]any{"x402Version": 2, "accepted": q, "payload": wire(w.authorizeQuote(q)),
			"extensions": map[string]any{"payment-identifier": map[string]any{"info": info}}})
	}
	for _, id := range []any{nil, "short", "not allowed: spaces", 17, strings.Repeat("x", 129)} {
		if r := w.get(url+"/cent", "PAYMENT-SIGNATURE", header(id)); r.StatusCode != 400 {
			t.Errorf("id %v: %d %s", id, r.StatusCode, r.body)
		}
	}
	w.chain.AssertTransfers(t)
	first := header("pay_0123456789abcdef")
	paid := w.get(url+"/cent", "PAYMENT-SIGNATURE", first)
	again := w.get(url+"/cent", "PAYMENT-SIGNATURE", first)
	if paid.StatusCode != 200 || again.StatusCode != 200 || string(again.body) != string(paid.body) || receiptOf(again) != receiptOf(paid) || s.Count("").Served != 1 {
		t.Errorf("the same payment again: %d, %d %s, served %d", paid.StatusCode, again.StatusCode, again.body, s.Count("").Served)
	}
	if r := w.get(url+"/cent", "PAYMENT-SIGNATURE", header("pay_0123456789abcdef")); r.StatusCode != 409 {
		t.Errorf("another payment with the same id: %d", r.StatusCode)
	}
	if r := w.get(url+"/cent", "PAYMENT-SIGNATURE", header("pay_fedcba9876543210")); r.StatusCode != 200 {
		t.Errorf("another id: %d", r.StatusCode)
	}
	w.chain.AssertSpent(t, w.wallet.Address(), 2*payment.Cent)
}

// Each set of terms settles on its own chain.
func TestTermsOnSeveralChains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sepolia := canopytest.NewChain(canopytest.ChainConfig{ID: payment.BaseSepolia, Clock: w.clock})
	sepolia.Fund(w.wallet.Address(), payment.Dollar)
	for _, v := range versions {
		_, url := w.seller(canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent,
			Also: []canopytest.Accept{{Chain: sepolia, Price: payment.Cent / 2}}}}})
		r := w.get(url + "/")
		terms := unmarshal(t, r.body)
		if v == canopytest.V2 {
			terms = decode(t, r.Header.Get("Payment-Required"))
		}
		q := terms["accepts"].([]any)[1].(map[string]any)
		a := w.wallet.authorize(sepolia.Dollar(), canopytest.Address("seller"), payment.UnitsOf(5000), start.Add(60e9))
		header := []string{"PAYMENT-SIGNATURE", payload2(q, a)}
		if v == canopytest.V1 {
			header = []string{"X-PAYMENT", payload1(q, a)}
		}
		if r := w.get(url+"/", header...); r.StatusCode != 200 || decode(t, receiptOf(r))["network"] != q["network"] {
			t.Errorf("version %d: %d %s", v, r.StatusCode, errorOf(t, r))
		}
	}
	w.chain.AssertTransfers(t)
	sepolia.AssertSpent(t, w.wallet.Address(), payment.Cent)
}
