package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/ledgertest"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

func benchPolicy() (*policy.Policy, error) {
	return policy.Parse("bench", []byte(`
[org]
caps = ["$90000000 / 24h"]
[policy.default]
max_payment = "$10"
caps = ["$20000000 / 24h", "$100000000 / month", "20000000 payments / 1h", "$10000000 / 24h per host"]
approve_above = "$5"
allow = ["host:feed.example"]
`))
}

// bench is a ledger with n payments of the last day, and a clock that goes on.
type bench struct {
	m      *ledger.Memory
	clock  *ledgertest.Clock
	policy *policy.Policy
	pay    payment.Payment
	n      uint64
	digest payment.Hash
}

func newBench(tb testing.TB, past int) *bench {
	p, err := benchPolicy()
	if err != nil {
		tb.Fatal(err)
	}
	clock := ledgertest.NewClock(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	asset := payment.Asset{Chain: payment.Base, Address: payment.Address{19: 0xcc}, Symbol: "USDC", Decimals: 6, Name: "USD Coin", Version: "2"}
	b := &bench{
		m: ledger.NewMemory(ledger.Options{Now: clock.Now, Elapsed: clock.Elapsed}), clock: clock, policy: p,
		pay: payment.Payment{Agent: "trader", Host: "feed.example", Port: 443, Terms: payment.Terms{
			Rail: "x402", Scheme: "exact", Asset: asset, Amount: payment.UnitsOf(10_000),
			Recipients: []payment.Recipient{{Address: payment.Address{19: 7}, Amount: payment.UnitsOf(10_000)}},
			Method:     "GET", Origin: "https://feed.example", Target: "/data", Validity: time.Minute,
		}},
	}
	step := 24 * time.Hour / time.Duration(max(past, 1))
	for range past {
		e, _, err := b.reserve(b.policy.Evaluate(b.pay, clock.Now(), policy.History{}))
		if err != nil || e.State != ledger.Authorized {
			tb.Fatalf("%v: %v, %v", err, e.State, e.Reasons)
		}
		c := ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Claimed, By: ledger.ByClient, Now: clock.Now(), Delivered: true, HTTP: 200}
		if _, err := b.m.Advance(tb.Context(), c); err != nil {
			tb.Fatal(err)
		}
		clock.Advance(step)
	}
	return b
}

func (b *bench) reserve(v policy.Verdict) (ledger.Entry, []policy.Use, error) {
	b.n++
	now := b.clock.Now()
	pay := b.pay
	pay.ID = payment.NewID(now)
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], b.n%1000)
	return b.m.Reserve(context.Background(), ledger.Request{
		Payment: pay, Verdict: v, Payer: payment.Address{19: 0xa1}, Fingerprint: sha256.Sum256(seed[:]),
		Began: now, Now: now, Validity: time.Minute, Slot: payment.Slot{Kind: payment.SlotEVM},
	})
}

// BenchmarkReserve is the decision alone: policy and reservation, in a ledger
// with that many payments of the last day. The floor is 5 us, which is 0.19 of
// a bare signature on an idle machine: x-sign is the ratio of the medians of
// rounds that take turns, so that a busy machine slows both.
func BenchmarkReserve(b *testing.B) {
	for _, past := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("past=%d", past), func(b *testing.B) {
			if past > 1000 && testing.Short() {
				b.Skip()
			}
			w := newBench(b, past)
			key, err := crypto.GenerateKey()
			if err != nil {
				b.Fatal(err)
			}
			var decisions, signatures []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				for range perRound {
					w.decide(b)
				}
				mid := time.Now()
				for range perRound / 4 {
					if _, err := crypto.Sign(w.digest[:], key); err != nil {
						b.Fatal(err)
					}
				}
				decisions, signatures = append(decisions, mid.Sub(start)/perRound), append(signatures, time.Since(mid)/(perRound/4))
			}
			slices.Sort(decisions)
			slices.Sort(signatures)
			decision, signature := decisions[len(decisions)/2], signatures[len(signatures)/2]
			allocs, bytes := w.allocations(b)
			b.ReportMetric(float64(decision), "ns/op")
			b.ReportMetric(float64(signature), "sign-ns")
			b.ReportMetric(float64(decision)/float64(signature), "x-sign")
			b.ReportMetric(float64(allocs), "allocs/op")
			b.ReportMetric(float64(bytes), "B/op")
		})
	}
}

const perRound = 16 // decisions, and a quarter as many signatures

// decide is what BenchmarkReserve measures.
func (b *bench) decide(tb testing.TB) {
	b.clock.Advance(time.Millisecond)
	e, _, err := b.reserve(b.policy.Evaluate(b.pay, b.clock.Now(), policy.History{}))
	if err != nil || e.State != ledger.Authorized {
		tb.Fatal(err, e.Reasons)
	}
}

// allocations are those of one decision, and their bytes.
func (b *bench) allocations(tb testing.TB) (n, bytes uint64) {
	const times = 4096
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		b.decide(tb)
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / times, (after.TotalAlloc - before.TotalAlloc) / times
}

// BenchmarkDenied is a decision against a full cap, which has to be brought up
// to date first.
func BenchmarkDenied(b *testing.B) {
	w := newBench(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		v := w.policy.Evaluate(w.pay, w.clock.Now(), policy.History{})
		v.Limits = slices.Clone(v.Limits)
		v.Limits[0].USD = 1
		e, _, err := w.reserve(v)
		if err != nil || e.State != ledger.Denied {
			b.Fatal(err, e.State)
		}
	}
}
