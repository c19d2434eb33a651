package canopytest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/canopy-go/canopy/payment"
)

// v1 is the entry of accepts in version 1.
func (q *requirement) v1(x *Exchange) json.RawMessage {
	return mustJSON(object{
		{"scheme", "exact"}, {"network", q.chain.id.Name()}, {"maxAmountRequired", q.amount.String()},
		{"resource", x.url(false)}, {"description", x.route.Description}, {"mimeType", x.route.MimeType},
		{"payTo", q.payTo.String()}, {"maxTimeoutSeconds", q.timeout}, {"asset", q.asset.Address.String()},
		{"outputSchema", object{{"input", object{
			{"type", "http"}, {"method", x.Request.Method}, {"discoverable", true},
		}}}},
		{"extra", object{{"name", q.asset.Name}, {"version", q.asset.Version}}},
	})
}

// challengeV1 is a 402 with its terms in the body. A refusal by verification
// names the payer; nothing else tells it from a first quote.
func (x *Exchange) challengeV1(code string, payer *payment.Address) Answer {
	x.note(func(r *Request) { r.Code = code })
	return newAnswer(http.StatusPaymentRequired, "application/json; charset=utf-8", x.termsV1(code, payer))
}

func (x *Exchange) termsV1(code string, payer *payment.Address) []byte {
	accepts := append([]json.RawMessage{}, x.route.Verbatim...)
	for i := range x.accepts {
		if q := &x.accepts[i]; !x.charges(q) {
			accepts = append(accepts, q.v1(x))
		}
	}
	terms := object{{"x402Version", 1}, {"error", code}, {"accepts", accepts}}
	if payer != nil {
		terms = append(terms, field{"payer", payer.String()})
	}
	return mustJSON(terms)
}

// facilitatorThrew is what the middleware of version 1 makes of a facilitator
// that threw, whatever the cause.
const facilitatorThrew = "Failed to settle payment: 500 Internal Server Error"

// answerV1 is the flow of x402-express 1.2. It never looks at the nonce before
// settling, so an equal payment runs the handler again.
func (x *Exchange) answerV1() Answer {
	header := x.seller.paymentHeader(x.Request)
	if x.payload == nil {
		_, err := readPayload(header)
		return x.challengeV1(err.Error(), nil)
	}
	if _, ok := x.payload.fields["payload"]; !ok || x.payload.text("scheme") == "" {
		return x.challengeV1("Invalid input", nil)
	}
	if name := x.payload.text("network"); !knownV1(name) {
		return x.challengeV1("Invalid network", nil)
	}
	if x.chosen == nil {
		return x.challengeV1("Unable to find matching payment requirements", nil)
	}
	auth, err := x.payload.authorization(x.chosen.asset.Address)
	if err != nil {
		return x.challengeV1("Invalid input", nil)
	}
	if code := x.verifyV1(auth); code != "" {
		return x.challengeV1(code, &auth.From)
	}
	a := x.Serve()
	if a.Status >= 400 {
		return a
	}
	paid := x.settleV1(auth)
	if paid.code != "" {
		return x.challengeV1(paid.code, nil)
	}
	a.Header.Set("X-Payment-Response", base64.StdEncoding.EncodeToString(mustJSON(paid.v1())))
	return a
}

// knownV1 reports whether name is one of the networks of version 1, which are
// spelled by name and not by number.
func knownV1(name string) bool {
	c, err := payment.ChainByName(name)
	return err == nil && string(c) != name
}

// verifyV1 is the facilitator's opinion in version 1: more than the price is
// taken too.
func (x *Exchange) verifyV1(a Authorization) string {
	q := x.chosen
	now := q.chain.clock.Now().Unix()
	switch {
	case !a.signedBy(q.asset, true):
		return "invalid_exact_evm_payload_signature"
	case a.To != q.payTo:
		return "invalid_exact_evm_payload_recipient_mismatch"
	case a.ValidBefore.Cmp(seconds(now+6)) < 0:
		return "invalid_exact_evm_payload_authorization_valid_before"
	case a.ValidAfter.Cmp(seconds(now)) > 0:
		return "invalid_exact_evm_payload_authorization_valid_after"
	case q.chain.balance(a.Token, a.From).Cmp(q.amount) < 0:
		return "insufficient_funds"
	case a.Value.Cmp(q.amount) < 0:
		return "invalid_exact_evm_payload_authorization_value"
	}
	return ""
}

// v1 is the receipt in version 1.
func (s *settlement) v1() object {
	return object{{"success", true}, {"transaction", s.tx}, {"network", s.networkV1}, {"payer", s.payer.String()}}
}
