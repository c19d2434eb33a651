package x402_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

// The key of vectors/x402.json, which guards nothing.
const canary = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

const payee = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"

// R is a good entry of version 2, of the cases.
const R = `{"scheme":"exact","network":"eip155:84532","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","amount":"1000","payTo":"` + payee + `","maxTimeoutSeconds":60,"extra":{"name":"USDC","version":"2"}}`

// R1 is the same in version 1.
const R1 = `{"scheme":"exact","network":"base-sepolia","maxAmountRequired":"1000","resource":"https://feed.example/a","description":"","mimeType":"application/json","outputSchema":null,"payTo":"` + payee + `","maxTimeoutSeconds":60,"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","extra":{"name":"USDC","version":"2"}}`

var noon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

var theRail = sync.OnceValues(func() (*x402.Rail, error) { return x402.New(x402.Config{}) })

// rail is one for all tests: it keeps nothing of a payment.
func rail(t testing.TB) *x402.Rail {
	t.Helper()
	r, err := theRail()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var theKey = sync.OnceValues(func() (*signer.Key, error) { return signer.FromHex(canary) })

func key(t testing.TB) *signer.Key {
	t.Helper()
	k, err := theKey()
	if err != nil {
		t.Fatal(err)
	}
	return k.WithNow(func() time.Time { return noon })
}

// v2 is the document that offers accepts.
func v2(accepts ...string) string {
	return `{"x402Version":2,"resource":{"url":"https://feed.example/a","description":"quotes"},"accepts":[` + strings.Join(accepts, ",") + `]}`
}

func v1(accepts ...string) string {
	return `{"x402Version":1,"error":"X-PAYMENT header is required","accepts":[` + strings.Join(accepts, ",") + `]}`
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// response is an answer with headers as name, value, name, value.
func response(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// inHeader is a 402 of version 2 as sellers send it.
func inHeader(doc string) (*http.Response, []byte) {
	return response(402, "{}", "PAYMENT-REQUIRED", b64(doc)), []byte("{}")
}

func inBody(doc string) (*http.Response, []byte) { return response(402, doc), []byte(doc) }

// offer is the one offer of doc, in the header or, for version 1, the body.
func offer(t testing.TB, doc string) payment.Offer {
	t.Helper()
	resp, body := inHeader(doc)
	if strings.HasPrefix(doc, `{"x402Version":1`) {
		resp, body = inBody(doc)
	}
	offers, err := rail(t).Offers(resp, body)
	if err != nil || len(offers) != 1 {
		t.Fatalf("Offers: %v, %v; want one", offers, err)
	}
	return offers[0]
}

// grant is what the ledger would commit for o.
func grant(t testing.TB, o payment.Offer) payment.Grant {
	t.Helper()
	payer := key(t).Address()
	slot := payment.Slot{Kind: payment.SlotEVM, Chain: o.Asset.Chain, Token: o.Asset.Address, From: payer, NonceID: [32]byte{0: 0xf3, 31: 0x80}}
	valid := noon.Add(time.Minute)
	terms := o.Terms("GET", "https://feed.example", "/a", [32]byte{})
	terms.Validity = time.Minute
	return payment.Grant{
		PaymentID: "01K6FPS7PGQ0M8Y4JZ0V2R3E5T", Terms: terms, Payer: payer, Slot: slot,
		ValidBefore: valid, Version: o.Version, Echo: o.Echo, Permit: permit.Mint(slot.String(), valid),
	}
}

func authorize(t testing.TB, g payment.Grant) payment.Authorization {
	t.Helper()
	a, err := rail(t).Authorize(t.Context(), g, key(t))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// document is what a carries.
func document(t testing.TB, a payment.Authorization) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(a.Value)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func code(err error) string {
	var c *x402.ChallengeError
	if errors.As(err, &c) {
		return c.Code
	}
	var s *x402.SkippedError
	if errors.As(err, &s) {
		var codes []string
		for _, e := range s.Entries {
			codes = append(codes, e.Code)
		}
		return strings.Join(codes, " ")
	}
	if errors.Is(err, payment.ErrNotMine) {
		return "not mine"
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
