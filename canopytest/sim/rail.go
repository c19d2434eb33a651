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
	// Rail is the real rail, as a client uses it.
	Rail() canopy.Rail

	// Challenge is the answer to a request that has to be paid: status and
	// headers for these terms, with an error code where code is not empty.
	Challenge(url string, ask terms, code string) (int, http.Header)

	// Read is the authorization on a request, and false where there is none
	// that can be read.
	Read(h http.Header) (canopytest.Authorization, bool)

	// Receipt puts a seller's word on an answer: settled by tx, or with an
	// error code.
	Receipt(h http.Header, payer payment.Address, tx, code string)
}

// terms are what a simulated seller asks.
type terms struct {
	to      payment.Address
	amount  payment.Units
	timeout time.Duration
}

// bentRail is the real rail in a process: it charges fees for the sellers that
// have some, and misbuilds an authorization now and then, as a rail with a bug
// would, which no seller may ever get to see.
type bentRail struct {
	canopy.Rail
	p *proc
}

func (w *world) rails(p *proc) []canopy.Rail { return []canopy.Rail{bentRail{w.protocol.Rail(), p}} }

func (r bentRail) Offers(resp *http.Response, body []byte) ([]payment.Offer, error) {
	offers, err := r.Rail.Offers(resp, body)
	if s := r.p.w.sellers[resp.Request.URL.Host]; s != nil {
		for i := range offers {
			offers[i].FeeBound = s.fee
		}
	}
	return offers, err
}

func (r bentRail) Authorize(ctx context.Context, g payment.Grant, s payment.Signer) (payment.Authorization, error) {
	w, t := r.p.w, taskOf(ctx)
	if !w.chance(w.setup.rate(80)) {
		return r.Rail.Authorize(ctx, g, s)
	}
	t.bent = true
	defer func() { t.bent = false }()
	real := g
	switch w.rng.IntN(3) {
	case 0:
		w.note("%s: the rail pays somebody else", t)
		g.Terms.Recipients = []payment.Recipient{{Address: canopytest.Address("thief"), Amount: g.Terms.Amount}}
	case 1:
		w.note("%s: the rail pays too much", t)
		g.Terms.Amount, _ = g.Terms.Amount.Add(payment.UnitsOf(1_000_000))
		g.Terms.Recipients = []payment.Recipient{{Address: g.Terms.Payee(), Amount: g.Terms.Amount}}
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
