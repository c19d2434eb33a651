package canopy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// What a node tells wrongly, or anybody puts on the chain, over JSON-RPC and
// without.

// dated is a node that gives every block that is asked for by its number one
// time.
type dated struct {
	node http.Handler
	time string
}

func (d dated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var calls []struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(body, &calls)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	told := httptest.NewRecorder()
	d.node.ServeHTTP(told, r)
	var answers []map[string]any
	if err == nil {
		err = json.Unmarshal(told.Body.Bytes(), &answers)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, c := range calls {
		if c.Method != "eth_getBlockByNumber" || !bytes.HasPrefix(c.Params[0], []byte(`"0x`)) {
			continue
		}
		for _, a := range answers {
			if block, ok := a["result"].(map[string]any); ok && fmt.Sprint(a["id"]) == string(c.ID) {
				block["timestamp"] = d.time
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answers)
}

// wired puts nodes onto the network, and returns what gives the client a chain
// that begins to ask them, as in a process of its own.
func (w *world) wired(nodes ...http.Handler) (begin func()) {
	w.t.Helper()
	var urls []string
	for i, n := range nodes {
		urls = append(urls, w.net.Serve(w.t, fmt.Sprintf("10.0.0.%d:8545", i+1), n))
	}
	rt := w.net.Transport()
	w.t.Cleanup(rt.CloseIdleConnections)
	return func() {
		w.t.Helper()
		ch, err := chain.New(chain.Config{ID: w.chain.ID(), URLs: urls, Transport: rt, Clock: clock.Func(w.clock.Now)})
		must(w.t, err)
		w.changed(func(c *canopy.Config) { c.Treasury.Chains = []canopy.Chain{ch} })
	}
}

// playRead plays f on both ledgers, with a chain that two nodes tell: directly,
// and over JSON-RPC.
func playRead(t *testing.T, s setup, f func(*testing.T, *world)) {
	t.Helper()
	t.Run("directly", func(t *testing.T) {
		play(t, s, func(t *testing.T, w *world) {
			w.chain.SetNodes(2, canopytest.NoLie)
			f(t, w)
		})
	})
	t.Run("over JSON-RPC", func(t *testing.T) {
		play(t, s, func(t *testing.T, w *world) {
			w.wired(canopytest.NewNode(w.chain), canopytest.NewNode(w.chain))()
			f(t, w)
		})
	})
}

// F18: one of two nodes has blocks be older or newer than they are. The search
// for the use of an expiring nonce begins early enough all the same: what moved
// is settled, and not released.
func TestF18_LiarAboutBlockTimes(t *testing.T) {
	for name, stamp := range map[string]string{"of 1970": "0x1", "of 2100": "0xf4865700"} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{policy: capped("$0.20 / 24h")}), func(t *testing.T, w *world) {
				const past = 1500 // blocks of four seconds: more than the hour of the second look
				for range past {
					w.clock.Advance(4 * time.Second)
					w.chain.Mine()
				}
				begin := w.wired(canopytest.NewNode(w.chain), dated{canopytest.NewNode(w.chain), stamp})
				begin()
				w.chain.Finalize()
				w.reconcile()
				_, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, canopytest.First(canopytest.DropAfterSettling()), canopytest.From(2, canopytest.DropBeforeSettling()))
				moved, unused := w.doubt(url), w.doubt(url+"2")
				for range 40 {
					w.clock.Advance(2 * time.Second)
					w.chain.Mine()
				}
				w.chain.Finalize()
				for range 3 {
					begin()
					w.step("a round", func() { w.reconcile() })
				}
				w.state(moved, ledger.Settled)
				w.state(unused, ledger.ExpiredUnused)
				w.counted(dime)
				w.moved(dime)
				w.frozen(false)
			})
		})
	}
}

// turning is a chain of which one and the other look for a block in turn, and
// the one that begins always gives the last.
type turning struct {
	*canopytest.Chain
	turn int
}

func (c *turning) BlockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	if c.turn++; c.turn%2 == 1 {
		return at.Number, nil
	}
	return c.Chain.BlockAt(ctx, t, at)
}

// A look further back that begins later than the one before takes nothing away
// from what that found.
func TestLaterLookTakesNothingAway(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$0.20 / 24h")}), func(t *testing.T, w *world) {
		w.chain.SetNodes(2, canopytest.NoLie)
		w.clock.Advance(3 * time.Hour)
		c := &turning{Chain: w.chain}
		w.changed(func(cfg *canopy.Config) { cfg.Treasury.Chains = []canopy.Chain{c} })
		w.chain.Finalize()
		w.reconcile()
		_, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, canopytest.First(canopytest.DropAfterSettling()), canopytest.From(2, canopytest.DropBeforeSettling()))
		moved, unused := w.doubt(url), w.doubt(url+"2")
		w.clock.Advance(time.Minute)
		w.chain.Finalize()
		c.turn = 0
		w.reconcile()
		w.state(moved, ledger.Settled)
		w.state(unused, ledger.ExpiredUnused)
		w.counted(dime)
	})
}

// Where the expiring nonce is a lane like any other, as on networks before T1, a
// sponsored payment is found by its memo all the same.
func TestSponsoredBeforeT1(t *testing.T) {
	before := onTempo(setup{policy: capped("$0.20 / 24h"), config: func(w *world, c *canopy.Config) {
		w.chain = canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: w.clock, TempoRules: canopytest.TempoRules{T0: true}})
		w.chain.Fund(w.spy.Address(), 100*payment.Dollar)
		c.Rails = []canopy.Rail{w.mpp(mpp.Config{})}
		watching(w, c)
	}})
	for name, lost := range map[string]bool{"answered": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			playRead(t, before, func(t *testing.T, w *world) {
				w.chain.Finalize()
				w.reconcile()
				w.clock.Advance(12 * time.Minute) // what is foreign from here on freezes
				var faults []canopytest.Rule
				if lost {
					faults = append(faults, canopytest.First(canopytest.DropAfterSettling()))
				}
				_, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, faults...)
				var id canopy.PaymentID
				if lost {
					id = w.doubt(url)
				} else {
					id = w.bought(w.get(url)).paid.PaymentID
				}
				w.clock.Advance(time.Minute)
				w.chain.Finalize()
				w.step("a round", func() {
					if r := w.reconcile(); r.Settled != 1 || len(r.Foreign) != 0 {
						t.Errorf("%+v", r)
					}
				})
				w.state(id, ledger.Settled)
				w.frozen(false)
				w.counted(dime)
				w.moved(dime)
			})
		})
	}
}

// Anybody may have a token tell that nothing left the account, to somebody or as
// a fee: it is no use of the key. What did leave it is.
func TestTransferOfNothingFreezesNobody(t *testing.T) {
	for name, tt := range map[string]struct {
		to     payment.Address
		amount uint64
	}{
		"nothing":          {canopytest.Address("poisoner"), 0},
		"nothing as a fee": {canopytest.FeeManager, 0},
		"something":        {canopytest.Address("poisoner"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			playRead(t, onTempo(setup{}), func(t *testing.T, w *world) {
				_, url := w.asks(dime, canopytest.MPPConfig{})
				w.bought(w.get(url))
				w.clock.Advance(12 * time.Minute)
				w.chain.Finalize()
				w.reconcile()
				w.clock.Advance(12 * time.Minute)
				must(t, w.chain.Send(w.chain.Dollar(), w.client.Address(), tt.to, payment.UnitsOf(tt.amount)))
				w.chain.Finalize()
				r := w.reconcile()
				if got := len(r.Foreign) > 0; got != (tt.amount > 0) {
					t.Errorf("foreign: %+v", r.Foreign)
				}
				if why := w.frozen(tt.amount > 0); tt.amount > 0 && !strings.Contains(why, "outside this ledger") {
					t.Errorf("frozen for %q", why)
				}
			})
		})
	}
}
