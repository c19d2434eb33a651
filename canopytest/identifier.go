package canopytest

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
)

// PaymentID says what a seller makes of the payment-identifier extension.
type PaymentID uint8

// The choices. The zero value does not declare the extension.
const (
	PaymentIDNone     PaymentID = iota
	PaymentIDOptional           // an id is taken
	PaymentIDRequired           // a payment without one is refused with 400
)

const identifierKey = "payment-identifier"

// identified is what was answered to a payment with an id.
type identified struct {
	header string
	answer Answer
	done   bool
}

var identifierForm = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)

// extensions are those that the seller declares.
func (s *Seller) extensions() map[string]json.RawMessage {
	out := maps.Clone(s.config.Extensions)
	if s.config.PaymentID == PaymentIDNone {
		return out
	}
	if out == nil {
		out = make(map[string]json.RawMessage)
	}
	out[identifierKey] = mustJSON(object{
		{"info", object{{"required", s.config.PaymentID == PaymentIDRequired}}},
		{"schema", object{
			{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"type", "object"},
			{"properties", object{
				{"required", object{{"type", "boolean"}}},
				{"id", object{{"type", "string"}, {"minLength", 16}, {"maxLength", 128}, {"pattern", "^[a-zA-Z0-9_-]+$"}}},
			}},
			{"required", []string{"required"}},
		}},
	})
	return out
}

// echoed reports whether the payment's extensions keep what was declared: info
// may gain keys and lose or change none. Others, and none at all, are taken.
func (s *Seller) echoed(p *payload) bool {
	sent, _ := value(p.fields["extensions"]).(map[string]any)
	for key, declared := range s.extensions() {
		if echo, ok := sent[key]; ok && !contains(info(echo), info(value(declared))) {
			return false
		}
	}
	return true
}

func info(extension any) any {
	if o, ok := extension.(map[string]any); ok {
		if v, ok := o["info"]; ok {
			return v
		}
	}
	return extension
}

// identify applies the payment-identifier extension: the same id with the same
// payment is answered as before, with another one it is a conflict.
func (x *Exchange) identify() (Answer, bool) {
	s := x.seller
	if s.config.PaymentID == PaymentIDNone {
		return Answer{}, false
	}
	id := x.paymentID()
	switch {
	case id == "" && s.config.PaymentID == PaymentIDRequired:
		return x.fail(http.StatusBadRequest, "payment_identifier_required"), true
	case id == "":
		return Answer{}, false
	case !identifierForm.MatchString(id):
		return x.fail(http.StatusBadRequest, "invalid_payment_identifier"), true
	}
	header := s.paymentHeader(x.Request)
	s.mu.Lock()
	known, ok := s.answered[id]
	if !ok {
		s.answered[id] = identified{header: header}
	}
	s.mu.Unlock()
	switch {
	case ok && known.header != header:
		return x.fail(http.StatusConflict, "payment_identifier_conflict"), true
	case known.done:
		return Answer{known.answer.Status, known.answer.Header.Clone(), known.answer.Body}, true
	}
	return Answer{}, false
}

func (x *Exchange) paymentID() string {
	sent, _ := value(x.payload.fields["extensions"]).(map[string]any)
	fields, _ := info(sent[identifierKey]).(map[string]any)
	id, _ := fields["id"].(string)
	return id
}

// remember keeps what was answered to a payment with an id.
func (x *Exchange) remember(a Answer) {
	s := x.seller
	id := x.paymentID()
	if s.config.PaymentID == PaymentIDNone || id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered[id] = identified{header: s.paymentHeader(x.Request), done: true, answer: Answer{a.Status, a.Header.Clone(), a.Body}}
}

// fail answers with an HTTP error and no word of payment.
func (x *Exchange) fail(status int, code string) Answer {
	x.note(func(r *Request) { r.Code = code })
	return newAnswer(status, "application/json; charset=utf-8", mustJSON(object{{"error", code}}))
}
