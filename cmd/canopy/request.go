package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// requestFlags are the flags that make a request, as curl has them.
type requestFlags struct {
	method  string
	headers []string
	head    bool
	agent   string
	data    dataFlags
}

func (r *requestFlags) register(fl *pflag.FlagSet) {
	fl.StringVarP(&r.method, "request", "X", "", "`METHOD` to use (default GET, or POST with data)")
	fl.StringArrayVarP(&r.headers, "header", "H", nil, "`'NAME: VALUE'` to send; again for more")
	fl.BoolVarP(&r.head, "head", "I", false, "ask for the headers only")
	fl.StringVarP(&r.agent, "user-agent", "A", "", "`TEXT` as the user agent")
	fl.VarP(r.data.flag(true, true), "data", "d", "`DATA` to send; @file or @- reads it, without line ends")
	fl.Var(r.data.flag(false, false), "data-raw", "`DATA` to send as it is, @ included")
	fl.Var(r.data.flag(true, false), "data-binary", "`DATA` to send; @file or @- reads it as it is")
}

// build makes the request. Its body can be sent again.
func (r *requestFlags) build(ctx context.Context, rawURL string, in io.Reader, o own) (*http.Request, error) {
	method := r.method
	switch {
	case method == "" && r.head:
		method = http.MethodHead
	case method == "" && r.data.given():
		method = http.MethodPost
	case method == "":
		method = http.MethodGet
	}
	var body io.Reader
	if r.data.given() {
		if r.head {
			return nil, errors.New("-I and -d: a request for headers has no data")
		}
		b, err := r.data.read(in, o)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	if err := badURL(rawURL); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, rawURL, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("User-Agent", "canopy/"+buildOf().Version)
	req.Header.Set("Accept", "*/*")
	if r.agent != "" {
		req.Header.Set("User-Agent", r.agent)
	}
	return req, r.setHeaders(req)
}

// setHeaders sets what -H says: the first use of a name replaces what stands
// there, further ones add; a name without a value takes it out.
func (r *requestFlags) setHeaders(req *http.Request) error {
	seen := map[string]bool{}
	for _, h := range r.headers {
		name, value, ok := strings.Cut(h, ":")
		empty := false
		if !ok {
			if name, empty = strings.CutSuffix(h, ";"); !empty {
				return fmt.Errorf("-H %q: write 'Name: value'", show(h, 60))
			}
		}
		name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "" || strings.ContainsAny(name+value, "\r\n\x00") {
			return fmt.Errorf("-H %q is not a header", show(h, 60))
		}
		switch {
		case name == "Host":
			req.Host = value
		case value == "" && !empty:
			req.Header.Del(name)
			if name == "User-Agent" {
				req.Header[name] = nil // net/http would put its own
			}
		case seen[name]:
			req.Header.Add(name, value)
		default:
			req.Header.Set(name, value)
		}
		seen[name] = true
	}
	return nil
}

// carries names the header with which -H brings a payment of the caller's own,
// or is empty.
func (r *requestFlags) carries() string {
	for _, h := range r.headers {
		name, value, _ := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case value == "":
		case strings.EqualFold(name, "PAYMENT-SIGNATURE"), strings.EqualFold(name, "X-PAYMENT"):
			return show(name, 40)
		case strings.EqualFold(name, "Authorization") && len(value) >= 8 && strings.EqualFold(value[:8], "Payment "):
			return show(name, 40)
		}
	}
	return ""
}

// dataFlags are -d and its siblings, in their order; curl joins them with &.
type dataFlags struct{ parts []dataPart }

type dataPart struct {
	text  string
	file  bool // text after @ names a file
	strip bool // line ends are left out of a file
}

func (d *dataFlags) given() bool { return len(d.parts) > 0 }

func (d *dataFlags) flag(file, strip bool) pflag.Value { return &dataFlag{d, file, strip} }

// read puts the parts together.
func (d *dataFlags) read(in io.Reader, o own) ([]byte, error) {
	var out []byte
	for i, p := range d.parts {
		if i > 0 {
			out = append(out, '&')
		}
		name, ok := strings.CutPrefix(p.text, "@")
		if !ok || !p.file {
			out = append(out, p.text...)
			continue
		}
		var b []byte
		var err error
		if name == "-" {
			b, err = io.ReadAll(in)
		} else if err = o.sendable(name); err == nil {
			b, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, fmt.Errorf("-d @%s: %w", name, err)
		}
		if p.strip {
			b = bytes.Map(func(r rune) rune {
				if r == '\r' || r == '\n' || r == 0 {
					return -1
				}
				return r
			}, b)
		}
		out = append(out, b...)
	}
	return out, nil
}

type dataFlag struct {
	to          *dataFlags
	file, strip bool
}

func (f *dataFlag) String() string { return "" }
func (f *dataFlag) Type() string   { return "string" }
func (f *dataFlag) Set(s string) error {
	f.to.parts = append(f.to.parts, dataPart{s, f.file, f.strip})
	return nil
}

// withScheme adds https to a URL without a scheme.
func withScheme(s string) string {
	if scheme, _, ok := strings.Cut(s, "://"); ok && !strings.ContainsAny(scheme, "/?#") {
		return s
	}
	return "https://" + s
}

// badURL tells why what withScheme returned cannot be fetched, or nil.
func badURL(s string) error {
	u, err := url.Parse(s)
	var bad *url.Error
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("URL: %q is none: %w", show(s, 200), bad.Err)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("URL: %q: only https:// and http:// are fetched", show(s, 200))
	case u.Hostname() == "":
		return fmt.Errorf("URL: %q has no host", show(s, 200))
	}
	return nil
}
