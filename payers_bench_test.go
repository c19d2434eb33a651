package canopy_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
)

// BenchmarkPayers is 64 payers at once against one seller: whole paid calls a
// second with the ledger in memory, and with SQLite, every record durable. The
// two take turns; x-memory is the ratio of the medians.
func BenchmarkPayers(b *testing.B) {
	const payers, calls = 64, 20
	s := benchSeller(b)
	file, err := sqlite.Open(filepath.Join(b.TempDir(), "canopy.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	// round is how many calls a second payers reach through a store.
	round := func(store ledger.Store) float64 {
		c := benchClient(b, store)
		hc := &http.Client{Transport: c}
		var wg sync.WaitGroup
		start := time.Now()
		for p := range payers {
			wg.Go(func() {
				for i := range calls {
					resp, err := hc.Get(fmt.Sprintf("%s/cent?payer=%d&call=%d", s.URL, p, i))
					if err != nil || resp.StatusCode != 200 {
						b.Error(resp, err)
						return
					}
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		return payers * calls / time.Since(start).Seconds()
	}
	memory := ledger.NewMemory(ledger.Options{})
	round(memory)
	round(file)
	var inMemory, durable []float64
	for b.Loop() {
		inMemory = append(inMemory, round(memory))
		durable = append(durable, round(file))
	}
	slices.Sort(inMemory)
	slices.Sort(durable)
	m, d := inMemory[len(inMemory)/2], durable[len(durable)/2]
	b.ReportMetric(m, "memory-calls/s")
	b.ReportMetric(d, "sqlite-calls/s")
	b.ReportMetric(d/m, "x-memory")
}
