//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/e2e/commits"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// TestLosePower records what a process asks of the disk while it makes over 500 commits, cuts the power around
// every fsync, and opens what the disk may hold then: the ledger is whole, keeps its promises, and has every
// payment that was answered.
func TestLosePower(t *testing.T) {
	t.Parallel()
	p := losePower(t, "FULL")
	if len(p.problems) > 0 {
		t.Errorf("%d problems with %d disks, such as\n%s", len(p.problems), p.Disks, strings.Join(p.problems[:min(8, len(p.problems))], "\n"))
	}
	if p.Commits < 500 || p.Copies < 2 || p.Answers != 2*commits.Payments {
		t.Errorf("%+v: want 500 commits, and the log copied into the file on the way and at the end", p.figures)
	}
}

// TestLosePowerWithoutSync is TestLosePower with one word of the store changed, so that it does not sync its
// commits: the same disks have to show that payments get lost which were answered.
func TestLosePowerWithoutSync(t *testing.T) {
	t.Parallel()
	p := losePower(t, "NORMAL")
	if p.Lost == 0 || p.Answers != 2*commits.Payments {
		t.Errorf("%+v: want some lost", p.figures)
	}
}

// figures are what became of the disks.
type figures struct {
	Commits int // fsyncs of the log
	Copies  int // fsyncs of the file, after the log was copied into it
	Answers int // lines that the process wrote
	Cuts    int
	Disks   int
	Lost    int // disks on which something is missing that was answered
}

// power is a test under way.
type power struct {
	figures
	seed     uint64
	mu       sync.Mutex
	problems []string
}

// losePower runs the process with that value of synchronous, and judges the disks.
func losePower(t *testing.T, synchronous string) *power {
	base := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(base, 0o700); err != nil {
		t.Fatal(err)
	}
	calls := record(t, buildCommits(t, synchronous), ledgerOf(base), stateOf(base))
	p := &power{seed: seedOf(t)}
	start := time.Now()
	p.cut(t, calls, base)
	t.Logf("synchronous %s, E2E_SEED=%d: %+v, %v", synchronous, p.seed, p.figures, time.Since(start).Round(time.Millisecond))
	return p
}

func ledgerOf(base string) string { return filepath.Join(base, "ledger", "canopy.db") }
func stateOf(base string) string  { return filepath.Join(base, "state") }

// buildCommits builds the process. A value of synchronous that the store refuses is put into its source.
func buildCommits(t *testing.T, synchronous string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "-tags", "e2e", "-o", filepath.Join(dir, "run")}
	if synchronous != "FULL" {
		file, err := filepath.Abs("../ledger/sqlite/open.go")
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for from, to := range map[string]string{
			`synchronous = "FULL"`:       fmt.Sprintf("synchronous = %q", synchronous),
			`err != nil || level != 2 {`: `err != nil {`,
		} {
			if n := bytes.Count(source, []byte(from)); n != 1 {
				t.Fatalf("%s has %q %d times, and should once", file, from, n)
			}
			source = bytes.ReplaceAll(source, []byte(from), []byte(to))
		}
		changed, overlay := filepath.Join(dir, "open.go"), filepath.Join(dir, "overlay.json")
		replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
		if err = first(err, os.WriteFile(changed, source, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.Command("go", append(args, "./commits/run")...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "run")
}

// told is what the process had been answered.
type told map[payment.ID]ledger.State // Authorized or Claimed

// cut cuts the power just before each fsync ends, when most was answered for what is durable, and at the end.
func (p *power) cut(t *testing.T, calls []traced, base string) {
	disk, r := newDisk(base), rand.New(rand.NewPCG(p.seed, 0))
	answers, lefts := told{}, t.TempDir()
	var judges sync.WaitGroup
	slots := make(chan struct{}, 3)
	defer judges.Wait()
	left := func(what string, pick func(int, *change) (bool, func(int) bool)) {
		p.Disks++
		dir := filepath.Join(lefts, fmt.Sprint(p.Disks))
		if err := disk.left(dir, pick); err != nil {
			t.Fatal(err)
		}
		known, name := make(told, len(answers)), fmt.Sprintf("cut %d, %s of %d changes", p.Cuts, what, len(disk.changes))
		for id, s := range answers {
			known[id] = s
		}
		slots <- struct{}{}
		judges.Go(func() {
			defer func() { <-slots }()
			p.judge(name, dir, known)
			os.RemoveAll(dir)
		})
	}
	power := func(many int) {
		p.Cuts++
		left("none", none)
		for i := range min(many, len(disk.changes)) {
			if (p.Cuts+i)%2 == 0 {
				left("some", disk.some(r))
				continue
			}
			k := r.IntN(len(disk.changes)) + 1
			left(fmt.Sprint("first ", k), prefix(k))
		}
	}
	for _, c := range calls {
		if id, state, ok := answer(t, c); ok {
			answers[id] = state
			p.Answers++
			continue
		}
		if c.name == "fsync" || c.name == "fdatasync" {
			path, err := c.path(c.args[0])
			if err != nil {
				t.Fatal(err)
			}
			if disk.under(path) {
				switch {
				case strings.HasSuffix(path, "-wal"):
					p.Commits++
					power(1)
				case path == ledgerOf(base):
					p.Copies++
					power(40)
				default:
					power(10)
				}
			}
		}
		if err := disk.take(c); err != nil {
			t.Fatal(err)
		}
	}
	power(40)
}

// answer reads a line that the process wrote.
func answer(t *testing.T, c traced) (id payment.ID, state ledger.State, ok bool) {
	t.Helper()
	if c.name != "write" || !strings.HasPrefix(c.args[0], "1<") {
		return "", 0, false
	}
	line, err := c.text(c.args[1])
	word, rest, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
	id, state = payment.ID(rest), map[string]ledger.State{"reserved": ledger.Authorized, "claimed": ledger.Claimed}[word]
	if err != nil || !ok || !id.Valid() || state == 0 {
		t.Fatalf("the process wrote %q, %v", line, err)
	}
	return id, state, true
}

// judge opens what is left of a ledger as the next process does.
func (p *power) judge(name, dir string, answers told) {
	problem := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, name+": "+fmt.Sprintf(format, args...))
	}
	ctx := context.Background()
	s, err := sqlite.Open(ledgerOf(dir), sqlite.Options{StateDir: stateOf(dir), Account: commits.Account})
	if err != nil {
		problem("it does not open: %v", err)
		return
	}
	defer func() {
		if err := s.Close(); err != nil {
			problem("closing: %v", err)
		}
	}()
	lost, counted := []string(nil), payment.USD(0)
	left := told{}
	for e, err := range s.Entries(ctx, ledger.Query{}) {
		if err != nil {
			problem("reading: %v", err)
			return
		}
		left[e.ID] = e.State
		counted += e.Cost
	}
	for id, state := range answers {
		switch got := left[id]; {
		case state == ledger.Claimed && got != ledger.Claimed,
			state == ledger.Authorized && got != ledger.InDoubt && got != ledger.Claimed: // what it was told of, or came to afterwards
			lost = append(lost, fmt.Sprintf("%s is %v and was answered as %v", id, got, state))
		}
	}
	if len(lost) > 0 {
		p.mu.Lock()
		p.Lost++
		p.mu.Unlock()
		problem("%d of %d payments, such as %s", len(lost), len(answers), lost[0])
	}
	report, err := s.Verify(ctx)
	if err != nil || len(report.Problems) > 0 {
		problem("verify: %v, %q", err, report.Problems)
	}
	report, err = check.Run(ctx, s, check.Options{NoEvents: true})
	if err != nil || len(report.Problems) > 0 {
		problem("check: %v, %q", err, report.Problems)
	}
	use, err := s.Use(ctx, []policy.Limit{commits.Limit}, time.Now())
	if err != nil || use[0].USD != counted {
		problem("%v of %v are counted, %v", use, counted, err)
	}
	// The next payment is made as if nothing had happened.
	e, _, err := s.Reserve(ctx, commits.Request(commits.Payments+1))
	if err != nil || e.State != ledger.Authorized {
		problem("the next payment is %v, %v", e.State, err)
	}
}
