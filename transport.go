package canopy

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// RoundTrip sends req and, where the seller asks for payment, pays inside the
// policy and sends it again. It is the http.RoundTripper that a program puts
// under its own http.Client; requests that meet no 402 pass through untouched,
// and so do challenges of a protocol that no rail knows. Denials and doubts are
// typed errors, which http.Client wraps in a *url.Error: use errors.As.
//
// A request that a redirect made is paid only on the origin that the caller
// asked for, and never after an earlier hop was paid.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	return c.roundTrip(req, options{announce: c.cfg.Announce})
}

// HTTPClient returns a new http.Client that pays through c. It follows at most
// ten redirects and never carries a payment across origins.
func (c *Client) HTTPClient() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: checkRedirect}
}

func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("canopy: stopped after 10 redirects")
	}
	return nil
}

// roundTrip is RoundTrip with the options of a Fetch.
func (c *Client) roundTrip(req *http.Request, o options) (*http.Response, error) {
	if req.URL == nil {
		closeBody(req)
		return nil, errors.New("canopy: the request has no URL")
	}
	began := c.cfg.Now()
	asked := req
	if o.announce && !carriesPayment(req) {
		asked = c.announced(req)
	}
	body := newReplay(asked)
	defer body.release()
	resp, err := c.cfg.Transport.RoundTrip(body.first(asked))
	if err != nil {
		return nil, err
	}
	body.proto = resp.ProtoMajor
	if body.teed() || asked != req || resp.Request == nil {
		resp.Request = req
	}
	if !isChallenge(resp) || carriesPayment(req) {
		return resp, nil
	}
	return c.answer(asked, resp, body, o, began)
}

// announced is a copy of req on which the rails tell what they pay by, or req
// itself where none has anything to tell.
func (c *Client) announced(req *http.Request) *http.Request {
	var clone *http.Request
	for _, r := range c.cfg.Rails {
		a, ok := r.(Announcer)
		if !ok {
			continue
		}
		if clone == nil {
			shallow := *req
			clone = &shallow
			if clone.Header = req.Header.Clone(); clone.Header == nil {
				clone.Header = make(http.Header)
			}
		}
		a.Announce(clone.Header)
	}
	if clone == nil {
		return req
	}
	return clone
}

// isChallenge reports whether resp asks for payment: a 402, or a 401 that
// carries a Payment challenge.
func isChallenge(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusPaymentRequired:
		return true
	case http.StatusUnauthorized:
		for _, line := range resp.Header.Values("WWW-Authenticate") {
			if mentionsPayment(line) {
				return true
			}
		}
	}
	return false
}

// mentionsPayment reports whether a WWW-Authenticate line has a challenge of the
// Payment scheme; a rail parses it properly. What stands in quotes is text.
func mentionsPayment(line string) bool {
	begins := true
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case b == '"':
			for i++; i < len(line) && line[i] != '"'; i++ {
				if line[i] == '\\' {
					i++
				}
			}
			begins = false
		case b == ',':
			begins = true
		case b == ' ' || b == '\t':
		case begins && isPayment(line[i:]):
			return true
		default:
			begins = false
		}
	}
	return false
}

// isPayment reports whether s begins with the name of the scheme, and what may
// follow it.
func isPayment(s string) bool {
	const scheme = "payment"
	return len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) &&
		(len(s) == len(scheme) || strings.IndexByte(" \t,", s[len(scheme)]) >= 0)
}

// paymentHeaders are where a request carries a payment, besides Authorization.
var paymentHeaders = [...]string{"Payment-Signature", "X-Payment", "Payment-Authorization"}

// carriesPayment reports whether the caller put an authorization of its own on
// req: then its answer is the caller's business.
func carriesPayment(req *http.Request) bool {
	for _, name := range paymentHeaders {
		if req.Header.Get(name) != "" {
			return true
		}
	}
	for _, v := range req.Header.Values("Authorization") {
		if len(v) >= 8 && strings.EqualFold(v[:8], "Payment ") {
			return true
		}
	}
	return false
}

// redirected tells why the request of a redirect is not paid, or "".
func redirected(req *http.Request) string {
	here := req.URL
	for prev := req.Response; prev != nil; {
		if prev.Request == nil {
			return "a redirect from an unknown place asks for payment"
		}
		from := prev.Request.URL
		if from.Scheme != here.Scheme || !strings.EqualFold(from.Host, here.Host) {
			return fmt.Sprintf("%s://%s redirected to %s://%s, which asks for payment: call it directly if it should be paid",
				from.Scheme, from.Host, here.Scheme, here.Host)
		}
		prev = prev.Request.Response
	}
	return ""
}

// paidOnTheWay reports whether an earlier hop of req's redirects was paid.
func paidOnTheWay(req *http.Request) (Result, bool) {
	for prev := req.Response; prev != nil && prev.Request != nil; prev = prev.Request.Response {
		if r, ok := paidBefore(prev.Request); ok {
			return r, true
		}
	}
	return Result{}, false
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
