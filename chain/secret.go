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
		if len(s) >= 4 {
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

const hidden = "(a part of the URL)"

// redact is s without what may be a key.
func (n *node) redact(s string) string {
	for _, secret := range n.secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	return s
}

// clean is the words of a node as an error may repeat them.
func (n *node) clean(s string) string { return n.redact(plaintext.Clean(s, 200)) }

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
