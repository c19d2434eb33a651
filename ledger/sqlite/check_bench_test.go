//go:build linux || darwin

package sqlite

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	ledgercheck "github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// bigPolicy has a cap of each kind, none of which its ledger reaches.
const bigPolicy = `
[org]
caps = ["$1000000 / month"]
[policy.default]
max_payment = "$10"
caps = ["$100000 / 24h", "$2000000 / month", "100000 payments / 1h", "$50000 / 7d per host", "$2000000 / ever"]
allow = ["*"]
`

// bigLedger makes at path what n payments of thirty days leave, by the engine
// itself with many in a commit: of 50 agents, at 500 hosts, every other one
// under a key; settled, or released, or left in doubt. The last one meets the
// caps, as if they were new, and so has the engine count all of them.
func bigLedger(t testing.TB, path string, rules *policy.Policy, n int) {
	t.Helper()
	const month, batch = 30 * 24 * time.Hour, 2000
	now := time.Now().Add(-month)
	s, err := Open(path, Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	step := month / time.Duration(n+1)
	for i := 0; i < n; i += batch {
		_, err := s.do(t.Context(), &job{kind: reserve, step: func(x *tx) error {
			for j := i; j < min(i+batch, n); j++ {
				now = now.Add(step)
				if err := s.bigPayment(x, rules, now, j, j == n-1); err != nil {
					return err
				}
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) bigPayment(x *tx, rules *policy.Policy, now time.Time, i int, last bool) error {
	r := request(now, uint64(i))
	r.Payment.Agent, r.Payment.Host = "agent"+strconv.Itoa(i%50), "host"+strconv.Itoa(i%500)+".example"
	r.Payment.Terms.Origin, r.Payment.Terms.Amount = "https://"+r.Payment.Host, payment.UnitsOf(uint64(10_000*(1+i%90)))
	r.Payment.Terms.Recipients[0] = payment.Recipient{Address: payment.Address(sha256.New().Sum([]byte(r.Payment.Host))[:20]), Amount: r.Payment.Terms.Amount}
	r.Verdict = rules.Evaluate(r.Payment, now, policy.History{})
	if !last {
		r.Verdict.Limits = nil
	}
	r.Watched = true
	if i%2 == 0 {
		r.Key = "order " + strconv.Itoa(i)
	}
	e, _, err := ledger.ReserveTx(x, &r, s.env())
	if err != nil || e.State != ledger.Authorized {
		return fmt.Errorf("payment %d: %v: %v, %w", i, e.State, e.Reasons, err)
	}
	move := func(to ledger.State, by ledger.Actor) error {
		c := claimed(*e)
		c.To, c.By, c.Now = to, by, now
		switch to {
		case ledger.InDoubt, ledger.ExpiredUnused:
			c.Receipt, c.Delivered = nil, false
		case ledger.Settled:
			c.SpentAt = now
		}
		e, err = ledger.AdvanceTx(x, &c, s.env())
		return err
	}
	switch {
	case i%1000 == 0:
		return move(ledger.InDoubt, ledger.ByClient)
	case i%10 == 0:
		if err := move(ledger.InDoubt, ledger.ByClient); err != nil {
			return err
		}
		return move(ledger.ExpiredUnused, ledger.ByChain)
	}
	if err := move(ledger.Claimed, ledger.ByClient); err != nil {
		return err
	}
	return move(ledger.Settled, ledger.ByChain)
}

// heapPeak calls f, and returns the most that the heap held meanwhile, beyond
// what it held before, and the most that the process took of the machine.
func heapPeak(f func()) (heap, resident uint64) {
	const name = "/memory/classes/heap/objects:bytes"
	read := func() uint64 {
		m := []metrics.Sample{{Name: name}}
		metrics.Read(m)
		return m[0].Value.Uint64()
	}
	runtime.GC()
	before, most, stop, done := read(), uint64(0), make(chan struct{}), make(chan struct{})
	was := rss("VmRSS")
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // VmHWM begins anew, where there is such a thing
	go func() {
		defer close(done)
		for {
			most = max(most, read())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-done
	return most - min(most, before), rss("VmHWM") - min(was, rss("VmHWM"))
}

// rss is a size in /proc/self/status, and 0 where there is none.
func rss(field string) uint64 {
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), field+":")
	n, _ := strconv.ParseUint(strings.Fields(rest + " 0")[0], 10, 64)
	return n << 10
}

// BenchmarkCheck reads a ledger of 1,000,000 payments (CANOPY_BENCH_PAYMENTS
// says otherwise) with ledger/check, caps and events and all, and with Verify:
// together that is canopy ledger verify. With CANOPY_BENCH_LEDGER the ledger is
// that file, made where it is not there, and kept.
func BenchmarkCheck(b *testing.B) {
	n := 1_000_000
	if s := os.Getenv("CANOPY_BENCH_PAYMENTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	} else if testing.Short() {
		n = 20_000
	}
	rules, err := policy.Parse("big", []byte(bigPolicy))
	if err != nil {
		b.Fatal(err)
	}
	path := os.Getenv("CANOPY_BENCH_LEDGER")
	if path == "" {
		path = filepath.Join(b.TempDir(), "canopy.db")
	}
	if _, err := os.Stat(path); err != nil {
		start := time.Now()
		bigLedger(b, path, rules, n)
		b.Logf("%d payments made in %v", n, time.Since(start).Round(time.Second))
	}
	s := open(b, path, Options{})
	run := func(name string, f func() (ledger.Report, error)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var r ledger.Report
				var err error
				start, cpu := time.Now(), cpuTime()
				heap, resident := heapPeak(func() { r, err = f() })
				if err != nil || len(r.Problems) > 0 || r.Payments != int64(n) {
					b.Fatalf("%d payments, %q, %v", r.Payments, r.Problems, err)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(time.Since(start).Seconds(), "s")
				b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s")
				b.ReportMetric(float64(heap)/(1<<20), "heap-MiB")
				b.ReportMetric(float64(resident)/(1<<20), "rss-MiB")
			}
		})
	}
	run("check", func() (ledger.Report, error) {
		return ledgercheck.Run(b.Context(), s, ledgercheck.Options{Policy: rules})
	})
	run("after-verify", func() (ledger.Report, error) {
		return ledgercheck.Run(b.Context(), s, ledgercheck.Options{Policy: rules, NoEvents: true})
	})
	run("verify", func() (ledger.Report, error) { return s.Verify(b.Context()) })
}
