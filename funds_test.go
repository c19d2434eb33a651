package canopy_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// drain takes all dollars from the client's account but that much.
func (w *world) drain(chain *canopytest.Chain, left canopy.USD) {
	w.t.Helper()
	have, err := chain.Balance(context.Background(), chain.Dollar(), w.client.Address())
	must(w.t, err)
	keep, _ := chain.Dollar().Units(left)
	if rest, ok := have.Sub(keep); ok && !rest.IsZero() {
		must(w.t, chain.Send(chain.Dollar(), w.client.Address(), canopytest.Address("savings"), rest))
	}
}

func TestInsufficientBalance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime)
		w.drain(w.chain, dime-1)
		d := w.denied(w.get(url), "insufficient_balance")
		if want := "Insufficient balance: $0.10 is needed, and the account holds $0.099999 of USDC on base"; d.Result.Reason != want {
			t.Errorf("reason %q, want %q", d.Result.Reason, want)
		}
		w.signed(0)
		w.state(d.Result.PaymentID, ledger.Denied)
		check, err := w.client.CheckURL(t.Context(), url)
		if must(t, err); check.Status != canopy.Denied || check.Code != "insufficient_balance" {
			t.Errorf("check says %+v", check)
		}
		p, err := w.client.Preview(t.Context(), canopy.Transfer{To: canopytest.Address("shop"), Amount: dime})
		if must(t, err); p.Status != canopy.Denied || p.Code != "insufficient_balance" {
			t.Errorf("preview says %+v", p)
		}
		// A figure that stops a payment is not believed for long.
		w.chain.Fund(w.client.Address(), 1)
		w.clock.Advance(time.Second)
		w.bought(w.get(url))
		w.spent(canopy.USD(1000*payment.Dollar - dime + 1 + dime)) // what was drained, and the payment
	})
}

// An account that was emptied by the very payment still gets its answer.
func TestEmptyAccountIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		s, url := w.sells(dime, canopytest.First(canopytest.DropAfterSettling()))
		w.drain(w.chain, dime)
		id := w.doubt(url, canopy.WithKey("k"))
		w.clock.Advance(11 * time.Second)
		again := as[*canopy.PaidError](t, w.get(url, canopy.WithKey("k")).err)
		if again.Result.PaymentID != id {
			t.Errorf("answered by %s, want %s", again.Result.PaymentID, id)
		}
		w.handed(s, 1)
		w.denied(w.get(url+"2"), "insufficient_balance")
	})
}

// An approval for more than the account holds stays unspent.
func TestInsufficientBalanceKeepsApproval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(6 * payment.Dollar)
		p := as[*canopy.PendingError](t, w.get(url).err)
		w.rule(p.Result.ApprovalID, true)
		w.drain(w.chain, 0)
		w.clock.Advance(time.Minute)
		w.denied(w.get(url), "insufficient_balance")
		w.state(p.Result.PaymentID, ledger.Approved)
		w.chain.Fund(w.client.Address(), 6*payment.Dollar)
		w.clock.Advance(time.Second)
		if g := w.bought(w.get(url)); g.paid.PaymentID != p.Result.PaymentID {
			t.Errorf("paid %s, want the approved %s", g.paid.PaymentID, p.Result.PaymentID)
		}
	})
}

// TestChainWithFunds pays where the account has the money, although it is
// dearer there; a chain that cannot be read comes after one that covers.
func TestChainWithFunds(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second canopy.USD // balances; negative for a chain that is down
		want          canopy.ChainID
	}{
		"both":            {payment.Dollar, payment.Dollar, payment.Base},
		"the dearer":      {0, payment.Dollar, payment.BaseSepolia},
		"the cheaper":     {payment.Dollar, 0, payment.Base},
		"cheaper unread":  {-1, payment.Dollar, payment.BaseSepolia},
		"dearer unread":   {payment.Dollar, -1, payment.Base},
		"short or unread": {0, -1, payment.BaseSepolia},
		"unread or short": {-1, 0, payment.Base},
		"both unread":     {-1, -1, payment.Base},
		"none":            {0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var other *canopytest.Chain
				w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
					other = canopytest.NewChain(canopytest.ChainConfig{ID: payment.BaseSepolia, Clock: w.clock})
					c.Treasury.Chains = []canopy.Chain{w.chain, other}
				}})
				other.Fund(w.client.Address(), payment.Dollar)
				for chain, have := range map[*canopytest.Chain]canopy.USD{w.chain: tt.first, other: tt.second} {
					w.drain(chain, max(have, payment.Dollar/2))
					if have == 0 {
						w.drain(chain, 0)
					}
					if have < 0 {
						chain.SetDown(errors.New("down"))
					}
				}
				_, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Routes: []canopytest.Route{{
					Pattern: "GET /x", Price: dime, Also: []canopytest.Accept{{Chain: other, Price: 2 * dime}},
				}}})
				g := w.get(url + "/x")
				if tt.want == "" {
					w.denied(g, "insufficient_balance")
					w.signed(0)
					return
				}
				if w.bought(g); g.paid.Chain != tt.want {
					t.Errorf("paid on %s, want %s", g.paid.Chain, tt.want)
				}
			})
		})
	}
}

// F20: a chain whose newest block is from our future.
func TestF20_ChainAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime)
		w.chain.SetNodes(1, canopytest.LieAhead)
		if g := w.get(url); !errors.Is(g.err, canopy.ErrClockSkew) {
			t.Errorf("%v", g.err)
		}
		w.signed(0)
		w.chain.SetNodes(1, canopytest.NoLie)
		w.clock.Advance(time.Second)
		w.bought(w.get(url))
	})
}

// counting counts the reads of balances and of the chain's clock.
type counting struct {
	*canopytest.Chain
	balances, clocks atomic.Int64
}

func (c *counting) Balance(ctx context.Context, a canopy.Asset, of canopy.Address) (canopy.Units, error) {
	c.balances.Add(1)
	time.Sleep(100 * time.Millisecond)
	return c.Chain.Balance(ctx, a, of)
}

func (c *counting) Latest(ctx context.Context) (payment.Block, error) {
	c.clocks.Add(1)
	return c.Chain.Latest(ctx)
}

// TestBalanceIsCached reads a figure once in ten seconds, however many pay.
func TestBalanceIsCached(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &counting{}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			n.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{n}
		}})
		_, url := w.sells(dime)
		done := make(chan struct{})
		for range 20 {
			go func() {
				defer func() { done <- struct{}{} }()
				if resp, err := w.client.Fetch(t.Context(), w.request("GET", url, nil)); err == nil {
					resp.Body.Close()
				}
			}()
		}
		for range 20 {
			<-done
		}
		synctest.Wait()
		if n.balances.Load() != 1 || n.clocks.Load() != 1 {
			t.Errorf("read %d and %d times, want once", n.balances.Load(), n.clocks.Load())
		}
		w.clock.Advance(11 * time.Second)
		w.bought(w.get(url + "2"))
		if n.balances.Load() != 2 || n.clocks.Load() != 2 {
			t.Errorf("read %d and %d times, want twice", n.balances.Load(), n.clocks.Load())
		}
	})
}

// gated is a chain whose balances are read when the gate opens.
type gated struct {
	*canopytest.Chain
	gate chan struct{} // nil where it is open
}

func (g *gated) Balance(ctx context.Context, a canopy.Asset, of canopy.Address) (canopy.Units, error) {
	if g.gate != nil {
		select {
		case <-g.gate:
		case <-ctx.Done():
			return canopy.Units{}, ctx.Err()
		}
	}
	return g.Chain.Balance(ctx, a, of)
}

// TestOldBalanceStopsNothing pays from an account that was topped up, while
// another call still reads its balance.
func TestOldBalanceStopsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := &gated{}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			g.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{g}
		}})
		_, url := w.sells(dime)
		w.drain(w.chain, 0)
		w.denied(w.get(url), "insufficient_balance")
		w.clock.Advance(3 * time.Hour)
		w.chain.Fund(w.client.Address(), payment.Dollar)
		g.gate = make(chan struct{})
		other := make(chan got)
		go func() { other <- w.get(url + "2") }()
		synctest.Wait()
		w.bought(w.get(url + "3"))
		close(g.gate)
		w.bought(<-other)
	})
}

// TestSkewStopsAllCalls lets no payment by while another one reads the clock
// of a chain that was ahead.
func TestSkewStopsAllCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &slowClock{}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			s.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{s}
		}})
		_, url := w.sells(dime)
		w.chain.SetNodes(1, canopytest.LieAhead)
		if g := w.get(url); !errors.Is(g.err, canopy.ErrClockSkew) {
			t.Errorf("%v", g.err)
		}
		w.clock.Advance(2 * time.Second)
		s.gate = make(chan struct{})
		other := make(chan got)
		go func() { other <- w.get(url + "2") }()
		synctest.Wait()
		if g := w.get(url + "3"); !errors.Is(g.err, canopy.ErrClockSkew) {
			t.Errorf("meanwhile: %v", g.err)
		}
		close(s.gate)
		if g := <-other; !errors.Is(g.err, canopy.ErrClockSkew) {
			t.Errorf("%v", g.err)
		}
		w.signed(0)
	})
}

// slowClock is a chain whose newest block is read when the gate opens.
type slowClock struct {
	*canopytest.Chain
	gate chan struct{} // nil where it is open
}

func (s *slowClock) Latest(ctx context.Context) (payment.Block, error) {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return payment.Block{}, ctx.Err()
		}
	}
	return s.Chain.Latest(ctx)
}
