package canopytest

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Sent is one request that passed a Recorder, and what came back.
type Sent struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte // what the transport read of it

	Status   int         // 0 where there was no response
	Response http.Header // of the response
	Err      error
}

// Recorder is an http.RoundTripper that remembers what passes it: placed below a
// client it sees what goes over the wire, above it what the program sees. The
// zero value passes on to http.DefaultTransport. It is safe for concurrent use
// and holds no response back.
type Recorder struct {
	Base http.RoundTripper // default http.DefaultTransport

	// Before, where set, is called with each request first; an error is
	// returned in place of sending it.
	Before func(*http.Request) error

	// After, where set, is called with each response; an error is returned in
	// its place, and the response is closed: an answer that was lost.
	After func(*http.Response) error

	mu   sync.Mutex
	sent []*Sent
}

// RoundTrip passes r on.
func (t *Recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	s := &Sent{Method: r.Method, URL: r.URL.String(), Header: r.Header.Clone()}
	t.mu.Lock()
	t.sent = append(t.sent, s)
	t.mu.Unlock()

	if t.Before != nil {
		if err := t.Before(r); err != nil {
			if r.Body != nil {
				r.Body.Close()
			}
			t.note(func() { s.Err = err })
			return nil, err
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		c := *r
		c.Body = &tee{r.Body, func(p []byte) { t.note(func() { s.Body = append(s.Body, p...) }) }}
		r = &c
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(r)
	t.note(func() {
		s.Err = err
		if resp != nil {
			s.Status, s.Response = resp.StatusCode, resp.Header.Clone()
		}
	})
	if err == nil && t.After != nil {
		if err = t.After(resp); err != nil {
			resp.Body.Close()
			t.note(func() { s.Err = err })
			return nil, err
		}
	}
	return resp, err
}

func (t *Recorder) note(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// tee is a body that tells what is read of it.
type tee struct {
	io.ReadCloser
	read func([]byte)
}

func (b *tee) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read(p[:n])
	return n, err
}

// Sent returns what passed, in the order in which it was sent.
func (t *Recorder) Sent() []Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Sent, len(t.sent))
	for i, s := range t.sent {
		out[i] = *s
		out[i].Body = bytes.Clone(s.Body)
		out[i].Header, out[i].Response = s.Header.Clone(), s.Response.Clone()
	}
	return out
}

// Payments returns the values of the payment headers that were sent, each once:
// more than one of them is more than one authorization.
func (t *Recorder) Payments() []string {
	var out []string
	for _, s := range t.Sent() {
		for _, v := range paymentsIn(s.Header) {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// paymentsIn are the values of h that carry a payment of any protocol.
func paymentsIn(h http.Header) []string {
	out := slices.Concat(h.Values("Payment-Signature"), h.Values("X-Payment"))
	return append(out, paymentScheme(slices.Concat(h.Values("Authorization"), h.Values("Payment-Authorization")))...)
}

// AssertNotSent fails tb where secret stands in the URL, a header or the body
// of anything that was sent.
func (t *Recorder) AssertNotSent(tb TB, secret string) {
	tb.Helper()
	for i, s := range t.Sent() {
		r := Request{Target: s.URL, Header: s.Header, Body: s.Body}
		if secret != "" && r.Contains(secret) {
			tb.Errorf("canopytest: request %d to %s holds the secret", i+1, strings.SplitN(s.URL, "?", 2)[0])
		}
	}
}

// LoseResponse returns an After that loses the first n responses to requests
// with a payment, with err: what was paid arrived, and nobody was told.
func LoseResponse(n int, err error) func(*http.Response) error {
	var mu sync.Mutex
	return func(resp *http.Response) error {
		mu.Lock()
		defer mu.Unlock()
		if len(paymentsIn(resp.Request.Header)) == 0 || n <= 0 {
			return nil
		}
		n--
		return err
	}
}

// SlowTransport is an http.RoundTripper that waits, by a clock, before it passes
// each request on.
type SlowTransport struct {
	Base  http.RoundTripper // default http.DefaultTransport
	Clock *Clock
	Delay time.Duration
}

// RoundTrip waits and passes r on.
func (t *SlowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.Clock.Sleep(r.Context(), t.Delay); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if t.Base == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	return t.Base.RoundTrip(r)
}
