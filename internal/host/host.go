// Package host is the one way to normalise a host and an origin. The policy
// document and the transport both use it, so what a person allowed and what is
// connected to are compared as equal spellings of equal things.
package host

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxInput bounds what is looked at: 253 characters of four bytes each, and a
// port.
const maxInput = 1024

// Host is a normalised host and, where one was stated, a port. Hosts that name
// the same place compare equal with ==.
type Host struct {
	// Name is a domain name in lower-case A-labels without a trailing dot, or
	// an IP address in canonical text: IPv6 without brackets, IPv4 in IPv6 as
	// IPv4.
	Name string
	// Port is 0 where none was stated.
	Port uint16
}

// String returns h as Normalize reads it: IPv6 in brackets, the port only where
// it was stated.
func (h Host) String() string {
	s := h.Name
	if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	if h.Port != 0 {
		s += ":" + strconv.Itoa(int(h.Port))
	}
	return s
}

// Addr returns the IP address that h is, and whether it is one.
func (h Host) Addr() (netip.Addr, bool) {
	a, err := netip.ParseAddr(h.Name)
	return a, err == nil
}

// Normalize reads a host, or a host and a port, as a policy document and the
// authority of a URL spell them. Names go through the IDNA Lookup profile
// (strict: no underscore, no hyphens at a label's ends or third and fourth
// place, right-to-left rules checked) to A-labels; one trailing dot is dropped.
//
// It refuses userinfo, percent-encoding, spaces, controls, empty or over-long
// labels, IPv6 zones, ports that are not a plain 1 to 65535, and every numeric
// spelling of an address other than the canonical dotted quad: a name whose
// last label is a number is never a name. Normalize is idempotent.
func Normalize(s string) (Host, error) {
	name, port, err := split(s)
	if err != nil {
		return Host{}, fmt.Errorf("host: %s: %w", quote(s), err)
	}
	h := Host{}
	if port != "" {
		if h.Port, err = parsePort(port); err != nil {
			return Host{}, fmt.Errorf("host: %s: %w", quote(s), err)
		}
	}
	if strings.Contains(name, ":") {
		h.Name, err = normalizeIPv6(name)
	} else {
		h.Name, err = normalizeName(name)
	}
	if err != nil {
		return Host{}, fmt.Errorf("host: %s: %w", quote(s), err)
	}
	return h, nil
}

// quote keeps a hostile spelling readable in an error: escaped and bounded.
func quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return strconv.QuoteToASCII(s)
}

// split takes s apart at its port. A name with a colon is IPv6.
func split(s string) (name, port string, err error) {
	switch {
	case s == "":
		return "", "", errEmpty
	case len(s) > maxInput:
		return "", "", errLong
	case !utf8.ValidString(s):
		return "", "", errUTF8
	}
	for i := range len(s) {
		if err := foreign(s[i]); err != nil {
			return "", "", err
		}
	}
	if s[0] == '[' {
		name, rest, ok := strings.Cut(s[1:], "]")
		if !ok || !strings.Contains(name, ":") {
			return "", "", errBracket
		}
		if rest == "" {
			return name, "", nil
		}
		if rest[0] != ':' {
			return "", "", errBracket
		}
		if rest == ":" {
			return "", "", errPort
		}
		return name, rest[1:], nil
	}
	if strings.ContainsAny(s, "[]") {
		return "", "", errBracket
	}
	name, port, ok := strings.Cut(s, ":")
	if !ok {
		return s, "", nil
	}
	if strings.Contains(port, ":") {
		return s, "", nil
	}
	if port == "" {
		return "", "", errPort
	}
	return name, port, nil
}

// foreign names what is wrong with an ASCII byte that belongs to no host.
func foreign(c byte) error {
	switch {
	case c <= ' ' || c == 0x7f:
		return errSpace
	case c == '@':
		return errUserinfo
	case c == '%':
		return errPercent
	case c == '/' || c == '\\' || c == '?' || c == '#':
		return errPath
	}
	return nil
}

func parsePort(s string) (uint16, error) {
	if s[0] < '1' || s[0] > '9' {
		return 0, errPort
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, errPort
	}
	return uint16(n), nil
}

func normalizeIPv6(s string) (string, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return "", errIPv6
	}
	return a.Unmap().String(), nil
}

func normalizeName(s string) (string, error) {
	name, err := idna.Lookup.ToASCII(s)
	if err != nil {
		return "", errName
	}
	name, dotted := strings.CutSuffix(name, ".")
	if err := checkLabels(name); err != nil {
		return "", err
	}
	if numeric(name[strings.LastIndexByte(name, '.')+1:]) {
		// The spelling itself must be canonical: full-width digits, which IDNA
		// maps to digits, and a trailing dot, which resolvers read
		// differently, are not.
		a, err := netip.ParseAddr(s)
		if err != nil || dotted || a.String() != s {
			return "", errNumeric
		}
		return s, nil
	}
	if s == name {
		return name, nil
	}
	// A name that does not survive a second look could pass for two.
	if again, err := idna.Lookup.ToASCII(name); err != nil || again != name {
		return "", errName
	}
	return name, nil
}

// checkLabels holds what the Lookup profile leaves open: lengths, and that
// nothing but letters, digits and hyphens came out of the mapping.
func checkLabels(name string) error {
	if len(name) > 253 {
		return errLong
	}
	n := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.':
			if n == 0 {
				return errLabel
			}
			n = 0
			continue
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
		default:
			return errName
		}
		if n++; n > 63 {
			return errLong
		}
	}
	if n == 0 {
		return errLabel
	}
	return nil
}

// numeric reports whether a last label makes the whole a number to some parser
// (WHATWG's "ends in a number"): all digits, or 0x and hexadecimal digits.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
