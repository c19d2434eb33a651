package canopy_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// What the fee of one transaction with one call can be at most, and with a dime.
const (
	feeBound = 3 * payment.Cent
	costly   = dime + feeBound
)

// onTempo is s on a Tempo network, paid by the rail of MPP, with the chain to ask
// and to broadcast by.
func onTempo(s setup) setup {
	s.id = payment.TempoTest
	config := s.config
	s.config = func(w *world, c *canopy.Config) {
		c.Rails = []canopy.Rail{w.mpp(mpp.Config{})}
		watching(w, c)
		if config != nil {
			config(w, c)
		}
	}
	return s
}

// mpp is the rail on the chains of the world.
func (w *world) mpp(c mpp.Config) canopy.Rail {
	w.t.Helper()
	c.Clock = clock.Func(w.clock.Now)
	if c.Nodes == nil {
		c.Nodes = map[payment.ChainID]mpp.Node{}
	}
	for _, chain := range append([]*canopytest.Chain{w.chain}, w.others...) {
		if c.Chains = append(c.Chains, chain.ID()); chain.IsTempo() {
			c.Nodes[chain.ID()] = chain
		}
	}
	rail, err := mpp.New(c)
	must(w.t, err)
	return rail
}

// onBoth is s with money on Base and on Tempo, and both rails.
func onBoth(s setup) setup {
	config := s.config
	s.config = func(w *world, c *canopy.Config) {
		tempo := canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: w.clock, Finality: s.final})
		tempo.Fund(w.spy.Address(), 1000*payment.Dollar)
		w.others = append(w.others, tempo)
		exact, err := x402.New(x402.Config{})
		must(w.t, err)
		c.Rails = []canopy.Rail{exact, w.mpp(mpp.Config{})}
		c.Treasury.Chains = []canopy.Chain{w.chain, tempo}
		if config != nil {
			config(w, c)
		}
	}
	return s
}

// asks serves a seller of MPP with one priced route for every method, and
// returns it.
func (w *world) asks(price payment.USD, c canopytest.MPPConfig, faults ...canopytest.Rule) (*canopytest.Seller, string) {
	w.t.Helper()
	return w.asksFor(canopytest.Route{Price: price}, c, faults...)
}

func (w *world) asksFor(r canopytest.Route, c canopytest.MPPConfig, faults ...canopytest.Rule) (*canopytest.Seller, string) {
	w.t.Helper()
	r.Pattern = "/goods/"
	s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
		Protocol: canopytest.MPP, MPP: c, Routes: []canopytest.Route{r}, Faults: faults,
	})
	return s, url + "/goods/1"
}

// tempoUses is what Tempo networks show of the account, whatever nodes say.
func (w *world) tempoUses() []payment.Settlement {
	var out []payment.Settlement
	for _, chain := range append([]*canopytest.Chain{w.chain}, w.others...) {
		uses := chain.TempoUses() // before the transfers: each of them has made its own
		moved := map[string][]canopytest.Transfer{}
		for _, t := range chain.Transfers() {
			if t.From == w.spy.Address() {
				moved[t.TxHash] = append(moved[t.TxHash], t)
			}
		}
		for _, u := range uses {
			if u.Tx.Sender != w.spy.Address() {
				continue
			}
			s := payment.Settlement{
				Slot:   payment.Slot{Kind: payment.SlotLane, Chain: chain.ID(), From: u.Tx.Sender, NonceID: u.Tx.NonceKey, Nonce: u.Tx.Nonce},
				TxHash: u.TxHash, Block: u.Block.Number, Time: u.Block.Time, Failed: u.Failed,
			}
			if calls, err := u.Tx.Transfers(); u.Tx.Expiring() && err == nil {
				s.Slot = payment.Slot{Kind: payment.SlotExpiring, Chain: chain.ID(), From: u.Tx.Sender, NonceID: calls[0].Memo}
			}
			for _, t := range moved[u.TxHash] {
				if s.Token = t.Token; t.Fee {
					s.Fee = t.Value
					continue
				}
				s.Moved = append(s.Moved, payment.Recipient{Address: t.To, Amount: t.Value})
			}
			out = append(out, s)
		}
	}
	return out
}

// fees is what the account paid in fees on all chains.
func (w *world) fees() (sum payment.USD) {
	for _, chain := range append([]*canopytest.Chain{w.chain}, w.others...) {
		sum += chain.Fees(w.spy.Address())
	}
	return sum
}

// moved fails the test unless so much left the account, beside fees.
func (w *world) moved(want payment.USD) {
	w.t.Helper()
	sum := -w.fees()
	for _, chain := range append([]*canopytest.Chain{w.chain}, w.others...) {
		sum += chain.Spent(w.spy.Address())
	}
	if sum != want {
		w.t.Errorf("%v left the account beside fees, want %v", sum, want)
	}
}

// settled makes all that happened final and reconciles: the payments are settled,
// and what counts is their value and the fees that the chain took.
func (w *world) settled(value payment.USD, ids ...canopy.PaymentID) {
	w.t.Helper()
	w.chain.Finalize()
	for _, chain := range w.others {
		chain.Finalize()
	}
	w.reconcile()
	for _, id := range ids {
		w.state(id, ledger.Settled)
	}
	w.moved(value)
	w.counted(value + w.fees())
}

// digests fails the test unless n different ones were signed.
func (w *world) digests(n int) {
	w.t.Helper()
	if got := len(w.spy.Digests()); got != n {
		w.t.Errorf("%d digests were signed, want %d", got, n)
	}
}

// overAll is over on every chain.
func (w *world) overAll() {
	w.t.Helper()
	for _, chain := range w.others {
		chain.Finalize()
	}
	w.over()
	for _, e := range w.entries() {
		if e.State.Live() && e.State != ledger.NeedsOperator && e.Watched {
			w.t.Errorf("I12: payment %s is still %s", e.ID, e.State)
		}
	}
}

// send is a request of that method with headers.
func (w *world) send(method, url string, headers map[string]string) *http.Request {
	req := w.request(method, url, nil)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	return req
}

// mppBy is the rail with another node.
func (w *world) mppBy(n mpp.Node) canopy.Rail {
	rail, err := mpp.New(mpp.Config{
		Chains: []payment.ChainID{w.chain.ID()}, Clock: clock.Func(w.clock.Now), Nodes: map[payment.ChainID]mpp.Node{w.chain.ID(): n},
	})
	must(w.t, err)
	return rail
}

// credentialIn is the transaction or hash in a credential, in hex.
func credentialIn(value string) string {
	_, value, _ = strings.Cut(value, " ")
	doc, err := base64.RawURLEncoding.DecodeString(value)
	var c struct {
		Payload struct{ Signature, Hash string }
	}
	if err != nil || json.Unmarshal(doc, &c) != nil {
		return ""
	}
	return strings.TrimPrefix(c.Payload.Signature+c.Payload.Hash, "0x")
}
