package canopy_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// FuzzFetch answers with any 402, and any answer to the payment. Whatever they
// are: no panic, at most one signature, nothing above the policy's maximum, and
// no text of the seller raw in an error.
func FuzzFetch(f *testing.F) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	receipt := b64(`{"success":true,"transaction":"0x` + strings.Repeat("12", 32) + `","network":"eip155:84532"}`)
	f.Add(b64(terms(entry())), "{}", 200, receipt, "goods")
	f.Add("", `{"x402Version":1,"error":"e","accepts":[`+entry(`"amount"`, `"maxAmountRequired"`, "eip155:84532", "base-sepolia")+`]}`, 402, "", `{"x402Version":1,"accepts":[]}`)
	f.Add(b64(terms(entry(`"1000"`, `"99999999999"`), entry("exact", "upto"))), "", 402, b64(`{"success":false,"errorReason":"settlement_pending","transaction":""}`), "")
	f.Add(b64(`{"accepts":null}`), "\x1b[2J\u202e", 500, "%%%", "\x00")
	f.Fuzz(func(t *testing.T, header, body string, status int, receipt, answer string) {
		if status < 200 || status > 599 {
			status = 200
		}
		w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) {
			c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				resp := &http.Response{StatusCode: 402, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
				if header != "" {
					resp.Header.Set("PAYMENT-REQUIRED", header)
				}
				if r.Header.Get("PAYMENT-SIGNATURE")+r.Header.Get("X-PAYMENT") != "" {
					resp.StatusCode, resp.Body = status, io.NopCloser(strings.NewReader(answer))
					resp.Header = http.Header{"Payment-Response": {receipt}, "Retry-After": {"0"}}
				}
				return resp, nil
			})
		}})
		resp, err := w.client.Fetch(t.Context(), w.request("GET", "https://feed.example/", nil))
		if n := len(w.spy.Slots()); n > 1 {
			t.Errorf("%d signatures", n)
		}
		b, berr := w.client.Budget(t.Context())
		if berr != nil || b.Spent > 5*payment.Dollar || len(w.spy.Slots()) == 0 && b.Spent != 0 {
			t.Errorf("the budget counts %v, %v", b.Spent, berr)
		}
		if err != nil {
			var denied *canopy.DeniedError
			if errors.As(err, &denied) && len(w.spy.Slots()) != 0 {
				t.Errorf("denied after signing: %v", err)
			}
			if s := err.Error(); plaintext.Clean(s, len(s)) != strings.Join(strings.Fields(s), " ") {
				t.Errorf("raw text in %q", s)
			}
			return
		}
		resp.Body.Close()
	})
}
