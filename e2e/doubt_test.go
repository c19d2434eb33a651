//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
)

// meddler stands between the client and a real seller, on an origin of its own.
type meddler struct {
	*httptest.Server
	paid atomic.Int32 // requests with an authorization that came
}

// newMeddler passes every request on. What the seller answers to a paid one is given to meddle together with
// the answer to the unpaid one before.
func newMeddler(t testing.TB, s *Seller, meddle func(w http.ResponseWriter, quote, answer *http.Response)) *meddler {
	m := &meddler{}
	pass := func(r *http.Request, header http.Header) (*http.Response, error) {
		// The seller is not told when the client has gone.
		req, err := http.NewRequest(r.Method, s.URL+r.URL.RequestURI(), nil)
		if err != nil {
			return nil, err
		}
		req.Header = header
		return http.DefaultTransport.RoundTrip(req)
	}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Clone()
		header.Del("Payment-Signature")
		header.Del("X-Payment")
		quote, err := pass(r, header)
		if err != nil {
			t.Error(err)
			return
		}
		defer quote.Body.Close()
		if len(header) == len(r.Header) {
			give(w, quote)
			return
		}
		m.paid.Add(1)
		answer, err := pass(r, r.Header)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		meddle(w, quote, answer)
	}))
	t.Cleanup(m.Close)
	return m
}

// give answers as resp did.
func give(w http.ResponseWriter, resp *http.Response) {
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body)
}

// TestPayAndLoseTheAnswer breaks the connection after the seller has settled: one debit, whatever the caller
// does then.
func TestPayAndLoseTheAnswer(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		m := newMeddler(t, s, func(w http.ResponseWriter, _, answer *http.Response) {
			if answer.StatusCode == http.StatusOK {
				panic(http.ErrAbortHandler)
			}
			give(w, answer)
		})
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			_, _, err := b.get(t, m.URL+"/cent", canopy.WithKey("lost"))
			var doubt *canopy.InDoubtError
			if !errors.As(err, &doubt) || doubt.Phase != canopy.SentUnknown || doubt.Err == nil {
				t.Fatalf("got %v, want *InDoubtError", err)
			}
			if got := m.paid.Load(); got != 1 {
				t.Errorf("%d paid requests, want 1: net/http sent it again", got)
			}
			askAgain(t, b.Client, m.URL+"/cent", "lost", doubt.Result.PaymentID)
			askAgain(t, b.Client, m.URL+"/cent", "", doubt.Result.PaymentID)
			e, err := b.store.Entry(t.Context(), doubt.Result.PaymentID)
			// Only the v2 seller tells that the authorization was used.
			if want := map[int]canopy.State{2: ledger.Claimed, 1: ledger.InDoubt}[s.Version]; err != nil || e.State != want {
				t.Errorf("state %v, %v, want %v", e.State, err, want)
			}
		})
	})
}

// TestPayOneThatAsksForEver pays a seller that takes the authorization, settles it and answers 402 all the
// same: one authorization, and its money stays counted.
func TestPayOneThatAsksForEver(t *testing.T) {
	const doc = `
[policy.default]
max_payment = "$10"
caps        = ["$0.02 / 24h"]
allow       = ["host:127.0.0.1"]
`
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, doc, 1_000_000)
		m := newMeddler(t, s, func(w http.ResponseWriter, quote, _ *http.Response) { give(w, quote) })
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			var id canopy.PaymentID
			for range 2 {
				_, _, err := b.get(t, m.URL+"/cent")
				var doubt *canopy.InDoubtError
				if !errors.As(err, &doubt) || id != "" && doubt.Result.PaymentID != id {
					t.Fatalf("got %v, want *InDoubtError of one payment", err)
				}
				id = doubt.Result.PaymentID
			}
		})
		// The cap still has room for one cent, and for no two.
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			if _, _, err := b.get(t, s.URL+"/cent"); err != nil {
				t.Error(err)
			}
			_, _, err := b.get(t, s.URL+"/cent")
			if d := denied(t, err, "cap_exceeded"); d.Result.Reason != "Spend cap exceeded: $0.02 + $0.01 > $0.02 / 24h" {
				t.Errorf("reason %q", d.Result.Reason)
			}
		})
	})
}

// TestPayWithoutABlock pays while the chain stands still: what was sent may still move money, so it is held
// against the cap, and asking again pays nothing more.
func TestPayWithoutABlock(t *testing.T) {
	const doc = `
[policy.default]
max_payment = "$10"
caps        = ["$0.01 / 24h"]
allow       = ["host:127.0.0.1"]
`
	t.Parallel()
	p := NewPeers(t)
	for _, version := range []int{2, 1} {
		t.Run(map[int]string{1: "v1", 2: "v2"}[version], func(t *testing.T) {
			s := p.Seller(version)
			b := newBuyer(t, p.Chain, doc, 1_000_000)
			release := p.Chain.HoldBlocks(t)
			released := false
			defer func() {
				if !released {
					release()
				}
			}()
			var doubt *canopy.InDoubtError
			p.Chain.Moves(t, s.PayTo, 0, func() {
				err := b.hangUp(t, 500*time.Millisecond, s.URL+"/cent", "held")
				if !errors.As(err, &doubt) || !errors.Is(err, context.Canceled) {
					t.Fatalf("got %v, want *InDoubtError for the hang-up", err)
				}
				_, _, err = b.get(t, s.URL+"/subcent")
				if d := denied(t, err, "cap_exceeded"); d.Result.Reason != "Spend cap exceeded: $0.01 + $0.0005 > $0.01 / 24h" {
					t.Errorf("reason %q", d.Result.Reason)
				}
				// Asked again, the v2 seller finds the transaction that is under way and says that the
				// nonce is used, which is a claim; the v1 seller says nothing.
				err = b.hangUp(t, 500*time.Millisecond, s.URL+"/cent", "held")
				var made *canopy.PaidError
				if !errors.As(err, &made) && !errors.As(err, &doubt) {
					t.Errorf("asking again: %v", err)
				}
			})
			p.Chain.Moves(t, s.PayTo, 10_000, func() {
				time.AfterFunc(500*time.Millisecond, func() {
					p.Chain.RPC(context.Background(), nil, "evm_setAutomine", true)
					p.Chain.RPC(context.Background(), nil, "anvil_mine", "0x1")
				})
				released = true
				askAgain(t, b.Client, s.URL+"/cent", "held", doubt.Result.PaymentID)
				p.Chain.settled(t, b.payer)
			})
			if got := p.Chain.AuthorizationsUsed(t, b.payer); got != 1 {
				t.Errorf("%d authorizations used, want 1", got)
			}
		})
	}
}

// TestPayFrozenBetween freezes the agent while the seller's answer is awaited: what left cannot be called
// back, and nothing more leaves.
func TestPayFrozenBetween(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			time.AfterFunc(300*time.Millisecond, func() {
				if err := b.Freeze(context.Background(), "a strange price"); err != nil {
					t.Error(err)
				}
			})
			resp, _, err := b.get(t, s.URL+"/slow")
			if err != nil {
				t.Fatal(err)
			}
			paid(t, resp, ledger.Claimed, 10_000)
		})
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, _, err := b.get(t, s.URL+"/slow")
			denied(t, err, "frozen")
		})
		if pong, err := b.Ping(t.Context()); err != nil || pong.Status != "frozen" || pong.Frozen != "a strange price" {
			t.Errorf("ping %+v, %v", pong, err)
		}
	})
}

// TestPayFromAnEmptyAccount is refused for want of money. That is not the end: the authorization is alive,
// and the same call, asked again when there is money, sends the same bytes, which pay once.
func TestPayFromAnEmptyAccount(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 0)
		var doubt *canopy.InDoubtError
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, _, err := b.get(t, s.URL+"/cent")
			if !errors.As(err, &doubt) || doubt.Phase != canopy.RefusedAfter || doubt.Code == "" {
				t.Fatalf("got %v, want *InDoubtError with the seller's refusal", err)
			}
		})
		b.chain.Mint(t, b.payer, 30_000)
		b.wallet = 30_000
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			resp, _, err := b.get(t, s.URL+"/cent")
			if err != nil {
				t.Fatal(err)
			}
			if r := paid(t, resp, ledger.Claimed, 10_000); r.PaymentID != doubt.Result.PaymentID {
				t.Errorf("payment %s, want %s", r.PaymentID, doubt.Result.PaymentID)
			}
		})
		// It was delivered, so an equal call buys again.
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			if _, _, err := b.get(t, s.URL+"/cent"); err != nil {
				t.Error(err)
			}
		})
		b.spent(t, 20_000)
	})
}

// TestPayAfterDeadBytes lets an authorization die unused. Without a chain to ask its price stays counted as
// spent, and an equal call is a new payment only after SafeAfter.
func TestPayAfterDeadBytes(t *testing.T) {
	const doc = `
[policy.default]
max_payment      = "$10"
caps             = ["$0.02 / 24h"]
allow            = ["host:127.0.0.1"]
max_validity     = "12s"
duplicate_window = "1s"
`
	ownSellers(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, doc, 0)
		_, _, err := b.get(t, s.URL+"/cent")
		var first, again *canopy.InDoubtError
		if !errors.As(err, &first) {
			t.Fatalf("got %v, want *InDoubtError", err)
		}
		e, err := b.store.Entry(t.Context(), first.Result.PaymentID)
		if err != nil || !first.SafeAfter.Equal(e.ValidBefore) && !first.SafeAfter.Equal(e.OutcomeAt.Add(time.Second)) {
			t.Errorf("safe after %v, %v, want the end of its validity, %v", first.SafeAfter, err, e.ValidBefore)
		}
		b.chain.Mint(t, b.payer, 30_000)
		b.wallet = 30_000
		time.Sleep(time.Until(e.ValidBefore) - 9*time.Second) // too little of its validity is left to send it
		b.chain.Moves(t, s.PayTo, 0, func() {
			if _, _, err = b.get(t, s.URL+"/cent"); !errors.As(err, &again) || again.Result.PaymentID != first.Result.PaymentID {
				t.Fatalf("got %v, want *InDoubtError of %s", err, first.Result.PaymentID)
			}
		})
		time.Sleep(time.Until(again.SafeAfter) + 100*time.Millisecond)
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			resp, _, err := b.get(t, s.URL+"/cent")
			if err != nil {
				t.Fatal(err)
			}
			if r := paid(t, resp, ledger.Claimed, 10_000); r.PaymentID == first.Result.PaymentID {
				t.Error("the dead payment was paid")
			}
			_, _, err = b.get(t, s.URL+"/cent")
			if d := denied(t, err, "cap_exceeded"); d.Result.Reason != "Spend cap exceeded: $0.02 + $0.01 > $0.02 / 24h" {
				t.Errorf("reason %q", d.Result.Reason)
			}
		})
		b.spent(t, 10_000)
	})
}
