//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Peers are a chain and the two sellers on it.
type Peers struct {
	Chain *Chain
	V2    *Seller // @x402/express
	V1    *Seller // x402-express

	stop []func()
}

// shared are the peers of every test that does not move the chain's clock or hold its blocks. TestMain
// starts them, unless this process is a child of the tests.
var shared *Peers

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	var err error
	if shared, err = startPeers(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	stopMPP()
	shared.Stop()
	if binaryDir != "" {
		os.RemoveAll(binaryDir)
	}
	os.Exit(code)
}

// NewPeers starts peers of the test's own, about two seconds' work, for tests that move time or hold
// blocks. They end with the test.
func NewPeers(t testing.TB) *Peers {
	t.Helper()
	p, err := startPeers()
	if err != nil {
		t.Fatalf("starting peers: %v", err)
	}
	t.Cleanup(p.Stop)
	return p
}

func startPeers() (*Peers, error) {
	p := &Peers{}
	if err := p.start(); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Peers) start() error {
	c, err := startChain()
	if err != nil {
		return err
	}
	p.Chain = c
	p.stop = append(p.stop, c.process.stop)

	type started struct {
		seller *Seller
		err    error
	}
	v1 := make(chan started, 1)
	go func() {
		s, err := startSeller(c, 1)
		v1 <- started{s, err}
	}()
	v2, err2 := startSeller(c, 2)
	first := <-v1
	for _, s := range []*Seller{v2, first.seller} {
		if s != nil {
			p.stop = append(p.stop, s.process.stop)
		}
	}
	p.V1, p.V2 = first.seller, v2
	return errors.Join(first.err, err2)
}

// Stop ends the sellers, then the chain, and nothing else. It may be called again.
func (p *Peers) Stop() {
	for len(p.stop) > 0 {
		last := len(p.stop) - 1
		p.stop[last]()
		p.stop = p.stop[:last]
	}
}

// Seller returns the seller of that x402 version, 1 or 2.
func (p *Peers) Seller(version int) *Seller {
	if version == 1 {
		return p.V1
	}
	return p.V2
}

// process is a Node.js peer. It ends when its standard input is closed, so it cannot outlive the tests.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	once  sync.Once
}

// readyLine is what a peer prints when it can be used. Each peer fills its own part.
type readyLine struct {
	Ready       bool
	URL         string
	ChainID     uint64
	Token       common.Address
	Faucet      common.Address
	PayTo       common.Address
	Facilitator common.Address
}

const readyWithin = time.Minute

// startProcess runs a file of peers/ and waits for its ready line. The peer's complaints go to standard
// error when E2E_VERBOSE is set, or when it does not become ready.
func startProcess(env []string, file string, args ...string) (*process, readyLine, error) {
	var none readyLine
	if _, err := os.Stat(filepath.Join("peers", "node_modules")); err != nil {
		return nil, none, errors.New("the peers are not installed: run e2e/run.sh")
	}
	cmd := exec.Command("node", append([]string{file}, args...)...)
	cmd.Dir = "peers"
	cmd.Env = append(os.Environ(), env...)
	complaints := &tail{}
	cmd.Stderr = complaints
	if os.Getenv("E2E_VERBOSE") != "" {
		cmd.Stderr = os.Stderr
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, none, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, none, err
	}
	if err := cmd.Start(); err != nil {
		return nil, none, err
	}
	cmd.WaitDelay = 5 * time.Second
	p := &process{cmd: cmd, stdin: stdin}
	late := time.AfterFunc(readyWithin, p.stop)
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadBytes('\n')
	var ready readyLine
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if !late.Stop() || err != nil || !ready.Ready {
		p.stop()
		return nil, none, fmt.Errorf("%s did not become ready: %v\n%s", file, err, complaints)
	}
	go io.Copy(io.Discard, lines) // ends with the process
	return p, ready, nil
}

// stop closes the peer's standard input and, if that does not end it in ten seconds, kills it.
func (p *process) stop() {
	p.once.Do(func() {
		p.stdin.Close()
		hard := time.AfterFunc(10*time.Second, func() { p.cmd.Process.Kill() })
		defer hard.Stop()
		p.cmd.Wait()
	})
}

// tail keeps the last 16 KiB written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if over := len(w.buf) - 16<<10; over > 0 {
		w.buf = append([]byte(nil), w.buf[over:]...)
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.buf)
}
