// Package mppserver is the seller's half of the Payment HTTP authentication
// scheme, for the sellers of tests: it writes challenges and receipts and reads
// credentials. It shares no code with the buyer's half, so that each is held
// against the other.
package mppserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Challenge is one challenge. Request and Opaque are as on the wire; what is
// empty is absent.
type Challenge struct {
	ID          string `json:"id"`
	Realm       string `json:"realm"`
	Method      string `json:"method"`
	Intent      string `json:"intent"`
	Request     string `json:"request"`
	Expires     string `json:"expires,omitempty"`
	Digest      string `json:"digest,omitempty"`
	Opaque      string `json:"opaque,omitempty"`
	Header      string `json:"header,omitempty"` // of the credential; empty for Authorization
	Description string `json:"description,omitempty"`
}

// Encode is v in the canonical form of JSON, as base64url: a request, an opaque
// or a receipt as it stands on the wire.
func Encode(v any) (string, error) {
	b, err := Canonical(v)
	return base64.RawURLEncoding.EncodeToString(b), err
}

// MAC is the id of c under secret. It binds all of c but the description.
func (c Challenge) MAC(secret []byte) string {
	parts := []string{c.Realm, c.Method, c.Intent, c.Request, c.Expires, c.Digest}
	if c.Header != "" {
		parts = append(parts, c.Header)
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(strings.Join(append(parts, c.Opaque), "|")))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Sign is c with its id.
func (c Challenge) Sign(secret []byte) Challenge {
	c.ID = c.MAC(secret)
	return c
}

// Issued reports whether c was signed under secret.
func (c Challenge) Issued(secret []byte) bool {
	return hmac.Equal([]byte(c.ID), []byte(c.MAC(secret)))
}

// Line is the value of the WWW-Authenticate header that states c: one byte for
// each character up to U+00FF, and \uXXXX for the others.
func (c Challenge) Line() string {
	b := []byte("Payment")
	sep := byte(' ')
	for _, p := range [...]struct{ name, value string }{
		{"id", c.ID}, {"realm", c.Realm}, {"method", c.Method}, {"intent", c.Intent}, {"request", c.Request}, {"description", c.Description},
		{"digest", c.Digest}, {"expires", c.Expires}, {"header", c.Header}, {"opaque", c.Opaque},
	} {
		if p.value == "" {
			continue
		}
		if b = append(b, sep); sep == ',' {
			b = append(b, ' ')
		}
		b = append(append(b, p.name...), `="`...)
		b = append(appendQuoted(b, p.value), '"')
		sep = ','
	}
	return string(b)
}

func appendQuoted(b []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r <= 0xff:
			b = append(b, byte(r))
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
	}
	return b
}
