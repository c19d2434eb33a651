//go:build e2e

package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// hostile stands before a real seller, takes authorizations, and does with each what it likes.
type hostile struct {
	*httptest.Server
	seller *Seller

	mu    sync.Mutex
	rand  *rand.Rand
	fair  bool // passes everything on
	greed bool // keeps everything
	seen  map[common.Hash]harvest
	call  *call
}

// harvest is an authorization that came, and its signature.
type harvest struct {
	authorization
	signature []byte
}

// call is one run of the program, as the seller sees it: it came, was quoted a price, greeted the seller on a
// new connection, sent an authorization and was answered. Each moment is closed when it comes.
type call struct {
	came, quoted, greeted, sent, answered chan struct{}

	once [5]sync.Once
	slow time.Duration // how long a greeting takes after a quote; 0 keeps the connection of the quote
}

func newCall() *call {
	return &call{
		came: make(chan struct{}), quoted: make(chan struct{}), greeted: make(chan struct{}), sent: make(chan struct{}), answered: make(chan struct{}),
	}
}

func (c *call) reach(moment chan struct{}) {
	for i, m := range []chan struct{}{c.came, c.quoted, c.greeted, c.sent, c.answered} {
		if m == moment {
			c.once[i].Do(func() { close(m) })
		}
	}
}

func reached(moment chan struct{}) bool {
	select {
	case <-moment:
		return true
	default:
		return false
	}
}

// newHostile opens one. Its moods follow from the seed.
func newHostile(t testing.TB, s *Seller, seed uint64) *hostile {
	h := &hostile{seller: s, rand: rand.New(rand.NewPCG(seed, 1)), seen: map[common.Hash]harvest{}, call: newCall()}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.serve(w, r); err != nil {
			t.Error(err)
		}
	}))
	h.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		h.mu.Lock()
		call := h.call
		h.mu.Unlock()
		if reached(call.quoted) {
			call.reach(call.greeted)
			time.Sleep(call.slow)
		}
		return nil, nil
	}}
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // of greetings that were cut off
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// certificate writes what makes a program trust the seller into dir, and returns the file.
func (h *hostile) certificate(t testing.TB, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "seller.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// begin is a new run of the program.
func (h *hostile) begin(fair bool, slow time.Duration) *call {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call, h.fair = newCall(), fair
	h.call.slow = slow
	return h.call
}

func (h *hostile) serve(w http.ResponseWriter, r *http.Request) error {
	h.mu.Lock()
	call, mood := h.call, h.rand.IntN(8)
	switch {
	case h.fair:
		mood = 0
	case h.greed:
		mood = 4 + h.rand.IntN(4)
	}
	h.mu.Unlock()
	call.reach(call.came)
	header := r.Header.Clone()
	header.Del("Payment-Signature")
	header.Del("X-Payment")
	quote, err := h.pass(r, header)
	if err != nil {
		return err
	}
	defer quote.Body.Close()
	if len(header) == len(r.Header) {
		if call.slow > 0 {
			quote.Header.Set("Connection", "close")
		}
		call.reach(call.quoted)
		give(w, quote)
		return nil
	}
	call.reach(call.sent)
	defer call.reach(call.answered)
	if err := h.keep(r.Header); err != nil {
		return err
	}
	if mood < 4 { // it settles
		if mood == 1 {
			time.Sleep(time.Duration(h.number(150)) * time.Millisecond)
		}
		answer, err := h.pass(r, r.Header)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		switch mood {
		case 0, 1:
			give(w, answer)
		case 2:
			call.reach(call.answered)
			panic(http.ErrAbortHandler)
		case 3:
			give(w, quote)
		}
		return nil
	}
	switch mood { // it keeps the authorization, to settle it when it likes
	case 4:
		call.reach(call.answered)
		panic(http.ErrAbortHandler)
	case 5:
		give(w, quote)
	case 6:
		http.Error(w, "broken", http.StatusInternalServerError)
	case 7:
		receipt, err := json.Marshal(map[string]any{
			"success": true, "transaction": common.BigToHash(common.Big3), "network": map[int]string{1: "base", 2: "eip155:8453"}[h.seller.Version],
			"payer": "0x0000000000000000000000000000000000000001",
		})
		if err != nil {
			return err
		}
		w.Header().Set(map[int]string{1: "X-Payment-Response", 2: "Payment-Response"}[h.seller.Version], base64.StdEncoding.EncodeToString(receipt))
		fmt.Fprintln(w, "here you are")
	}
	return nil
}

func (h *hostile) number(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rand.IntN(n)
}

// pass asks the real seller, who is not told when the client has gone.
func (h *hostile) pass(r *http.Request, header http.Header) (*http.Response, error) {
	req, err := http.NewRequest(r.Method, h.seller.URL+r.URL.RequestURI(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return http.DefaultTransport.RoundTrip(req)
}

// keep reads the authorization of a paid request.
func (h *hostile) keep(header http.Header) error {
	raw, err := base64.StdEncoding.DecodeString(header.Get("Payment-Signature") + header.Get("X-Payment"))
	if err != nil {
		return err
	}
	var m struct {
		Payload struct {
			Signature     hexutil.Bytes
			Authorization struct {
				From, To                       common.Address
				Value, ValidAfter, ValidBefore string
				Nonce                          common.Hash
			}
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	a := m.Payload.Authorization
	var n [3]uint64
	for i, s := range []string{a.Value, a.ValidAfter, a.ValidBefore} {
		if n[i], err = strconv.ParseUint(s, 10, 64); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[a.Nonce] = harvest{authorization{a.From, a.To, n[0], n[1], n[2], a.Nonce}, m.Payload.Signature}
	return nil
}

// harvested are all authorizations that came, those that die first before others.
func (h *hostile) harvested() []harvest {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []harvest
	for _, a := range h.seen {
		all = append(all, a)
	}
	return sorted(all)
}

func sorted(all []harvest) []harvest {
	slices.SortFunc(all, func(a, b harvest) int {
		if a.validBefore != b.validBefore {
			return int(int64(a.validBefore) - int64(b.validBefore))
		}
		return slices.Compare(a.nonce[:], b.nonce[:])
	})
	return all
}
