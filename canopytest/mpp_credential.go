package canopytest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// credential is what answers a challenge, read as JavaScript reads it.
type credential struct {
	challenge mppChallenge
	payload   map[string]json.RawMessage
	kind      string // of the payload
	source    string
}

var errCredential = errors.New("canopytest: the credential is malformed")

// credentials are the values of the scheme Payment in the field that the seller
// asks for them in.
func (s *Seller) credentials(r *http.Request) []string {
	if s.protocol&MPP == 0 {
		return nil
	}
	name := s.config.MPP.Header
	if name == "" {
		name = "Authorization"
	}
	return paymentScheme(r.Header.Values(name))
}

// paymentScheme are those of the values that are of the scheme Payment.
func paymentScheme(values []string) []string {
	var out []string
	for _, v := range values {
		if scheme, _, _ := strings.Cut(strings.TrimSpace(v), " "); strings.EqualFold(scheme, "Payment") {
			out = append(out, v)
		}
	}
	return out
}

// readCredential reads Payment and base64 of any alphabet, padded or not, over
// JSON.
func readCredential(header string) (*credential, error) {
	_, encoded, _ := strings.Cut(strings.TrimSpace(header), " ")
	data, ok := anyBase64(encoded)
	var doc, challenge, body map[string]json.RawMessage
	if !ok || json.Unmarshal(data, &doc) != nil || json.Unmarshal(doc["challenge"], &challenge) != nil || json.Unmarshal(doc["payload"], &body) != nil {
		return nil, errCredential
	}
	c := &credential{payload: body, source: textOf(doc["source"]), kind: textOf(body["type"])}
	text := func(key string) string { return textOf(challenge[key]) }
	c.challenge = mppChallenge{
		id: text("id"), realm: text("realm"), method: text("method"), intent: text("intent"), request: text("request"),
		expires: text("expires"), digest: text("digest"), description: text("description"), opaque: text("opaque"), header: text("header"),
	}
	if c.challenge.id == "" || c.challenge.method == "" || c.challenge.request == "" {
		return nil, errCredential
	}
	return c, nil
}

func anyBase64(s string) ([]byte, bool) {
	s = strings.TrimRight(strings.TrimSpace(s), "=")
	s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	data, err := base64.RawStdEncoding.DecodeString(s)
	return data, err == nil
}

// text is a string field of the payload, empty where it is none.
func (c *credential) text(key string) string { return textOf(c.payload[key]) }

// bytes is a field of the payload in hex.
func (c *credential) bytes(key string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(c.text(key), "0x")
	b, err := hex.DecodeString(digits)
	return b, ok && err == nil && len(b) > 0
}

// tempoTx is the transaction that the payload carries. The older envelope has
// the sender and a mark behind it.
func (c *credential) tempoTx() (*TempoTx, error) {
	raw, ok := c.bytes("signature")
	if !ok || c.kind != "transaction" {
		return nil, errCredential
	}
	if mark := []byte{0xfe, 0xef, 0xee, 0xfe, 0xef, 0xee}; raw[0] == 0x76 && bytes.HasSuffix(raw, mark) {
		raw = raw[:max(len(raw)-len(mark)-20, 0)]
	}
	return DecodeTempo(raw)
}

// authorization is the EIP-3009 authorization of token that the payload is.
func (c *credential) authorization(token payment.Address) (Authorization, error) {
	if c.kind != "authorization" {
		return Authorization{}, errCredential
	}
	p := payload{fields: map[string]json.RawMessage{"payload": mustJSON(map[string]any{
		"authorization": c.payload, "signature": c.text("signature"),
	})}}
	return p.authorization(token)
}

// did is the account that the source names on a chain, in the checksum's
// spelling or in lower case.
func (c *credential) did(chain uint64) (payment.Address, bool) {
	rest, ok := strings.CutPrefix(c.source, "did:pkh:"+string(payment.EVMChain(chain))+":")
	if !ok {
		return payment.Address{}, false
	}
	a, err := payment.ParseAddress(rest)
	return a, err == nil
}

// differs names the first field in which the credential's request is not that
// of q; empty where none is.
func (c *credential) differs(q *requirement) string {
	asked, _ := value(jcs(q.request("charge"))).(map[string]any)
	data, _ := anyBase64(c.challenge.request)
	echoed, ok := value(data).(map[string]any)
	if !ok {
		return "request"
	}
	for _, key := range []string{"amount", "currency", "recipient", "methodDetails", "externalId", "description"} {
		if !reflect.DeepEqual(asked[key], echoed[key]) {
			return key
		}
	}
	return ""
}
