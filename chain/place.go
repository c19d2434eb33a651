package chain

import (
	"net/url"
	"path"
	"strings"

	"github.com/canopy-go/canopy/internal/host"
)

// place is where u leads, alike for the spellings of one node: the host in one
// form, the port stated, the path without escapes and a slash at its end, the
// query in order; no user and no fragment, which may be there or not.
func place(u *url.URL) string {
	bare := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host)}
	if o, err := host.FromURL(&bare); err == nil {
		bare.Host = o.Authority().String()
	} else if bare.Port() == "" { // a name such as geth_node, which only some resolvers know
		bare.Host = strings.TrimSuffix(bare.Host, ":") + map[string]string{"http": ":80", "https": ":443"}[bare.Scheme]
	}
	return bare.Scheme + "://" + bare.Host + strings.TrimSuffix(path.Clean("/"+u.Path), "/") + "?" + u.Query().Encode()
}
