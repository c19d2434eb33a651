package canopytest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Rebinder is a name server that changes its mind: each name has a list of
// addresses, and each lookup is answered with the next one, the last for ever.
// A name that is looked up once to be judged and again to be dialled then leads
// to two places. It needs no socket and is safe for concurrent use.
type Rebinder struct {
	mu      sync.Mutex
	answers map[string][]netip.Addr
	lookups map[lookup]int
}

type lookup struct {
	name string
	kind dnsmessage.Type
}

// NewRebinder returns a name server without names.
func NewRebinder() *Rebinder {
	return &Rebinder{answers: make(map[string][]netip.Addr), lookups: make(map[lookup]int)}
}

// Bind gives name its addresses, in the order in which they are answered, one
// at a time. Bind("shop.test", "203.0.113.7", "127.0.0.1") flips to loopback at
// the second lookup. It panics where one is not an address.
func (b *Rebinder) Bind(name string, addrs ...string) {
	list := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		list[i] = netip.MustParseAddr(a)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[fold(name)] = list
	delete(b.lookups, lookup{fold(name), dnsmessage.TypeA})
	delete(b.lookups, lookup{fold(name), dnsmessage.TypeAAAA})
}

// Lookups is how often name was looked up. A lookup of both families counts
// once.
func (b *Rebinder) Lookups(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.lookups[lookup{fold(name), dnsmessage.TypeA}], b.lookups[lookup{fold(name), dnsmessage.TypeAAAA}])
}

// Resolver returns a resolver that asks b and nobody else, for the Resolver of
// a net.Dialer. Names that b does not know do not exist; those of the host's
// own file are found there first.
func (b *Rebinder) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go b.serve(server) // ends when the resolver closes its side
		return client, nil
	}}
}

// DialContext dials as a net.Dialer without any rule, looking names up in b: a
// transport that a rebinding gets past.
func (b *Rebinder) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Resolver: b.Resolver()}
	return d.DialContext(ctx, network, address)
}

// serve answers queries in the form that DNS has over TCP.
func (b *Rebinder) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := b.answer(query)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func (b *Rebinder) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	for _, q := range m.Questions {
		addr, known := b.next(fold(q.Name.String()), q.Type)
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case !known:
			m.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA && addr.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: addr.As4()}})
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	return m.Pack()
}

// next is the address of the lookup that is going on. A resolver asks for both
// families side by side, so each has a count of its own.
func (b *Rebinder) next(name string, kind dnsmessage.Type) (netip.Addr, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.answers[name]
	if len(list) == 0 {
		return netip.Addr{}, false
	}
	n := b.lookups[lookup{name, kind}]
	b.lookups[lookup{name, kind}]++
	return list[min(n, len(list)-1)], true
}

func fold(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
