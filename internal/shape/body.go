package shape

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/canopy-go/canopy/internal/bounded"
	"github.com/canopy-go/canopy/internal/plaintext"
)

// MaxBody is how much of a body is given on.
const MaxBody = 64 << 10

// The encodings of a body.
const (
	EncodingText    = "text"
	EncodingBase64  = "base64"
	EncodingOmitted = "omitted"
)

// body is a response body under the rules of the tools: text is cut at MaxBody,
// between characters; anything else comes whole in base64, or not at all.
type body struct {
	text      *string
	encoding  string
	truncated bool
	length    *int64 // of the whole, where it is known
}

// readBody reads what it needs of resp and no more. What came before an error
// is returned beside it.
func readBody(resp *http.Response) (body, error) {
	b, more, err := bounded.ReadAll(resp.Body, MaxBody)
	out := body{encoding: EncodingText}
	switch declared := resp.ContentLength; {
	case resp.Request != nil && resp.Request.Method == http.MethodHead && declared >= 0:
		out.length = &declared
	case !more && err == nil:
		n := int64(len(b))
		out.length = &n
	case declared >= 0:
		out.length = &declared
	}
	out.truncated = more || err != nil
	cut := b
	if out.truncated {
		b = b[:min(len(b), MaxBody)]
		cut = cutRune(b)
	}
	switch {
	case isText(resp.Header.Get("Content-Type"), cut):
		s := string(cut)
		out.text = &s
	case more:
		out.encoding = EncodingOmitted
	default:
		out.encoding = EncodingBase64
		s := base64.StdEncoding.EncodeToString(b)
		out.text = &s
	}
	return out, err
}

// isText reports whether a body is given on as text: by its type, or where it
// has none by what it holds; never where the bytes are not UTF-8.
func isText(contentType string, b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	if contentType == "" {
		return !strings.ContainsRune(string(b), 0)
	}
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		t, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		t = strings.TrimSpace(t)
	}
	if strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "+yaml") {
		return true
	}
	sub, ok := strings.CutPrefix(t, "application/")
	if !ok {
		return false
	}
	switch strings.TrimPrefix(sub, "x-") {
	case "json", "xml", "yaml", "javascript", "www-form-urlencoded", "graphql", "ndjson", "jsonlines", "json-seq", "toml", "sql":
		return true
	}
	return false
}

// cutRune is b without the first bytes of a character at its end.
func cutRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

// headers are the header fields in lower case, several values as one text.
func headers(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = plaintext.Clean(strings.Join(values, ", "), 8<<10)
	}
	return out
}
