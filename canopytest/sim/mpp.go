package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// charges is tempo/charge of MPP as sellers speak it: pulled on lanes,
// sponsored on the expiring nonce, pushed, proofs of nothing, splits.
type charges struct {
	chain  *chain
	assets payment.Assets
}

func newCharges(c *chain) (*charges, error) {
	assets, err := payment.Assets{}.With(c.asset)
	return &charges{c, assets}, err
}

func (x *charges) Rail(p *proc) (canopy.Rail, error) {
	c := mpp.Config{Assets: x.assets, Chains: []payment.ChainID{x.chain.asset.Chain}, Clock: clockOf{p}}
	if len(x.chain.nodes) > 0 {
		c.Nodes = map[payment.ChainID]mpp.Node{x.chain.asset.Chain: caster{x.chain, x}}
	}
	return mpp.New(c)
}

func (x *charges) Chain() *chain { return x.chain }

func (x *charges) Challenge(h http.Header, _ string, ask terms, _ string) {
	number, _ := x.chain.asset.Chain.Number()
	details := map[string]any{"chainId": number}
	if ask.sponsored {
		details["feePayer"] = true
	}
	if ask.push {
		details["supportedModes"] = []string{"push"}
	}
	var splits []any
	for _, s := range ask.splits {
		splits = append(splits, map[string]any{"amount": s.Amount.String(), "recipient": s.Address.Lower()})
	}
	if len(splits) > 0 {
		details["splits"] = splits
	}
	request, _ := json.Marshal(map[string]any{ // strings and numbers
		"amount": ask.amount.String(), "currency": x.chain.asset.Address.Lower(), "recipient": ask.to.Lower(), "methodDetails": details,
	})
	expires := x.chain.w.now.Add(ask.lasts).UTC().Format(time.RFC3339)
	h.Add("Www-Authenticate", fmt.Sprintf(`Payment id=%q, realm=%q, method="tempo", intent="charge", request=%q, expires=%q`,
		ask.challenge, ask.realm, base64.RawURLEncoding.EncodeToString(request), expires))
}

func (x *charges) Read(h http.Header) (*spend, bool) {
	encoded, ok := strings.CutPrefix(h.Get("Authorization"), "Payment ")
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "="))
	var doc struct {
		Challenge struct{ ID, Realm string }
		Payload   struct{ Type, Signature, Hash string }
	}
	if !ok || err != nil || json.Unmarshal(raw, &doc) != nil {
		return nil, false
	}
	s := &spend{chain: x.chain, challenge: doc.Challenge.ID, realm: doc.Challenge.Realm}
	if doc.Payload.Type == "hash" {
		s.hash = doc.Payload.Hash
		return s, true
	}
	b, err := hex.DecodeString(strings.TrimPrefix(doc.Payload.Signature, "0x"))
	if err != nil {
		return nil, false
	}
	if doc.Payload.Type == "proof" {
		s.proof, s.sig = true, string(b)
		return s, true
	}
	return s, s.carry(b)
}

// carry makes s that of a signed transaction.
func (s *spend) carry(raw []byte) bool {
	tx, err := canopytest.DecodeTempo(raw)
	if err != nil {
		return false
	}
	s.tx, s.sig = tx, string(tx.Signature)
	return true
}

// Receipt answers as mppx does: a receipt, or a problem beside fresh challenges,
// which the seller adds.
func (x *charges) Receipt(out *answer, s *spend, tx, code string) {
	if code != "" {
		detail := "Payment verification failed: no matching transfer found."
		if strings.Contains(code, "already_used") {
			detail = "Payment verification failed: Transaction hash has already been used."
		}
		out.status = http.StatusPaymentRequired
		out.header.Set("Content-Type", "application/problem+json")
		out.body = fmt.Sprintf(`{"type":"https://paymentauth.org/problems/verification-failed","title":"Verification Failed","status":402,"detail":%q}`, detail)
		return
	}
	if s.proof {
		tx = s.challenge
	}
	doc := fmt.Sprintf(`{"method":"tempo","reference":%q,"status":"success","timestamp":%q}`, tx, x.chain.w.now.UTC().Format(time.RFC3339))
	out.header.Set("Payment-Receipt", base64.RawURLEncoding.EncodeToString([]byte(doc)))
}
