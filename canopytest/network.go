package canopytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Network carries HTTP between hosts in one process, without sockets: what a
// bubble of testing/synctest needs, and a way to give sellers any name. Plain
// HTTP only; hosts such as 127.0.0.1:8402 are names here like any other and
// count as loopback to a client. It is safe for concurrent use.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*listener
	dials []string
}

// NewNetwork returns a network without hosts.
func NewNetwork() *Network { return &Network{hosts: make(map[string]*listener)} }

// Serve puts h on the network at host, with a port or at port 80, until the test
// ends, and returns the URL of it without a slash at the end. A Seller that is
// served is closed then too.
func (n *Network) Serve(tb TB, host string, h http.Handler) string {
	tb.Helper()
	name := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		name = net.JoinHostPort(host, "80")
	}
	l := &listener{name: name, conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	taken := n.hosts[name] != nil
	if !taken {
		n.hosts[name] = l
	}
	n.mu.Unlock()
	if taken {
		tb.Fatalf("canopytest: %s is on the network already", name)
		return ""
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(l)
	}()
	tb.Cleanup(func() {
		n.mu.Lock()
		delete(n.hosts, name)
		n.mu.Unlock()
		if s, ok := h.(*Seller); ok {
			s.Close()
		}
		server.Close()
		<-ended
	})
	return "http://" + host
}

// DialContext connects to a host of the network; any other is refused.
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.hosts[address]
	n.dials = append(n.dials, address)
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("canopytest: dial %s: %w", address, errRefused)
	}
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("canopytest: dial %s: %w", address, errRefused)
}

var errRefused = errors.New("connection refused")

// Dials returns the addresses that were dialled, with their ports.
func (n *Network) Dials() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dials)
}

// Transport returns a new transport over the network. Close its idle
// connections before a bubble of testing/synctest ends.
func (n *Network) Transport() *http.Transport {
	return &http.Transport{DialContext: n.DialContext}
}

// Client returns a client over the network that ends with the test. It follows
// redirects and knows nothing of payments.
func (n *Network) Client(tb TB) *http.Client {
	t := n.Transport()
	tb.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// listener hands the other ends of dialled pipes to a server.
type listener struct {
	name  string
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return pipeAddr(l.name) }

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }
