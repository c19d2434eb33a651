package canopytest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// v2 is the entry of accepts in version 2.
func (q *requirement) v2() json.RawMessage {
	extra := object{{"name", q.asset.Name}, {"version", q.asset.Version}}
	if q.upfront {
		extra = append(extra, field{"paymentFlow", "upfront"})
	}
	return mustJSON(object{
		{"scheme", "exact"}, {"network", string(q.chain.id)}, {"amount", q.amount.String()},
		{"asset", q.asset.Address.String()}, {"payTo", q.payTo.String()},
		{"maxTimeoutSeconds", q.timeout}, {"extra", extra},
	})
}

// challengeV2 is a 402 with its terms in PAYMENT-REQUIRED and nothing in the
// body.
func (x *Exchange) challengeV2(code string) Answer {
	return x.stateV2(x.termsV2(code), code)
}

func (x *Exchange) stateV2(terms []byte, code string) Answer {
	x.note(func(r *Request) { r.Code = code })
	a := newAnswer(http.StatusPaymentRequired, "application/json; charset=utf-8", []byte("{}"))
	a.Header.Set("Payment-Required", base64.StdEncoding.EncodeToString(terms))
	a.Header.Set("Cache-Control", "no-store")
	return a
}

// termsV2 is the JSON of PAYMENT-REQUIRED.
func (x *Exchange) termsV2(code string) []byte {
	accepts := append([]json.RawMessage{}, x.route.Verbatim...)
	for i := range x.accepts {
		if q := &x.accepts[i]; !x.charges(q) {
			accepts = append(accepts, q.v2())
		}
	}
	var extensions any
	if declared := x.seller.extensions(); len(declared) > 0 {
		extensions = declared
	}
	return mustJSON(object{
		{"x402Version", 2}, {"error", code},
		{"resource", object{
			{"url", x.url(true)}, {"description", x.route.Description}, {"mimeType", x.route.MimeType},
		}},
		{"accepts", accepts}, {"extensions", extensions},
	})
}

// url is what the client asked for, as the server sees it.
func (x *Exchange) url(query bool) string {
	scheme := "http"
	if x.Request.TLS != nil {
		scheme = "https"
	}
	target := x.Request.URL.EscapedPath()
	if query {
		target = x.Request.URL.RequestURI()
	}
	return scheme + "://" + x.Request.Host + target
}

// answerV2 is the flow of @x402/express 2.27.
func (x *Exchange) answerV2() Answer {
	if x.payload == nil {
		// Nothing was sent, or nothing that can be decoded: the same answer.
		return x.challengeV2("Payment required")
	}
	switch x.payload.version {
	case 2.0:
	case nil:
		return x.challengeV2("Unsupported x402 version: undefined")
	default:
		return x.challengeV2("Unsupported x402 version: " + fmt.Sprint(x.payload.version))
	}
	if x.chosen == nil {
		return x.challengeV2("No matching payment requirements")
	}
	if !x.seller.echoed(x.payload) {
		return x.challengeV2("extension_echo_mismatch")
	}
	if a, done := x.identify(); done {
		return a
	}
	auth, err := x.payload.authorization(x.chosen.asset.Address)
	if err != nil {
		return x.challengeV2(err.Error())
	}
	if code := x.verifyV2(auth, true); code != "" {
		return x.challengeV2(code)
	}
	var paid *settlement
	if x.chosen.upfront {
		if paid = x.settleV2(auth); paid.code != "" {
			return x.refuseV2(paid)
		}
	}
	a := x.Serve()
	if a.Status >= 400 {
		if paid != nil {
			x.receiptV2(&a, paid)
		}
		return a
	}
	if paid == nil {
		if paid = x.settleV2(auth); paid.code != "" {
			return x.refuseV2(paid)
		}
	}
	x.receiptV2(&a, paid)
	x.remember(a)
	return a
}

// verifyV2 is the facilitator's opinion: empty, or an error code. The order is
// that of @x402/evm 2.27; at settling it is asked again without simulation.
func (x *Exchange) verifyV2(a Authorization, simulate bool) string {
	q := x.chosen
	now := q.chain.clock.Now().Unix()
	switch {
	case !a.signedBy(q.asset, true):
		return "invalid_exact_evm_signature"
	case a.To != q.payTo:
		return "invalid_exact_evm_recipient_mismatch"
	case a.ValidBefore.Cmp(seconds(now+6)) < 0:
		return "invalid_exact_evm_payload_authorization_valid_before"
	case a.ValidAfter.Cmp(seconds(now)) > 0:
		return "invalid_exact_evm_payload_authorization_valid_after"
	case a.Value != q.amount:
		return "invalid_exact_evm_payload_authorization_value_mismatch"
	case !simulate || q.chain.Simulate(a) == nil:
		return ""
	case q.chain.AuthorizationState(a.Token, a.From, a.Nonce):
		return "invalid_exact_evm_nonce_already_used"
	case q.chain.balance(a.Token, a.From).Cmp(q.amount) < 0:
		return "invalid_exact_evm_insufficient_balance"
	}
	return "invalid_exact_evm_transaction_simulation_failed"
}

// refuseV2 is a 402 after verification: only PAYMENT-RESPONSE, and no terms.
func (x *Exchange) refuseV2(s *settlement) Answer {
	x.note(func(r *Request) { r.Code = s.code })
	a := newAnswer(http.StatusPaymentRequired, "application/json; charset=utf-8", []byte("{}"))
	a.Header.Set("Payment-Response", base64.StdEncoding.EncodeToString(mustJSON(s.v2())))
	a.Header.Set("Cache-Control", "no-store")
	return a
}

// receiptV2 puts the receipt on a.
func (x *Exchange) receiptV2(a *Answer, s *settlement) {
	a.Header.Set("Payment-Response", base64.StdEncoding.EncodeToString(mustJSON(s.v2())))
	cache := a.Header.Get("Cache-Control")
	switch {
	case cache == "":
		a.Header.Set("Cache-Control", "private")
	case !strings.Contains(strings.ToLower(cache), "private"):
		a.Header.Set("Cache-Control", cache+", private")
	}
}

// v2 is the receipt in version 2.
func (s *settlement) v2() object {
	if s.code != "" {
		return object{
			{"success", false}, {"errorReason", s.code}, {"errorMessage", s.code}, {"payer", s.payer.String()},
			{"transaction", s.tx}, {"network", s.network},
		}
	}
	return object{{"success", true}, {"payer", s.payer.String()}, {"transaction", s.tx}, {"network", s.network}}
}
