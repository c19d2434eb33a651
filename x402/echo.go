package x402

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

// An Echo is what an authorization repeats to the seller: one digit, the
// version, and then the members that stand in the payment's document beside
// x402Version and payload, each value as the seller wrote it:
//
//	2"accepted":{…},"resource":{…},"extensions":{…}
//	1"scheme":"exact","network":"base"
//
// The byte 0, which JSON never holds, stands where the payment's identifier
// goes.
const idMark = "\x00"

// identifier is the extension that wants an id from the client.
const identifier = "payment-identifier"

// echo is what all entries of one challenge repeat.
type echo struct {
	version              int
	resource, extensions string // empty where the seller has none
}

func (c challenge) echo() echo {
	e := echo{version: c.version}
	if c.version == 1 {
		return e
	}
	if !absent(c.resource) {
		e.resource = c.resource.Raw()
	}
	if !absent(c.extensions) {
		e.extensions = withID(c.extensions)
	}
	return e
}

// of is the Echo of the entry u.
func (e echo) of(u usable) ([]byte, skip) {
	if e.version == 1 {
		return jsonscan.AppendString([]byte(`1"scheme":"exact","network":`), u.network), skip{}
	}
	const accepted, resource, extensions = `2"accepted":`, `,"resource":`, `,"extensions":`
	n := len(accepted) + len(u.raw) + len(resource) + len(e.resource) + len(extensions) + len(e.extensions)
	if n > payment.MaxEcho-64 { // the id is longer than its mark
		return nil, skipped("echo_too_large", "the seller wants more than 16 KiB echoed")
	}
	b := make([]byte, 0, n)
	b = append(append(b, accepted...), u.raw...)
	if e.resource != "" {
		b = append(append(b, resource...), e.resource...)
	}
	if e.extensions != "" {
		b = append(append(b, extensions...), e.extensions...)
	}
	return b, skip{}
}

// withID is the extensions as they were written, with the mark as the id of
// the payment-identifier, if that is among them and has no id of the seller's.
// Its members are then written anew, their values as they were.
func withID(extensions jsonscan.Value) string {
	if extensions.Kind() != jsonscan.Object || !strings.Contains(extensions.Raw(), identifier) {
		return extensions.Raw()
	}
	return rewrite(extensions, identifier, "", func(ext jsonscan.Value) string {
		return rewrite(ext, "info", `{"id":"`+idMark+`"}`, func(info jsonscan.Value) string {
			if info.Kind() != jsonscan.Object || has(info, "id") {
				return info.Raw()
			}
			return rewrite(info, "id", `"`+idMark+`"`, nil)
		})
	})
}

// rewrite is the object v with the member key passed through f, or with missing
// as that member where it has none and missing is not empty. A v that is no
// object is left as it is.
func rewrite(v jsonscan.Value, key, missing string, f func(jsonscan.Value) string) string {
	if v.Kind() != jsonscan.Object {
		return v.Raw()
	}
	b := []byte{'{'}
	member := func(k, val string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = jsonscan.AppendString(b, k)
		b = append(b, ':')
		b = append(b, val...)
	}
	found := false
	v.Object(func(k string, val jsonscan.Value) error {
		raw := val.Raw()
		if k == key && f != nil {
			found = true
			raw = f(val)
		}
		member(k, raw)
		return nil
	})
	if !found && missing != "" {
		member(key, missing)
	}
	return string(append(b, '}'))
}

// has reports whether the object v has a member key, in any case of letters.
func has(v jsonscan.Value, key string) (found bool) {
	v.Object(func(k string, _ jsonscan.Value) error {
		found = found || strings.EqualFold(k, key)
		return nil
	})
	return found
}

// isEcho reports whether echo is one of that version.
func isEcho(echo []byte, version int) bool {
	return len(echo) > 2 && len(echo) <= payment.MaxEcho && (version == 1 || version == 2) && int(echo[0]-'0') == version && echo[1] == '"'
}

// appendEcho appends the members that echo stands for.
func appendEcho(dst, echo []byte, id payment.ID) []byte {
	rest := echo[1:]
	for {
		i := bytes.IndexByte(rest, idMark[0])
		if i < 0 {
			return append(dst, rest...)
		}
		dst = append(dst, rest[:i]...)
		dst = append(dst, paymentID(id)...)
		rest = rest[i+1:]
	}
}

// paymentID is the id that a seller gets for a payment. It depends on nothing
// but the payment's own, so that bytes signed again after a crash carry the
// same one.
func paymentID(id payment.ID) string {
	sum := sha256.Sum256([]byte("canopy.x402.payment-identifier.v1\x00" + id))
	return "pay_" + hex.EncodeToString(sum[:16])
}
