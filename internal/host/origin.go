package host

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Origin is where a connection goes: scheme, host and port. Equal origins
// compare equal with ==.
type Origin struct {
	// Scheme is "http" or "https".
	Scheme string
	// Host is the name of a normalised Host.
	Host string
	// Port is always stated: 443 or 80 where the URL left it out.
	Port uint16
}

// FromURL returns the origin that u connects to. It refuses schemes other than
// http and https, userinfo, and every host that Normalize refuses.
func FromURL(u *url.URL) (Origin, error) {
	if u == nil {
		return Origin{}, errors.New("host: no URL")
	}
	o := Origin{Scheme: strings.ToLower(u.Scheme)}
	if defaultPort(o.Scheme) == 0 {
		return Origin{}, fmt.Errorf("host: scheme %s is not http or https", quote(u.Scheme))
	}
	if u.User != nil {
		return Origin{}, fmt.Errorf("host: %w", errUserinfo)
	}
	if u.Opaque != "" {
		return Origin{}, errors.New("host: URL without a host")
	}
	h, err := Normalize(u.Host)
	if err != nil {
		return Origin{}, err
	}
	o.Host, o.Port = h.Name, h.Port
	if o.Port == 0 {
		o.Port = defaultPort(o.Scheme)
	}
	return o, nil
}

// ParseOrigin reads what String returns, and any other spelling of an origin
// alone: no path but "/", no query, no fragment.
func ParseOrigin(s string) (Origin, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Origin{}, fmt.Errorf("host: %s is not an origin", quote(s))
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") {
		return Origin{}, fmt.Errorf("host: %s: %w", quote(s), errPath)
	}
	return FromURL(u)
}

// String returns o as https://feed.example, with the port where it is not the
// scheme's own.
func (o Origin) String() string {
	h := o.Authority()
	if h.Port == defaultPort(o.Scheme) {
		h.Port = 0
	}
	return o.Scheme + "://" + h.String()
}

// Authority returns o's host with its port stated.
func (o Origin) Authority() Host { return Host{Name: o.Host, Port: o.Port} }

// IsLoopback reports whether o is this machine: localhost, 127.0.0.0/8 or ::1.
// Names below localhost do not count, since resolvers may send them anywhere.
func IsLoopback(o Origin) bool {
	if o.Host == "localhost" {
		return true
	}
	a, ok := o.Authority().Addr()
	return ok && a.IsLoopback()
}

func defaultPort(scheme string) uint16 {
	switch scheme {
	case "https":
		return 443
	case "http":
		return 80
	}
	return 0
}
