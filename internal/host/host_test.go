package host_test

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/internal/host"
)

func TestNormalizeAccepts(t *testing.T) {
	t.Parallel()
	label63 := strings.Repeat("a", 63)
	name253 := strings.Repeat(label63+".", 3) + strings.Repeat("b", 61)
	for _, tc := range []struct {
		name, in string
		want     host.Host
	}{
		{"plain", "feed.example", host.Host{Name: "feed.example"}},
		{"port", "feed.example:8443", host.Host{Name: "feed.example", Port: 8443}},
		{"highest port", "feed.example:65535", host.Host{Name: "feed.example", Port: 65535}},
		{"default port is kept as stated", "feed.example:443", host.Host{Name: "feed.example", Port: 443}},
		{"case", "FEED.Example", host.Host{Name: "feed.example"}},
		{"trailing dot", "feed.example.", host.Host{Name: "feed.example"}},
		{"trailing dot and port", "feed.example.:443", host.Host{Name: "feed.example", Port: 443}},
		{"ideographic dots", "feed。example｡", host.Host{Name: "feed.example"}},
		{"single label", "localhost", host.Host{Name: "localhost"}},
		{"hyphen", "a-b.example", host.Host{Name: "a-b.example"}},
		{"digits in a label", "4chan.1up.example", host.Host{Name: "4chan.1up.example"}},
		{"numeric label not last", "1.2.3.example", host.Host{Name: "1.2.3.example"}},
		{"hexadecimal label not last", "0x7f.example", host.Host{Name: "0x7f.example"}},
		{"last label begins with a digit", "feed.1a", host.Host{Name: "feed.1a"}},
		{"U-label", "bücher.example", host.Host{Name: "xn--bcher-kva.example"}},
		{"U-label, upper case", "BÜCHER.example", host.Host{Name: "xn--bcher-kva.example"}},
		{"U-label, decomposed", "bu\u0308cher.example", host.Host{Name: "xn--bcher-kva.example"}},
		{"A-label", "xn--bcher-kva.example", host.Host{Name: "xn--bcher-kva.example"}},
		{"A-label, upper case", "XN--BCHER-KVA.example", host.Host{Name: "xn--bcher-kva.example"}},
		{"sharp s is not ss", "straße.example", host.Host{Name: "xn--strae-oqa.example"}},
		{"Kelvin sign", "\u212aelvin.example", host.Host{Name: "kelvin.example"}},
		{"full-width letters", "ｆｅｅｄ.example", host.Host{Name: "feed.example"}},
		{"Cyrillic lookalike stays itself", "аpple.example", host.Host{Name: "xn--pple-43d.example"}},
		{"right to left", "אב.example", host.Host{Name: "xn--4dbc.example"}},
		{"longest label", label63 + ".example", host.Host{Name: label63 + ".example"}},
		{"longest name", name253, host.Host{Name: name253}},
		{"longest name and dot", name253 + ".", host.Host{Name: name253}},
		{"IPv4", "192.0.2.1", host.Host{Name: "192.0.2.1"}},
		{"IPv4 and port", "127.0.0.1:8080", host.Host{Name: "127.0.0.1", Port: 8080}},
		{"IPv6", "[2001:db8::1]", host.Host{Name: "2001:db8::1"}},
		{"IPv6 and port", "[::1]:8443", host.Host{Name: "::1", Port: 8443}},
		{"IPv6 without brackets", "2001:db8::1", host.Host{Name: "2001:db8::1"}},
		{"IPv6 written out", "[2001:0DB8:0:0:0:0:0:1]", host.Host{Name: "2001:db8::1"}},
		{"IPv4 in IPv6", "[::ffff:192.0.2.1]:80", host.Host{Name: "192.0.2.1", Port: 80}},
		{"IPv4 in IPv6, hexadecimal", "[::ffff:c000:201]", host.Host{Name: "192.0.2.1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := host.Normalize(tc.in)
			if err != nil || got != tc.want {
				t.Fatalf("Normalize(%q) = %+v, %v, want %+v", tc.in, got, err, tc.want)
			}
			for _, s := range []string{got.String(), got.Name} {
				again, err := host.Normalize(s)
				if err != nil || again.Name != got.Name {
					t.Errorf("Normalize(%q) = %+v, %v, want %+v", s, again, err, got)
				}
			}
		})
	}
}

func TestNormalizeRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", "empty"},
		{"userinfo", "good.example@evil.example", "user information"},
		{"userinfo and password", "good.example:443@evil.example", "user information"},
		{"scheme", "https://feed.example", "more than a host"},
		{"path", "feed.example/a", "more than a host"},
		{"query", "feed.example?a", "more than a host"},
		{"fragment", "feed.example#a", "more than a host"},
		{"backslash", `good.example\.evil.example`, "more than a host"},
		{"percent-encoded dot", "feed%2eexample", "percent-encoding"},
		{"percent-encoded letter", "%66eed.example", "percent-encoding"},
		{"space inside", "feed .example", "space"},
		{"leading space", " feed.example", "space"},
		{"trailing newline", "feed.example\n", "space"},
		{"carriage return", "feed.example\r\nHost: evil", "space"},
		{"tab", "feed\t.example", "space"},
		{"NUL", "feed.example\x00.evil", "space"},
		{"DEL", "feed.example\x7f", "space"},
		{"no-break space", "feed\u00a0.example", "domain name"},
		{"C1 control", "feed\u0085.example", "domain name"},
		{"bidirectional override", "feed\u202e.example", "domain name"},
		{"invalid UTF-8", "feed\xff.example", "UTF-8"},
		{"overlong UTF-8", "feed\xc0\xae.example", "UTF-8"},
		{"two trailing dots", "feed.example..", "empty label"},
		{"ideographic and ASCII trailing dot", "feed.example.。", "empty label"},
		{"leading dot", ".feed.example", "empty label"},
		{"empty label", "feed..example", "empty label"},
		{"only a dot", ".", "empty label"},
		{"underscore", "a_b.example", "domain name"},
		{"leading hyphen", "-feed.example", "domain name"},
		{"trailing hyphen", "feed-.example", "domain name"},
		{"hyphens that look like an A-label", "ab--cd.example", "domain name"},
		{"star", "*.example", "domain name"},
		{"full-width star", "＊.example", "domain name"},
		{"full-width slash", "feed.example／x", "domain name"},
		{"full-width at", "good＠evil.example", "domain name"},
		{"account of symbol", "feed.example℀x", "domain name"},
		{"comma", "a,b.example", "domain name"},
		{"false A-label", "xn--a.example", "domain name"},
		{"A-label of ASCII", "xn--feed-.example", "domain name"},
		{"A-label of nothing", "xn--.example", "empty label"},
		{"A-label not normalised", "xn--bcher-2pa.example", "domain name"},
		{"bidirectional rule", "אa.example", "domain name"},
		{"label of 64", strings.Repeat("a", 64) + ".example", "too long"},
		{"name of 254", strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("b", 62), "too long"},
		{"very long", strings.Repeat("a.", 5000) + "example", "too long"},
		{"hexadecimal and short", "0x7f.1", "numeric"},
		{"decimal", "2130706433", "numeric"},
		{"hexadecimal", "0x7f000001", "numeric"},
		{"hexadecimal, upper case", "0X7F000001", "numeric"},
		{"hexadecimal prefix alone", "127.0.0.0x", "numeric"},
		{"octal", "0177.0.0.1", "numeric"},
		{"short", "127.1", "numeric"},
		{"leading zero", "127.0.0.01", "numeric"},
		{"five parts", "127.0.0.0.1", "numeric"},
		{"above 255", "127.0.0.256", "numeric"},
		{"trailing dot on IPv4", "127.0.0.1.", "numeric"},
		{"full-width digits", "１２７.0.0.1", "numeric"},
		{"full-width dots", "127．0．0．1", "numeric"},
		{"circled digits", "①②⑦.0.0.①", "numeric"},
		{"number as last label", "feed.example.1", "numeric"},
		{"hexadecimal as last label", "feed.0xff", "numeric"},
		{"IPv6 zone", "[fe80::1%eth0]", "zone"},
		{"IPv6 zone, escaped", "[fe80::1%25eth0]", "zone"},
		{"IPv6 unclosed", "[::1", "brackets"},
		{"IPv6 and text", "[::1]x", "brackets"},
		{"stray bracket", "::1]", "brackets"},
		{"IPv4 in brackets", "[127.0.0.1]", "brackets"},
		{"empty brackets", "[]", "brackets"},
		{"not IPv6", "[::g]", "IPv6"},
		{"two ports", "feed.example:1:2", "IPv6"},
		{"IPv4 in IPv6 with octal", "[::ffff:0177.0.0.1]", "IPv6"},
		{"empty port", "feed.example:", "port"},
		{"empty port on IPv6", "[::1]:", "port"},
		{"port zero", "feed.example:0", "port"},
		{"port with leading zero", "feed.example:0443", "port"},
		{"port too high", "feed.example:65536", "port"},
		{"port of letters", "feed.example:https", "port"},
		{"negative port", "feed.example:-1", "port"},
		{"signed port", "feed.example:+443", "port"},
		{"full-width port", "feed.example:４４３", "port"},
		{"port alone", ":443", "empty label"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := host.Normalize(tc.in)
			if err == nil {
				t.Fatalf("Normalize(%q) = %+v, want an error", tc.in, got)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Normalize(%q): %v, want it to say %q", tc.in, err, tc.want)
			}
			if len(err.Error()) > 500 || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("Normalize(%q): error is not short printable ASCII: %q", tc.in, err)
			}
			if got != (host.Host{}) {
				t.Errorf("Normalize(%q) = %+v with an error", tc.in, got)
			}
		})
	}
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{
		"feed.example", "FEED.example.:8443", "bücher.example", "xn--bcher-kva.example", "[::ffff:1.2.3.4]:80", "0x7f.1",
		"１２７.0.0.1", "аpple.example", "אב.example", "a。b", "fe80::1%1", "xn--a-ecp.ru", "ẞ.example", "\u200d.example",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := host.Normalize(s)
		if err != nil {
			return
		}
		if again, err := host.Normalize(h.String()); err != nil || again != h {
			t.Errorf("Normalize(%q) = %+v, and again = %+v, %v", s, h, again, err)
		}
		if strings.Trim(h.Name, "abcdefghijklmnopqrstuvwxyz0123456789-.:") != "" || h.Name == "" || len(h.Name) > 253 {
			t.Errorf("Normalize(%q) = %q", s, h.Name)
		}
		if p, err := host.ParsePattern(s); err != nil || !p.Match(h) {
			t.Errorf("ParsePattern(%q) = %v, %v does not match %v", s, p, err, h)
		}
		if why := host.Suspicious(h.Name); strings.ContainsFunc(why, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("Suspicious(%q) = %q", h.Name, why)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	for _, bc := range []struct{ name, in string }{
		{"plain", "api.feed.example:8443"},
		{"upper", "API.feed.example"},
		{"unicode", "bücher.example"},
		{"ipv4", "192.0.2.1:80"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := host.Normalize(bc.in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
