package host

import (
	"fmt"
	"strings"
)

// Pattern is a policy entry's host: a name, a name and a port, or a wildcard
// over the names below one. The zero Pattern matches nothing.
type Pattern struct {
	host     Host
	wildcard bool
}

// ParsePattern reads feed.example (any port), feed.example:8443 (that port) or
// *.mpp.example (one or more labels before mpp.example, never mpp.example
// itself; a port may follow). A star stands only as the whole first label, and
// never before an IP address. Names are normalised as Normalize does.
func ParsePattern(s string) (Pattern, error) {
	base, wildcard := strings.CutPrefix(s, "*.")
	if strings.Contains(base, "*") {
		return Pattern{}, fmt.Errorf("host: pattern %s: a star stands only for the whole first label, before a dot", quote(s))
	}
	h, err := Normalize(base)
	if err != nil {
		return Pattern{}, err
	}
	if _, ip := h.Addr(); wildcard && ip {
		return Pattern{}, fmt.Errorf("host: pattern %s: no wildcard over an IP address", quote(s))
	}
	return Pattern{host: h, wildcard: wildcard}, nil
}

// Match reports whether h is among p's hosts. Where p states a port, a host
// without one does not match.
func (p Pattern) Match(h Host) bool {
	if p.host.Name == "" || p.host.Port != 0 && p.host.Port != h.Port {
		return false
	}
	if !p.wildcard {
		return h.Name == p.host.Name
	}
	below, ok := strings.CutSuffix(h.Name, p.host.Name)
	return ok && len(below) > 1 && below[len(below)-1] == '.'
}

// MatchOrigin reports whether o's host and port are among p's.
func (p Pattern) MatchOrigin(o Origin) bool { return p.Match(o.Authority()) }

// Broad reports whether p is a wildcard over a single label, such as *.com:
// legal, and rarely what a person meant.
func (p Pattern) Broad() bool { return p.wildcard && !strings.Contains(p.host.Name, ".") }

// String returns p as ParsePattern reads it, normalised.
func (p Pattern) String() string {
	if p.wildcard {
		return "*." + p.host.String()
	}
	return p.host.String()
}
