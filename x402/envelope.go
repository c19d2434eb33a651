package x402

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/canopy-go/canopy/internal/jsonscan"
)

// maxDocument bounds a decoded document of the seller.
const maxDocument = 64 << 10

var (
	errTooLarge = &ChallengeError{"too_large", "more than 64 KiB decoded"}
	errBase64   = errors.New("x402: neither base64 nor JSON")
)

// unwrap decodes a header value: base64 in any of its four spellings, or, as
// some sellers send it, the JSON itself.
func unwrap(value string) ([]byte, error) {
	if strings.HasPrefix(value, "{") {
		if len(value) > maxDocument {
			return nil, errTooLarge
		}
		return []byte(value), nil
	}
	if len(value) > base64.StdEncoding.EncodedLen(maxDocument) {
		return nil, errTooLarge
	}
	enc := base64.StdEncoding
	url, padded := hasByte(value, '-') || hasByte(value, '_'), strings.HasSuffix(value, "=")
	switch {
	case url && padded:
		enc = base64.URLEncoding
	case url:
		enc = base64.RawURLEncoding
	case !padded:
		enc = base64.RawStdEncoding
	}
	doc := make([]byte, enc.DecodedLen(len(value)))
	n, err := enc.Decode(doc, []byte(value))
	if err != nil || hasByte(value, '\r') || hasByte(value, '\n') { // which Decode would pass over
		return nil, errBase64
	}
	return doc[:n], nil
}

func hasByte(s string, c byte) bool { return strings.IndexByte(s, c) >= 0 }

// parse reads a document of the seller whole.
func parse(doc []byte) (jsonscan.Value, error) {
	v, err := jsonscan.Parse(doc, jsonscan.Limits{Depth: 16, Size: maxDocument})
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, jsonscan.ErrDuplicateKey):
		return v, &ChallengeError{"duplicate_key", err.Error()}
	case errors.Is(err, jsonscan.ErrTooDeep):
		return v, &ChallengeError{"too_deep", err.Error()}
	case errors.Is(err, jsonscan.ErrTooLarge):
		return v, errTooLarge
	}
	return v, err
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
