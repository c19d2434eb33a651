package main

import (
	"context"
	"net/http"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// protocol is what the simulator has to know of a rail to play its sellers. A
// further rail joins the world by one more of these.
type protocol interface {
	// Rail is the real rail, as the client of a process uses it.
	Rail(*proc) (canopy.Rail, error)

	// Chain is where its payments move money.
	Chain() *chain

	// Challenge puts these terms on the answer to a request that has to be paid,
	// with an error code where code is not empty.
	Challenge(h http.Header, url string, ask terms, code string)

	// Read is the payment on a request, and false where there is none that can
	// be read.
	Read(h http.Header) (*spend, bool)

	// Receipt puts a seller's word on an answer to s: settled by tx, or refused
	// with a code of x402.
	Receipt(out *answer, s *spend, tx, code string)
}

// terms are what a simulated seller asks.
type terms struct {
	to      payment.Address
	amount  payment.Units
	timeout time.Duration // of an authorization
	lasts   time.Duration // of the challenge

	splits    []payment.Recipient // parts of the amount that go to others
	sponsored bool                // the seller pays the fee
	push      bool                // the buyer broadcasts
	realm     string
	challenge string // the ID of the challenge
}

// bentRail is the real rail in a process: it charges fees for the sellers that
// have some, and misbuilds an authorization now and then, as a rail with a bug
// would, which no seller may ever get to see.
type bentRail struct {
	canopy.Rail
	p     *proc
	speak protocol
}

// rails are those of p's client.
func (w *world) rails(p *proc) ([]canopy.Rail, error) {
	var out []canopy.Rail
	for _, speak := range w.protocols {
		rail, err := speak.Rail(p)
		if err != nil {
			return nil, err
		}
		out = append(out, bentRail{rail, p, speak})
	}
	return out, nil
}

func (r bentRail) Offers(resp *http.Response, body []byte) ([]payment.Offer, error) {
	offers, err := r.Rail.Offers(resp, body)
	if s := r.p.w.sellers[resp.Request.URL.Host]; s != nil && !r.speak.Chain().tempo {
		for i := range offers {
			offers[i].FeeBound = s.fee
		}
	}
	return offers, err
}

func (r bentRail) Authorize(ctx context.Context, g payment.Grant, s payment.Signer) (payment.Authorization, error) {
	w, t := r.p.w, taskOf(ctx)
	t.grant = g.PaymentID
	if !w.chance(w.setup.rate(80)) {
		a, err := r.Rail.Authorize(ctx, g, s)
		if err == nil {
			w.oracle.built(t, r.speak, a)
		}
		return a, err
	}
	t.bent = true
	defer func() { t.bent = false }()
	real := g
	switch w.rng.IntN(3) {
	case 0:
		w.note("%s: the rail pays somebody else", t)
		g.Terms.Recipients = append([]payment.Recipient(nil), g.Terms.Recipients...)
		g.Terms.Recipients[0].Address = canopytest.Address("thief")
	case 1:
		w.note("%s: the rail pays too much", t)
		much := payment.UnitsOf(1_000_000)
		g.Terms.Recipients = append([]payment.Recipient(nil), g.Terms.Recipients...)
		g.Terms.Amount, _ = g.Terms.Amount.Add(much)
		g.Terms.Recipients[0].Amount, _ = g.Terms.Recipients[0].Amount.Add(much)
	case 2:
		w.note("%s: the rail makes it valid for a day", t)
		g.ValidBefore = g.ValidBefore.Add(24 * time.Hour)
	}
	a, err := r.Rail.Authorize(ctx, g, s)
	a.Slot, a.ValidBefore = real.Slot, real.ValidBefore
	return a, err
}

// Transfer is that of the real rail.
func (r bentRail) Transfer(ctx context.Context, t payment.Transfer) (payment.Offer, error) {
	return r.Rail.(canopy.Transferer).Transfer(ctx, t)
}

// Assets are those of the real rail: where uses of the key are looked for.
func (r bentRail) Assets() []payment.Asset {
	return r.Rail.(interface{ Assets() []payment.Asset }).Assets()
}
