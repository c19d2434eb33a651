package canopy

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// repeated is how many characters of a credential in a row are no chance.
const repeated = 32

const redacted = "(the seller repeated the payment that it was sent)"

// holdsCredential reports whether text holds a part of a's header, or of the signature
// in it: whoever reads that could settle the payment.
func holdsCredential(text string, a payment.Authorization) bool {
	if len(text) < repeated {
		return false
	}
	secrets := []string{strings.ToLower(a.Value)}
	if doc, err := base64.StdEncoding.DecodeString(a.Value); err == nil {
		if _, sig, ok := bytes.Cut(doc, []byte(`"signature":"0x`)); ok && len(sig) > 130 {
			secrets = append(secrets, strings.ToLower(string(sig[:130])))
		}
	}
	text = strings.ToLower(text)
	for i := range len(text) - repeated + 1 {
		for _, s := range secrets {
			if strings.Contains(s, text[i:i+repeated]) {
				return true
			}
		}
	}
	return false
}

// redact is r without words that repeat the payment.
func redact(r payment.Receipt, a payment.Authorization) payment.Receipt {
	if holdsCredential(r.Message, a) {
		r.Message = redacted
	}
	if holdsCredential(r.Code, a) {
		r.Code = "repeated_payment"
	}
	return r
}

// quiet is an error whose text would give a credential away.
type quiet struct{ error }

func (quiet) Error() string   { return "the transport failed: " + redacted }
func (q quiet) Unwrap() error { return q.error }

// GoString keeps %#v from looking inside.
func (q quiet) GoString() string { return q.Error() }

func redactError(err error, a payment.Authorization) error {
	if err != nil && holdsCredential(err.Error(), a) {
		return quiet{err}
	}
	return err
}
