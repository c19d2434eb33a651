//go:build linux || darwin

package canopy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

const freezeEnv = "CANOPY_TEST_FREEZE"

// traffic is what one process did: the instants of its signatures and of the
// payments that it sent, in nanoseconds of the wall clock that all of them share.
type traffic struct {
	Signed, Sent []int64
	Paid, Denied int
	Failed       []string
}

// One freeze stops every process on the ledger before its next signature and its
// next send: four processes pay as fast as they can through one ledger, and are
// frozen ten times. What it logs is how long after its commit the last of them
// signed and sent.
func TestFreezeStopsEveryProcess(t *testing.T) {
	if path := os.Getenv(freezeEnv); path != "" {
		json.NewEncoder(os.Stdout).Encode(payUntilTold(t, path))
		os.Exit(0)
	}
	const processes, rounds = 4, 10
	path := filepath.Join(t.TempDir(), "canopy.db")
	store, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	defer store.Close()
	type process struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *json.Decoder
	}
	var all []process
	for range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFreezeStopsEveryProcess$")
		cmd.Env = append(os.Environ(), freezeEnv+"="+path)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		p := process{cmd, in, json.NewDecoder(out)}
		var ready string
		must(t, p.out.Decode(&ready))
		all = append(all, p)
	}
	type span struct{ from, to int64 } // frozen
	var frozen []span
	for range rounds {
		time.Sleep(200 * time.Millisecond)
		must(t, store.Freeze(t.Context(), "", "tester", "a look"))
		from := time.Now().UnixNano()
		time.Sleep(200 * time.Millisecond)
		frozen = append(frozen, span{from, time.Now().UnixNano()})
		must(t, store.Unfreeze(t.Context(), "", "tester", "looked"))
	}
	time.Sleep(200 * time.Millisecond)
	var signed, sent time.Duration // after a freeze was committed, at the latest
	var signatures, late int
	for i, p := range all {
		p.in.Close()
		var got traffic
		must(t, p.out.Decode(&got))
		if got.Paid < rounds || got.Denied < rounds || len(got.Failed) > 0 {
			t.Errorf("process %d paid %d times, was denied %d times, and failed with %q", i, got.Paid, got.Denied, got.Failed)
		}
		signatures += len(got.Signed)
		after := func(instants []int64) (worst time.Duration) {
			for _, at := range instants {
				for _, s := range frozen {
					if at > s.from && at < s.to {
						worst = max(worst, time.Duration(at-s.from))
						late++
					}
				}
			}
			return worst
		}
		signed, sent = max(signed, after(got.Signed)), max(sent, after(got.Sent))
	}
	t.Logf("%d signatures by %d processes, %d freezes: the last signature came %v and the last send %v after Freeze returned (%d of either)",
		signatures, processes, rounds, signed, sent, late)
	// Whoever had read that it may go on does so: a moment, and no longer than
	// the machine lets a process stand still.
	if limit := 100 * time.Millisecond; signed > limit || sent > limit {
		t.Errorf("signed %v and sent %v after the freeze, want at most %v", signed, sent, limit)
	}
}

// payUntilTold pays a seller of its own through the ledger at path until standard
// input ends.
func payUntilTold(t *testing.T, path string) (out traffic) {
	var mu sync.Mutex
	note := func(list *[]int64) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, time.Now().UnixNano())
	}
	store, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	defer store.Close()
	rules, err := policy.Parse("freeze", []byte(capped("$100000 / 24h")))
	must(t, err)
	key, err := signer.FromHex(testKey)
	must(t, err)
	spy := canopytest.NewSpySigner(key)
	spy.Before(func(context.Context, canopytest.Signed) { note(&out.Signed) })
	rail, err := x402.New(x402.Config{})
	must(t, err)
	chain := canopytest.NewChain(canopytest.ChainConfig{ID: payment.Base})
	chain.Fund(key.Address(), 100_000*payment.Dollar)
	seller := httptest.NewServer(canopytest.NewSeller(chain, canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent}}}))
	defer seller.Close()
	client, err := canopy.New(canopy.Config{
		Treasury: canopy.Treasury{Signer: spy}, Policy: rules, Store: store, Rails: []canopy.Rail{rail},
		Transport: transportFunc(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("PAYMENT-SIGNATURE") != "" {
				note(&out.Sent)
			}
			return http.DefaultTransport.RoundTrip(req)
		}),
	})
	must(t, err)
	json.NewEncoder(os.Stdout).Encode("ready")
	done := make(chan struct{})
	go func() { io.Copy(io.Discard, os.Stdin); close(done) }()
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/%d/%d/%d", seller.URL, os.Getpid(), p, i), nil)
				must(t, err)
				resp, err := client.Fetch(context.Background(), req)
				if err == nil {
					resp.Body.Close()
				}
				mu.Lock()
				switch denied, doubt := (*canopy.DeniedError)(nil), (*canopy.InDoubtError)(nil); {
				case err == nil:
					out.Paid++
				case errors.As(err, &denied) && denied.Result.Code == ledger.CodeFrozen, errors.As(err, &doubt):
					out.Denied++
				default:
					out.Failed = append(out.Failed, err.Error())
				}
				mu.Unlock()
				if err != nil {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	return out
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
