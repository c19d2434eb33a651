package canopy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

const benchPolicy = `
[policy.default]
max_payment   = "$1"
caps          = ["$1000000 / 24h", "$1000000 / month", "100000000 payments / 1h", "$1000000 / 24h per host"]
approve_above = "$0.50"
allow         = ["host:127.0.0.1", "host:*.mpp.example"]
`

const benchKey = "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

// benchSeller answers an unpaid request with a challenge and a paid one with a
// receipt, and does nothing else: what is measured is the buyer.
func benchSeller(b *testing.B) *httptest.Server {
	const challenge = `eyJ4NDAyVmVyc2lvbiI6MiwicmVzb3VyY2UiOnsidXJsIjoiaHR0cDovLzEyNy4wLjAuMS9jZW50IiwiZGVzY3JpcHRpb24iOiJhIHF1b3RlIiwibWltZVR5cGUiOiJhcHBsaWNhdGlvbi9qc29uIn0sImFjY2VwdHMiOlt7InNjaGVtZSI6ImV4YWN0IiwibmV0d29yayI6ImVpcDE1NTo4NDUzIiwiYW1vdW50IjoiMTAwMDAiLCJhc3NldCI6IjB4ODMzNTg5ZkNENmVEYjZFMDhmNGM3QzMyRDRmNzFiNTRiZEEwMjkxMyIsInBheVRvIjoiMHgyMDk2OTNCYzZhZmMwQzUzMjhiQTM2RmFGMDNDNTE0RUYzMTIyODdDIiwibWF4VGltZW91dFNlY29uZHMiOjYwLCJleHRyYSI6eyJuYW1lIjoiVVNEIENvaW4iLCJ2ZXJzaW9uIjoiMiJ9fV19`
	const receipt = `eyJzdWNjZXNzIjp0cnVlLCJ0cmFuc2FjdGlvbiI6IjB4MTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMiIsIm5ldHdvcmsiOiJlaXAxNTU6ODQ1MyIsInBheWVyIjoiMHgyYzc1MzZFMzYwNUQ5QzE2YTdhM0Q3YjE4OThlNTI5Mzk2YTY1YzIzIn0=`
	body := []byte(`{"price":"60000.00"}`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/plain":
		case r.Header.Get("PAYMENT-SIGNATURE") != "":
			w.Header().Set("PAYMENT-RESPONSE", receipt)
		default:
			w.Header().Set("PAYMENT-REQUIRED", challenge)
			w.WriteHeader(http.StatusPaymentRequired)
			w.Write([]byte("{}"))
			return
		}
		w.Write(body)
	}))
	b.Cleanup(s.Close)
	return s
}

func benchClient(b *testing.B, store ledger.Store) *canopy.Client {
	b.Helper()
	rules, err := policy.Parse("bench", []byte(benchPolicy))
	if err != nil {
		b.Fatal(err)
	}
	key, err := signer.FromHex(benchKey)
	if err != nil {
		b.Fatal(err)
	}
	rail, err := x402.New(x402.Config{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := canopy.New(canopy.Config{Treasury: canopy.Treasury{Signer: key}, Policy: rules, Store: store, Rails: []canopy.Rail{rail}})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func get(b *testing.B, hc *http.Client, url string) {
	resp, err := hc.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
		b.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	resp.Body.Close()
}

// BenchmarkPaidCall measures a whole 402, pay, 200 round trip against its floor,
// two plain GETs and one bare signature, in interleaved rounds. x-floor is the
// ratio of the medians.
func BenchmarkPaidCall(b *testing.B) {
	s := benchSeller(b)
	paying := benchClient(b, ledger.NewMemory(ledger.Options{})).HTTPClient()
	plain := s.Client()
	key, err := crypto.HexToECDSA(benchKey[2:])
	if err != nil {
		b.Fatal(err)
	}
	digest := crypto.Keccak256([]byte("floor"))
	for range 200 {
		get(b, paying, s.URL+"/cent")
		get(b, plain, s.URL+"/plain")
	}
	var floor, full []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		get(b, plain, s.URL+"/plain")
		get(b, plain, s.URL+"/plain")
		if _, err := crypto.Sign(digest, key); err != nil {
			b.Fatal(err)
		}
		mid := time.Now()
		get(b, paying, s.URL+"/cent")
		floor, full = append(floor, mid.Sub(start)), append(full, time.Since(mid))
	}
	slices.Sort(floor)
	slices.Sort(full)
	b.ReportMetric(float64(median(floor).Nanoseconds()), "floor-ns")
	b.ReportMetric(float64(median(full).Nanoseconds()), "paid-ns")
	b.ReportMetric(float64(median(full))/float64(median(floor)), "x-floor")
}

func median(d []time.Duration) time.Duration { return d[len(d)/2] }

// BenchmarkPassThrough is a request that meets no 402: what the client adds to
// the transport under it.
func BenchmarkPassThrough(b *testing.B) {
	ok := &http.Response{StatusCode: 200, Status: "200 OK", Body: http.NoBody, Header: http.Header{}}
	rt := roundTripper(func(r *http.Request) (*http.Response, error) { return ok, nil })
	rules, err := policy.Parse("bench", []byte(benchPolicy))
	if err != nil {
		b.Fatal(err)
	}
	c, err := canopy.New(canopy.Config{Policy: rules, Store: ledger.NewMemory(ledger.Options{}), Transport: rt})
	if err != nil {
		b.Fatal(err)
	}
	req := httptest.NewRequest("GET", "https://feed.example/quote", nil)
	for name, rt := range map[string]http.RoundTripper{"bare": rt, "canopy": c} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rt.RoundTrip(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// BenchmarkDecision is policy and reservation on Memory, without HTTP and
// without a signature, with that many payments before it. x-sign is the ratio
// to a bare signature, of the medians of rounds that take turns.
func BenchmarkDecision(b *testing.B) {
	for _, past := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(past), func(b *testing.B) {
			store := ledger.NewMemory(ledger.Options{})
			rules, err := policy.Parse("bench", []byte(benchPolicy))
			if err != nil {
				b.Fatal(err)
			}
			for i := range past {
				decide(b, rules, store, i)
			}
			key, err := crypto.HexToECDSA(benchKey[2:])
			if err != nil {
				b.Fatal(err)
			}
			digest := crypto.Keccak256([]byte("floor"))
			const perRound = 16 // decisions, and a quarter as many signatures
			var decisions, signatures []time.Duration
			for n := past; b.Loop(); n += perRound {
				start := time.Now()
				for i := range perRound {
					decide(b, rules, store, n+i)
				}
				mid := time.Now()
				for range perRound / 4 {
					if _, err := crypto.Sign(digest, key); err != nil {
						b.Fatal(err)
					}
				}
				decisions, signatures = append(decisions, mid.Sub(start)/perRound), append(signatures, time.Since(mid)/(perRound/4))
			}
			slices.Sort(decisions)
			slices.Sort(signatures)
			b.ReportMetric(float64(median(decisions)), "ns/op")
			b.ReportMetric(float64(median(signatures)), "sign-ns")
			b.ReportMetric(float64(median(decisions))/float64(median(signatures)), "x-sign")
		})
	}
}

func decide(b *testing.B, rules *policy.Policy, store ledger.Store, i int) {
	now := time.Now()
	usdc := baseUSDC
	amount := payment.UnitsOf(10_000)
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc, Amount: amount,
		Recipients: []payment.Recipient{{Address: payment.Address{19: 9}, Amount: amount}},
		Method:     "GET", Origin: "https://127.0.0.1", Target: "/cent", Validity: time.Minute,
	}
	p := payment.Payment{ID: payment.NewID(now), Agent: "default", Terms: terms, Host: "127.0.0.1", Port: 443}
	v := rules.Evaluate(p, now, policy.History{})
	from := payment.Address{19: 1}
	e, _, err := store.Reserve(context.Background(), ledger.Request{
		Payment: p, Verdict: v, Payer: from, Fingerprint: payment.Hash{31: 1, 0: byte(i), 1: byte(i >> 8), 2: byte(i >> 16), 3: byte(i >> 24)},
		Began: now, Now: now, Validity: time.Minute,
		Slot: payment.Slot{Kind: payment.SlotEVM, Chain: usdc.Chain, Token: usdc.Address, From: from},
	})
	if err != nil || e.State != ledger.Authorized {
		b.Fatalf("%v %v %v", e.State, e.Reasons, err)
	}
}

var baseUSDC = func() payment.Asset {
	for _, a := range payment.KnownAssets().On(payment.Base) {
		if a.Symbol == "USDC" {
			return a
		}
	}
	panic("no USDC on Base")
}()
