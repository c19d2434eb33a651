package mpp_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
)

// BenchmarkAuthorizeOverFloor interleaves bare signatures and charges, and
// reports the ratio of their best rounds, which a busy machine disturbs least.
func BenchmarkAuthorizeOverFloor(b *testing.B) {
	r, k := rail(b), key(b)
	g := grant(b, offerOf(b, r, charge(b, request())))
	bare, err := crypto.HexToECDSA(devKey)
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
			if _, err := r.Authorize(b.Context(), g, k); err != nil {
				b.Fatal(err)
			}
		}
		best[0] = min(best[0], mid.Sub(start))
		best[1] = min(best[1], time.Since(mid))
	}
	b.ReportMetric(float64(best[1])/float64(best[0]), "x-sign")
	b.Logf("floor %v, authorize %v", best[0]/rounds, best[1]/rounds)
}

func BenchmarkOffers(b *testing.B) {
	r, line := rail(b), charge(b, request()).Line()
	resp := challenged(line)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Offers(resp, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAuthorize(b *testing.B) {
	r, k := rail(b), key(b)
	g := grant(b, offerOf(b, r, charge(b, request())))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Authorize(b.Context(), g, k); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	r := rail(b)
	g := grant(b, offerOf(b, r, charge(b, request())))
	a := authorize(b, r, g)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Decode(a, g); err != nil {
			b.Fatal(err)
		}
	}
}
