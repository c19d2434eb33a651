package canopytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Route is one thing that a Seller sells.
type Route struct {
	Pattern string // of http.ServeMux, such as "GET /report"

	Price  payment.USD   // what it costs; a route without Price and Amount is free
	Amount payment.Units // the price in base units, in place of Price
	Asset  payment.Asset // default Chain.Dollar of the chain
	PayTo  payment.Address
	Chain  *Chain // default the seller's

	// Timeout is the maxTimeoutSeconds stated. Default 60 s.
	Timeout time.Duration

	Description string
	MimeType    string

	// Upfront settles before the handler runs (version 2): a handler that
	// fails has been paid.
	Upfront bool

	// Also are further terms that the route accepts, after the first.
	Also []Accept

	// Verbatim are entries put before the others as they stand. They are
	// stated and cannot be paid.
	Verbatim []json.RawMessage

	// Proof asks, with MPP, for a proof of who is there in place of money.
	Proof bool

	// Splits are parts of the price that go to others, with MPP on Tempo.
	Splits []Split

	// ExternalID is stated in challenges of MPP.
	ExternalID string

	// Handler answers once the payment was verified. The default answers 200
	// with a JSON object that has the path.
	Handler http.Handler

	Faults Plan // for requests to this route
}

// Accept is one set of terms. Its zero fields are as those of Route.
type Accept struct {
	Chain   *Chain
	Asset   payment.Asset
	Price   payment.USD
	Amount  payment.Units
	PayTo   payment.Address
	Timeout time.Duration
	Splits  []Split
}

type route struct {
	Route
	accepts  []requirement
	plan     script
	requests int
}

// requirement is one set of terms in full.
type requirement struct {
	chain   *Chain
	asset   payment.Asset
	amount  payment.Units
	payTo   payment.Address
	timeout int
	upfront bool
	follows bool // its price and payee are the route's

	// With MPP:
	stated     uint64 // the chain that is named; 0 for none
	proof      bool
	sponsored  bool
	splits     []split
	modes      []string
	memo       *[32]byte // that the transfer must have
	externalID string
	note       string // the description in the request
}

// split is a Split in base units.
type split struct {
	to     payment.Address
	amount payment.Units
	memo   *[32]byte
}

func (s *Seller) newRoute(r Route) *route {
	rt := &route{Route: r, plan: script{plan: r.Faults}}
	if rt.Handler == nil {
		rt.Handler = http.HandlerFunc(goods)
	}
	first := Accept{r.Chain, r.Asset, r.Price, r.Amount, r.PayTo, r.Timeout, r.Splits}
	for i, a := range append([]Accept{first}, r.Also...) {
		follows := i > 0 && a.Price == 0 && a.Amount.IsZero() && a.PayTo.IsZero()
		if a.Price == 0 && a.Amount.IsZero() {
			a.Price, a.Amount = r.Price, r.Amount
		}
		if a.PayTo.IsZero() {
			a.PayTo = r.PayTo
		}
		if a.Splits == nil && i > 0 {
			a.Splits = r.Splits
		}
		q := s.requirement(a, r.Upfront)
		q.follows, q.proof, q.externalID = follows, r.Proof, r.ExternalID
		if q.chain.tempo.on && s.protocol&MPP == 0 {
			panic(fmt.Sprintf("canopytest: x402 does not pay on %s", q.chain.id))
		}
		rt.accepts = append(rt.accepts, q)
	}
	return rt
}

func (s *Seller) requirement(a Accept, upfront bool) requirement {
	if a.Chain == nil {
		a.Chain = s.chain
	}
	if a.Asset == (payment.Asset{}) {
		a.Asset = a.Chain.Dollar()
	}
	if a.PayTo.IsZero() {
		a.PayTo = s.config.PayTo
	}
	if a.Timeout == 0 {
		a.Timeout = time.Minute
	}
	q := requirement{
		chain: a.Chain, asset: a.Asset, amount: a.Amount, payTo: a.PayTo,
		timeout: int(a.Timeout / time.Second), upfront: upfront,
	}
	if q.amount.IsZero() {
		q.setPrice(a.Price)
	}
	if c := s.config.MPP; s.charges(&q) {
		q.sponsored, q.modes = c.Sponsor && q.chain.tempo.on, c.Modes
		if q.stated, _ = q.chain.id.Number(); c.NoChain {
			q.stated = 0
		}
		for _, p := range a.Splits {
			units, ok := q.asset.Units(p.Price)
			if !ok {
				panic(fmt.Sprintf("canopytest: %v cannot be counted in %s", p.Price, q.asset))
			}
			q.splits = append(q.splits, split{p.To, units, p.Memo})
		}
	}
	return q
}

// fundSponsor gives the sponsor what fees cost, once for each chain.
func (s *Seller) fundSponsor(rt *route) {
	for _, q := range rt.accepts {
		if q.sponsored && q.chain.balance(pathUSD, s.Sponsor()).IsZero() {
			q.chain.Fund(s.Sponsor(), 1000*payment.Dollar)
		}
	}
}

// setPrices changes the first price and those that follow it.
func setPrices(accepts []requirement, price payment.USD) {
	for i := range accepts {
		if i == 0 || accepts[i].follows {
			accepts[i].setPrice(price)
		}
	}
}

func (q *requirement) setPrice(price payment.USD) {
	units, ok := q.asset.Units(price)
	if !ok {
		panic(fmt.Sprintf("canopytest: %v cannot be counted in %s", price, q.asset))
	}
	q.amount = units
}

func (r *route) free() bool {
	return len(r.Verbatim) == 0 && !r.Proof && r.accepts[0].amount.IsZero()
}

// pricesOnlyGET reports whether the pattern is of GET, so that HEAD falls
// through to the handler.
func (r *route) pricesOnlyGET() bool { return strings.HasPrefix(r.Pattern, "GET ") }

func goods(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path})
}

// object is a JSON object whose keys keep their order.
type object []field

type field struct {
	key   string
	value any
}

// MarshalJSON writes the fields in order; those without a value are left out.
func (o object) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for _, f := range o {
		if f.value == nil {
			continue
		}
		v, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		k, _ := json.Marshal(f.key)
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("canopytest: " + err.Error())
	}
	return b
}
