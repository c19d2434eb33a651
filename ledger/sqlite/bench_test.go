//go:build linux || darwin

package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

// past fills a ledger with n payments of the last 30 days, delivered and
// settled, half of them under a key. They are good enough to be counted, not
// to be verified.
func past(t testing.TB, path string, n int) {
	t.Helper()
	s := open(t, path, Options{})
	e := claim(t, s, pay(t, s, request(time.Now(), 0)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.script("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN"))
	const month = int64(30 * 24 * time.Hour / time.Microsecond)
	now := time.Now().Add(-time.Minute).UnixMicro()
	_, _, err = c.exec(`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?)
		INSERT INTO payments (id, state, version, created, cost, shared, agent, host, fingerprint, payee, held, counts, body)
		SELECT printf('01%024d', i), ?, 3, ? + i * (? / ?), 1000000, 0, 'agent' || (i % 50), 'host' || (i % 5000), randomblob(32), payee,
			iif(i % 2, hex(randomblob(8)), NULL), ? + i * (? / ?), body FROM i, payments WHERE id = ?`,
		int64(n), int64(ledger.Settled), now-month, month, int64(n), now-month, month, int64(n), string(e.ID))
	must(err)
	_, _, err = c.exec(`INSERT INTO events SELECT p.n, s.seq, p.created, s.was, s.became, s.by, s.data, s.hash
		FROM payments p, events s WHERE p.n > 1 AND s.n = 1`)
	must(err)
	_, _, err = c.exec(`UPDATE meta SET events = (SELECT count(*) FROM events)`)
	must(err)
	must(c.script("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)"))
}

// floor measures bare appends of 16 KiB with a sync each, in dir.
func floor(b *testing.B, dir string) time.Duration {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "floor"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	buf := make([]byte, 16<<10)
	const rounds = 30
	start := time.Now()
	for range rounds {
		if _, err := f.Write(buf); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / rounds
}

// payers runs f so many times on n goroutines.
func payers(times, n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > times {
					return
				}
				f(i)
			}
		})
	}
	wg.Wait()
}

// BenchmarkReserve is the reservation alone, under a key, on a ledger of 1,000
// past payments and on one of 1,000,000, in rounds that take turns, with a bare
// append and sync of the same disk in each round. Figures are medians.
func BenchmarkReserve(b *testing.B) {
	sizes := []int{1_000, 1_000_000}
	if testing.Short() {
		sizes[1] = 20_000
	}
	var stores []*Store
	for _, n := range sizes {
		path := newPath(b)
		past(b, path, n)
		stores = append(stores, open(b, path, Options{}))
	}
	var n atomic.Uint64
	for _, p := range []int{1, 64} {
		b.Run(fmt.Sprintf("payers=%d", p), func(b *testing.B) {
			each := 100 * min(p, 30)
			var wall, cpu [2][]float64
			var floors []float64
			for b.Loop() {
				for i, s := range stores {
					c, t := cpuTime(), time.Now()
					payers(each, p, func(int) {
						r := request(time.Now(), n.Add(1), plain...)
						r.Key = r.Payment.Terms.Target
						pay(b, s, r)
					})
					wall[i] = append(wall[i], float64(time.Since(t))/float64(each))
					cpu[i] = append(cpu[i], float64(cpuTime()-c)/float64(each))
				}
				floors = append(floors, float64(floor(b, filepath.Dir(stores[0].path))))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(wall[0]), "ns/small")
			b.ReportMetric(median(wall[1]), "ns/large")
			b.ReportMetric(median(cpu[0]), "cpu-ns/small")
			b.ReportMetric(median(cpu[1]), "cpu-ns/large")
			b.ReportMetric(median(cpu[1])/median(cpu[0]), "cpu-ratio")
			b.ReportMetric(median(wall[1])/median(wall[0]), "ratio")
			b.ReportMetric(median(floors), "floor-ns")
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkPay is a reservation and its outcome: two commits.
func BenchmarkPay(b *testing.B) {
	path := newPath(b)
	past(b, path, 1_000)
	s := open(b, path, Options{})
	for _, p := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("payers=%d", p), func(b *testing.B) {
			b.ReportAllocs()
			cpu := cpuTime()
			b.ResetTimer()
			payers(b.N, p, func(i int) { claim(b, s, pay(b, s, request(time.Now(), uint64(i), plain...))) })
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(floor(b, filepath.Dir(path)).Nanoseconds()), "floor-ns")
		})
	}
}
