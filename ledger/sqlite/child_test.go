//go:build linux || darwin

package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// child is a task for the test binary run again as another process.
type child struct {
	Task   string
	Path   string
	Payers int
	Point  point
	For    time.Duration
	Cap    payment.USD
	Budget payment.BudgetID
}

const childEnv = "CANOPY_TEST_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(childEnv); task != "" {
		var c child
		if err := json.Unmarshal([]byte(task), &c); err != nil {
			panic(err)
		}
		if err := c.run(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is a running child: it says ready, waits for a line, and answers
// with lines.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t testing.TB, c child) *process {
	t.Helper()
	task, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(task))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, if all went well
		_ = cmd.Wait()
	})
	return &process{t, cmd, in, bufio.NewReader(out)}
}

// line is the next line of the child, or empty where it ended.
func (p *process) line() string {
	s, err := p.out.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

func (p *process) tell() { fmt.Fprintln(p.in, "go") }

// killed demands that the child ended by SIGKILL.
func (p *process) killed() {
	p.t.Helper()
	err := p.cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.t.Fatalf("the child ended with %v, want SIGKILL", err)
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func wait() {
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

func (c child) limits() []policy.Limit {
	return []policy.Limit{{Scope: org, Window: day, USD: c.Cap, Text: "cap"}}
}

func (c child) run() error {
	var o Options
	armed := false
	if c.Point != "" {
		o.point = func(p point) error {
			if armed && p == c.Point {
				die()
			}
			return nil
		}
	}
	s, err := Open(c.Path, o)
	if err != nil {
		return err
	}
	switch c.Task {
	case "reserve and die":
		armed = true
		e, _, err := s.Reserve(context.Background(), request(time.Now(), 1, c.limits()...))
		if err != nil {
			return err
		}
		fmt.Println(e.ID) // "signed"
		die()
	case "lane and die":
		armed = true
		_, _, err := s.Reserve(context.Background(), onLane(time.Now(), 2, 1))
		return errors.Join(errors.New("it lives"), err)
	case "carry and die":
		return c.carryAndDie(s, &armed)
	case "gas":
		return c.gas(s)
	case "lanes":
		return c.lanes(s)
	case "race":
		return c.race(s)
	case "pay":
		return c.pay(s)
	case "aside and die":
		return c.asideAndDie(s)
	case "divide":
		return c.divide(s)
	case "disk":
		return c.disk(s)
	}
	return s.Close()
}

// race reserves until the cap is full.
func (c child) race(s *Store) error {
	wait()
	var won, n atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, c.Payers)
	for range c.Payers {
		wg.Go(func() {
			for {
				e, _, err := s.Reserve(context.Background(), request(time.Now(), uint64(os.Getpid())<<32|uint64(n.Add(1)), c.limits()...))
				if err != nil {
					errs <- err
					return
				}
				if e.State != ledger.Authorized {
					return
				}
				won.Add(1)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	fmt.Println(won.Load())
	wait() // its payments stay its own until everybody is done
	return s.Close()
}

// lanes has its payers make five payments each on lanes of a pool of four.
func (c child) lanes(s *Store) error {
	wait()
	ctx := context.Background()
	var n atomic.Uint64
	one := func() error {
		for range 5 {
			var e ledger.Entry
			for e.State != ledger.Authorized {
				var err error
				if e, _, err = s.Reserve(ctx, onLane(time.Now(), uint64(os.Getpid())<<32|n.Add(1), 4)); err != nil {
					return err
				}
				if e.State == ledger.Denied && e.Reasons[0].Code != ledger.CodeNoFreeLane {
					return fmt.Errorf("the payment is denied: %v", e.Reasons)
				}
			}
			for _, st := range []ledger.State{ledger.InDoubt, ledger.Settled} {
				var err error
				if e, err = s.Advance(ctx, ledger.Change{ID: e.ID, Version: e.Version, To: st, By: actor(st), Now: time.Now()}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	errs := make(chan error, c.Payers)
	for range c.Payers {
		go func() { errs <- one() }()
	}
	var err error
	for range c.Payers {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	fmt.Println("done")
	return s.Close()
}

// pay pays for a while and tells how often.
func (c child) pay(s *Store) error {
	wait()
	var n atomic.Int64
	var wg sync.WaitGroup
	var slowest atomic.Int64
	errs := make(chan error, c.Payers)
	end := time.Now().Add(c.For)
	for range c.Payers {
		wg.Go(func() {
			for time.Now().Before(end) {
				begin := time.Now()
				e, _, err := s.Reserve(context.Background(), request(begin, uint64(os.Getpid())<<32|uint64(n.Add(1)), plain...))
				if err == nil && e.State != ledger.Authorized {
					err = fmt.Errorf("the payment is %s: %v", e.State, e.Reasons)
				}
				if err != nil {
					errs <- err
					return
				}
				if d := int64(time.Since(begin)); d > slowest.Load() {
					slowest.Store(d)
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	fmt.Println(n.Load(), slowest.Load())
	return s.Close()
}

// disk plays a disk that takes no more: files may not grow past where they are.
func (c child) disk(s *Store) error {
	ctx := context.Background()
	e, _, err := s.Reserve(ctx, request(time.Now(), 1))
	if err != nil {
		return err
	}
	st, err := os.Stat(c.Path + "-wal")
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	limit := was
	limit.Cur = uint64(st.Size())
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	_, err = s.Advance(ctx, claimed(e))
	if _, ok := errors.AsType[*WriteError](err); !ok {
		return fmt.Errorf("Advance on a full disk: %v", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if _, _, err := s.Reserve(ctx, request(time.Now(), 2)); !errors.Is(err, ledger.ErrReadOnly) {
		return fmt.Errorf("Reserve after a lost outcome: %v", err)
	}
	fmt.Println(e.ID)
	return s.Close()
}
