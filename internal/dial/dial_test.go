package dial_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/canopy-go/canopy/internal/dial"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func client(c dial.Config) *http.Client {
	return &http.Client{Transport: c.Transport(), Timeout: 5 * time.Second}
}

func blocked(t *testing.T, err error, addr string) {
	t.Helper()
	var b *dial.BlockedError
	if !errors.As(err, &b) {
		t.Fatalf("got %v, want a *dial.BlockedError", err)
	}
	if addr != "" && b.Addr.String() != addr {
		t.Errorf("blocked %s, want %s", b.Addr, addr)
	}
	for _, want := range []string{b.Addr.String(), "[network]", "allow_private"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

// Attack 32: addresses that a stranger's URL must not reach.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range strings.Fields(`
		0.0.0.0 0.1.2.3 10.0.0.0 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255
		127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.255 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2
		172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255
		198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
		:: ::1 ::2 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:192.168.1.1
		::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::a00:1 100::1 2001::1 2001:0:7f00:1::
		2001:db8::1 2001:10::1 2002:7f00:1:: 2002:a9fe:a9fe:: 3fff::1 fc00::1 fd00:ec2::254 fdff:ffff::1
		fe80::1 fe80::1%lo febf::1 fec0::1 ff02::1 ff0e::1 4000::1 5f00::1
	`) {
		addr := netip.MustParseAddr(a)
		blockedErr := dial.Config{}.Check("", addr)
		blocked(t, blockedErr, addr.Unmap().WithZone("").String())
	}
	for _, a := range strings.Fields(`1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 192.167.1.1
		::ffff:8.8.8.8 2606:4700:4700::1111 2a00:1450::1`) {
		if err := (dial.Config{}).Check("", netip.MustParseAddr(a)); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestAllowList(t *testing.T) {
	t.Parallel()
	c := dial.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")}}
	for a, ok := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "::1": true, "127.0.0.1": false, "::": false,
	} {
		if err := c.Check("", netip.MustParseAddr(a)); (err == nil) != ok {
			t.Errorf("%s: %v", a, err)
		}
	}
	if err := c.Check("", netip.Addr{}); err == nil {
		t.Error("the invalid address passes")
	}
}

// The spellings of this machine that reach a real listener.
func TestSpellingsOfLoopback(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	for _, name := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "localhost."} {
		resp, err := client(dial.Config{}).Get("http://" + name + ":" + port + "/")
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s was reached", name)
			continue
		}
		var dns *net.DNSError
		if name == "localhost." && errors.As(err, &dns) {
			continue
		}
		blocked(t, err, "")
	}
	resp, err := client(dial.Config{AllowPrivate: loopback}).Get("http://127.0.0.1:1/")
	var b *dial.BlockedError
	if err == nil || errors.As(err, &b) {
		t.Errorf("a listed address: %v, %v", resp, err)
	}
}

func TestRedirectToLoopback(t *testing.T) {
	t.Parallel()
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer inner.Close()
	// The outer server listens on an address that is listed, the inner does not.
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("127.0.0.2 is not an address of this system: ", err)
	}
	outer := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL, http.StatusFound)
	})}}
	outer.Start()
	defer outer.Close()
	_, err = client(dial.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}).Get(outer.URL)
	blocked(t, err, "127.0.0.1")
}

// Attack 31: the name resolves to a listed address first and to another next.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.Header().Set("Connection", "close")
		io.WriteString(w, "ok")
	}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())

	var flipped atomic.Bool
	resolver := fakeDNS(t, func() [4]byte {
		if flipped.Load() {
			return [4]byte{10, 0, 0, 1}
		}
		return [4]byte{127, 0, 0, 1}
	})
	c := client(dial.Config{AllowPrivate: loopback, Resolver: resolver})
	url := "http://feed.example:" + port + "/"
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	flipped.Store(true)
	_, err = c.Get(url)
	blocked(t, err, "10.0.0.1")
	if !strings.Contains(err.Error(), "feed.example") {
		t.Errorf("%v does not name the host", err)
	}
	if hits.Load() != 1 {
		t.Errorf("%d requests arrived, want 1", hits.Load())
	}

	// And with nothing listed, a public name that points inside.
	flipped.Store(false)
	_, err = client(dial.Config{Resolver: resolver}).Get(url)
	blocked(t, err, "127.0.0.1")
}

// fakeDNS is a resolver that answers every A query with what addr returns.
func fakeDNS(t *testing.T, addr func() [4]byte) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Header.Response, m.Header.RecursionAvailable = true, true
			m.Additionals = nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: addr()},
				}}
			}
			if out, err := m.Pack(); err == nil {
				pc.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { pc.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func TestProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // never asked
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.RequestURI)
		io.WriteString(w, "through")
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client(dial.Config{Proxy: at}).Get("http://feed.example/")
	blocked(t, err, "127.0.0.1") // the proxy itself is not listed

	c := client(dial.Config{Proxy: at, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	resp, err := c.Get("http://feed.example/x")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := asked.Load(); got != "http://feed.example/x" {
		t.Errorf("the proxy was asked for %v", got)
	}
	was := asked.Load()
	for _, private := range []string{
		"http://10.0.0.1/", "https://10.0.0.1/", "http://169.254.169.254/", "http://[::ffff:169.254.169.254]/", "http://[::1]/", "http://[fe80::1]/", "http://127.0.0.2/",
	} {
		_, err = c.Get(private)
		blocked(t, err, "")
	}
	_, err = client(dial.Config{Proxy: at}).Get("http://localhost/")
	blocked(t, err, "")
	if got := asked.Load(); got != was {
		t.Errorf("the proxy was asked for %v", got)
	}

	listed := dial.Config{Proxy: at, AllowPrivate: append(loopback, netip.MustParsePrefix("10.0.0.0/8"))}
	resp, err = client(listed).Get("http://10.0.0.1/x")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := asked.Load(); got != "http://10.0.0.1/x" {
		t.Errorf("a listed address: the proxy was asked for %v", got)
	}
}

// What one parser takes for a name and another for an address reaches neither.
func TestProxySpellings(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the proxy was asked for %s", r.RequestURI) }))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := client(dial.Config{Proxy: at, AllowPrivate: loopback})
	for _, name := range []string{
		"0xa9fea9fe", "2852039166", "169.254.43518", "0251.0376.0251.0376", "169.254.169.254.", "１６９.254.169.254", "127.1", "0x7f.1", "user@feed.example", "a..example",
	} {
		for _, scheme := range []string{"http://", "https://"} {
			resp, err := c.Get(scheme + name + "/")
			if err == nil {
				resp.Body.Close()
				t.Errorf("%s%s was answered", scheme, name)
			}
		}
	}
}

// Plain http to this machine stays on it.
func TestProxyLoopback(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the proxy was asked for %s", r.RequestURI) }))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	c := client(dial.Config{Proxy: at, AllowPrivate: append(loopback, netip.MustParsePrefix("::1/128"))})
	for _, name := range []string{"127.0.0.1", "localhost", "LOCALHOST", "[::ffff:127.0.0.1]"} {
		resp, err := c.Get("http://" + name + ":" + port + "/x")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "/x" { // a proxy would be asked for the whole URL
			t.Errorf("%s: asked for %q", name, b)
		}
	}
	if resp, err := c.Get("http://a.localhost:1/"); err == nil {
		resp.Body.Close()
		t.Error("a.localhost was answered")
	}
}

// Attack 36.
func TestHugeHeader(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.URL.Query().Get("n"), &n)
		w.Header().Set("X-Big", strings.Repeat("a", n))
	}))
	defer srv.Close()
	c := client(dial.Config{AllowPrivate: loopback})
	resp, err := c.Get(srv.URL + "/?n=200000")
	if err != nil {
		t.Fatalf("a header of 200 kB: %v", err)
	}
	resp.Body.Close()
	if _, err := c.Get(srv.URL + "/?n=9000000"); err == nil {
		t.Error("a header of 9 MB was accepted")
	}
}

func TestTransportIsStrict(t *testing.T) {
	t.Parallel()
	tr := dial.Config{}.Transport()
	if tr.TLSClientConfig.InsecureSkipVerify || tr.TLSClientConfig.MinVersion < 0x0303 {
		t.Error("TLS is not verified, or older than 1.2")
	}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = nil
	defer srv.Close()
	if _, err := client(dial.Config{AllowPrivate: loopback}).Get(srv.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	if _, err := (dial.Config{}).DialContext(t.Context(), "unix", "/tmp/x"); err == nil {
		t.Error("a unix socket is dialled")
	}
	if _, err := (dial.Config{}).DialContext(t.Context(), "tcp", "no-port"); err == nil {
		t.Error("an address without a port is dialled")
	}
}
