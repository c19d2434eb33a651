package host_test

import (
	"strings"
	"testing"

	"github.com/canopy-go/canopy/internal/host"
)

func TestPatternMatch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, origin string
		want            bool
	}{
		{"feed.example", "https://feed.example", true},
		{"feed.example", "https://feed.example:8443", true},
		{"feed.example", "http://feed.example", true},
		{"FEED.example.", "https://feed.example", true},
		{"feed.example", "https://a.feed.example", false},
		{"feed.example", "https://feed.example.evil", false},
		{"feed.example", "https://evilfeed.example", false},
		{"feed.example:8443", "https://feed.example:8443", true},
		{"feed.example:8443", "https://feed.example", false},
		{"feed.example:443", "https://feed.example", true},
		{"feed.example:443", "http://feed.example", false},
		{"*.mpp.example", "https://a.mpp.example", true},
		{"*.mpp.example", "https://a.b.mpp.example", true},
		{"*.mpp.example", "https://A.MPP.example.", true},
		{"*.mpp.example", "https://mpp.example", false},
		{"*.mpp.example", "https://evilmpp.example", false},
		{"*.mpp.example", "https://a.mpp.example.evil", false},
		{"*.mpp.example:8443", "https://a.mpp.example:8443", true},
		{"*.mpp.example:8443", "https://a.mpp.example", false},
		{"*.com", "https://feed.com", true},
		{"*.com", "https://com", false},
		{"*.bücher.example", "https://a.xn--bcher-kva.example", true},
		{"bücher.example", "https://xn--bcher-kva.example", true},
		{"аpple.example", "https://apple.example", false},
		{"apple.example", "https://аpple.example", false},
		{"192.0.2.1", "http://192.0.2.1:8080", true},
		{"192.0.2.1", "http://[::ffff:192.0.2.1]", true},
		{"[2001:db8::1]:80", "http://[2001:0db8::0001]", true},
		{"2001:db8::1", "http://[2001:db8::1]", true},
		{"[2001:db8::1]:80", "https://[2001:db8::1]", false},
	} {
		t.Run(tc.pattern+" "+tc.origin, func(t *testing.T) {
			t.Parallel()
			p, err := host.ParsePattern(tc.pattern)
			if err != nil {
				t.Fatal(err)
			}
			o, err := host.ParseOrigin(tc.origin)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.MatchOrigin(o); got != tc.want {
				t.Errorf("%v matches %v: %v, want %v", p, o, got, tc.want)
			}
			if again, err := host.ParsePattern(p.String()); err != nil || again != p {
				t.Errorf("ParsePattern(%q) = %+v, %v, want %+v", p.String(), again, err, p)
			}
		})
	}
}

func TestPatternWithoutPort(t *testing.T) {
	t.Parallel()
	p, err := host.ParsePattern("feed.example:443")
	if err != nil {
		t.Fatal(err)
	}
	if p.Match(host.Host{Name: "feed.example"}) {
		t.Error("a pattern with a port matches a host without one")
	}
	if (host.Pattern{}).Match(host.Host{}) {
		t.Error("the zero pattern matches the zero host")
	}
}

func TestParsePatternRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "*", "*.", "**.example", "*.*.example", "a.*.example", "a*.example", "*a.example", "example.*", "feed.example:*", "*:443",
		"*.127.0.0.1", "*.[::1]", "*.::1", "*.0.1", "*.1", "*..example", "＊.example", "*@evil.example", "*./", "*.feed.example/", "*.%65xample",
		"https://feed.example", "a_b.example", "* .example", "feed.example:0",
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			if p, err := host.ParsePattern(in); err == nil {
				t.Errorf("ParsePattern(%q) = %v, want an error", in, p)
			}
		})
	}
}

func TestBroad(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"*.com": true, "*.com:443": true, "*.COM.": true, "*.feed.example": false, "com": false, "localhost": false,
	} {
		p, err := host.ParsePattern(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Broad(); got != want {
			t.Errorf("Broad(%q) = %v, want %v", in, got, want)
		}
	}
}

func FuzzParsePattern(f *testing.F) {
	f.Add("*.mpp.example:8443", "a.mpp.example:8443")
	f.Add("feed.example", "feed.example")
	f.Fuzz(func(t *testing.T, s, at string) {
		p, err := host.ParsePattern(s)
		if err != nil {
			return
		}
		if again, err := host.ParsePattern(p.String()); err != nil || again != p {
			t.Errorf("ParsePattern(%q) = %v, and again = %v, %v", s, p, again, err)
		}
		h, err := host.Normalize(at)
		if err == nil && p.Match(h) && !strings.HasSuffix(h.Name, strings.TrimPrefix(strings.Split(p.String(), ":")[0], "*.")) && !strings.HasPrefix(p.String(), "[") {
			t.Errorf("%v matches %v", p, h)
		}
	})
}
