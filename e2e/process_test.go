//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
)

// childEnv names what a child of the tests has to do: errand as JSON.
const childEnv = "CANOPY_E2E_CHILD"

// errand is the work of a process of its own: this test binary, started again.
type errand struct {
	setup
	URL     string
	Callers int // at once; each buys until it is denied
	From    int // the key of the first purchase, where each has one and there is no end; 0 for none
}

// message is one line that a child writes.
type message struct {
	Ready bool
	Begun int    `json:",omitempty"` // a key
	Done  int    `json:",omitempty"` // a key, or a purchase without one
	Error string `json:",omitempty"` // of Done
	End   string `json:",omitempty"` // why a caller stopped
}

// child is the main function of a child. It starts when it reads a line, and ends when standard input does.
func child() int {
	var e errand
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &e); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 2
	}
	c, store, err := e.open()
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 2
	}
	defer store.Close()
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(w message) { mu.Lock(); defer mu.Unlock(); out.Encode(w) }
	say(message{Ready: true})
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, in); cancel() }()
	var callers sync.WaitGroup
	for range max(e.Callers, 1) {
		callers.Go(func() { say(message{End: e.buy(ctx, c, say)}) })
	}
	callers.Wait()
	return 0
}

// buy makes purchases one after another, and returns why it stopped.
func (e errand) buy(ctx context.Context, c *canopy.Client, say func(message)) string {
	for i := e.From; ; i++ {
		var opts []canopy.Option
		url := e.URL
		if e.From > 0 {
			say(message{Begun: i})
			opts = append(opts, canopy.WithKey(fmt.Sprint("key-", i)))
			url += fmt.Sprint("?", i) // an equal call would be answered by the one that was not delivered
		}
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return err.Error()
		}
		resp, err := c.Fetch(ctx, req, opts...)
		done := message{Done: i}
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if r, _ := canopy.PaymentOf(resp); err == nil && (resp.StatusCode != http.StatusOK || r.State != ledger.Claimed) {
				err = fmt.Errorf("%s, %v", resp.Status, r.State)
			}
		}
		var made *canopy.PaidError
		var doubt *canopy.InDoubtError
		known := errors.As(err, &made) || errors.As(err, &doubt) // of the key, whose process was killed
		if err != nil && (e.From == 0 || !known) {
			return err.Error()
		}
		if err != nil {
			done.Error = err.Error()
		}
		if e.From == 0 {
			done.Done = 1
		}
		say(done)
	}
}

// worker is a running child.
type worker struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	words *json.Decoder
	err   *tail
}

// start starts a child that waits for go. It does not outlive the test.
func (e errand) start(t testing.TB) *worker {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd: exec.Command(os.Args[0]), err: &tail{}}
	w.cmd.Env = append(os.Environ(), childEnv+"="+string(b))
	w.cmd.Stderr = w.err
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.cmd.Process.Kill() })
	w.words = json.NewDecoder(out)
	var first message
	if err := w.words.Decode(&first); err != nil || !first.Ready {
		w.cmd.Wait()
		t.Fatalf("a child did not become ready: %v\n%s", err, w.err)
	}
	return w
}

// begin lets the child begin.
func (w *worker) begin(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(w.stdin, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// TestPayFromManyProcesses lets 2, 8 and 32 processes, of three callers each, race one cap on one ledger: they
// pay what fits into the cap, and not once more.
func TestPayFromManyProcesses(t *testing.T) {
	const callers, purchases, units = 3, 50, 10_000
	const doc = `
[policy.default]
max_payment = "$1"
caps        = ["$0.505 / 24h"]
allow       = ["host:127.0.0.1"]
`
	race := func(t *testing.T, s *Seller, processes int) {
		b := newBuyer(t, shared.Chain, doc, 10_000_000)
		workers := make([]*worker, processes)
		for i := range workers {
			workers[i] = errand{setup: b.setup, URL: s.URL + "/cent", Callers: callers}.start(t)
		}
		var total, active int
		b.chain.Moves(t, s.PayTo, purchases*units, func() {
			for _, w := range workers {
				w.begin(t)
			}
			for i, w := range workers {
				bought, ended := 0, 0
				for {
					var said message
					if err := w.words.Decode(&said); err == io.EOF {
						break
					} else if err != nil {
						t.Fatal(err)
					}
					bought += said.Done
					if said.End == "" {
						continue
					}
					ended++
					if !strings.HasPrefix(said.End, "canopy: payment denied: Spend cap exceeded: $0.50 + $0.01 > $0.505 / 24h") {
						t.Errorf("a caller stopped for %q", said.End)
					}
				}
				if err := w.cmd.Wait(); err != nil || ended != callers {
					t.Errorf("process %d: %v, %d callers ended\n%s", i, err, ended, w.err)
				}
				if total += bought; bought > 0 {
					active++
				}
			}
		})
		if total != purchases || b.chain.AuthorizationsUsed(t, b.payer) != purchases {
			t.Errorf("%d purchases and %d authorizations used, want %d", total, b.chain.AuthorizationsUsed(t, b.payer), purchases)
		}
		if active < 2 {
			t.Errorf("%d of %d processes bought: no race", active, processes)
		}
		b.spent(t, purchases*units)
		t.Logf("%d of %d processes bought", active, processes)
	}
	ownSellers(t, func(t *testing.T, s *Seller) {
		for _, processes := range []int{2, 8, 32} {
			t.Run(fmt.Sprint(processes), func(t *testing.T) { race(t, s, processes) })
		}
	})
}

// TestPayAndDie kills a process that pays, over and over, at any point of a payment. The next one goes on
// with the key that it was at: no key is paid for twice, and nothing moves that the ledger does not know.
func TestPayAndDie(t *testing.T) {
	const kills, units = 15, 10_000
	ownSellers(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 10_000_000)
		before := b.chain.BalanceOf(t, s.PayTo)
		key, done, again := 1, 0, map[string]int{}
		for i := range kills {
			w := errand{setup: b.setup, URL: s.URL + "/cent", From: key}.start(t)
			w.begin(t)
			killer, stale := (*time.Timer)(nil), key
			for {
				var said message
				if w.words.Decode(&said) != nil {
					break // killed
				}
				if said.End != "" {
					t.Errorf("the child stopped by itself: %s", said.End)
				}
				if key = max(key, said.Begun); said.Done > 0 {
					done++
				}
				if said.Error != "" {
					again[map[bool]string{true: "paid", false: "in doubt"}[strings.Contains(said.Error, "was made")]]++
				}
				// Most die over a purchase of their own, some over the one that was left to them.
				if killer == nil && (key > stale || i%3 == 0) {
					killer = time.AfterFunc(time.Duration(rand.IntN(120_000))*time.Microsecond, func() { w.cmd.Process.Kill() })
				}
			}
			w.cmd.Wait()
		}
		b.chain.settled(t, b.payer)
		moved := b.chain.BalanceOf(t, s.PayTo) - before
		used := b.chain.AuthorizationsUsed(t, b.payer)
		b.spent(t, moved)
		if moved != uint64(used)*units || used > key || done == 0 {
			t.Errorf("%d moved by %d authorizations for %d keys, %d outcomes", moved, used, key, done)
		}
		// What was in flight when its process died is in doubt for the next one that opens the ledger, and held.
		c, store, err := b.setup.open()
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		for _, e := range entries(t, store) {
			if e.State == ledger.Authorized {
				t.Errorf("payment %s of a dead process is still authorized", e.ID)
			}
			if e.Key == fmt.Sprint("key-", key) {
				askAgain(t, c, fmt.Sprintf("%s/cent?%d", s.URL, key), e.Key, e.ID)
			}
		}
		b.spent(t, moved)
		t.Logf("%d keys, %d authorizations used, %d outcomes; after a kill: %v", key, used, done, again)
	})
}
