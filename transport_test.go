package canopy_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
)

// snapshot is what of a request a client may not change.
type snapshot struct {
	method, url, host, proto string
	header                   http.Header
	same                     *http.Header
	length                   int64
	encoding                 []string
	getBody                  bool
	body                     io.ReadCloser
	response                 *http.Response
}

func snap(r *http.Request) snapshot {
	return snapshot{
		r.Method, r.URL.String(), r.Host, r.Proto, r.Header.Clone(), &r.Header,
		r.ContentLength, r.TransferEncoding, r.GetBody != nil, r.Body, r.Response,
	}
}

// The request, its header map, the http.Client and the transport of the caller
// stay as they are.
func TestCallersThingsAreNotChanged(t *testing.T) {
	for _, door := range []string{"Fetch", "HTTPClient", "RoundTrip", "RoundTrip itself"} {
		for name, body := range map[string]io.Reader{"no body": nil, "GetBody": strings.NewReader("hello"), "reader": onlyReader{strings.NewReader("hello")}} {
			t.Run(door+" "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					base := &http.Transport{}
					w := newWorld(t, setup{base: base})
					base.DialContext = w.net.DialContext
					_, url := w.sells(dime)
					do := doors(w)[door]
					if do == nil {
						do = w.client.RoundTrip
					}
					req := w.request("POST", url, body)
					req.Header["X-Mine"] = []string{"a", "b"}
					req.Header.Set("Referer", "http://127.0.0.1/from")
					before, protocols := snap(req), base.Protocols
					w.bought(w.read(do(req)))
					if after := snap(req); !reflect.DeepEqual(before, after) {
						t.Errorf("the request was changed:\ngot  %+v\nwant %+v", after, before)
					}
					if base.TLSClientConfig != nil || base.Proxy != nil || base.Protocols != protocols || base.MaxResponseHeaderBytes != 0 {
						t.Errorf("the transport was changed: %+v", base)
					}
					w.spent(dime)
				})
			})
		}
	}
}

// What the payee is told: the payment and the caller's own headers, no referrer,
// no key and nothing to cache. Attacks 46 and 100.
func TestAttack46_PaidRequestIsNotCached(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(dime)
		req := w.request("GET", url, nil)
		req.Header.Set("X-Mine", "yes")
		req.Header.Set("Referer", "http://127.0.0.1/prompt")
		w.bought(w.do(req, canopy.WithKey("secret-key"), canopy.WithPurpose("secret-purpose")))
		for _, r := range s.Requests() {
			if r.Contains("secret-key") || r.Contains("secret-purpose") || r.Header.Get("X-Mine") != "yes" {
				t.Errorf("sent %v", r.Header)
			}
			if r.Paid && (r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Referer") != "") {
				t.Errorf("the paid request has %v", r.Header)
			}
		}
		w.wire.AssertNotSent(t, "secret-key")
	})
}

// A caller that pays by itself is left alone.
func TestRequestsThatCarryAPaymentPassThrough(t *testing.T) {
	for header, value := range map[string]string{"PAYMENT-SIGNATURE": "x", "X-PAYMENT": "x", "Authorization": "Payment abc"} {
		t.Run(header, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				_, url := w.sells(dime)
				req := w.request("GET", url, nil)
				req.Header.Set(header, value)
				if resp, err := w.client.RoundTrip(req); err != nil || resp.StatusCode != 402 {
					t.Errorf("got %v, %v", resp, err)
				} else {
					resp.Body.Close()
				}
				w.signed(0)
			})
		})
	}
}

// What asks for nothing is handed through, to the very response.
func TestPassThrough(t *testing.T) {
	t.Parallel()
	want := &http.Response{StatusCode: 404, Body: http.NoBody, Header: http.Header{}}
	var sent *http.Request
	w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) {
		c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) { sent = r; return want, nil })
	}})
	req := w.request("GET", "https://feed.example/", nil)
	if got, err := w.client.RoundTrip(req); got != want || err != nil || sent != req {
		t.Errorf("got %v, %v; sent a copy: %v", got, err, sent != req)
	}
	req = w.request("POST", "https://feed.example/", onlyReader{strings.NewReader("x")})
	if got, err := w.client.RoundTrip(req); got != want || err != nil || got.Request != req {
		t.Errorf("got %v, %v; its request is a copy: %v", got, err, got.Request != req)
	}
	w.signed(0)
}

func TestHeadIsBought(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "HEAD /goods", Price: dime}, {Pattern: "GET /free", Price: dime}}})
		g := w.bought(w.do(w.request("HEAD", url+"/goods", nil)))
		if g.body != "" || g.Request.Method != "HEAD" {
			t.Errorf("got %+v", g)
		}
		if g := w.do(w.request("HEAD", url+"/free", nil)); g.err != nil || g.StatusCode != 200 || g.cost {
			t.Errorf("HEAD of a route priced for GET: %+v", g)
		}
		w.handed(s, 1)
		w.spent(dime)
	})
}

// A real TLS server that speaks HTTP/2.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	base := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{}}
	w := newWorld(t, setup{base: base})
	s := canopytest.NewSeller(w.chain, canopytest.SellerConfig{
		Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}, {Pattern: "POST /goods", Price: dime}},
		Faults: canopytest.Plan{canopytest.Nth(3, canopytest.DropBeforeSettling())},
	})
	server := newHTTP2Server(t, s)
	base.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for range 2 {
		if g := w.bought(w.get(server.URL + "/goods")); g.ProtoMajor != 2 {
			t.Errorf("it came over %s", g.Proto)
		}
	}
	as[*canopy.InDoubtError](t, w.get(server.URL+"/goods").err) // the stream is reset, and not repeated
	w.handed(s, 3)
	w.bought(w.do(w.request("POST", server.URL+"/goods", onlyReader{strings.NewReader("hello")})))
	w.bought(w.do(w.request("POST", server.URL+"/goods", nil)))
	w.spent(4 * dime)
	w.counted(5 * dime)
}

// Deliveries that are errors are answers, with what they cost.
func TestAnswersWithErrorStatusAreAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  canopytest.Fault
		status int
		state  ledger.State
	}{
		"500 with a receipt": {canopytest.StatusWithReceipt(500), 500, ledger.Claimed},
		"500 after settling": {canopytest.StatusAfterSettling(500), 500, ledger.InDoubt},
		"400":                {canopytest.Status(400), 400, ledger.InDoubt},
		"409":                {canopytest.Status(409), 409, ledger.InDoubt},
		"412":                {canopytest.Status(412), 412, ledger.InDoubt},
		"200, no receipt":    {canopytest.NoReceipt(), 200, ledger.InDoubt},
		"given away":         {canopytest.GiveAway(), 200, ledger.InDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.sells(dime, canopytest.Always(tc.fault))
				g := w.get(url)
				if g.err != nil || g.StatusCode != tc.status || !g.cost || g.paid.State != tc.state || g.paid.Amount != dime {
					t.Errorf("got %+v", g)
				}
				w.get(url) // a delivered one is bought again, another is not
				want := 1
				if tc.status < 300 {
					want = 2
				}
				w.handed(s, want)
				w.counted(dime * canopy.USD(want))
			})
		})
	}
}

func TestRoundTripClosesTheBodyOnErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	closed := false
	req := &http.Request{Body: closer{strings.NewReader("x"), &closed}}
	if _, err := w.client.RoundTrip(req); err == nil || !closed {
		t.Errorf("got %v, body closed: %v", err, closed)
	}
}

type closer struct {
	io.Reader
	closed *bool
}

func (c closer) Close() error { *c.closed = true; return nil }
