package x402_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// checkOffers holds what must be true of whatever was read.
func checkOffers(t *testing.T, offers []payment.Offer, err error) {
	t.Helper()
	if len(offers) == 0 && err == nil {
		t.Fatal("no offers and no error")
	}
	var whole *x402.ChallengeError
	if len(offers) > 0 && (errors.Is(err, payment.ErrNotMine) || errors.As(err, &whole)) {
		t.Fatalf("offers beside %v", err)
	}
	if len(offers) > 16 {
		t.Fatalf("%d offers", len(offers))
	}
	known := payment.KnownAssets()
	for _, o := range offers {
		if a, ok := known.Lookup(o.Asset.Chain, o.Asset.Address); !ok || a != o.Asset || a.NoAuthorization {
			t.Fatalf("asset %+v", o.Asset)
		}
		if o.Amount.IsZero() || len(o.Recipients) != 1 || o.Recipients[0].Amount != o.Amount || len(o.Echo) > payment.MaxEcho ||
			o.Validity < 0 || o.Version != 1 && o.Version != 2 || o.Resend != (o.Version == 2) {
			t.Fatalf("offer %+v", o)
		}
		if err := o.Terms("GET", "https://feed.example", "/", [32]byte{}).Check(payment.Address{1}); err != nil && o.Recipients[0].Address != (payment.Address{1}) {
			t.Fatal(err)
		}
	}
}

// pay carries an offer through, and holds the bytes against it by an
// independent reading.
func pay(t *testing.T, o payment.Offer) {
	t.Helper()
	g := grant(t, o)
	if g.Terms.Payee() == g.Payer {
		return
	}
	g.Recover = true
	a, err := rail(t).Authorize(t.Context(), g, key(t))
	if err != nil {
		t.Fatalf("Authorize: %v", err)
	}
	terms, err := rail(t).Decode(a, g)
	if err != nil || terms.Hash() != g.Terms.Hash() {
		t.Fatalf("Decode of %s: %+v, %v", document(t, a), terms, err)
	}
	checkOracle(t, a, g)
}

func seeds(f *testing.F, add func(string)) {
	f.Helper()
	for _, s := range []string{
		v2(R), v1(R1), v2(R, R), v2(`null`, R), `{}`, ``, `{"x402Version":2,"accepts":[]}`, ok,
		`{"accepts":[` + R + `],"extensions":{"payment-identifier":{"info":{"required":true}},"b":[1.0]}}`,
		`{"x402Version":2,"error":"settlement_pending","accepts":null}`,
		strings.Repeat("[", 20),
	} {
		add(s)
	}
}

func FuzzHeader(f *testing.F) {
	seeds(f, func(s string) { f.Add(s, false); f.Add(s, true) })
	f.Fuzz(func(t *testing.T, doc string, raw bool) {
		header := b64(doc)
		if raw {
			header = doc
		}
		resp := response(402, "", "PAYMENT-REQUIRED", header)
		offers, err := rail(t).Offers(resp, nil)
		checkOffers(t, offers, err)
		for _, o := range offers {
			pay(t, o)
		}
	})
}

func FuzzBody(f *testing.F) {
	seeds(f, func(s string) { f.Add([]byte(s), "") })
	f.Add([]byte(v1(R1)), v2(R))
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		resp := response(402, "")
		if header != "" {
			resp.Header.Set("PAYMENT-REQUIRED", b64(header))
		}
		offers, err := rail(t).Offers(resp, body)
		checkOffers(t, offers, err)
		for _, o := range offers {
			pay(t, o)
		}
	})
}

func FuzzReceipt(f *testing.F) {
	seeds(f, func(s string) { f.Add(200, s, s); f.Add(402, s, s); f.Add(402, "", s) })
	f.Fuzz(func(t *testing.T, status int, receipt, body string) {
		g := grant(t, offer(t, v2(R)))
		resp := response(status, body)
		if receipt != "" {
			resp.Header.Set("PAYMENT-RESPONSE", b64(receipt))
		}
		got, err := rail(t).Receipt(resp, g)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Message) > 256 || len(got.Code) > 80 || strings.Trim(got.Code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Fatalf("%+v", got)
		}
		if got.TxHash != "" && (len(got.TxHash) != 66 || !strings.HasPrefix(got.TxHash, "0x")) {
			t.Fatalf("%+v", got)
		}
		if got.Claim != payment.ClaimPaid {
			return
		}
		var r struct {
			Success                             bool
			Transaction, Network, Payer, Amount string
		}
		if err := json.Unmarshal([]byte(receipt), &r); err != nil || !r.Success || !strings.EqualFold(r.Transaction, got.TxHash) ||
			r.Payer != "" && !strings.EqualFold(r.Payer, g.Payer.String()) || r.Network != "" && r.Network != "eip155:84532" && r.Network != "base-sepolia" ||
			r.Amount != "" && r.Amount != "1000" {
			t.Fatalf("%s is believed: %+v, %v", receipt, got, err)
		}
	})
}

// FuzzAuthorize signs any amount, payee, nonce and instant for any pinned token.
func FuzzAuthorize(f *testing.F) {
	f.Add(0, []byte{1}, []byte{2}, []byte{3}, int64(1790856060), "x")
	f.Fuzz(func(t *testing.T, which int, amount, to, nonce []byte, validBefore int64, id string) {
		assets := payment.KnownAssets().All()
		asset := assets[uint(which)%uint(len(assets))]
		var value, n [32]byte
		copy(value[:], amount)
		copy(n[:], nonce)
		units := payment.UnitsFromBytes(value)
		var payTo payment.Address
		copy(payTo[:], to)
		if asset.NoAuthorization || units.IsZero() || payTo.IsZero() || validBefore <= 0 || validBefore > 1<<40 || n == [32]byte{} || payTo == asset.Address || payTo == key(t).Address() {
			return
		}
		entry := strings.Replace(entryFor(asset, units), payee, payTo.String(), 1)
		offers, err := rail(t).Offers(inHeader(v2(entry)))
		if err != nil {
			if code(err) == "burn_payee" {
				return
			}
			t.Fatal(err)
		}
		g := grant(t, offers[0])
		g.PaymentID, g.Recover = payment.ID(id), true
		g.Slot.NonceID = n
		g.ValidBefore = time.Unix(validBefore, 0)
		g.Permit = permit.Mint(g.Slot.String(), noon.Add(1))
		a, err := rail(t).Authorize(t.Context(), g, key(t))
		if err != nil {
			t.Fatal(err)
		}
		terms, err := rail(t).Decode(a, g)
		if err != nil || terms.Hash() != g.Terms.Hash() {
			t.Fatalf("%+v, %v", terms, err)
		}
		checkOracle(t, a, g)
	})
}

// FuzzDecode changes the bytes: what is still accepted is what was signed.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"x402Version":2}`), 3, byte(1))
	f.Fuzz(func(t *testing.T, doc []byte, at int, with byte) {
		g := grant(t, offer(t, v2(R)))
		g.Recover = true
		a := authorize(t, g)
		good := document(t, a)
		changed := []byte(good)
		changed[uint(at)%uint(len(changed))] ^= with
		for _, b := range [][]byte{doc, changed} {
			if bytes.Equal(b, []byte(good)) {
				continue
			}
			a.Value = b64(string(b))
			terms, err := rail(t).Decode(a, g)
			if err != nil {
				continue
			}
			if terms.Hash() != g.Terms.Hash() {
				t.Fatalf("%s gives %+v", b, terms)
			}
			checkOracle(t, a, g)
		}
	})
}
