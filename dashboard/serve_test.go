package dashboard_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/dashboard"
)

// Only what this machine alone can reach goes without TLS.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:1": true, "[::1]:1": true, "localhost:1": true,
		"0.0.0.0:1": false, "[::]:1": false, ":1": false, "192.168.0.1:1": false, "localhost.evil.example:1": false, "127.0.0.1.evil.example:1": false,
		"0x7f000001:1": false, "2130706433:1": false, "[::ffff:192.168.0.1]:1": false, "127.0.0.1": false, "": false,
	} {
		if got := dashboard.Loopback(addr); got != want {
			t.Errorf("Loopback(%q) = %v", addr, got)
		}
	}
	for _, tt := range []struct {
		addr  string
		names []string
		want  string
	}{
		{"127.0.0.1:8402", nil, "127.0.0.1:8402 localhost:8402"},
		{"[::1]:8402", nil, "[::1]:8402 localhost:8402"},
		{"0.0.0.0:8443", []string{"pay.example"}, "pay.example:8443"},
		{"192.0.2.1:443", []string{"pay.example"}, "192.0.2.1:443 pay.example:443 pay.example"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", tt.addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(dashboard.HostsOf(addr, tt.names...), " "); got != tt.want {
			t.Errorf("HostsOf(%s, %v) = %s, want %s", tt.addr, tt.names, got, tt.want)
		}
	}
	// A listener that says where it is is all that Serve looks at.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := dashboard.Serve(t.Context(), far{l}, http.NotFoundHandler(), nil); err == nil || !strings.Contains(err.Error(), "is not loopback") {
		t.Errorf("another machine is served without TLS: %v", err)
	}
}

// far is a listener that other machines could reach.
type far struct{ net.Listener }

func (far) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// It is served over TLS, and ends though a page still watches.
func TestServe(t *testing.T) {
	t.Parallel()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	watching := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			io.WriteString(w, "here")
			return
		}
		http.NewResponseController(w).Flush()
		close(watching)
		<-r.Context().Done()
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- dashboard.Serve(ctx, l, h, &tls.TLS.Certificates[0]) }()
	c := tls.Client()
	resp, err := c.Get("https://" + l.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	stream, err := c.Get("https://" + l.Addr().String() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	<-watching
	began := time.Now()
	end()
	if err := <-done; err != nil || time.Since(began) > 4*time.Second {
		t.Errorf("it ended with %v after %s", err, time.Since(began))
	}
}
