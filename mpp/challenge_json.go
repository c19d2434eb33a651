package mpp

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/canopy-go/canopy/internal/jsonscan"
)

// decodeBase64 reads base64url, and as sellers write it too: padded, or in the
// standard alphabet.
func decodeBase64(s string) ([]byte, bool) {
	if hasByte(s, '\r') || hasByte(s, '\n') { // which Decode would pass over
		return nil, false
	}
	standard, padded := hasByte(s, '+') || hasByte(s, '/'), strings.HasSuffix(s, "=")
	enc := base64.RawURLEncoding
	switch {
	case standard && padded:
		enc = base64.StdEncoding
	case standard:
		enc = base64.RawStdEncoding
	case padded:
		enc = base64.URLEncoding
	}
	doc, err := enc.DecodeString(s)
	return doc, err == nil
}

func hasByte(s string, c byte) bool { return strings.IndexByte(s, c) >= 0 }

// decodeObject reads base64 of a JSON object of at most max bytes as it stands
// in name.
func decodeObject(s string, max int, name string) (jsonscan.Value, skip) {
	if len(s) > max {
		return jsonscan.Value{}, skipped("too_large", name)
	}
	doc, ok := decodeBase64(s)
	if !ok {
		return jsonscan.Value{}, skipped("bad_base64", name)
	}
	return parseObject(doc, max, name)
}

func parseObject(doc []byte, max int, name string) (jsonscan.Value, skip) {
	v, err := jsonscan.Parse(doc, jsonscan.Limits{Size: max})
	switch {
	case errors.Is(err, jsonscan.ErrDuplicateKey):
		return v, skipped("duplicate_key", name)
	case errors.Is(err, jsonscan.ErrTooDeep):
		return v, skipped("too_deep", name)
	case errors.Is(err, jsonscan.ErrTooLarge):
		return v, skipped("too_large", name)
	case err != nil:
		return v, skipped("bad_json", name)
	case v.Kind() != jsonscan.Object:
		return v, skipped("wrong_type", name+" is "+v.Kind().String())
	}
	return v, skip{}
}

// text is the string that v is, and "" where it is none.
func text(v jsonscan.Value) string {
	if v.Kind() != jsonscan.String {
		return ""
	}
	s, _ := v.String()
	return s
}

// absent reports whether v is missing or null.
func absent(v jsonscan.Value) bool { return v.Kind() == jsonscan.Missing || v.IsNull() }
