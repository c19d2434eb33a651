package chain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

func canned(status int, body []byte) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
}

func raws(s ...string) (out []json.RawMessage) {
	for _, p := range s {
		out = append(out, json.RawMessage(p))
	}
	return out
}

// after tells the chain's id, and leaves everything else to rest.
type after struct{ rest http.RoundTripper }

func (a after) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(body, []byte("eth_chainId")) {
		return canned(200, []byte(`[{"jsonrpc":"2.0","id":1,"result":"0x2105"}]`)), nil
	}
	return a.rest.RoundTrip(req)
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestTransportsThatTell has the transport, and the node, repeat the whole URL:
// no error of ours does.
func TestTransportsThatTell(t *testing.T) {
	t.Parallel()
	url := "https://user:" + secret + "@rpc.example/v2/" + secret + "?apikey=" + secret + "#" + secret
	said, err := json.Marshal([]map[string]any{{"id": 1, "error": map[string]any{"code": -32000, "message": "no access to " + url}}})
	if err != nil {
		t.Fatal(err)
	}
	bad, err := json.Marshal([]map[string]any{{"id": 1, "result": secret}})
	if err != nil {
		t.Fatal(err)
	}
	for name, rt := range map[string]http.RoundTripper{
		"transport": failing{fmt.Errorf("dial %s: refused", url)},
		"node":      answers(said),
		"result":    answers(bad),
		"page":      answers("<html>" + url),
	} {
		c, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{url}, Transport: after{rt}, Clock: &timer{}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Finalized(t.Context())
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		quiet(t, err)
		_, err = c.Balance(t.Context(), usdc, account)
		quiet(t, err)
		if name == "transport" && !errors.Is(err, chain.ErrUnreachable) {
			t.Errorf("%v is not ErrUnreachable", err)
		}
	}
}

// TestKeyCutInWords has a node repeat its key where its words are cut.
func TestKeyCutInWords(t *testing.T) {
	t.Parallel()
	const key = "SECRETSECRETSECRETSECRET0123456789"
	for name, said := range map[string]string{
		"at the limit of an error":  strings.Repeat("x", 165) + " /v2/" + key,
		"at the limit of a look":    strings.Repeat("y", 100) + strings.Repeat(key, 200),
		"by the node":               "no access to " + key[:20],
		"in another case":           "no access to " + strings.ToLower(key),
		"with invisible characters": "no access to " + key[:3] + "\u200b" + key[3:],
		"behind spaces":             strings.Repeat(" ", 4080) + key,
		"over another part":         "xx" + key,
	} {
		answer, err := json.Marshal(map[string]any{"id": nil, "error": map[string]any{"code": -32600, "message": said}})
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{"https://rpc.example/v2/" + key, "https://rpc.example/xx" + key[:4] + "/" + key} {
			c, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{url}, Transport: after{answers(answer)}, Clock: &timer{}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = c.Finalized(t.Context()); err == nil || strings.Contains(strings.ToLower(err.Error()), strings.ToLower(key[6:18])) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
