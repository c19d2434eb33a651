package canopytest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// payload is a payment header, read as JavaScript reads it: keys by their exact
// case, the last of two equal ones, numbers as doubles.
type payload struct {
	fields  map[string]json.RawMessage
	version any
}

// refusal is an error in the words that go over the wire.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	errBase64  refusal = "Invalid character"
	errJSON    refusal = "Unexpected token in JSON"
	errPayload refusal = "invalid_payload"
)

// readPayload reads base64 of any alphabet, padded or not, over JSON.
func readPayload(header string) (*payload, error) {
	s := strings.TrimRight(strings.TrimSpace(header), "=")
	s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	data, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil, errBase64
	}
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, errJSON
	}
	p := &payload{fields: make(map[string]json.RawMessage)}
	if _, ok := doc.(map[string]any); ok {
		if err := json.Unmarshal(data, &p.fields); err != nil {
			return nil, errJSON
		}
	}
	p.version = value(p.fields["x402Version"])
	return p, nil
}

// value is raw as JavaScript holds it, nil where it is absent.
func value(raw json.RawMessage) any {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// text is a string field of the payload, empty where it is none.
func (p *payload) text(key string) string {
	s, _ := value(p.fields[key]).(string)
	return s
}

// matchesV2 compares accepted with q as @x402/core does: everything but extra
// equal as JSON values, and all of extra that was stated still there.
func (p *payload) matchesV2(q *requirement) bool {
	accepted, ok := value(p.fields["accepted"]).(map[string]any)
	if !ok || p.version != 2.0 {
		return false
	}
	required := value(q.v2()).(map[string]any)
	requiredExtra, acceptedExtra := required["extra"], accepted["extra"]
	delete(required, "extra")
	delete(accepted, "extra")
	return reflect.DeepEqual(required, accepted) && contains(acceptedExtra, requiredExtra)
}

// matchesV1 compares what x402 1.2 compares: scheme and network.
func (p *payload) matchesV1(q *requirement) bool {
	return p.text("scheme") == "exact" && p.text("network") == q.chain.id.Name()
}

// contains reports whether actual has all that expected has; objects may have
// more.
func contains(actual, expected any) bool {
	want, ok := expected.(map[string]any)
	if !ok {
		return reflect.DeepEqual(actual, expected)
	}
	have, ok := actual.(map[string]any)
	if !ok {
		return false
	}
	for k, v := range want {
		w, ok := have[k]
		if !ok || !contains(w, v) {
			return false
		}
	}
	return true
}

// authorization reads payload.authorization and payload.signature for token.
func (p *payload) authorization(token payment.Address) (Authorization, error) {
	var body, auth map[string]json.RawMessage
	if json.Unmarshal(p.fields["payload"], &body) != nil || json.Unmarshal(body["authorization"], &auth) != nil {
		return Authorization{}, errPayload
	}
	a := Authorization{Token: token}
	var err error
	read := func(key string, dst *payment.Units) {
		u, e := bigInt(auth[key])
		*dst = u
		err = errors.Join(err, e)
	}
	address := func(key string, dst *payment.Address) {
		s, _ := value(auth[key]).(string)
		v, e := payment.ParseAddressLoose(s)
		*dst = v
		err = errors.Join(err, e)
	}
	bytes := func(raw json.RawMessage) []byte {
		s, _ := value(raw).(string)
		digits, ok := strings.CutPrefix(s, "0x")
		b, e := hex.DecodeString(digits)
		if !ok || e != nil {
			err = errors.Join(err, errPayload)
		}
		return b
	}
	address("from", &a.From)
	address("to", &a.To)
	read("value", &a.Value)
	read("validAfter", &a.ValidAfter)
	read("validBefore", &a.ValidBefore)
	if nonce := bytes(auth["nonce"]); len(nonce) == 32 {
		a.Nonce = [32]byte(nonce)
	} else {
		err = errors.Join(err, errPayload)
	}
	a.Signature = bytes(body["signature"])
	if err != nil {
		return Authorization{}, errPayload
	}
	return a, nil
}

// bigInt reads what JavaScript's BigInt reads: decimal with leading zeros, hex
// after 0x, or a whole number.
func bigInt(raw json.RawMessage) (payment.Units, error) {
	s := string(raw)
	if v, ok := value(raw).(string); ok {
		s = strings.TrimSpace(v)
	}
	base, digits := 10, s
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		base, digits = 16, hex
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok || strings.HasPrefix(digits, "+") || strings.Contains(digits, "_") {
		return payment.Units{}, errPayload
	}
	u, ok := payment.UnitsFromBig(n)
	if !ok {
		return payment.Units{}, errPayload
	}
	return u, nil
}
