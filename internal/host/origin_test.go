package host_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/internal/host"
)

func TestFromURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		want     host.Origin
		text     string
	}{
		{"https", "https://feed.example/a?b#c", host.Origin{Scheme: "https", Host: "feed.example", Port: 443}, "https://feed.example"},
		{"http", "http://feed.example", host.Origin{Scheme: "http", Host: "feed.example", Port: 80}, "http://feed.example"},
		{"case", "HTTPS://FEED.Example./", host.Origin{Scheme: "https", Host: "feed.example", Port: 443}, "https://feed.example"},
		{"port", "https://feed.example:8443", host.Origin{Scheme: "https", Host: "feed.example", Port: 8443}, "https://feed.example:8443"},
		{"default port stated", "https://feed.example:443", host.Origin{Scheme: "https", Host: "feed.example", Port: 443}, "https://feed.example"},
		{"the other default port", "https://feed.example:80", host.Origin{Scheme: "https", Host: "feed.example", Port: 80}, "https://feed.example:80"},
		{"U-label", "https://bücher.example", host.Origin{Scheme: "https", Host: "xn--bcher-kva.example", Port: 443}, "https://xn--bcher-kva.example"},
		{"IPv6", "https://[2001:DB8::1]/", host.Origin{Scheme: "https", Host: "2001:db8::1", Port: 443}, "https://[2001:db8::1]"},
		{"IPv6 and port", "http://[::1]:8080/", host.Origin{Scheme: "http", Host: "::1", Port: 8080}, "http://[::1]:8080"},
		{"IPv4 in IPv6", "http://[::ffff:127.0.0.1]/", host.Origin{Scheme: "http", Host: "127.0.0.1", Port: 80}, "http://127.0.0.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			before := *u
			got, err := host.FromURL(u)
			if err != nil || got != tc.want {
				t.Fatalf("FromURL(%q) = %+v, %v, want %+v", tc.in, got, err, tc.want)
			}
			if *u != before {
				t.Errorf("FromURL changed the URL to %v", u)
			}
			if got.String() != tc.text {
				t.Errorf("String = %q, want %q", got.String(), tc.text)
			}
			if again, err := host.ParseOrigin(got.String()); err != nil || again != got {
				t.Errorf("ParseOrigin(%q) = %+v, %v, want %+v", got.String(), again, err, got)
			}
		})
	}
}

func TestFromURLRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		in   *url.URL
		want string
	}{
		{"nil", nil, "no URL"},
		{"zero", &url.URL{}, "scheme"},
		{"no host", &url.URL{Scheme: "https"}, "empty"},
		{"ftp", &url.URL{Scheme: "ftp", Host: "feed.example"}, "scheme"},
		{"file", &url.URL{Scheme: "file", Path: "/etc/passwd"}, "scheme"},
		{"opaque", &url.URL{Scheme: "https", Opaque: "feed.example"}, "without a host"},
		{"opaque beside a host", &url.URL{Scheme: "https", Host: "feed.example", Opaque: "//evil.example/"}, "without a host"},
		{"userinfo", &url.URL{Scheme: "https", User: url.User("good.example"), Host: "evil.example"}, "user information"},
		{"empty userinfo", &url.URL{Scheme: "https", User: &url.Userinfo{}, Host: "evil.example"}, "user information"},
		{"userinfo inside the host", &url.URL{Scheme: "https", Host: "good.example@evil.example"}, "user information"},
		{"decimal address", &url.URL{Scheme: "http", Host: "2130706433"}, "numeric"},
		{"empty port", &url.URL{Scheme: "https", Host: "feed.example:"}, "port"},
		{"zone", &url.URL{Scheme: "http", Host: "[fe80::1%eth0]"}, "zone"},
		{"line break", &url.URL{Scheme: "http", Host: "feed.example\r\nx: y"}, "space"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := host.FromURL(tc.in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("FromURL = %+v, %v, want an error that says %q", got, err, tc.want)
			}
		})
	}
}

func TestParseOriginRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "feed.example", "//feed.example", "https://", "https://feed.example/a", "https://feed.example?", "https://feed.example#",
		"https://feed.example?a=b", "https://a@feed.example", "wss://feed.example", "https://feed.example\\@evil.example", "https:feed.example",
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			if got, err := host.ParseOrigin(in); err == nil {
				t.Errorf("ParseOrigin(%q) = %+v, want an error", in, got)
			}
		})
	}
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want bool
	}{
		{"http://localhost", true},
		{"http://LOCALHOST.:8080", true},
		{"http://127.0.0.1:1", true},
		{"http://127.255.255.254", true},
		{"http://[::1]", true},
		{"http://[::ffff:127.0.0.1]", true},
		{"http://sub.localhost", false},
		{"http://localhost.example", false},
		{"http://127.0.0.1.example", false},
		{"http://0.0.0.0", false},
		{"http://[::]", false},
		{"http://10.0.0.1", false},
		{"http://feed.example", false},
	} {
		t.Run(tc.in, func(t *testing.T) {
			t.Parallel()
			o, err := host.ParseOrigin(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := host.IsLoopback(o); got != tc.want {
				t.Errorf("IsLoopback(%v) = %v, want %v", o, got, tc.want)
			}
		})
	}
	if host.IsLoopback(host.Origin{}) {
		t.Error("the zero Origin is loopback")
	}
}

func FuzzParseOrigin(f *testing.F) {
	f.Add("https://feed.example:8443")
	f.Add("http://[::ffff:1.2.3.4]:80/")
	f.Add("https://a@b")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := host.ParseOrigin(s)
		if err != nil {
			return
		}
		if again, err := host.ParseOrigin(o.String()); err != nil || again != o {
			t.Errorf("ParseOrigin(%q) = %+v, and again = %+v, %v", s, o, again, err)
		}
	})
}
