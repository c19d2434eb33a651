//go:build linux || darwin

package sqlite

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// TestFault1to3 kills a process before the commit, after it and after the
// permit was used: nothing is forgotten, and nothing is made up.
func TestFault1to3(t *testing.T) {
	for name, tt := range map[string]struct {
		at    point
		held  payment.USD
		state ledger.State
	}{
		"F1 before the commit":        {beforeCommit, 0, ledger.Proposed},
		"F2 after it, before signing": {afterCommit, 1_000_000, ledger.InDoubt},
		"F3 after signing":            {"", 1_000_000, ledger.InDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			c := child{Task: "reserve and die", Path: path, Point: tt.at, Cap: 1_500_000}
			p := start(t, c)
			id := p.line()
			p.killed()
			s := open(t, path, Options{})
			var found []ledger.Entry
			for e, err := range s.Entries(t.Context(), ledger.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, e)
			}
			if tt.held == 0 {
				if len(found) != 0 {
					t.Fatalf("found %+v", found)
				}
			} else if len(found) != 1 || found[0].State != tt.state || !found[0].Recovered || id != "" && id != string(found[0].ID) {
				t.Fatalf("found %+v, want one that is %s", found, tt.state)
			}
			u, err := s.Use(t.Context(), c.limits(), time.Now())
			if err != nil || u[0].USD != tt.held {
				t.Errorf("Use: %+v, %v; want %v", u, err, tt.held)
			}
			// What may have been signed counts in full.
			e, _, err := s.Reserve(t.Context(), request(time.Now(), 2, c.limits()...))
			if err != nil || (e.State == ledger.Authorized) != (tt.held == 0) {
				t.Errorf("a further payment is %s, %v", e.State, err)
			}
			if r := verify(t, s); len(r.Problems) > 0 {
				t.Error(r.Problems)
			}
		})
	}
}

// TestOwnerDies: a payment of a process that was killed is in doubt to a process
// that had the ledger open all the time, when it next reserves.
func TestOwnerDies(t *testing.T) {
	path := newPath(t)
	s := open(t, path, Options{})
	p := start(t, child{Task: "reserve and die", Path: path, Cap: 1 << 40})
	id := payment.ID(p.line())
	p.killed()
	if e, err := s.Entry(t.Context(), id); err != nil || e.State != ledger.Authorized {
		t.Fatalf("before: %s, %v", e.State, err)
	}
	pay(t, s, request(time.Now(), 2))
	if e, err := s.Entry(t.Context(), id); err != nil || e.State != ledger.InDoubt || !e.Recovered {
		t.Fatalf("after: %s, %v", e.State, err)
	}
	// Its file is removed by whoever opens the ledger next.
	open(t, path, Options{})
	names, err := os.ReadDir(strings.TrimSuffix(path, "/canopy.db"))
	if err != nil {
		t.Fatal(err)
	}
	owners := 0
	for _, n := range names {
		if strings.Contains(n.Name(), ownerSuffix) {
			owners++
		}
	}
	if owners != 2 {
		t.Errorf("%d owner files, want those of two handles: %v", owners, names)
	}
}

// TestAttack94Processes: eight processes race one cap and pay exactly the cap.
func TestAttack94Processes(t *testing.T) {
	const procs, room = 8, 100
	path := newPath(t)
	s := open(t, path, Options{})
	c := child{Task: "race", Path: path, Payers: 4, Cap: room * payment.Dollar}
	var all []*process
	for range procs {
		p := start(t, c)
		if got := p.line(); got != "ready" {
			t.Fatal(got)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.tell()
	}
	total := 0
	for _, p := range all {
		n := 0
		if got := p.line(); got == "" {
			t.Fatal("a child ended")
		} else if _, err := fmt.Sscan(got, &n); err != nil {
			t.Fatal(got)
		}
		total += n
	}
	if total != room {
		t.Errorf("%d payments of a dollar under a cap of $%d", total, room)
	}
	u, err := s.Use(t.Context(), c.limits(), time.Now())
	if err != nil || u[0].USD != c.Cap || u[0].Count != room {
		t.Errorf("Use: %+v, %v", u, err)
	}
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// share runs processes of payers on one ledger and returns each one's count and
// the slowest payment of any.
func share(t testing.TB, path string, procs, payers int, d time.Duration) (counts []int, slowest time.Duration) {
	t.Helper()
	var all []*process
	for range procs {
		p := start(t, child{Task: "pay", Path: path, Payers: payers, For: d})
		if got := p.line(); got != "ready" {
			t.Fatal(got)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.tell()
	}
	for _, p := range all {
		var n int
		var slow time.Duration
		if got := p.line(); got == "" {
			t.Fatal("a child ended")
		} else if _, err := fmt.Sscan(got, &n, (*int64)(&slow)); err != nil {
			t.Fatal(got)
		}
		counts, slowest = append(counts, n), max(slowest, slow)
	}
	return counts, slowest
}

// TestFair: four processes of 16 payers share one ledger; none gets less than
// half of the mean.
func TestFair(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	path := newPath(t)
	s := open(t, path, Options{})
	counts, slowest := share(t, path, 4, 16, 3*time.Second)
	total := 0
	for _, n := range counts {
		total += n
	}
	t.Logf("%v, %d/s, slowest %v", counts, total/3, slowest)
	for _, n := range counts {
		if n*4*2 < total {
			t.Errorf("a process made %d of %d payments", n, total)
		}
	}
	if r := verify(t, s); len(r.Problems) > 0 || r.Payments != int64(total) {
		t.Errorf("%d payments, want %d; %v", r.Payments, total, r.Problems)
	}
}

// TestFault8Disk: an outcome that the disk does not take is told, ends new
// payments, and is in doubt after opening again.
func TestFault8Disk(t *testing.T) {
	path := newPath(t)
	p := start(t, child{Task: "disk", Path: path})
	id := payment.ID(p.line())
	if !id.Valid() {
		t.Fatal(id)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, Options{})
	if e, err := s.Entry(t.Context(), id); err != nil || e.State != ledger.InDoubt {
		t.Errorf("after opening again: %s, %v", e.State, err)
	}
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// BenchmarkProcesses is four processes of 16 payers on one ledger for a second
// a round.
func BenchmarkProcesses(b *testing.B) {
	for b.Loop() {
		path := newPath(b)
		open(b, path, Options{})
		counts, slowest := share(b, path, 4, 16, 3*time.Second)
		total, least := 0, counts[0]
		for _, n := range counts {
			total, least = total+n, min(least, n)
		}
		b.ReportMetric(float64(total)/3, "payments/s")
		b.ReportMetric(float64(least*4)/float64(total), "least/mean")
		b.ReportMetric(float64(slowest.Milliseconds()), "slowest-ms")
	}
}
