package x402

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Below these many bytes a part of a URL or a header is a word, such as v2 or
// Basic.
const (
	minURLSecret    = 8
	minHeaderSecret = 6
)

// secretsOf is what no error and no receipt may tell, squashed: the URL's parts
// and the headers', but for the word Bearer.
func secretsOf(u *url.URL, h http.Header) []string {
	var out []string
	add := func(min int, parts ...string) {
		for _, s := range parts {
			if bare := squash(s); len(s) >= min && len(bare) >= min-2 && bare != "bearer" {
				out = append(out, bare)
			}
		}
	}
	add(minURLSecret, u.RawQuery)
	add(minURLSecret, strings.Split(u.Path, "/")...)
	add(minURLSecret, strings.Split(u.EscapedPath(), "/")...)
	for _, values := range u.Query() {
		add(minURLSecret, values...)
	}
	for _, values := range h {
		for _, v := range values {
			add(minHeaderSecret, v)
			add(minHeaderSecret, strings.Fields(v)...)
		}
	}
	if user, password, ok := (&http.Request{Header: h}).BasicAuth(); ok {
		add(minHeaderSecret, user, password)
	}
	return out
}

// squash is the letters and digits of s in lower case: what is left of them in
// a code, however it was cleaned.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// tells reports whether s has a secret in it, in any case and punctuation.
func (f *facilitator) tells(s string) bool {
	s = squash(s)
	for _, secret := range f.secrets {
		if strings.Contains(s, secret) {
			return true
		}
	}
	return false
}

// silence clears from out, the receipt that is read from s, the words that
// would tell a secret. They are judged as they came, before they were cut.
func (f *facilitator) silence(out *payment.Receipt, s response) {
	reason := text(s.reason)
	inReason := f.tells(reason)
	if inReason || f.tells(text(s.message)) {
		out.Message = ""
	}
	if inReason && out.Code == plaintext.Code(reason) {
		out.Code = "" // another code is the rail's own
	}
}

// failed is err, told without a secret and without the URL that net/http puts
// into it.
func (f *facilitator) failed(status int, err error) *FacilitatorError {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if f.tells(err.Error()) {
		err = hidden{err}
	}
	return &FacilitatorError{Host: f.host, Status: status, Err: err}
}

// hidden is an error whose text would tell a secret.
type hidden struct{ cause error }

func (hidden) Error() string    { return "the transport failed" }
func (hidden) GoString() string { return "the transport failed" }
func (h hidden) Unwrap() error  { return h.cause }
