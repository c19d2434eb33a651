package canopytest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Answer is a response before it is sent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func newAnswer(status int, contentType string, body []byte) Answer {
	return Answer{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// Exchange is one request being answered: what a fault sees and can do. It is
// used by one goroutine.
type Exchange struct {
	Request *http.Request // its body has been read; see Body
	Body    []byte
	Paid    bool // it carries a payment header

	number  int // of the request on its route, from 1
	seller  *Seller
	route   *route
	record  *Request
	ctx     context.Context // ends with the seller, not with the client
	accepts []requirement
	payload *payload
	chosen  *requirement

	credential string // of MPP, as it was sent
	answered   *credential
}

// maxBody is how much of a request's body a seller reads.
const maxBody = 8 << 20

func (s *Seller) serve(rt *route, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "canopytest: the body cannot be read", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(s.base, cancel)()

	x := &Exchange{Request: r, Body: body, seller: s, route: rt, ctx: ctx}
	credentials := s.credentials(r)
	if len(credentials) == 1 {
		x.credential = credentials[0]
	}
	x.Paid = s.paymentHeader(r) != "" || len(credentials) > 0
	x.record = &Request{
		Pattern: rt.Pattern, Time: s.chain.clock.Now(), Method: r.Method, Host: r.Host, Target: r.URL.RequestURI(),
		Header: r.Header.Clone(), Body: body, Paid: x.Paid,
	}
	s.mu.Lock()
	s.log = append(s.log, x.record)
	x.accepts = slices.Clone(rt.accepts)
	rt.requests++
	x.number = rt.requests
	faults := append(s.plan.next(x.Paid), rt.plan.next(x.Paid)...)
	for _, f := range faults {
		x.record.Faults = append(x.record.Faults, f.name)
	}
	s.mu.Unlock()

	x.play(faults, w)
}

func (s *Seller) paymentHeader(r *http.Request) string {
	if s.protocol&X402 == 0 {
		return ""
	}
	name := "Payment-Signature"
	if s.version == V1 {
		name = "X-Payment"
	}
	// Node joins a header that is sent twice.
	return strings.Join(r.Header.Values(name), ", ")
}

// play answers x with the faults of its turn.
func (x *Exchange) play(faults []Fault, w http.ResponseWriter) {
	for _, f := range faults {
		if f.terms != nil {
			f.terms(x)
		}
	}
	if x.Paid {
		x.keep()
	}
	answer := (*Exchange).Honest
	deliver := (*Exchange).send
	for _, f := range faults {
		if f.instead != nil {
			answer = f.instead
		}
		if f.deliver != nil {
			deliver = f.deliver
		}
	}
	a := answer(x)
	for _, f := range faults {
		if f.edit != nil {
			f.edit(x, &a)
		}
	}
	x.note(func(r *Request) { r.Status = a.Status })
	deliver(x, w, a)
}

// send writes a as a server does.
func (x *Exchange) send(w http.ResponseWriter, a Answer) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}

func (x *Exchange) note(f func(*Request)) {
	x.seller.mu.Lock()
	defer x.seller.mu.Unlock()
	f(x.record)
}

// Honest answers as the protocol says.
func (x *Exchange) Honest() Answer {
	switch {
	case x.route.free(), x.Request.Method == http.MethodHead && x.route.pricesOnlyGET() && x.seller.protocol&MPP == 0:
		return x.Serve()
	case !x.Paid:
		return x.Challenge("")
	case len(x.seller.credentials(x.Request)) > 1, x.credential != "" && x.seller.paymentHeader(x.Request) != "":
		return x.fail(http.StatusBadRequest, "two payments in one request")
	case x.credential != "":
		return x.answerMPP()
	case x.seller.version == V1:
		return x.answerV1()
	}
	return x.answerV2()
}

// byMPP reports whether x is an exchange of MPP: paid by a credential, or by
// nothing at a seller that knows nothing else.
func (x *Exchange) byMPP() bool { return x.credential != "" || x.seller.protocol == MPP }

// Challenge is the 402 that states the terms, with the error that is given; an
// empty one is that of a request without a payment. A seller of both protocols
// states both.
func (x *Exchange) Challenge(code string) Answer {
	if x.byMPP() {
		return x.challengeMPP(code)
	}
	a := x.challengeX402(code)
	x.state(&a, x.challengesMPP())
	return a
}

// challengeMPP is Challenge to a request of MPP.
func (x *Exchange) challengeMPP(code string) Answer {
	p := refuse(code, "%s", code)
	if code == "" {
		p = refuse("payment-required", "Payment is required.")
	}
	a := x.refuseMPP(p)
	if x.seller.protocol&X402 != 0 {
		other := x.challengeX402("")
		if v := other.Header.Get("Payment-Required"); v != "" {
			a.Header.Set("Payment-Required", v)
		}
		x.note(func(r *Request) { r.Code = p.kind })
	}
	return a
}

func (x *Exchange) challengeX402(code string) Answer {
	if code == "" && x.seller.version == V1 {
		code = "X-PAYMENT header is required"
	} else if code == "" {
		code = "Payment required"
	}
	if x.seller.version == V1 {
		return x.challengeV1(code, nil)
	}
	return x.challengeV2(code)
}

// Serve runs the route's handler and returns its answer.
func (x *Exchange) Serve() Answer {
	x.note(func(r *Request) { r.Served = true })
	r := x.Request.Clone(x.ctx)
	r.Body = io.NopCloser(bytes.NewReader(x.Body))
	w := &buffered{Answer: Answer{Header: make(http.Header)}}
	func() {
		defer func() {
			if recover() != nil {
				w.Answer = newAnswer(http.StatusInternalServerError, "text/plain; charset=utf-8", []byte("Internal Server Error"))
			}
		}()
		x.route.Handler.ServeHTTP(w, r)
	}()
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	return w.Answer
}

// buffered holds a handler's answer back until the payment is settled.
type buffered struct{ Answer }

func (b *buffered) Header() http.Header { return b.Answer.Header }

func (b *buffered) WriteHeader(status int) {
	if b.Status == 0 {
		b.Status = status
	}
}

func (b *buffered) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	b.Body = append(b.Body, p...)
	return len(p), nil
}

// Flush does nothing: nothing leaves before the money moved.
func (b *buffered) Flush() {}

// Authorization is what the payment header holds, and false where it cannot be
// read.
func (x *Exchange) Authorization() (Authorization, bool) {
	if x.record.Authorization == nil {
		return Authorization{}, false
	}
	return *x.record.Authorization, true
}

// Settle moves the money of the payment on the chain, whatever the terms were,
// unless it moved already.
func (x *Exchange) Settle() (Tx, error) {
	if tx := x.record.Tempo; tx != nil {
		return x.settleRaw(tx)
	}
	a, ok := x.Authorization()
	if !ok {
		return Tx{}, ErrSignature
	}
	tx, err := x.chain().settle(x.ctx, a, x.deadline())
	if err == nil {
		x.note(func(r *Request) { r.TxHash = tx.Hash })
	}
	return tx, err
}

// chain is that of the terms which the payment chose, as far as they can be
// told.
func (x *Exchange) chain() *Chain {
	if x.chosen != nil {
		return x.chosen.chain
	}
	return x.accepts[0].chain
}

// keep reads the payment into the record and the harvest.
func (x *Exchange) keep() {
	if x.credential != "" {
		x.keepMPP()
		return
	}
	value := x.seller.paymentHeader(x.Request)
	p, err := readPayload(value)
	if err != nil {
		return
	}
	x.payload = p
	x.chosen = x.match()
	q := x.chosen
	if q == nil {
		q = x.exact()
	}
	if q == nil {
		return
	}
	a, err := p.authorization(q.asset.Address)
	if err != nil {
		return
	}
	x.note(func(r *Request) { r.Authorization = &a })
	x.seller.harvest.add(Harvested{
		Authorization: a, Asset: q.asset, Pattern: x.route.Pattern, Header: value, Time: x.record.Time, chain: q.chain,
	})
}

// exact is the first of the terms that are of x402, nil where none is.
func (x *Exchange) exact() *requirement {
	for i := range x.accepts {
		if !x.charges(&x.accepts[i]) {
			return &x.accepts[i]
		}
	}
	return nil
}

// match finds the terms that the payment echoes.
func (x *Exchange) match() *requirement {
	for i := range x.accepts {
		q := &x.accepts[i]
		if x.charges(q) {
			continue
		}
		if x.seller.version == V1 && x.payload.matchesV1(q) || x.seller.version == V2 && x.payload.matchesV2(q) {
			return q
		}
	}
	return nil
}
