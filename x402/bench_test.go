package x402_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/payment"
)

const quote = `{"x402Version":2,"error":"Payment required","resource":{"url":"https://feed.example/quotes/latest","description":"The latest quotes, once a second","mimeType":"application/json"},"accepts":[{"scheme":"exact","network":"eip155:8453","amount":"10000","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60,"extra":{"name":"USD Coin","version":"2"}}],"extensions":{}}`

// BenchmarkSignFloor is the cost below which no payment can be built.
func BenchmarkSignFloor(b *testing.B) {
	raw, _ := hex.DecodeString(canary)
	k, err := crypto.ToECDSA(raw)
	if err != nil {
		b.Fatal(err)
	}
	digest := make([]byte, 32)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := crypto.Sign(digest, k); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAuthorize builds one exact payment on an offer that was read.
func BenchmarkAuthorize(b *testing.B) {
	r, k, g := rail(b), key(b), grant(b, offer(b, quote))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Authorize(b.Context(), g, k); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAuthorizeOverFloor interleaves the two and reports the ratio of
// their best rounds, which a busy machine disturbs least, in hundredths.
func BenchmarkAuthorizeOverFloor(b *testing.B) {
	r, k, g := rail(b), key(b), grant(b, offer(b, quote))
	raw, _ := hex.DecodeString(canary)
	bare, err := crypto.ToECDSA(raw)
	if err != nil {
		b.Fatal(err)
	}
	const rounds = 10
	best := [2]time.Duration{time.Hour, time.Hour}
	digest := make([]byte, 32)
	for b.Loop() {
		start := time.Now()
		for range rounds {
			crypto.Sign(digest, bare)
		}
		mid := time.Now()
		for range rounds {
			r.Authorize(b.Context(), g, k)
		}
		best[0] = min(best[0], mid.Sub(start))
		best[1] = min(best[1], time.Since(mid))
	}
	b.Logf("floor %v, authorize %v: %d%%", best[0]/rounds, best[1]/rounds, best[1]*100/best[0])
}

func BenchmarkOffers(b *testing.B) {
	r := rail(b)
	for name, doc := range map[string]string{"one": quote, "three": v2(R, R, R)} {
		b.Run(name, func(b *testing.B) {
			resp, body := inHeader(doc)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Offers(resp, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("v1", func(b *testing.B) {
		resp, body := inBody(v1(R1))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Offers(resp, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	r, g := rail(b), grant(b, offer(b, quote))
	a := authorize(b, g)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Decode(a, g); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReceipt(b *testing.B) {
	r, g := rail(b), grant(b, offer(b, quote))
	resp := response(200, "", "PAYMENT-RESPONSE", b64(`{"success":true,"transaction":"0x`+canary+`","network":"eip155:8453","payer":"`+g.Payer.String()+`"}`))
	b.ReportAllocs()
	for b.Loop() {
		if c, err := r.Receipt(resp, g); err != nil || c.Claim != payment.ClaimPaid {
			b.Fatal(c, err)
		}
	}
}
