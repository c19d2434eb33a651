package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// transport is the network as a process sees it. It hands over before a request
// leaves and before its answer arrives.
type transport struct {
	w *world
	p *proc
}

var errReset = errors.New("sim: connection reset by peer")

func (n transport) RoundTrip(req *http.Request) (*http.Response, error) {
	w, t := n.w, taskOf(req.Context())
	w.yield(t, "send")
	body := ""
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	s := w.sellers[req.URL.Host]
	if s == nil {
		return nil, fmt.Errorf("sim: no host %s", req.URL.Host)
	}
	if w.chance(w.setup.rate(100)) {
		w.note("%s: the request is lost", t)
		return nil, errReset
	}
	w.oracle.sent(t, req, []byte(body))
	a := s.serve(t, req)
	if a.wait > 0 {
		w.sleep(t, a.wait, "slow answer")
	}
	w.yield(t, "answer")
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if a.lost || w.chance(w.setup.rate(100)) {
		return nil, errReset
	}
	body = cmp.Or(a.body, "{}")
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}
