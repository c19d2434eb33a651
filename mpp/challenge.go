package mpp

import (
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/payment"
)

const (
	// maxValue bounds one parameter as it was written.
	maxValue = 16 << 10

	// maxID bounds ids and realms, which records keep.
	maxID = 1 << 10

	// maxName bounds the names of methods, intents and header fields.
	maxName = 64

	// maxEcho leaves the rail some of payment.MaxEcho for itself.
	maxEcho = payment.MaxEcho - 256
)

// headerAuthorization is the field of a credential, unless a challenge names
// another.
const headerAuthorization = "Authorization"

// challenge is one challenge of the Payment scheme, ready to be echoed. The
// zero value of an optional member is that it was absent.
type challenge struct {
	index  int // among the response's challenges of the scheme
	id     string
	realm  string
	method string
	intent string

	request     string         // as on the wire
	requestJSON jsonscan.Value // an object

	expiresText string // as on the wire
	expires     time.Time

	digestText string // as on the wire
	digest     *[32]byte

	opaque      string // as on the wire
	header      string // the field for the credential; empty for Authorization
	description string // the seller's words, to be cleaned
}

// readChallenges reads the Payment challenges of WWW-Authenticate lines. A
// challenge that cannot be read is skipped and hides no other, but that what
// follows an unclosed quote on one line is text and no challenge. Both results
// are empty where no line has the scheme.
func readChallenges(lines []string) ([]challenge, []Skipped) {
	var r reader
	r.lines(lines)
	return r.found, r.bad
}

// field is the header field that the credential goes in.
func (c *challenge) field() string {
	if c.header == "" {
		return headerAuthorization
	}
	return c.header
}

// challenge makes sense of the parameters.
func (p *params) challenge() (challenge, skip) {
	var c challenge
	if p.why != (skip{}) {
		return c, p.why
	}
	for f := range fields {
		if !p.known[f].given {
			if f <= fieldRequest {
				return c, skipped("missing_parameter", fieldNames[f])
			}
			continue
		}
		s, why := p.text(f)
		if why == (skip{}) {
			why = c.set(f, s)
		}
		if why != (skip{}) {
			return c, why
		}
	}
	return c, skip{}
}

// set checks and keeps one parameter.
func (c *challenge) set(f int, s string) skip {
	if s == "" && f != fieldDescription && f != fieldOpaque {
		return skipped("empty_parameter", fieldNames[f])
	}
	if f <= fieldRealm && len(s) > maxID {
		return skipped("too_large", fieldNames[f])
	}
	switch f {
	case fieldID:
		c.id = s
	case fieldRealm:
		c.realm = s
	case fieldMethod:
		if c.method = s; !isMethod(s) {
			return skipped("bad_method", s)
		}
	case fieldIntent:
		if c.intent = s; !isIntent(s) {
			return skipped("bad_intent", s)
		}
	case fieldRequest:
		return c.setRequest(s)
	case fieldExpires:
		return c.setExpires(s)
	case fieldDigest:
		return c.setDigest(s)
	case fieldOpaque:
		c.opaque = s
	case fieldHeader:
		return c.setHeader(s)
	case fieldDescription:
		c.description = s
	}
	return skip{}
}

func (c *challenge) setRequest(s string) (why skip) {
	c.request = s
	c.requestJSON, why = decodeObject(s, maxValue, "request")
	return why
}

// setExpires reads RFC 3339, strictly.
func (c *challenge) setExpires(s string) skip {
	var ok bool
	c.expiresText = s
	if c.expires, ok = readInstant(s); !ok {
		return skipped("bad_expires", s)
	}
	return skip{}
}

// readInstant reads RFC 3339 without what package time lets through beside it:
// an hour of one digit, a comma before the fraction, an offset of days.
func readInstant(s string) (time.Time, bool) {
	const seconds = len("2006-01-02T15:04:05")
	if len(s) <= seconds || s[seconds-6] != ':' || s[seconds] == ',' {
		return time.Time{}, false
	}
	if zone := s[len(s)-6:]; s[len(s)-1] != 'Z' && (zone[1:3] > "23" || zone[4:] > "59") {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil
}

func (c *challenge) setDigest(s string) (why skip) {
	c.digestText = s
	sum, why := readDigest(s)
	c.digest = &sum
	return why
}

// setHeader takes Authorization as if it was absent, and else only names that
// belong to the protocol: a credential in any other field could stand for
// something else there.
func (c *challenge) setHeader(s string) skip {
	if strings.EqualFold(s, headerAuthorization) {
		return skip{}
	}
	const prefix = "Payment-"
	if len(s) > maxName || len(s) <= len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) ||
		!allIn(s, isAlpha, isDigit, isDash) || strings.EqualFold(s, "Payment-Signature") {
		return skipped("bad_header", s)
	}
	c.header = s
	return skip{}
}

func isMethod(s string) bool {
	return len(s) <= maxName && s[0] >= 'a' && s[0] <= 'z' && allIn(s, isLower, isDigit, func(b byte) bool { return strings.IndexByte(":_-", b) >= 0 })
}

func isIntent(s string) bool { return len(s) <= maxName && allIn(s, isAlpha, isDigit, isDash) }

func isLower(b byte) bool { return b >= 'a' && b <= 'z' }
func isAlpha(b byte) bool { return isLower(b | 0x20) }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isDash(b byte) bool  { return b == '-' }

func allIn(s string, sets ...func(byte) bool) bool {
next:
	for i := range len(s) {
		for _, in := range sets {
			if in(s[i]) {
				continue next
			}
		}
		return false
	}
	return true
}

// echo is the challenge as a credential repeats it: a JSON object.
func (c *challenge) echo() ([]byte, skip) {
	n := 96 + len(c.id) + len(c.realm) + len(c.method) + len(c.intent) + len(c.request) + len(c.expiresText) + len(c.digestText) + len(c.opaque) + len(c.header) + len(c.description)
	if n > maxEcho {
		return nil, skipped("echo_too_large", "the seller wants more than 16 KiB echoed")
	}
	b := append(make([]byte, 0, n+16), '{')
	for _, m := range [...]struct{ name, value string }{
		{`"id":`, c.id}, {`,"realm":`, c.realm}, {`,"method":`, c.method}, {`,"intent":`, c.intent}, {`,"request":`, c.request},
		{`,"expires":`, c.expiresText}, {`,"digest":`, c.digestText}, {`,"opaque":`, c.opaque}, {`,"header":`, c.header}, {`,"description":`, c.description},
	} {
		if m.value != "" {
			b = jsonscan.AppendString(append(b, m.name...), m.value)
		}
	}
	if b = append(b, '}'); len(b) > maxEcho {
		return nil, skipped("echo_too_large", "the seller wants more than 16 KiB echoed")
	}
	return b, skip{}
}

// hasControl reports whether s has a control character of ASCII.
func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}
