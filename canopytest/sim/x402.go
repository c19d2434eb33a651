package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// exact is x402 version 2, scheme exact, as sellers speak it.
type exact struct {
	rail  *x402.Rail
	chain *chain
	asset payment.Asset
}

func newExact(c *chain) (*exact, error) {
	rail, err := x402.New(x402.Config{Chains: []payment.ChainID{c.asset.Chain}})
	return &exact{rail, c, c.asset}, err
}

func (x *exact) Rail(*proc) (canopy.Rail, error) { return x.rail, nil }

func (x *exact) Chain() *chain { return x.chain }

func (x *exact) Challenge(h http.Header, url string, ask terms, code string) {
	if code == "" {
		code = "Payment required"
	}
	doc := fmt.Sprintf(`{"x402Version":2,"error":%q,"resource":{"url":%q},"accepts":[{"scheme":"exact","network":%q,"amount":%q,`+
		`"asset":%q,"payTo":%q,"maxTimeoutSeconds":%d,"extra":{"name":%q,"version":%q}}]}`,
		code, url, x.asset.Chain, ask.amount, x.asset.Address, ask.to, int(ask.timeout.Seconds()), x.asset.Name, x.asset.Version)
	h.Set("Payment-Required", base64.StdEncoding.EncodeToString([]byte(doc)))
}

func (x *exact) Read(h http.Header) (*spend, bool) {
	var a canopytest.Authorization
	raw, err := base64.StdEncoding.DecodeString(h.Get("Payment-Signature"))
	if err != nil || len(raw) == 0 {
		return nil, false
	}
	var doc struct {
		Payload struct {
			Signature     string
			Authorization struct{ From, To, Value, ValidAfter, ValidBefore, Nonce string }
		}
	}
	if json.Unmarshal(raw, &doc) != nil {
		return nil, false
	}
	f := doc.Payload.Authorization
	ok := true
	units := func(s string) payment.Units {
		u, err := payment.ParseUnits(s)
		ok = ok && err == nil
		return u
	}
	address := func(s string) payment.Address {
		v, err := payment.ParseAddressLoose(s)
		ok = ok && err == nil
		return v
	}
	bytes := func(s string) []byte {
		b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
		ok = ok && err == nil
		return b
	}
	a.Token, a.From, a.To = x.asset.Address, address(f.From), address(f.To)
	a.Value, a.ValidAfter, a.ValidBefore = units(f.Value), units(f.ValidAfter), units(f.ValidBefore)
	a.Signature = bytes(doc.Payload.Signature)
	nonce := bytes(f.Nonce)
	if !ok || len(nonce) != 32 {
		return nil, false
	}
	a.Nonce = [32]byte(nonce)
	return &spend{chain: x.chain, auth: &a, sig: string(a.Signature)}, true
}

func (x *exact) Receipt(out *answer, _ *spend, tx, code string) {
	doc := map[string]any{"success": code == "", "payer": payer.String(), "transaction": tx, "network": string(x.asset.Chain)}
	if code != "" {
		out.status = http.StatusPaymentRequired
		doc["errorReason"] = code
	}
	b, _ := json.Marshal(doc) // strings and a bool
	out.header.Set("Payment-Response", base64.StdEncoding.EncodeToString(b))
}
