package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// Loopback reports whether a listener on addr can be reached from this machine
// alone. A name is looked up by nobody: only localhost counts.
func Loopback(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// HostsOf are the values of the Host header of a page that listens on addr: its
// own, and those of the names it goes by, with its port.
func HostsOf(addr net.Addr, names ...string) []string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return names
	}
	port := strconv.Itoa(tcp.Port)
	var out []string
	if !tcp.IP.IsUnspecified() {
		out = append(out, net.JoinHostPort(tcp.IP.String(), port))
	}
	if tcp.IP.IsLoopback() {
		out = append(out, "localhost:"+port)
	}
	for _, n := range names {
		out = append(out, net.JoinHostPort(n, port))
		if tcp.Port == 443 {
			out = append(out, n)
		}
	}
	return out
}

// Serve serves h on l until ctx ends, then ends what is under way within a few
// seconds. cert is nil for a listener on loopback alone.
func Serve(ctx context.Context, l net.Listener, h http.Handler, cert *tls.Certificate) error {
	if cert == nil && !Loopback(l.Addr().String()) {
		return fmt.Errorf("dashboard: %s is not loopback, and there is no certificate", l.Addr())
	}
	base, stop := context.WithCancel(context.Background())
	defer stop()
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return base },
	}
	done := make(chan error, 1)
	go func() {
		if cert != nil {
			s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
			done <- s.ServeTLS(l, "", "")
			return
		}
		done <- s.Serve(l)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop() // pages that watch would go on for ever
	wait, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(wait); err != nil {
		s.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
