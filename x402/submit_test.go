package x402_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

const apiKey = "s3cr3t-api-key-7"

// submitting is a rail whose test network has a facilitator, and an
// authorization of a transfer there.
func submitting(t *testing.T, h http.HandlerFunc, f x402.Facilitator) (*x402.Rail, payment.Authorization) {
	t.Helper()
	if h != nil {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		f.URL = s.URL + "/v2/" + apiKey + "/?key=" + apiKey
	}
	if f.Header == nil {
		f.Header = http.Header{"X-Api-Key": {apiKey}}
	}
	r, err := x402.New(x402.Config{Facilitators: map[payment.ChainID]x402.Facilitator{payment.BaseSepolia: f}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.Transfer(t.Context(), payment.Transfer{To: payment.Address{19: 7}, Amount: payment.Cent, Chain: payment.BaseSepolia})
	if err != nil {
		t.Fatal(err)
	}
	g := grant(t, o)
	a, err := r.Authorize(t.Context(), g, key(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decode(a, g); err != nil {
		t.Fatal(err)
	}
	return r, a
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	tx := "0x" + strings.Repeat("ab", 32)
	var body, path, header string
	r, a := submitting(t, func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		body, path, header = string(b), req.Method+" "+req.URL.Path, req.Header.Get("X-Api-Key")
		fmt.Fprintf(w, `{"success":true,"transaction":%q,"network":"eip155:84532","payer":%q}`, tx, key(t).Address())
	}, x402.Facilitator{})
	got, err := r.Submit(t.Context(), a)
	if err != nil || got.Claim != payment.ClaimPaid || got.TxHash != tx {
		t.Errorf("%+v, %v", got, err)
	}
	if path != "POST /v2/"+apiKey+"/settle" || header != apiKey {
		t.Errorf("asked %s with %q", path, header)
	}
	var doc struct {
		X402Version    int
		PaymentPayload struct {
			X402Version int
			Payload     struct {
				Signature     string
				Authorization map[string]string
			}
			Accepted map[string]any
		}
		PaymentRequirements map[string]any
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	p, q := doc.PaymentPayload, doc.PaymentRequirements
	if doc.X402Version != 2 || p.X402Version != 2 || len(p.Payload.Signature) != 132 || p.Payload.Authorization["value"] != "10000" ||
		q["amount"] != "10000" || q["scheme"] != "exact" || q["network"] != "eip155:84532" || q["payTo"] != p.Payload.Authorization["to"] ||
		fmt.Sprint(q["extra"]) != "map[name:USDC version:2]" || fmt.Sprint(p.Accepted) != fmt.Sprint(q) {
		t.Errorf("submitted %s", body)
	}
	if err := r.Submits(payment.BaseSepolia); err != nil {
		t.Error(err)
	}
	if err := r.Submits(payment.Base); !errors.Is(err, x402.ErrNoFacilitator) {
		t.Error(err)
	}
	a.Slot.Chain = payment.Base
	if _, err := r.Submit(t.Context(), a); !errors.Is(err, x402.ErrNoFacilitator) {
		t.Error(err)
	}
}

// TestSubmitAnswers weighs what facilitators say.
func TestSubmitAnswers(t *testing.T) {
	t.Parallel()
	tx := "0x" + strings.Repeat("ab", 32)
	for name, tt := range map[string]struct {
		status int
		body   string
		claim  payment.Claim
		code   string
		fails  bool
	}{
		"refused":                {200, `{"success":false,"errorReason":"insufficient_funds","transaction":"","network":"eip155:84532"}`, payment.ClaimRefused, "insufficient_funds", false},
		"refused under 400":      {400, `{"success":false,"errorReason":"invalid_exact_evm_signature"}`, payment.ClaimRefused, "invalid_exact_evm_signature", false},
		"used":                   {200, `{"success":false,"errorReason":"invalid_exact_evm_nonce_already_used"}`, payment.ClaimUsed, "invalid_exact_evm_nonce_already_used", false},
		"pending":                {200, `{"success":false,"errorReason":"settlement_pending","transaction":"` + tx + `"}`, payment.ClaimPending, "settlement_pending", false},
		"reverted":               {200, `{"success":false,"errorReason":"invalid_exact_evm_transaction_failed","transaction":"` + tx + `"}`, payment.ClaimPending, "invalid_exact_evm_transaction_failed", false},
		"paid on another chain":  {200, `{"success":true,"transaction":"` + tx + `","network":"eip155:8453"}`, payment.ClaimNone, "receipt_of_another_network", false},
		"paid by another":        {200, `{"success":true,"transaction":"` + tx + `","payer":"0x0000000000000000000000000000000000000009"}`, payment.ClaimNone, "receipt_of_another_payer", false},
		"paid another amount":    {200, `{"success":true,"transaction":"` + tx + `","amount":"1"}`, payment.ClaimNone, "receipt_of_another_amount", false},
		"paid by no transaction": {200, `{"success":true,"transaction":""}`, payment.ClaimNone, "receipt_without_transaction", false},
		"paid under 500":         {500, `{"success":true,"transaction":"` + tx + `"}`, payment.ClaimNone, "receipt_with_error_status", false},
		"HTML":                   {200, `<html>ok</html>`, 0, "", true},
		"nothing":                {200, ``, 0, "", true},
		"another document":       {200, `{"isValid":true}`, 0, "", true},
		"a list":                 {200, `[]`, 0, "", true},
		"base64":                 {200, b64(`{"success":true,"transaction":"` + tx + `"}`), payment.ClaimPaid, "", false},
		"two successes":          {200, `{"success":true,"Success":false}`, 0, "", true},
		"too long":               {200, `{"success":true,"x":"` + strings.Repeat("a", 65<<10) + `"}`, 0, "", true},
		"unauthorized":           {401, `who are you`, 0, "", true},
		"echoes the key":         {403, apiKey, 0, "", true},
	} {
		r, a := submitting(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		}, x402.Facilitator{})
		got, err := r.Submit(t.Context(), a)
		var failed *x402.FacilitatorError
		if tt.fails != errors.As(err, &failed) || got.Claim != tt.claim || got.Code != tt.code {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if failed != nil && failed.Status != tt.status {
			t.Errorf("%s: status %d", name, failed.Status)
		}
		tellsNothing(t, name, err, a)
	}
}

// TestSubmitEchoes has facilitators repeat what they were sent: no receipt and
// no error does.
func TestSubmitEchoes(t *testing.T) {
	t.Parallel()
	const key = "sk-Live-0123456789abcdef"
	header := http.Header{"Authorization": {"Bearer " + key}, "X-Tenant": {"acme " + key + ".second"}}
	for name, tt := range map[string]struct {
		reason, message string
		code, want      string
	}{
		"header":          {"invalid_key", "unknown Bearer " + key, "invalid_key", ""},
		"field":           {"invalid_key", "unknown key " + key, "invalid_key", ""},
		"another case":    {"invalid_key", strings.ToUpper(key), "invalid_key", ""},
		"invisible":       {"invalid_key", key[:5] + "\u200b" + key[5:], "invalid_key", ""},
		"cut":             {"invalid_key", strings.Repeat("x", 240) + key, "invalid_key", ""},
		"reason":          {"unknown key " + key, "", "", ""},
		"code":            {"unknown_sk_live_0123456789abcdef", "who are you", "", ""},
		"cut code":        {strings.Repeat("x", 70) + key, "who are you", "", ""},
		"after the code":  {"invalid_key: " + key, "", "", ""},
		"path":            {"no_route", "POST /v2/" + apiKey + "/settle", "no_route", ""},
		"used, with key":  {"x_" + key + "_nonce_already_used", "", "", ""},
		"nothing of ours": {"missing_bearer_token", "Bearer token of acme is missing", "missing_bearer_token", "Bearer token of acme is missing"},
	} {
		r, a := submitting(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			json.NewEncoder(w).Encode(map[string]any{"success": false, "errorReason": tt.reason, "errorMessage": tt.message})
		}, x402.Facilitator{Header: header})
		got, err := r.Submit(t.Context(), a)
		claim := payment.ClaimRefused
		if strings.HasSuffix(tt.reason, "nonce_already_used") {
			claim = payment.ClaimUsed
		}
		if err != nil || got.Claim != claim || got.Code != tt.code || got.Message != tt.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	r, a := submitting(t, nil, x402.Facilitator{URL: "https://facilitator.example", Transport: tell{}, Header: http.Header{"Authorization": {"Bearer " + strings.ToUpper(apiKey)}}})
	_, err := r.Submit(t.Context(), a)
	tellsNothing(t, "a transport that tells a header", err, a)
	r, a = submitting(t, nil, x402.Facilitator{URL: "https://facilitator.example", Transport: tell{}, Header: http.Header{"Authorization": {"Basic " + b64("user:"+apiKey)}}})
	_, err = r.Submit(t.Context(), a)
	tellsNothing(t, "a transport that tells a password", err, a)
}

func tellsNothing(t *testing.T, name string, err error, a payment.Authorization) {
	t.Helper()
	for _, s := range []string{fmt.Sprint(err), fmt.Sprintf("%#v", err)} {
		if strings.Contains(s, apiKey) || strings.Contains(s, a.Value) {
			t.Errorf("%s: the error tells a secret: %s", name, s)
		}
	}
}

// TestSubmitFails has no answer come, in several ways.
func TestSubmitFails(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	for name, h := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/"+apiKey, http.StatusPermanentRedirect)
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"stalls": func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
			<-r.Context().Done()
		},
	} {
		r, a := submitting(t, h, x402.Facilitator{Timeout: 200 * time.Millisecond})
		_, err := r.Submit(t.Context(), a)
		var failed *x402.FacilitatorError
		if !errors.As(err, &failed) {
			t.Errorf("%s: %v", name, err)
		}
		tellsNothing(t, name, err, a)
	}
	r, a := submitting(t, nil, x402.Facilitator{URL: "https://facilitator.example/" + apiKey, Transport: tell{}})
	_, err := r.Submit(t.Context(), a)
	if !errors.Is(err, errTold) {
		t.Errorf("%v hides its cause", err)
	}
	tellsNothing(t, "a transport that tells", err, a)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Submit(gone, payment.Authorization{Slot: a.Slot, Value: a.Value}); err == nil {
		t.Error("submitted for a caller that has left")
	}
	for name, v := range map[string]string{"nothing": "", "no base64": "%", "no JSON": b64("x"), "version 1": b64(`{"x402Version":1,"payload":{"authorization":{"value":"1"}}}`), "no terms": b64(`{"x402Version":2,"payload":{"authorization":{"value":"1"}}}`)} {
		if _, err := r.Submit(t.Context(), payment.Authorization{Slot: a.Slot, Value: v}); !errors.Is(err, x402.ErrGrant) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var errTold = errors.New("dial https://facilitator.example/" + apiKey + ": refused")

type tell struct{}

func (tell) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return nil, errTold
}

func TestFacilitatorsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		chain payment.ChainID
		url   string
	}{
		"plain http":  {payment.Base, "http://facilitator.example/" + apiKey},
		"no URL":      {payment.Base, ""},
		"no host":     {payment.Base, "https:///x"},
		"ftp":         {payment.Base, "ftp://facilitator.example"},
		"no token":    {"eip155:4326", "https://facilitator.example"},
		"other chain": {"eip155:5", "https://facilitator.example"},
	} {
		_, err := x402.New(x402.Config{Facilitators: map[payment.ChainID]x402.Facilitator{tt.chain: {URL: tt.url}}})
		if err == nil {
			t.Errorf("%s is taken", name)
		}
		tellsNothing(t, name, err, payment.Authorization{Value: "(none)"})
	}
	if _, err := x402.New(x402.Config{Facilitators: map[payment.ChainID]x402.Facilitator{payment.Base: {URL: "http://127.0.0.1:1/x"}}}); err != nil {
		t.Error(err)
	}
}
