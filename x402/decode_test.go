package x402_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/payment"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{v2(R), v1(R1), v2(edit(t, R, `"1000"`, `"115792089237316195423570985008687907853269984665640564039457584007913129639935"`)), v2(edit(t, R, payee, strings.ToLower(payee)))} {
		for _, recover := range []bool{false, true} {
			g := grant(t, offer(t, doc))
			g.Recover = recover
			terms, err := rail(t).Decode(authorize(t, g), g)
			if err != nil || terms.Hash() != g.Terms.Hash() {
				t.Errorf("%+v, %v; want %+v", terms, err, g.Terms)
			}
			terms.Recipients[0].Amount = payment.UnitsOf(7)
			if g.Terms.Recipients[0].Amount == payment.UnitsOf(7) {
				t.Error("the terms share the grant's recipients")
			}
		}
	}
}

// I6: any change of the signed document is seen, by the structure or by the
// recovered address.
func TestDecodeSeesEveryChange(t *testing.T) {
	t.Parallel()
	const other = "0x1111111111111111111111111111111111111111"
	for _, tc := range []struct {
		name, old, new string
	}{
		{"version", `"x402Version":2`, `"x402Version":1`},
		{"version as text", `"x402Version":2`, `"x402Version":"2"`},
		{"from", `"from":"0x2c7536E3605D9C16a7a3D7b1898e529396a65c23"`, `"from":"` + other + `"`},
		{"from in lower case", `0x2c7536E3605D9C16a7a3D7b1898e529396a65c23`, `0x2c7536e3605d9c16a7a3d7b1898e529396a65c23`},
		{"to", `"to":"` + payee + `"`, `"to":"` + other + `"`},
		{"to in lower case", `"to":"` + payee + `"`, `"to":"` + strings.ToLower(payee) + `"`},
		{"value", `"value":"1000"`, `"value":"1001"`},
		{"value with a zero", `"value":"1000"`, `"value":"01000"`},
		{"value as a number", `"value":"1000"`, `"value":1000`},
		{"attack 12: validAfter", `"validAfter":"0"`, `"validAfter":"1"`},
		{"validAfter as a number", `"validAfter":"0"`, `"validAfter":0`},
		{"validBefore", `"validBefore":"1790856060"`, `"validBefore":"1790856061"`},
		{"validBefore long", `"validBefore":"1790856060"`, `"validBefore":"01790856060"`},
		{"nonce", `"nonce":"0xf3`, `"nonce":"0xf4`},
		{"nonce in upper case", `"nonce":"0xf3`, `"nonce":"0xF3`},
		{"attack 87: v", `1c","authorization"`, `1d","authorization"`},
		{"attack 87: v 0 or 1", `1c","authorization"`, `01","authorization"`},
		{"a flipped bit of r", `"0xc87238`, `"0xc87239`},
		{"signature in upper case", `"0xc87238cd`, `"0xC87238cd`},
		{"signature short", `1c","authorization"`, `","authorization"`},
		{"signature without 0x", `"0xc87238`, `"c87238`},
		{"accepted amount", `"amount":"1000"`, `"amount":"1001"`},
		{"accepted payTo", `"payTo":"` + payee + `"`, `"payTo":"` + other + `"`},
		{"accepted asset", `"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e"`, `"asset":"` + other + `"`},
		{"accepted network", `"network":"eip155:84532"`, `"network":"eip155:8453"`},
		{"accepted scheme", `"scheme":"exact"`, `"scheme":"upto"`},
		{"accepted twice", `,"accepted"`, `,"accepted":{},"accepted"`},
		{"accepted missing", `"accepted"`, `"resource":null,"accepted2"`},
		{"a scheme beside it", `,"accepted"`, `,"scheme":"exact","accepted"`},
		{"an unknown member", `,"accepted"`, `,"x":1,"accepted"`},
		{"an unknown member of the payload", `"signature"`, `"x":1,"signature"`},
		{"an unknown member of the authorization", `"from"`, `"x":1,"from"`},
		{"a second payload", `"payload"`, `"payload":{},"payload"`},
		{"a member in another case", `"value"`, `"Value"`},
		{"more after it", `{"x402Version"`, `{} {"x402Version"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := grant(t, offer(t, v2(R)))
			g.Recover = true
			a := authorize(t, g)
			a.Value = b64(edit(t, document(t, a), tc.old, tc.new))
			if terms, err := rail(t).Decode(a, g); err == nil {
				t.Errorf("accepted: %+v", terms)
			}
		})
	}
}

// Version 1 writes no asset: the recovered address binds it.
func TestDecodeVersion1(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ old, new string }{
		{`"network":"base-sepolia"`, `"network":"base"`},
		{`"network":"base-sepolia"`, `"network":"solana"`},
		{`"scheme":"exact"`, `"scheme":"upto"`},
		{`"scheme":"exact",`, ``},
		{`,"scheme"`, `,"accepted":{},"scheme"`},
		{`"value":"1000"`, `"value":"1001"`},
	} {
		g := grant(t, offer(t, v1(R1)))
		g.Recover = true
		a := authorize(t, g)
		a.Value = b64(edit(t, document(t, a), tc.old, tc.new))
		if _, err := rail(t).Decode(a, g); err == nil {
			t.Errorf("%s: accepted", tc.new)
		}
	}
}

// An authorization is of the grant that it was built from and of no other.
func TestDecodeOfAnotherGrant(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(g *payment.Grant, a *payment.Authorization)
	}{
		{"nonce", func(g *payment.Grant, _ *payment.Authorization) { g.Slot.NonceID[9]++ }},
		{"nonce of both", func(g *payment.Grant, a *payment.Authorization) { g.Slot.NonceID[9]++; a.Slot = g.Slot }},
		{"validBefore", func(g *payment.Grant, _ *payment.Authorization) { g.ValidBefore = g.ValidBefore.Add(time.Second) }},
		{"validBefore of both", func(g *payment.Grant, a *payment.Authorization) {
			g.ValidBefore = g.ValidBefore.Add(time.Second)
			a.ValidBefore = g.ValidBefore
		}},
		{"payer", func(g *payment.Grant, _ *payment.Authorization) { g.Payer[0]++; g.Slot.From = g.Payer }},
		{"chain", func(g *payment.Grant, a *payment.Authorization) {
			usdc := payment.KnownAssets().On(payment.Base)[0]
			g.Terms.Asset, g.Slot.Chain, g.Slot.Token = usdc, usdc.Chain, usdc.Address
			a.Slot = g.Slot
		}},
		{"version", func(g *payment.Grant, _ *payment.Authorization) { g.Version = 1 }},
		{"header", func(_ *payment.Grant, a *payment.Authorization) { a.Header = "X-PAYMENT" }},
		{"raw bytes", func(_ *payment.Grant, a *payment.Authorization) { a.Raw = []byte{1} }},
		{"no value", func(_ *payment.Grant, a *payment.Authorization) { a.Value = "" }},
		{"a cut value", func(_ *payment.Grant, a *payment.Authorization) { a.Value = a.Value[:len(a.Value)-4] }},
		{"unpadded", func(_ *payment.Grant, a *payment.Authorization) {
			b, _ := base64.StdEncoding.DecodeString(a.Value)
			for b = append(b, ' '); len(b)%3 == 0; b = append(b, ' ') {
			}
			a.Value = base64.RawStdEncoding.EncodeToString(b)
		}},
		{"a large value", func(_ *payment.Grant, a *payment.Authorization) { a.Value = b64(strings.Repeat(" ", 1<<20)) }},
		{"JSON itself", func(_ *payment.Grant, a *payment.Authorization) {
			b, _ := base64.StdEncoding.DecodeString(a.Value)
			a.Value = string(b)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := grant(t, offer(t, v2(R)))
			a := authorize(t, g)
			tc.edit(&g, &a)
			if terms, err := rail(t).Decode(a, g); err == nil {
				t.Errorf("accepted: %+v", terms)
			}
		})
	}
}

// What the bytes say stands in the terms, whatever the grant says: the caller
// compares the two.
func TestDecodeTakesTheBytes(t *testing.T) {
	t.Parallel()
	g := grant(t, offer(t, v2(R)))
	a := authorize(t, g)
	dear := grant(t, offer(t, v2(edit(t, R, `"1000"`, `"2000"`))))
	got, err := rail(t).Decode(a, dear)
	if err != nil {
		t.Fatal(err)
	}
	if got.Hash() == dear.Terms.Hash() || got.Amount != payment.UnitsOf(1000) {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(g.Terms.Hash(), got.Hash()); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
	dear.Recover = true
	if _, err := rail(t).Decode(a, dear); err != nil {
		t.Errorf("the signature is over the bytes: %v", err)
	}
}
