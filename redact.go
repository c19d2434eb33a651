package canopy

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// repeated is how many characters of a credential in a row are no chance.
const repeated = 32

// maxSearched bounds the text that is searched. Longer text of a seller is left
// out unread.
const maxSearched = 4 << 10

const (
	redacted = "(the seller repeated the payment that it was sent)"
	tooLong  = "(the seller's words are too long to repeat)"
)

// holdsCredential reports whether text holds a part of a's header, or of the signature
// in it: whoever reads that could settle the payment.
func holdsCredential(text string, a payment.Authorization) bool {
	if len(text) < repeated {
		return false
	}
	secrets := []string{strings.ToLower(a.Value)}
	if len(a.Raw) > 0 {
		secrets = append(secrets, hex.EncodeToString(a.Raw))
	}
	if _, sig, ok := bytes.Cut(decoded(a.Value), []byte(`"signature":"0x`)); ok {
		sig, _, _ = bytes.Cut(sig, []byte(`"`))
		secrets = append(secrets, strings.ToLower(string(sig)))
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

// decoded is the document in a header, in whichever base64 its rail writes; nil
// where it is none.
func decoded(value string) []byte {
	if doc, err := base64.StdEncoding.DecodeString(value); err == nil {
		return doc
	}
	_, value, _ = strings.Cut(value, " ") // of a scheme
	doc, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return nil
	}
	return doc
}

// redact is r without words that repeat the payment.
func redact(r payment.Receipt, a payment.Authorization) payment.Receipt {
	switch {
	case len(r.Message) > maxSearched:
		r.Message = tooLong
	case holdsCredential(r.Message, a):
		r.Message = redacted
	}
	if len(r.Code) > maxSearched || holdsCredential(r.Code, a) {
		r.Code = "repeated_payment"
	}
	return r
}

// secrets are the authorizations that were sent for one payment.
type secrets []payment.Authorization

func (s secrets) redact(r payment.Receipt) payment.Receipt {
	for _, a := range s {
		r = redact(r, a)
	}
	return r
}

func (s secrets) redactError(err error) error {
	for _, a := range s {
		err = redactError(err, a)
	}
	return err
}

// quiet is an error whose text is not fit to be shown, and why.
type quiet struct {
	error
	why string
}

func (q quiet) Error() string { return "the transport failed: " + q.why }
func (q quiet) Unwrap() error { return q.error }

// GoString keeps %#v from looking inside.
func (q quiet) GoString() string { return q.Error() }

func redactError(err error, a payment.Authorization) error {
	if err == nil {
		return nil
	}
	switch text := err.Error(); {
	case len(text) > maxSearched:
		return quiet{err, tooLong}
	case holdsCredential(text, a):
		return quiet{err, redacted}
	}
	return err
}
