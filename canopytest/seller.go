package canopytest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Version is a version of the x402 protocol.
type Version int

const (
	// V2 speaks as @x402/express 2.27: terms in PAYMENT-REQUIRED, the payment
	// in PAYMENT-SIGNATURE, the receipt in PAYMENT-RESPONSE. It is the default.
	V2 Version = 2
	// V1 speaks as x402-express 1.2: terms in the body, the payment in
	// X-PAYMENT, the receipt in X-PAYMENT-RESPONSE.
	V1 Version = 1
)

// SellerConfig says what a Seller sells.
type SellerConfig struct {
	Protocol Protocol // default X402; X402|MPP for both at once
	MPP      MPPConfig

	Version Version         // of x402, default V2
	PayTo   payment.Address // default Address("seller")
	Routes  []Route
	Faults  Plan // for requests to any route, beside the routes' own

	// Extensions are declared in version 2 challenges by their keys.
	Extensions map[string]json.RawMessage

	// PaymentID declares the payment-identifier extension in version 2.
	PaymentID PaymentID

	// SettleTimeout is how long the seller waits, by the chain's clock, for a
	// transaction to be mined. Version 2 waits twice. Default 180 s.
	SettleTimeout time.Duration
}

// Seller is an http.Handler that sells over x402, MPP or both: it states terms, verifies
// what it is paid with and settles it on a Chain, and breaks those rules where
// a Plan says so. It is safe for concurrent use.
//
// As the servers that it follows, with x402 it runs the handler between verifying
// and settling, holds its answer back until the money moved, and serves HEAD on a
// route priced for GET unpaid; with MPP it settles first. It settles although the
// client hangs up.
type Seller struct {
	chain    *Chain
	protocol Protocol
	version  Version
	timeout  time.Duration
	config   SellerConfig
	mux      *http.ServeMux
	base     context.Context
	stop     context.CancelFunc

	mu       sync.Mutex
	routes   []*route
	plan     script
	log      []*Request
	pending  map[string]string // signature to transaction, broadcast and not seen mined
	answered map[string]identified
	claims   map[string]bool // transactions and proofs that served as a payment of MPP
	issued   int             // challenges of MPP
	harvest  *Harvest
}

// NewSeller returns a seller that settles on chain. It panics where a pattern
// is not one of http.ServeMux or a price cannot be counted in the asset.
func NewSeller(chain *Chain, c SellerConfig) *Seller {
	if c.Version == 0 {
		c.Version = V2
	}
	if c.Protocol == 0 {
		c.Protocol = X402
	}
	if c.Protocol > X402|MPP {
		panic(fmt.Sprintf("canopytest: no protocol %d", c.Protocol))
	}
	if c.MPP.Lifetime == 0 {
		c.MPP.Lifetime = 5 * time.Minute
	}
	if c.MPP.Wait == 0 {
		c.MPP.Wait = 10 * time.Second
	}
	if c.Version != V1 && c.Version != V2 {
		panic(fmt.Sprintf("canopytest: x402 has no version %d", c.Version))
	}
	if c.PayTo.IsZero() {
		c.PayTo = Address("seller")
	}
	if c.SettleTimeout <= 0 {
		c.SettleTimeout = 180 * time.Second
	}
	s := &Seller{
		chain: chain, protocol: c.Protocol, version: c.Version, timeout: c.SettleTimeout, config: c, mux: http.NewServeMux(),
		plan: script{plan: c.Faults}, pending: make(map[string]string), answered: make(map[string]identified),
		claims: make(map[string]bool),
	}
	s.harvest = &Harvest{chain: chain}
	s.base, s.stop = context.WithCancel(context.Background())
	for _, r := range c.Routes {
		rt := s.newRoute(r)
		s.routes = append(s.routes, rt)
		s.fundSponsor(rt)
		s.mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, req *http.Request) { s.serve(rt, w, req) })
	}
	return s
}

// ServeHTTP answers as a seller does.
func (s *Seller) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends the waiting of requests that are being settled, so that a server
// can be closed while the chain stands still.
func (s *Seller) Close() { s.stop() }

// Chain is the chain that the seller settles on, unless a route says otherwise.
func (s *Seller) Chain() *Chain { return s.chain }

// Harvest is what the seller was handed: every authorization that could be
// read, settled or not.
func (s *Seller) Harvest() *Harvest { return s.harvest }

// Requests returns the requests that reached a route, oldest first.
func (s *Seller) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.log))
	for i, r := range s.log {
		out[i] = r.clone()
	}
	return out
}

// Count is how often things happened on a route.
type Count struct {
	Requests int // that reached the route
	Paid     int // of them, with a payment header
	Served   int // runs of the handler
	Settled  int // requests that moved money on the chain
}

// Count returns the counts of the route with that pattern, and of all routes
// where it is empty.
func (s *Seller) Count(pattern string) Count {
	var n Count
	for _, r := range s.Requests() {
		if pattern != "" && r.Pattern != pattern {
			continue
		}
		n.Requests++
		n.Served += one(r.Served)
		n.Paid += one(r.Paid)
		n.Settled += one(r.TxHash != "")
	}
	return n
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SetFaults replaces the plan of the route with that pattern, or the seller's
// own where it is empty, and starts counting its attempts anew.
func (s *Seller) SetFaults(pattern string, p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pattern == "" {
		s.plan = script{plan: p}
		return
	}
	s.route(pattern).plan = script{plan: p}
}

// SetPrice changes what the route with that pattern costs, for challenges from
// now on.
func (s *Seller) SetPrice(pattern string, price payment.USD) {
	s.mu.Lock()
	defer s.mu.Unlock()
	setPrices(s.route(pattern).accepts, price)
}

// SetPayTo changes who is paid for the route with that pattern.
func (s *Seller) SetPayTo(pattern string, to payment.Address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepts := s.route(pattern).accepts
	for i := range accepts {
		if i == 0 || accepts[i].follows {
			accepts[i].payTo = to
		}
	}
}

func (s *Seller) route(pattern string) *route {
	i := slices.IndexFunc(s.routes, func(r *route) bool { return r.Pattern == pattern })
	if i < 0 {
		panic(fmt.Sprintf("canopytest: the seller has no route %q", pattern))
	}
	return s.routes[i]
}
