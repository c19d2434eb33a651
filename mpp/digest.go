package mpp

import (
	"encoding/base64"
	"strings"
)

// readDigest reads a digest of the request's body as RFC 9530 spells it, or as
// sellers do: without the colons, and without the padding. Only SHA-256 is
// known; a body is not paid for under a digest that cannot be checked.
func readDigest(s string) (sum [32]byte, why skip) {
	algorithm, value, ok := strings.Cut(s, "=")
	if !ok || !strings.EqualFold(algorithm, "sha-256") {
		return sum, skipped("unknown_digest", s)
	}
	enc := base64.StdEncoding
	if n := len(value); n >= 2 && value[0] == ':' && value[n-1] == ':' {
		value = value[1 : n-1]
	} else if n == base64.RawStdEncoding.EncodedLen(len(sum)) {
		enc = base64.RawStdEncoding
	}
	// Of this length no other padding is left, and no line break.
	if len(value) != enc.EncodedLen(len(sum)) {
		return sum, skipped("bad_digest", s)
	}
	b, err := enc.Strict().DecodeString(value)
	if err != nil || len(b) != len(sum) {
		return sum, skipped("bad_digest", s)
	}
	return [32]byte(b), skip{}
}
