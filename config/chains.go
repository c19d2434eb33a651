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
func (f *File) ConnectChains() ([]canopy.Chain, error) { return f.chains(f.dialer()) }

// Node is one node of [[chain]], as a chain that asks nobody else.
type Node struct {
	Key string // where the file names it, such as chain[0].rpc[1]
	canopy.Chain
}

// ConnectNodes returns every node of [[chain]] by itself. It contacts nobody.
func (f *File) ConnectNodes() ([]Node, error) {
	var out []Node
	rt := f.dialer()
	for i, c := range f.Chains {
		urls, keys, err := f.nodes(i)
		if err != nil {
			return nil, err
		}
		for j, u := range urls {
			ready, err := chain.New(chain.Config{ID: c.ID, URLs: []string{u}, Transport: rt, Tempo: c.Tempo})
			if err != nil {
				return nil, f.fault(keys[j], "%v", told(err))
			}
			out = append(out, Node{keys[j], ready})
		}
	}
	return out, nil
}

func (f *File) dialer() *http.Transport {
	return dial.Config{AllowPrivate: f.Network.AllowPrivate, Proxy: f.Network.Proxy}.Transport()
}

// chains are those of [[chain]] that name nodes to ask, over rt.
func (f *File) chains(rt http.RoundTripper) ([]canopy.Chain, error) {
	var out []canopy.Chain
	for i, c := range f.Chains {
		urls, keys, err := f.nodes(i)
		if err != nil {
			return nil, err
		}
		if len(urls) == 0 {
			continue
		}
		ready, err := chain.New(chain.Config{ID: c.ID, URLs: urls, Transport: rt, Tempo: c.Tempo})
		var bad *chain.URLError
		switch {
		case errors.As(err, &bad):
			return nil, f.fault(keys[bad.Index], "%v", bad.Err)
		case err != nil:
			return nil, f.fault(fmt.Sprintf("chain[%d]", i), "%v", err)
		}
		out = append(out, ready)
	}
	return out, nil
}

// nodes are the URLs of the i-th [[chain]], and the keys that name them.
func (f *File) nodes(i int) (urls, keys []string, err error) {
	for j, u := range f.Chains[i].RPC {
		urls, keys = append(urls, u), append(keys, fmt.Sprintf("chain[%d].rpc[%d]", i, j))
	}
	for j, name := range f.Chains[i].RPCEnv {
		key := fmt.Sprintf("chain[%d].rpc_env[%d]", i, j)
		v := os.Getenv(name)
		if v == "" {
			return nil, nil, f.fault(key, "environment variable %s is not set", name)
		}
		urls, keys = append(urls, v), append(keys, key)
	}
	return urls, keys, nil
}

// told is what chain.New says of the only URL that it was given.
func told(err error) error {
	var bad *chain.URLError
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
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
				return nil, f.fault(fmt.Sprintf("chain[%d].facilitator_headers_env", i), "environment variable %s %v", name, err)
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
