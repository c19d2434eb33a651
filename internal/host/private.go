package host

import "net/netip"

// special are the ranges of IPv4, and of IPv6's global unicast space, that are
// not the public Internet (IANA's special-purpose registries), and the one
// metadata address that stands in a public range.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network, unspecified
	netip.MustParsePrefix("10.0.0.0/8"),       // private
	netip.MustParsePrefix("100.64.0.0/10"),    // shared by carriers; Alibaba's metadata
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host agent
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local, metadata
	netip.MustParsePrefix("172.16.0.0/12"),    // private
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments; Oracle's metadata
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("192.168.0.0/16"),   // private
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarking
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("224.0.0.0/4"),      // multicast
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, broadcast
	netip.MustParsePrefix("2001::/23"),        // Teredo, benchmarking, ORCHID
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("2002::/16"),        // 6to4, which carries any IPv4
	netip.MustParsePrefix("3fff::/20"),        // documentation
}

// globalUnicast is all of IPv6 that has been given out for the Internet.
// Outside it lie loopback, ULA, link-local, multicast, IPv4-compatible, NAT64
// and what is unassigned.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// Private reports whether a is anything but a public unicast address: what a
// program that follows strangers' URLs must not dial unless told to. IPv4 in
// IPv6 counts as the IPv4. The invalid address is private.
func Private(a netip.Addr) bool {
	if !a.IsValid() {
		return true
	}
	a = a.Unmap().WithZone("")
	if a.Is6() && !globalUnicast.Contains(a) {
		return true
	}
	for _, p := range special {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
