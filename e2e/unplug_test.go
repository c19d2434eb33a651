//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// cable is a way to an address that can be unplugged: what is under way breaks, and nobody answers.
type cable struct {
	URL string

	listener net.Listener
	to       string
	mu       sync.Mutex
	out      bool
	open     map[net.Conn]bool
}

func newCable(t testing.TB, url string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{URL: "http://" + l.Addr().String(), listener: l, to: strings.TrimPrefix(url, "http://"), open: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); c.plug(false) })
	return c
}

func (c *cable) carry(near net.Conn) {
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		near.Close()
		return
	}
	c.mu.Lock()
	if c.out {
		near.Close()
		far.Close()
	}
	c.open[near], c.open[far] = true, true
	c.mu.Unlock()
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		ways.Go(func() {
			io.Copy(way[0], way[1])
			near.Close()
			far.Close()
		})
	}
	ways.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, near)
	delete(c.open, far)
}

// plug puts the cable in, or pulls it out.
func (c *cable) plug(in bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out = !in; !in {
		for conn := range c.open {
			conn.Close()
		}
	}
}

// TestUnplug pulls the network out of a machine that pays, after the authorization reached the seller and before,
// and asks as a new user would what happened: what the program prints tells it.
func TestUnplug(t *testing.T) {
	t.Parallel()
	c := NewChain(t)
	s := NewSeller(t, c, 2)
	node := newCable(t, c.URL)
	var line *cable
	plug := func(in bool) { line.plug(in); node.plug(in) }
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Payment-Signature") == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		if r.URL.RawQuery == "reached" {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		plug(false)
	}))
	t.Cleanup(far.Close)
	line = newCable(t, far.URL)
	network := fmt.Sprintf("%s[[chain]]\nid = \"base\"\nrpc = [%q]\n", allowLoopback, node.URL)
	sh := newShell(t, c, shellPolicy, network, 1_000_000)
	defer sh.reckon(t)

	unplugged := func(query string, units uint64) (id string) {
		t.Helper()
		c.Moves(t, s.PayTo, units, func() {
			r := sh.run(t, 5, "fetch", line.URL+"/cent?"+query).has(t, "is in doubt", "The money stays held", "Pay by no other means before")
			if id = regexp.MustCompile("[0-9A-Z]{26}").FindString(r.err); id == "" {
				t.Fatalf("%s\nwant the payment's ID", r)
			}
		})
		sh.run(t, 1, "reconcile").has(t, "problem: base: ", "no node answered", "waiting 1",
			id+"  $0.01  in doubt", "/cent?"+query, "$0.01 stays held. Until ", "it can still move", "Run canopy reconcile again once it can be reached")
		sh.run(t, 0, "ledger", "show", id).has(t, "What came back", "stays held")
		plug(true)
		r := sh.run(t, 0, "reconcile").has(t, "waiting 1", id+"  $0.01  in doubt", "$0.01 stays held. Until ")
		if strings.Contains(r.out+r.err, "problem") || strings.Contains(r.err, "could not be asked") {
			t.Errorf("%s\nwant no problem left", r)
		}
		return id
	}
	id := unplugged("reached", 10_000)
	c.Mine(t, 3)
	sh.run(t, 0, "reconcile").has(t, id+"  $0.01  settled: the chain shows the transfer 0x", "waiting 0")

	id = unplugged("lost", 0)
	c.Advance(t, 90*time.Second)
	c.Mine(t, 3)
	sh.run(t, 0, "reconcile").has(t, id+"  $0.01  released: it never moved and cannot any more", "waiting 0")
	sh.run(t, 0, "ledger", "show", id).has(t, "was never used, and can never be used any more")
	sh.run(t, 0, "reconcile").has(t, "No payment is held.")
}
