// Package dial makes the transport of the binary: it reaches the public
// Internet, and of this machine and private networks only what the
// configuration lists. The address is checked when the connection is made, on
// what the name resolved to, so that a name which changes its mind between two
// look-ups gains nothing.
package dial

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/canopy-go/canopy/internal/host"
)

// Config says what may be dialled. The zero value reaches public addresses only,
// directly.
type Config struct {
	// AllowPrivate lists the addresses that are dialled although they are not
	// public. IPv4 in IPv6 counts as the IPv4.
	AllowPrivate []netip.Prefix

	// Proxy is the HTTP proxy to go through; nil for none. The environment is
	// never asked. Loopback, localhost and names below it are dialled directly
	// all the same. A proxy looks names up itself, so that only addresses that a
	// URL spells out are checked then, and a host that is no canonical name or
	// address is refused; the proxy's own address is checked like any other.
	Proxy *url.URL

	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
}

// BlockedError says that an address is not dialled because it is not public and
// not listed. No byte was sent to it.
type BlockedError struct {
	Host string     // as it was asked for, where that is known
	Addr netip.Addr // what it is, or resolved to
}

// Error names the address, and the key that would let it through.
func (e *BlockedError) Error() string {
	what := e.Addr.String()
	if e.Host != "" && e.Host != what {
		what = fmt.Sprintf("%s (%s)", e.Host, what)
	}
	prefix := netip.PrefixFrom(e.Addr, e.Addr.BitLen())
	return fmt.Sprintf("dial: %s is not a public address and is not dialled: list it in the configuration under [network] as allow_private = [%q] if this is meant", what, prefix)
}

// Transport returns a new transport that dials what c allows. It uses TLS 1.2
// or later, verifies certificates, and takes response headers of at most
// 256 KiB.
func (c Config) Transport() *http.Transport {
	c.AllowPrivate = append([]netip.Prefix(nil), c.AllowPrivate...)
	return &http.Transport{
		Proxy:                  c.proxy,
		DialContext:            c.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  10 * time.Minute, // a seller may wait minutes for its chain
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// DialContext dials address, host and port, over TCP. The error wraps a
// *BlockedError where no address of the host may be dialled.
func (c Config) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, fmt.Errorf("dial: %s is not a network to pay over", network)
	}
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	d := net.Dialer{
		Timeout:   15 * time.Second,
		KeepAlive: 30 * time.Second,
		Resolver:  c.Resolver,
		ControlContext: func(_ context.Context, network, resolved string, _ syscall.RawConn) error {
			return c.check(name, network, resolved)
		},
	}
	return d.DialContext(ctx, network, address)
}

// check judges the address of a socket that is about to connect.
func (c Config) check(name, network, resolved string) error {
	if !strings.HasPrefix(network, "tcp") {
		return fmt.Errorf("dial: %s is not a network to pay over", network)
	}
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("dial: %q is not an address", resolved)
	}
	return c.Check(name, ap.Addr())
}

// Check returns a *BlockedError where addr, which name stands for, may not be
// dialled.
func (c Config) Check(name string, addr netip.Addr) error {
	addr = addr.Unmap()
	if !host.Private(addr) {
		return nil
	}
	plain := addr.WithZone("")
	for _, p := range c.AllowPrivate {
		if p.Contains(plain) {
			return nil
		}
	}
	return &BlockedError{Host: name, Addr: plain}
}

// proxy is the proxy for req: none for this machine, which is dialled directly
// and checked there. Nothing else resolves here, so what can be told from the URL
// is checked before the request leaves, and a host that two parsers could read
// as two does not leave at all.
func (c Config) proxy(req *http.Request) (*url.URL, error) {
	if c.Proxy == nil {
		return nil, nil
	}
	o, err := host.FromURL(req.URL)
	if err != nil {
		return nil, fmt.Errorf("dial: not sent to a proxy: %w", err)
	}
	if host.IsLoopback(o) || strings.HasSuffix(o.Host, ".localhost") {
		return nil, nil
	}
	if addr, ok := o.Authority().Addr(); ok {
		if err := c.Check(o.Host, addr); err != nil {
			return nil, err
		}
	}
	return c.Proxy, nil
}
