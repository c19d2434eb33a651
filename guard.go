package canopy

import (
	"context"
	"fmt"
	"net/http"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// guarded calls a rail, and with it a signer, such that a panic in either is an
// error like any other: what was reserved is accounted for, and nothing is sent.
type guarded struct{ Rail }

func recovered(err *error, what string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s panicked: %s", what, plaintext.Clean(fmt.Sprint(r), 200))
	}
}

func (g guarded) Offers(resp *http.Response, body []byte) (o []payment.Offer, err error) {
	defer recovered(&err, "the rail")
	return g.Rail.Offers(resp, body)
}

func (g guarded) Authorize(ctx context.Context, grant payment.Grant, s payment.Signer) (a payment.Authorization, err error) {
	defer recovered(&err, "the rail or its signer")
	return g.Rail.Authorize(ctx, grant, s)
}

func (g guarded) Decode(a payment.Authorization, grant payment.Grant) (t payment.Terms, err error) {
	defer recovered(&err, "the rail")
	return g.Rail.Decode(a, grant)
}

func (g guarded) Receipt(resp *http.Response, grant payment.Grant) (r payment.Receipt, err error) {
	defer recovered(&err, "the rail")
	return g.Rail.Receipt(resp, grant)
}
