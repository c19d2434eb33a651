package mpp_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/internal/mppserver"
	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

const (
	devKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80" // of every development chain
	seller = "0x742d35cc6634c0532925a3b844bc9e7595f8fe00"
	other  = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"
	path   = "0x20c0000000000000000000000000000000000000"
	secret = "test-secret-key-test-secret-key-test"
)

var noon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

// object is a request.
type object = map[string]any

// request is a charge of one cent on the test network, changed by edit.
func request(edit ...func(q, details object)) object {
	details := object{"chainId": 42431}
	q := object{"amount": "10000", "currency": path, "recipient": seller, "methodDetails": details}
	for _, f := range edit {
		f(q, details)
	}
	return q
}

func charge(t testing.TB, q object, edit ...func(*mppserver.Challenge)) mppserver.Challenge {
	t.Helper()
	encoded, err := mppserver.Encode(q)
	if err != nil {
		t.Fatal(err)
	}
	c := mppserver.Challenge{
		Realm: "feed.example", Method: "tempo", Intent: "charge", Request: encoded,
		Expires: noon.Add(5 * time.Minute).Format("2006-01-02T15:04:05.000Z"),
	}
	for _, f := range edit {
		f(&c)
	}
	return c.Sign([]byte(secret))
}

// challenged is a 402 with these challenges, each on a line of its own.
func challenged(lines ...string) *http.Response {
	req, err := http.NewRequest("GET", "https://feed.example/quote", nil)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: http.StatusPaymentRequired, Header: http.Header{"Www-Authenticate": lines}, Body: http.NoBody, Request: req}
}

func rail(t testing.TB, edit ...func(*mpp.Config)) *mpp.Rail {
	t.Helper()
	cfg := mpp.Config{}
	for _, f := range edit {
		f(&cfg)
	}
	r, err := mpp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func offerOf(t testing.TB, r *mpp.Rail, c mppserver.Challenge) payment.Offer {
	t.Helper()
	offers, err := r.Offers(challenged(c.Line()), nil)
	if err != nil || len(offers) != 1 {
		t.Fatalf("offers %+v, %v", offers, err)
	}
	return offers[0]
}

func key(t testing.TB) *signer.Key {
	t.Helper()
	k, err := signer.FromHex(devKey)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// grant is what the ledger would make of o.
func grant(t testing.TB, o payment.Offer) payment.Grant {
	t.Helper()
	return grantWith(t, o, "")
}

// grantWith is grant of a transfer with that memo.
func grantWith(t testing.TB, o payment.Offer, memo string) payment.Grant {
	t.Helper()
	g := payment.Grant{
		PaymentID: "01K6FPS7PGQ0M8Y4JZ0V2R3E5T", Payer: key(t).Address(), ValidBefore: noon.Add(time.Minute),
		Terms:       o.Terms("GET", "https://feed.example", "/quote", [32]byte{1}),
		ChallengeID: o.ChallengeID, Realm: o.Realm, Version: o.Version, Echo: o.Echo,
	}
	if o.Scheme == mpp.SchemeTransfer {
		g.Terms = o.Terms("", "", memo, [32]byte{})
	}
	g.Slot = payment.Slot{Kind: o.Slot, Chain: o.Asset.Chain, From: g.Payer, NonceID: [32]byte{0: 7, 31: 9}, Nonce: 3}
	switch o.Slot {
	case payment.SlotEVM:
		g.Slot.Token, g.Slot.NonceID, g.Slot.Nonce = o.Asset.Address, o.Mark, 0
	case payment.SlotExpiring:
		g.Slot.NonceID, g.Slot.Nonce = o.Mark, 0
	case payment.SlotProof:
		g.Slot = payment.Slot{Kind: payment.SlotProof, Payment: g.PaymentID}
	}
	g.Permit = permit.Mint(g.Slot.String(), time.Now().Add(time.Hour))
	return g
}

// again is g with a permit that was not used yet, as after a restart.
func again(g payment.Grant) payment.Grant {
	g.Permit = permit.Mint(g.Slot.String(), time.Now().Add(time.Hour))
	return g
}

func authorize(t testing.TB, r *mpp.Rail, g payment.Grant) payment.Authorization {
	t.Helper()
	a, err := r.Authorize(t.Context(), g, key(t))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// credential is what a seller reads in a.
func credential(t testing.TB, a payment.Authorization) (c mppserver.Credential, payload map[string]string) {
	t.Helper()
	c, err := mppserver.ReadCredential(a.Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(c.Payload, &payload); err != nil {
		t.Fatal(err)
	}
	return c, payload
}

// response is an answer with headers, in pairs.
func response(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: readCloser{strings.NewReader(body)}}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
