//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// answered is what stands between a client and the seller: paid is called for a request with a credential,
// counted from 1, and may send it, or one like it without the credential.
type answered struct {
	paid  func(n int, req *http.Request) (*http.Response, error)
	times atomic.Int32 // requests with a credential
}

func (a *answered) RoundTrip(req *http.Request) (*http.Response, error) {
	if !credentialed(req) {
		return http.DefaultTransport.RoundTrip(req)
	}
	return a.paid(int(a.times.Add(1)), req)
}

// sent sends a request as it is.
func sent(req *http.Request) (*http.Response, error) { return http.DefaultTransport.RoundTrip(req) }

// unpaid sends a request without its credential, whose answer is a fresh challenge.
func unpaid(req *http.Request) (*http.Response, error) {
	bare := req.Clone(req.Context())
	bare.Header.Del("Authorization")
	return http.DefaultTransport.RoundTrip(bare)
}

// settledAndLost sends a request and throws the answer away.
func settledAndLost(t testing.TB, req *http.Request) {
	resp, err := sent(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || err != nil {
		t.Errorf("the seller answered %s %s, %v", resp.Status, b, err)
	}
}

var errCut = errors.New("the line was cut")

// one fails t unless exactly one transaction moved money, and it is e's by the ledger once the chain has told.
func (b *railed) one(t testing.TB, id canopy.PaymentID, units uint64) ledger.Entry {
	t.Helper()
	b.settle(t, 20*time.Second)
	e := b.entry(t, id)
	moved := b.chain.spendings(t, b.account.Address)
	if len(moved) != 1 || len(moved[0].to) != 1 || moved[0].to[0].units != units || e.State != ledger.Settled || e.Receipt.TxHash != moved[0].hash.Hex() {
		t.Errorf("moved %+v, and the payment is %v by %s: want %d once", moved, e.State, e.Receipt.TxHash, units)
	}
	return e
}

// TestMPPAskedAgain pays under a key and asks for it again: the same bytes, which the seller knows, and no second
// payment.
func TestMPPAskedAgain(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	resp, _, err := b.get(t, p.Seller.URL+"/cent", canopy.WithKey("once"))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := canopy.PaymentOf(resp)
	for range 2 {
		_, _, err = b.get(t, p.Seller.URL+"/cent", canopy.WithKey("once"))
		paidBefore(t, err, first.PaymentID)
	}
	if e := b.one(t, first.PaymentID, 10_000); e.Receipt.TxHash != first.TxHash {
		t.Errorf("settled by %s, want %s", e.Receipt.TxHash, first.TxHash)
	}
}

// TestMPPLoseTheAnswer loses the answer of a seller that was paid: in doubt; asked again, the seller says that
// the transaction is used, which is a claim.
func TestMPPLoseTheAnswer(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	line := &answered{paid: func(n int, req *http.Request) (*http.Response, error) {
		if n > 1 {
			return sent(req)
		}
		settledAndLost(t, req)
		return nil, errCut
	}}
	c := b.client(t, line)
	_, _, err := fetch(t, c, http.MethodGet, p.Seller.URL+"/cent", nil)
	doubt := inDoubt(t, err)
	if !errors.Is(err, errCut) || doubt.Phase != canopy.SentUnknown || doubt.SafeAfter.Before(time.Now()) {
		t.Errorf("%+v, want the cause and a phase of %v", doubt, canopy.SentUnknown)
	}
	_, _, err = fetch(t, c, http.MethodGet, p.Seller.URL+"/cent", nil)
	paidBefore(t, err, doubt.Result.PaymentID)
	if e := b.entry(t, doubt.Result.PaymentID); e.State != ledger.Claimed {
		t.Errorf("%v, want claimed: the seller says that it is used", e.State)
	}
	b.one(t, doubt.Result.PaymentID, 10_000)
}

// TestMPPNeverSent breaks the line before the seller has the credential: asked again, the same bytes pay.
func TestMPPNeverSent(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	var credentials []string
	c := b.client(t, &answered{paid: func(n int, req *http.Request) (*http.Response, error) {
		credentials = append(credentials, req.Header.Get("Authorization"))
		if n == 1 {
			return nil, errCut
		}
		return sent(req)
	}})
	_, _, err := fetch(t, c, http.MethodGet, p.Seller.URL+"/cent", nil)
	doubt := inDoubt(t, err)
	resp, _, err := fetch(t, c, http.MethodGet, p.Seller.URL+"/cent", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := canopy.PaymentOf(resp); r.PaymentID != doubt.Result.PaymentID || r.State != ledger.Claimed {
		t.Errorf("%+v, want %s claimed", r, doubt.Result.PaymentID)
	}
	if len(credentials) != 2 || credentials[0] != credentials[1] {
		t.Error("another credential was sent the second time")
	}
	b.one(t, doubt.Result.PaymentID, 10_000)
}

// TestMPPAskedOnceMore meets a seller that forgets the challenge that it gave: the payment is signed for the new
// one too, on the same lane and nonce.
func TestMPPAskedOnceMore(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	c := b.client(t, &answered{paid: func(n int, req *http.Request) (*http.Response, error) {
		if n == 1 {
			return unpaid(req)
		}
		return sent(req)
	}})
	resp, _, err := fetch(t, c, http.MethodGet, p.Seller.URL+"/cent", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := canopy.PaymentOf(resp)
	if resp.StatusCode != http.StatusOK || r.State != ledger.Claimed {
		t.Errorf("%s, %+v", resp.Status, r)
	}
	if e := b.one(t, r.PaymentID, 10_000); e.Variants != 1 {
		t.Errorf("%d variants, want 1", e.Variants)
	}
}

// TestMPPAskedOnceMoreAfterPaying meets a seller that settles each payment and asks for another all the same, on
// six calls at once: six debits, each settled by the chain's word, whatever was signed besides.
func TestMPPAskedOnceMoreAfterPaying(t *testing.T) {
	t.Parallel()
	const calls = 6
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	var mu sync.Mutex
	seen := map[string]bool{}
	c := b.client(t, &answered{paid: func(_ int, req *http.Request) (*http.Response, error) {
		mu.Lock()
		first := !seen[req.URL.RawQuery]
		seen[req.URL.RawQuery] = true
		mu.Unlock()
		if !first {
			return sent(req) // the lane's nonce is used: the seller's node never finds this one in a block
		}
		settledAndLost(t, req)
		return unpaid(req)
	}})
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			req, _ := http.NewRequest(http.MethodGet, p.Seller.URL+"/cent?"+string(rune('a'+i)), nil)
			resp, err := c.Fetch(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			r, _ := canopy.PaymentOf(resp)
			if resp.StatusCode != http.StatusInternalServerError || r.State != ledger.InDoubt || b.entry(t, r.PaymentID).Variants != 1 {
				t.Errorf("%s, %+v", resp.Status, r)
			}
		})
	}
	wg.Wait()
	b.settle(t, 20*time.Second)
	moved := b.chain.spendings(t, b.account.Address)
	if len(moved) != calls {
		t.Errorf("%d debits, want %d", len(moved), calls)
	}
	for _, e := range entries(t, b.store) {
		if e.State != ledger.Settled {
			t.Errorf("payment %s is %v", e.ID, e.State)
		}
	}
}

// TestMPPAskedForEver meets a seller that takes nothing and asks for ever: the credential is made for four
// challenges, all of one lane and nonce, and what could still be paid stays held.
func TestMPPAskedForEver(t *testing.T) {
	t.Parallel()
	const doc = `
[policy.default]
max_payment = "$1"
caps        = ["$0.05 / 24h"]
allow       = ["host:127.0.0.1"]
`
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, doc, 1_000_000)
	line := &answered{paid: func(_ int, req *http.Request) (*http.Response, error) { return unpaid(req) }}
	c := b.client(t, line)
	_, _, err := fetch(t, c, http.MethodGet, p.Seller.URL+"/cent", nil)
	doubt := inDoubt(t, err)
	e := b.entry(t, doubt.Result.PaymentID)
	if e.State != ledger.InDoubt || e.Variants != ledger.MaxVariants || line.times.Load() > ledger.MaxVariants+1+3 {
		t.Errorf("%v, %d variants, sent %d times", e.State, e.Variants, line.times.Load())
	}
	_, _, err = b.get(t, p.Seller.URL+"/pull")
	denied(t, err, "cap_exceeded")
	if got := b.spent(t); got != 0 {
		t.Errorf("%d left the account", got)
	}
}

// TestMPPHangUp leaves while the seller waits for its block: in doubt, then settled by the chain.
func TestMPPHangUp(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	b := newRailed(t, p.Chain, openPolicy, 1_000_000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	c := b.client(t, &answered{paid: func(_ int, req *http.Request) (*http.Response, error) {
		go func() {
			defer close(gone)
			settledAndLost(t, req.WithContext(context.WithoutCancel(req.Context())))
		}()
		cancel()
		return nil, ctx.Err()
	}})
	req, err := http.NewRequest(http.MethodGet, p.Seller.URL+"/cent", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Fetch(ctx, req)
	<-gone
	doubt := inDoubt(t, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the cause", err)
	}
	b.one(t, doubt.Result.PaymentID, 10_000)
}

// TestMPPSlowNode pays a seller whose chain stands still: the seller gives up with 500 after ten seconds, and
// what it sent lands later, or, its validity over, never.
func TestMPPSlowNode(t *testing.T) {
	t.Parallel()
	const doc = `
[policy.default]
max_payment = "$1"
caps        = ["$0.05 / 24h"]
allow       = ["host:127.0.0.1"]
max_validity = "%s"
`
	for _, tc := range []struct {
		name, validity string
		lands          bool
		nodes          int
	}{{"lands", "60s", true, 1}, {"never lands", "14s", false, 1}, {"never lands, by the word of two", "14s", false, 2}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := NewTempo(t)
			s := NewMPPSeller(t, c, c.URL)
			b := newRailed(t, c, fmt.Sprintf(doc, tc.validity), 1_000_000)
			if tc.nodes == 2 {
				b.second = anotherNode(t, c)
				b.Client = b.client(t, nil)
			}
			resume := c.Stall(t)
			resp, _, err := b.get(t, s.URL+"/cent")
			if err != nil {
				t.Fatal(err)
			}
			r, _ := canopy.PaymentOf(resp)
			if resp.StatusCode != http.StatusInternalServerError || r.State != ledger.InDoubt || r.Settlement != "" {
				t.Fatalf("%s, %+v, want 500 in doubt", resp.Status, r)
			}
			if got := b.spent(t); got != 0 {
				t.Errorf("%d left the account before a block came", got)
			}
			_, _, err = b.get(t, s.URL+"/pull") // held against the cap
			denied(t, err, "cap_exceeded")
			e := b.entry(t, r.PaymentID)
			if !tc.lands {
				time.Sleep(time.Until(e.ValidBefore))
			}
			resume()
			if tc.lands {
				b.one(t, r.PaymentID, 10_000)
				_, _, err = b.get(t, s.URL+"/cent") // it was not delivered, and answers for itself
				paidBefore(t, err, r.PaymentID)
				return
			}
			b.settle(t, 20*time.Second)
			if e := b.entry(t, r.PaymentID); e.State != ledger.ExpiredUnused || e.Assumed != (tc.nodes == 1) || b.spent(t) != 0 {
				t.Errorf("%v, and %d left the account, want it expired unused", e.State, b.spent(t))
			}
			resp, _, err = b.get(t, s.URL+"/cent") // the hold is free
			if err != nil {
				t.Fatal(err)
			}
			// The lane serves again with the same nonce, but not where one node's word released it.
			again, _ := canopy.PaymentOf(resp)
			next := b.entry(t, again.PaymentID)
			if again.State != ledger.Claimed || next.ID == e.ID || (next.Slot == e.Slot) != (tc.nodes == 2) {
				t.Errorf("%+v by %v, after %v by the word of %d", again, next.Slot, e.Slot, tc.nodes)
			}
		})
	}
}

// TestMPPProofAgain proves the account again: nothing moves, and a proof that was delivered may be asked for anew.
func TestMPPProofAgain(t *testing.T) {
	t.Parallel()
	p := tempoPeers(t)
	const doc = `
[policy.default]
max_payment = "$1"
caps        = ["$1 / 24h", "2 payments / 24h"]
allow       = ["host:127.0.0.1"]
`
	b := newRailed(t, p.Chain, doc, 0)
	for range 2 {
		resp, _, err := b.get(t, p.Seller.URL+"/zero")
		if err != nil {
			t.Fatal(err)
		}
		r, _ := canopy.PaymentOf(resp)
		if e := b.entry(t, r.PaymentID); resp.StatusCode != http.StatusOK || r.State != ledger.Settled || e.Slot.Kind != payment.SlotProof || e.Spent != 0 {
			t.Errorf("%s, %+v", resp.Status, r)
		}
	}
	_, _, err := b.get(t, p.Seller.URL+"/zero")
	denied(t, err, "count_exceeded")
	other := newRailed(t, p.Chain, `
[policy.default]
max_payment = "$1"
caps        = ["$1 / 24h"]
allow       = ["host:feed.example"]
`, 0)
	_, _, err = other.get(t, p.Seller.URL+"/zero")
	denied(t, err, "not_allowed")
}

// anotherNode is a further node of c, at an address of its own.
func anotherNode(t testing.TB, c *Tempo) string {
	t.Helper()
	target, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	node := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(node.Close)
	return strings.Replace(node.URL, "127.0.0.1", "localhost", 1)
}
