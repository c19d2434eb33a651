package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// sick is a node that is well while bend is nil.
type sick struct {
	node http.Handler
	bend atomic.Pointer[func(http.ResponseWriter, *http.Request)]
}

func (s *sick) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := s.bend.Load(); f != nil {
		(*f)(w, r)
		return
	}
	s.node.ServeHTTP(w, r)
}

// nodes has a client read the world's chain from two nodes over HTTP, the first
// of which can be sick.
func nodes(w *world, c *canopy.Config, n int) *sick {
	w.t.Helper()
	s := &sick{node: canopytest.NewNode(w.chain)}
	urls := []string{w.net.Serve(w.t, "10.0.0.1:8545", s), w.net.Serve(w.t, "10.0.0.2:8545", canopytest.NewNode(w.chain))}[:n]
	rt := w.net.Transport()
	w.t.Cleanup(rt.CloseIdleConnections)
	ch, err := chain.New(chain.Config{ID: payment.Base, URLs: urls, Transport: rt})
	must(w.t, err)
	c.Treasury.Chains = []canopy.Chain{ch}
	return s
}

// A node that stalls, answers HTML or half of an answer, or is of another chain:
// a clear problem, nothing signed by its word, no hold lost, and all goes on when
// it is well again. With a second node and alone. (One that lies is F18, and
// chain.TestLiars.)
func TestBadInput_Node(t *testing.T) {
	page := func(status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			io.WriteString(w, "<!doctype html><title>Please log in</title><script>alert(1)</script>")
		}
	}
	for name, tt := range map[string]struct {
		bend func(http.ResponseWriter, *http.Request)
		says string
	}{
		"stalls": {func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "no node answered"},
		"HTML":          {page(200), "not an answer"},
		"HTML with 503": {page(503), "503"},
		"half":          {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `[{"jsonrpc":"2.0","id":1,"resu`) }, "not an answer"},
		"another chain": {func(w http.ResponseWriter, r *http.Request) {
			canopytest.NewNode(canopytest.NewChain(canopytest.ChainConfig{ID: payment.BaseSepolia})).ServeHTTP(w, r)
		}, ""}, // its id was asked for before
	} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprint(name, ", nodes ", n), func(t *testing.T) {
				play(t, setup{policy: capped("$0.25 / 24h"), config: func(w *world, c *canopy.Config) { w.node = nodes(w, c, n) }}, func(t *testing.T, w *world) {
					_, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()), canopytest.Nth(2, canopytest.DropBeforeSettling()))
					moved, unused := w.doubt(url+"1"), w.doubt(url+"2")
					w.clock.Advance(2 * time.Minute)
					w.chain.Finalize()
					w.node.bend.Store(&tt.bend)
					w.refused("a round with a sick node", func() {
						for range 2 {
							r, err := w.client.Reconcile(context.Background())
							must(t, err)
							text := fmt.Sprint(errors.Join(r.Problems...))
							if len(r.Problems) == 0 || !strings.Contains(text, tt.says) || strings.ContainsAny(text, "<>") || len(text) > 1000 {
								t.Errorf("the problem is %q", text)
							}
						}
					})
					w.state(unused, ledger.InDoubt)
					w.state(moved, ledger.InDoubt)
					w.frozen(false)
					w.refused("the cap is full all the same", func() { w.denied(w.get(url+"3"), "cap_exceeded") })
					w.counted(2 * dime)

					w.node.bend.Store(nil)
					w.clock.Advance(time.Minute)
					time.Sleep(time.Minute) // a node that was down is left alone for a while
					w.step("it is well", func() { w.reconcile() })
					w.state(moved, ledger.Settled)
					w.state(unused, ledger.ExpiredUnused)
					w.counted(dime)
					w.over()
				})
			})
		}
	}
}
