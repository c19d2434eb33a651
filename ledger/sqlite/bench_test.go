package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
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
	const rounds = 100
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

// payers runs f b.N times on so many goroutines.
func payers(b *testing.B, n int, f func(i int)) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				f(i)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}

// BenchmarkReserve is the reservation alone, with its floor beside it: what a
// bare append and sync costs on the same disk at the same time.
func BenchmarkReserve(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		if n > 1_000 && testing.Short() {
			continue
		}
		path := newPath(b)
		past(b, path, n)
		s := open(b, path, Options{})
		for _, p := range []int{1, 64} {
			b.Run(fmt.Sprintf("past=%d/payers=%d", n, p), func(b *testing.B) {
				b.ReportAllocs()
				payers(b, p, func(i int) { pay(b, s, request(time.Now(), uint64(i), plain...)) })
				b.ReportMetric(float64(floor(b, filepath.Dir(path)).Nanoseconds()), "floor-ns")
			})
		}
	}
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
			payers(b, p, func(i int) { claim(b, s, pay(b, s, request(time.Now(), uint64(i), plain...))) })
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(floor(b, filepath.Dir(path)).Nanoseconds()), "floor-ns")
		})
	}
}
