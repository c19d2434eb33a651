package canopytest

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is one request that reached a route, and what became of it.
type Request struct {
	Pattern string // of the route
	Time    time.Time
	Method  string
	Host    string
	Target  string // path and query as sent
	Header  http.Header
	Body    []byte

	Paid          bool           // it carried a payment header
	Authorization *Authorization // what that header holds, where it can be read
	Tempo         *TempoTx       // the transaction of Tempo that it holds, likewise
	Faults        []string       // names of the faults that were played
	Served        bool           // the handler ran
	Status        int            // answered; 0 where nothing was
	Code          string         // the error that was stated
	TxHash        string         // of the transaction by which this request moved money
}

// Contains reports whether s stands anywhere in what was received: request
// line, headers or body. It finds secrets that must not leave.
func (r Request) Contains(s string) bool {
	if strings.Contains(r.Host+" "+r.Target, s) || bytes.Contains(r.Body, []byte(s)) {
		return true
	}
	for name, values := range r.Header {
		for _, v := range append([]string{name}, values...) {
			if strings.Contains(v, s) {
				return true
			}
		}
	}
	return false
}

func (r *Request) clone() Request {
	c := *r
	c.Header = r.Header.Clone()
	c.Body = bytes.Clone(r.Body)
	c.Faults = slices.Clone(r.Faults)
	if r.Authorization != nil {
		a := *r.Authorization
		c.Authorization = &a
	}
	return c
}
