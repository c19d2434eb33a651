package chain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
