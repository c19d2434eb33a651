package host_test

import (
	"net/netip"
	"testing"

	"github.com/canopy-go/canopy/internal/host"
)

func TestPrivate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		addr, name string
		want       bool
	}{
		{"0.0.0.0", "unspecified", true},
		{"0.1.2.3", "this network", true},
		{"10.0.0.0", "first of 10/8", true},
		{"10.255.255.255", "last of 10/8", true},
		{"9.255.255.255", "before 10/8", false},
		{"11.0.0.0", "after 10/8", false},
		{"100.64.0.1", "carrier NAT", true},
		{"100.127.255.255", "last of carrier NAT", true},
		{"100.100.100.200", "Alibaba metadata", true},
		{"100.63.255.255", "before carrier NAT", false},
		{"100.128.0.0", "after carrier NAT", false},
		{"127.0.0.1", "loopback", true},
		{"127.255.255.255", "last of loopback", true},
		{"128.0.0.1", "after loopback", false},
		{"168.63.129.16", "Azure host agent", true},
		{"168.63.129.17", "beside it", false},
		{"169.254.0.1", "link-local", true},
		{"169.254.169.254", "metadata", true},
		{"169.254.170.2", "ECS metadata", true},
		{"172.15.255.255", "before 172.16/12", false},
		{"172.16.0.1", "172.16/12", true},
		{"172.31.255.255", "last of 172.16/12", true},
		{"172.32.0.0", "after 172.16/12", false},
		{"192.0.0.192", "Oracle metadata", true},
		{"192.0.2.1", "documentation 1", true},
		{"192.88.99.1", "6to4 relay", true},
		{"192.168.1.1", "192.168/16", true},
		{"192.169.0.0", "after 192.168/16", false},
		{"198.18.0.1", "benchmarking", true},
		{"198.19.255.255", "last of benchmarking", true},
		{"198.20.0.0", "after benchmarking", false},
		{"198.51.100.7", "documentation 2", true},
		{"203.0.113.7", "documentation 3", true},
		{"224.0.0.1", "multicast", true},
		{"239.255.255.255", "last of multicast", true},
		{"240.0.0.1", "reserved", true},
		{"255.255.255.255", "broadcast", true},
		{"1.1.1.1", "public", false},
		{"8.8.8.8", "public", false},
		{"223.255.255.255", "last before multicast", false},
		{"::", "unspecified", true},
		{"::1", "loopback", true},
		{"::7f00:1", "IPv4-compatible loopback", true},
		{"::ffff:127.0.0.1", "mapped loopback", true},
		{"::ffff:169.254.169.254", "mapped metadata", true},
		{"::ffff:10.1.2.3", "mapped private", true},
		{"::ffff:8.8.8.8", "mapped public", false},
		{"64:ff9b::a9fe:a9fe", "NAT64 metadata", true},
		{"64:ff9b::808:808", "NAT64 public", true},
		{"64:ff9b:1::1", "local NAT64", true},
		{"100::1", "discard", true},
		{"2001::1", "Teredo", true},
		{"2001:0:7f00:1::", "Teredo of loopback", true},
		{"2001:2::1", "benchmarking", true},
		{"2001:20::1", "ORCHID", true},
		{"2001:db8::1", "documentation", true},
		{"2001:4860:4860::8888", "public", false},
		{"2002:7f00:1::", "6to4 of loopback", true},
		{"2002:808:808::1", "6to4 of public", true},
		{"3fff::1", "documentation", true},
		{"3fff:1000::1", "after documentation", false},
		{"2606:4700::1111", "public", false},
		{"2a00:1450:4001::1", "public", false},
		{"4000::1", "unassigned", true},
		{"5f00::1", "segment routing", true},
		{"fc00::1", "ULA", true},
		{"fd00:ec2::254", "AWS metadata", true},
		{"fd20:ce::254", "Google metadata", true},
		{"fe80::1", "link-local", true},
		{"fe80::1%eth0", "link-local with a zone", true},
		{"febf:ffff::1", "last of link-local", true},
		{"fec0::1", "site-local", true},
		{"ff02::1", "multicast", true},
		{"::ffff:0:127.0.0.1", "translated", true},
	} {
		t.Run(tc.addr+" "+tc.name, func(t *testing.T) {
			t.Parallel()
			if got := host.Private(netip.MustParseAddr(tc.addr)); got != tc.want {
				t.Errorf("Private(%s) = %v, want %v", tc.addr, got, tc.want)
			}
		})
	}
	if !host.Private(netip.Addr{}) {
		t.Error("the invalid address is not private")
	}
}

// What the standard library calls special is never public.
func FuzzPrivate(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add(make([]byte, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		u := a.Unmap()
		special := !u.IsGlobalUnicast() || u.IsPrivate()
		if special && !host.Private(a) {
			t.Errorf("Private(%v) = false", a)
		}
		if host.Private(a) != host.Private(u) {
			t.Errorf("Private(%v) differs from Private(%v)", a, u)
		}
	})
}
