package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/internal/dial"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// ConnectChains returns the chains of [[chain]] that name nodes to ask. It
// contacts nobody.
func (f *File) ConnectChains() ([]canopy.Chain, error) {
	return f.chains(dial.Config{AllowPrivate: f.Network.AllowPrivate, Proxy: f.Network.Proxy}.Transport())
}

// chains are those of [[chain]] that name nodes to ask, over rt.
func (f *File) chains(rt http.RoundTripper) ([]canopy.Chain, error) {
	var out []canopy.Chain
	for i, c := range f.Chains {
		urls := append([]string(nil), c.RPC...)
		for j, name := range c.RPCEnv {
			v := os.Getenv(name)
			if v == "" {
				return nil, fmt.Errorf("config: chain[%d].rpc_env[%d]: environment variable %s is not set", i, j, name)
			}
			urls = append(urls, v)
		}
		if len(urls) == 0 {
			continue
		}
		ready, err := chain.New(chain.Config{ID: c.ID, URLs: urls, Transport: rt, Tempo: c.Tempo})
		if err != nil {
			return nil, fmt.Errorf("config: chain[%d]: %w", i, err)
		}
		out = append(out, ready)
	}
	return out, nil
}

// facilitators are those of [[chain]], over rt.
func (f *File) facilitators(rt http.RoundTripper) (map[payment.ChainID]x402.Facilitator, error) {
	out := map[payment.ChainID]x402.Facilitator{}
	for i, c := range f.Chains {
		if c.Facilitator == "" {
			continue
		}
		ready := x402.Facilitator{URL: c.Facilitator, Transport: rt}
		if name := c.FacilitatorHeadersEnv; name != "" {
			var err error
			if ready.Header, err = headers(os.Getenv(name)); err != nil {
				return nil, fmt.Errorf("config: chain[%d].facilitator_headers_env: environment variable %s %w", i, name, err)
			}
		}
		out[c.ID] = ready
	}
	return out, nil
}

// headers reads what a variable with headers holds: a JSON object of names and
// values, or a line "Name: value" for each. Errors do not repeat it.
func headers(s string) (http.Header, error) {
	if strings.TrimSpace(s) == "" {
		return nil, errors.New("is not set")
	}
	pairs := map[string]string{}
	if strings.HasPrefix(strings.TrimSpace(s), "{") {
		if json.Unmarshal([]byte(s), &pairs) != nil {
			return nil, errors.New("is not a JSON object of names and values")
		}
	} else {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, errors.New(`has a line that is not "Name: value"`)
			}
			pairs[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	out := http.Header{}
	for name, value := range pairs {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n") {
			return nil, errors.New("has a name or a value that no header can have")
		}
		out[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
	}
	return out, nil
}
