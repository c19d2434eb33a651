package x402

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/canopy-go/canopy/internal/bounded"
	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// codeStatus is the code of an answer that claims success under an error
// status.
const codeStatus = "receipt_with_error_status"

// Submits tells why an authorization on chain cannot be submitted, or nil. It
// does no I/O.
func (r *Rail) Submits(chain payment.ChainID) error {
	if r.settle[chain] == nil {
		return fmt.Errorf("%w for %s (facilitator in its [[chain]], x402.Config.Facilitators)", ErrNoFacilitator, chain.Name())
	}
	return nil
}

// Submit hands an authorization of a direct transfer to the facilitator of its
// chain, and returns what that says of the settlement. To submit the same one
// again is safe: its slot moves money once. The error is ErrNoFacilitator or
// ErrGrant, with which nothing was sent, or a *FacilitatorError, with which it
// may have been. A receipt proves nothing but what its Claim says: a refusal
// may be followed by settlement. Its Message and Code are empty where they would
// repeat a part of the facilitator's URL or headers.
func (r *Rail) Submit(ctx context.Context, a payment.Authorization) (payment.Receipt, error) {
	if err := r.Submits(a.Slot.Chain); err != nil {
		return payment.Receipt{}, err
	}
	f := r.settle[a.Slot.Chain]
	body, grant, err := settleRequest(a)
	if err != nil {
		return payment.Receipt{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.settle, bytes.NewReader(body))
	if err != nil {
		return payment.Receipt{}, f.failed(0, errors.New("its URL cannot be asked"))
	}
	for name, values := range f.header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return payment.Receipt{}, f.failed(0, err)
	}
	defer resp.Body.Close()
	answer, cut, err := bounded.ReadAll(resp.Body, maxDocument)
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return payment.Receipt{}, f.failed(resp.StatusCode, errors.New("a redirect is not followed"))
	case err != nil:
		return payment.Receipt{}, f.failed(resp.StatusCode, err)
	case cut:
		return payment.Receipt{}, f.failed(resp.StatusCode, errTooLarge)
	}
	// Some answer a refusal with an error status and the same body.
	words, err := readResponse(string(bytes.TrimSpace(answer)))
	if err != nil {
		return payment.Receipt{}, f.failed(resp.StatusCode, errors.New("it is not a settlement response"))
	}
	out := words.receipt(grant)
	f.silence(&out, words)
	if resp.StatusCode >= 400 && out.Claim == payment.ClaimPaid {
		out.Claim, out.Code = payment.ClaimNone, codeStatus
	}
	return out, nil
}

// settleRequest is the body of /settle for a, and what its answer is held
// against.
func settleRequest(a payment.Authorization) ([]byte, payment.Grant, error) {
	doc, err := base64.StdEncoding.Strict().DecodeString(a.Value)
	if err != nil {
		return nil, payment.Grant{}, fmt.Errorf("%w: the authorization is not base64", ErrGrant)
	}
	d, err := readSubmitted(doc)
	if err != nil || d.version != "2" || d.accepted == "" || d.amount.IsZero() {
		return nil, payment.Grant{}, fmt.Errorf("%w: it is not an authorization of version 2", ErrGrant)
	}
	body := make([]byte, 0, len(doc)+len(d.accepted)+128)
	body = append(body, `{"x402Version":2,"paymentPayload":`...)
	body = append(body, doc...)
	body = append(body, `,"paymentRequirements":`...)
	body = append(body, d.accepted...)
	body = append(body, '}')
	return body, payment.Grant{
		Payer: a.Slot.From,
		Terms: payment.Terms{Rail: Name, Asset: payment.Asset{Chain: a.Slot.Chain, Address: a.Slot.Token}, Amount: d.amount},
	}, nil
}

// submitted is what is read of a document that is to be submitted.
type submitted struct {
	version, accepted string
	amount            payment.Units
}

func readSubmitted(doc []byte) (d submitted, err error) {
	v, err := jsonscan.Parse(doc, jsonscan.Limits{Size: payment.MaxEcho + 1024})
	if err != nil {
		return d, err
	}
	var payload, authorization jsonscan.Value
	err = v.Object(func(key string, val jsonscan.Value) error {
		switch key {
		case "x402Version":
			d.version = val.Raw()
		case "accepted":
			d.accepted = val.Raw()
		case "payload":
			payload = val
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	err = payload.Object(func(key string, val jsonscan.Value) error {
		if key == "authorization" {
			authorization = val
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	err = authorization.Object(func(key string, val jsonscan.Value) (err error) {
		if key == "value" {
			d.amount, err = payment.ParseUnits(text(val))
		}
		return err
	})
	return d, err
}
