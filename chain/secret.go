package chain

import (
	"errors"
	"net/url"
	"strings"

	"github.com/canopy-go/canopy/internal/plaintext"
)

// secretsOf is what of a node's URL may be a key: all but scheme and host.
func secretsOf(u *url.URL) []string {
	var out []string
	add := func(s string) {
		if len(s) >= minSecret {
			out = append(out, s)
		}
	}
	if u.User != nil {
		add(u.User.Username())
		if p, ok := u.User.Password(); ok {
			add(p)
		}
	}
	for _, part := range strings.Split(u.Path, "/") {
		add(part)
	}
	for _, part := range strings.Split(u.EscapedPath(), "/") {
		add(part)
	}
	add(u.RawQuery)
	add(u.RawFragment)
	add(u.Fragment)
	for _, values := range u.Query() {
		for _, v := range values {
			add(v)
		}
	}
	return out
}

const (
	hidden    = "(a part of the URL)"
	minSecret = 4       // bytes: what is shorter is a word such as v2
	maxWords  = 4 << 10 // bytes of a node's words that are looked at
)

// redact is s without what may be a key, in any case of its letters, and
// without the beginning of one at its end, where it may have been cut.
func (n *node) redact(s string) string {
	low := lower(s)
	covered := make([]bool, len(s))
	cover := func(from, to int) {
		for i := from; i < to; i++ {
			covered[i] = true
		}
	}
	for _, secret := range n.secrets {
		secret = lower(secret)
		for i := range len(low) {
			rest := low[i:]
			if strings.HasPrefix(rest, secret) {
				cover(i, i+len(secret))
			} else if len(rest) >= minSecret && strings.HasPrefix(secret, rest) {
				cover(i, len(low))
			}
		}
	}
	var b strings.Builder
	for i := range len(s) {
		switch {
		case !covered[i]:
			b.WriteByte(s[i])
		case i == 0 || !covered[i-1]:
			b.WriteString(hidden)
		}
	}
	return b.String()
}

// lower is s with its ASCII letters in lower case: as long as s.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// clean is the words of a node as an error may repeat them. They are cut last:
// what is left of a key that was cut would not be known for one.
func (n *node) clean(s string) string {
	return plaintext.Clean(n.redact(plaintext.Clean(s, maxWords)), 200)
}

// quiet is an error of a transport, told without the URL that such errors name.
type quiet struct {
	text  string
	cause error
}

func (q quiet) Error() string    { return q.text }
func (q quiet) Unwrap() error    { return q.cause }
func (q quiet) GoString() string { return q.text }

func (n *node) hide(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return quiet{n.clean(err.Error()), err}
}
