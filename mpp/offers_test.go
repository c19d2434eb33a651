package mpp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/internal/mppserver"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// What cannot be paid is skipped, with the reason; rows of the list of known
// faults are named.
func TestOffersSkip(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		c    mppserver.Challenge
		code string
	}{
		"an unknown method":                    {charge(t, request(), func(c *mppserver.Challenge) { c.Method = "stripe" }), "unsupported"},
		"row 13: an unknown intent":            {charge(t, request(), func(c *mppserver.Challenge) { c.Intent = "session" }), "unsupported"},
		"row 28, attack 16: another chain":     {charge(t, request(func(_, d object) { d["chainId"] = 31318 })), "other_chain"},
		"row 29: no chain, and two configured": {charge(t, request(func(_, d object) { delete(d, "chainId") })), "no_chain"},
		"attack 5: a token of that name":       {charge(t, request(func(q, _ object) { q["currency"] = other })), "unknown_asset"},
		"a token of another chain":             {charge(t, request(func(q, d object) { q["currency"] = "0x20C000000000000000000000b9537d11c60E8b50" })), "unknown_asset"},
		"row 4: expires is no instant":         {charge(t, request(), func(c *mppserver.Challenge) { c.Expires = "not-a-timestamp" }), "bad_expires"},
		"a digest of another kind":             {charge(t, request(), func(c *mppserver.Challenge) { c.Digest = "md5=abc" }), "unknown_digest"},
		"attack 13: splits above the amount":   {charge(t, request(func(_, d object) { d["splits"] = []object{{"amount": "10000", "recipient": other}} })), "splits_exceed_amount"},
		"sponsored, and only pushed":           {charge(t, request(sponsored, func(_, d object) { d["supportedModes"] = []string{"push"} })), "no_known_mode"},
		"the fee manager as payee":             {charge(t, request(func(q, _ object) { q["recipient"] = "0xfeec000000000000000000000000000000000000" })), "reserved_payee"},
		"the nonces' contract in a split": {charge(t, request(func(_, d object) {
			d["splits"] = []object{{"amount": "1", "recipient": "0x4e4F4E4345000000000000000000000000000000"}}
		})), "reserved_payee"},
		"evm without a chain":  {charge(t, request(onBase, func(_, d object) { delete(d, "chainId") }), evm), "no_chain"},
		"evm of a Tempo token": {charge(t, request(), evm), "unknown_asset"},
		"evm of nothing":       {charge(t, request(onBase, func(q, _ object) { q["amount"] = "0" }), evm), "zero_amount"},
		"evm by permit only":   {charge(t, request(onBase, func(_, d object) { d["credentialTypes"] = []string{"permit2"} }), evm), "no_authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rail(t, func(c *mpp.Config) { c.Chains = []payment.ChainID{payment.Tempo, payment.TempoTest, payment.Base} })
			offers, err := r.Offers(challenged(tc.c.Line()), nil)
			if len(offers) > 0 || !has(err, tc.code) {
				t.Fatalf("offers %+v, error %v, want %s", offers, err, tc.code)
			}
			// Beside a good one it is skipped, and hides nothing.
			good := charge(t, request())
			for _, lines := range [][]string{{tc.c.Line(), good.Line()}, {good.Line() + ", " + tc.c.Line()}, {`Bearer realm="x"`, tc.c.Line() + ", " + good.Line()}} {
				if offers, err := r.Offers(challenged(lines...), nil); len(offers) != 1 || offers[0].ChallengeID != good.ID || !has(err, tc.code) {
					t.Errorf("%q: offers %+v, %v", lines, offers, err)
				}
			}
		})
	}
}

// A credential does not take the place of a header that the caller set, but for
// Authorization.
func TestHeaderOfTheCaller(t *testing.T) {
	t.Parallel()
	r := rail(t)
	c := charge(t, request(), func(c *mppserver.Challenge) { c.Header = "Payment-Account" })
	resp := challenged(c.Line())
	resp.Request.Header.Set("Payment-Account", "acme")
	if offers, err := r.Offers(resp, nil); len(offers) > 0 || !has(err, "header_taken") {
		t.Errorf("offers %v, %v", offers, err)
	}
	resp = challenged(charge(t, request()).Line())
	resp.Request.Header.Set("Authorization", "Bearer x")
	if offers, err := r.Offers(resp, nil); err != nil || len(offers) != 1 {
		t.Errorf("offers %v, %v", offers, err)
	}
}

func TestOffersNotMine(t *testing.T) {
	t.Parallel()
	r, line := rail(t), charge(t, request()).Line()
	for name, resp := range map[string]*http.Response{
		"no header":          challenged(),
		"another scheme":     challenged(`Bearer realm="Payment id"`, `Basic realm="Payment "`),
		"the word in quotes": challenged(`Digest realm="a, Payment id=\"x\""`),
		"another status":     response(403, "", "WWW-Authenticate", line),
	} {
		if offers, err := r.Offers(resp, nil); !errors.Is(err, payment.ErrNotMine) || len(offers) > 0 {
			t.Errorf("%s: %v, %v", name, offers, err)
		}
	}
	if offers, err := r.Offers(response(401, "", "WWW-Authenticate", line), nil); err != nil || len(offers) != 1 {
		t.Errorf("a 401 with a challenge: %v, %v", offers, err)
	}
}

// The only Tempo chain that is configured is the one that a challenge means that
// names none.
func TestPinnedChain(t *testing.T) {
	t.Parallel()
	r := rail(t, func(c *mpp.Config) { c.Chains = []payment.ChainID{payment.TempoTest, payment.Base} })
	o := offerOf(t, r, charge(t, request(func(q, _ object) { delete(q, "methodDetails") })))
	if o.Asset.Chain != payment.TempoTest {
		t.Errorf("paid on %s", o.Asset.Chain)
	}
	if offers, err := r.Offers(challenged(charge(t, request(func(_, d object) { d["chainId"] = 4217 })).Line()), nil); len(offers) > 0 || !has(err, "other_chain") {
		t.Errorf("mainnet: %v, %v", offers, err)
	}
}

// A digest of the body is part of the offer; realm and description are the
// seller's words.
func TestOfferCarries(t *testing.T) {
	t.Parallel()
	c := charge(t, request(), func(c *mppserver.Challenge) {
		c.Digest, c.Description = "sha-256=AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI=", "buy\u202e now"
		c.Expires = ""
	})
	o := offerOf(t, rail(t), c)
	if o.Digest == nil || o.Digest[0] != 0x01 || !o.Expires.IsZero() || strings.ContainsAny(o.Description, "\u202e") || !strings.HasPrefix(o.Description, "buy") {
		t.Errorf("offer %+v", o)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	odd, err := payment.Assets{}.With(payment.Asset{Chain: payment.Tempo, Address: payment.Address{1}, Symbol: "ODD", Decimals: 18, NoAuthorization: true})
	if err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]mpp.Config{
		"Config.Chains[0]":       {Chains: []payment.ChainID{"base"}},
		"Config.Chains[1]":       {Chains: []payment.ChainID{payment.Tempo, "eip155:31612"}},
		"Config.Assets":          {Assets: odd},
		"Config.Fees: a MaxPric": {Fees: mpp.Fees{MaxPrice: 1e15}},
		"Config.Fees: a Tip":     {Fees: mpp.Fees{Tip: 9, MaxPrice: 8}},
		"Config.Fees: more":      {Fees: mpp.Fees{Gas: 1e9}},
		"Config.Nodes":           {Nodes: map[payment.ChainID]mpp.Node{payment.Base: node{}}},
		"Config.Nodes: the on":   {Nodes: map[payment.ChainID]mpp.Node{payment.Tempo: nil}},
		"Config.Envelope":        {Envelope: 7},
	} {
		if r, err := mpp.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v, %v", want, r, err)
		}
	}
	h := http.Header{}
	rail(t).Announce(h)
	if got := h.Get("Accept-Payment"); got != "tempo/charge, evm/charge;q=0.9" {
		t.Errorf("Accept-Payment: %s", got)
	}
	h.Set("Accept-Payment", "mine")
	rail(t).Announce(h)
	if got := h.Get("Accept-Payment"); got != "mine" {
		t.Errorf("the caller's Accept-Payment became %s", got)
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	r := rail(t)
	c := charge(t, request())
	g := grant(t, offerOf(t, r, c))
	hash, strange := "0x"+strings.Repeat("1a", 32), "0x"+strings.Repeat("2b", 32)
	receipt := func(status, method, reference string) string {
		return b64(`{"method":"` + method + `","reference":"` + reference + `","status":"` + status + `","timestamp":"2026-10-01T12:00:00Z","extra":{"a":1}}`)
	}
	problem := func(kind, detail string) string {
		return `{"type":"https://paymentauth.org/problems/` + kind + `","title":"No","status":402,"detail":"` + detail + `"}`
	}
	p := func(status int, body string) *http.Response {
		return response(status, body, "Content-Type", "application/problem+json", "WWW-Authenticate", c.Line())
	}
	ok := func(status int, values ...string) *http.Response {
		resp := response(status, "")
		for _, v := range values {
			resp.Header.Add("Payment-Receipt", v)
		}
		return resp
	}
	for name, tc := range map[string]struct {
		resp *http.Response
		hash string // known in advance
		want payment.Receipt
	}{
		"ours":                           {ok(200, receipt("success", "tempo", hash)), hash, payment.Receipt{Claim: payment.ClaimPaid, TxHash: hash}},
		"upper case":                     {ok(200, receipt("success", "tempo", "0x"+strings.Repeat("1A", 32))), hash, payment.Receipt{Claim: payment.ClaimPaid, TxHash: hash}},
		"not known in advance":           {ok(200, receipt("success", "tempo", strange)), "", payment.Receipt{Claim: payment.ClaimPaid, TxHash: strange}},
		"with a 500":                     {ok(500, receipt("success", "tempo", hash)), hash, payment.Receipt{Claim: payment.ClaimPaid, TxHash: hash}},
		"none":                           {ok(200), hash, payment.Receipt{}},
		"attack 43: another transaction": {ok(200, receipt("success", "tempo", strange)), hash, payment.Receipt{Code: "receipt_of_another_payment"}},
		"no hash":                        {ok(200, receipt("success", "tempo", "pi_123")), "", payment.Receipt{Code: "receipt_of_another_payment"}},
		"another method":                 {ok(200, receipt("success", "stripe", hash)), hash, payment.Receipt{Code: "receipt_of_another_method"}},
		"failed":                         {ok(200, receipt("failed", "tempo", hash)), hash, payment.Receipt{Code: "receipt_without_success", Message: "failed"}},
		"two":                            {ok(200, receipt("success", "tempo", hash), receipt("success", "tempo", hash)), hash, payment.Receipt{Code: "receipt_several"}},
		"not base64":                     {ok(200, "{}"), hash, payment.Receipt{Code: "receipt_unreadable"}},
		"another challenge":              {ok(200, b64(`{"method":"tempo","reference":"`+hash+`","status":"success","challengeId":"x"}`)), hash, payment.Receipt{Code: "receipt_of_another_payment"}},
		"row 1: used already":            {p(402, problem("verification-failed", "Transaction hash has already been used.")), hash, payment.Receipt{Claim: payment.ClaimUsed, Code: "verification_failed", Message: "Transaction hash has already been used."}},
		"row 46: the reason":             {p(402, problem("verification-failed", "no matching transfer found")), hash, payment.Receipt{Claim: payment.ClaimRefused, Code: "verification_failed", Message: "no matching transfer found"}},
		"used, by another kind":          {p(402, problem("invalid-challenge", "already been used")), hash, payment.Receipt{Claim: payment.ClaimRefused, Code: "invalid_challenge", Message: "already been used"}},
		"row 33: no challenge":           {response(402, problem("verification-failed", "x"), "Content-Type", "application/problem+json"), hash, payment.Receipt{Claim: payment.ClaimRefused, Code: "verification_failed", Message: "x"}},
		"a plain 402":                    {response(402, "no", "Content-Type", "text/plain"), hash, payment.Receipt{}},
		"a receipt on a 402":             {ok(402, receipt("success", "tempo", hash)), hash, payment.Receipt{}},
	} {
		g := g
		g.TxHash = tc.hash
		got, err := r.Receipt(tc.resp, g)
		if err != nil || got != tc.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, tc.want)
		}
	}
	// A proof's receipt names the challenge.
	zero := charge(t, request(func(q, _ object) { q["amount"] = "0" }))
	g = grant(t, offerOf(t, r, zero))
	if got, err := r.Receipt(ok(200, receipt("success", "tempo", zero.ID)), g); err != nil || got.Claim != payment.ClaimPaid || got.TxHash != "" {
		t.Errorf("of a proof: %+v, %v", got, err)
	}
	if got, _ := r.Receipt(ok(200, receipt("success", "tempo", hash)), g); got.Claim != payment.ClaimNone {
		t.Errorf("of a proof, with a hash: %+v", got)
	}
}

// FuzzOffers: whatever a server writes, there is no panic, and an offer that is
// read can be signed and is read back as its own terms.
func FuzzOffers(f *testing.F) {
	for _, c := range kinds(f) {
		f.Add(c.Line(), 402)
	}
	f.Add(`Payment id="i", realm="r", method="tempo", intent="charge", request="bnVsbA"`, 401)
	r := rail(f, withNode)
	k := key(f)
	f.Fuzz(func(t *testing.T, line string, status int) {
		resp := challenged(line)
		resp.StatusCode = status
		offers, _ := r.Offers(resp, nil)
		for _, o := range offers {
			if len(o.Echo) > payment.MaxEcho {
				t.Fatalf("an echo of %d bytes", len(o.Echo))
			}
			g := grant(t, o)
			g.ValidBefore = noon.Add(time.Minute)
			a, err := r.Authorize(t.Context(), g, k)
			if err != nil {
				continue // a payee that nobody should pay
			}
			g.Recover = true
			terms, err := r.Decode(a, g)
			if err != nil || terms.Hash() != g.Terms.Hash() {
				t.Fatalf("%v: read back %+v, want %+v", err, terms, g.Terms)
			}
		}
	})
}

// FuzzDecode: no header is taken for the grant's but the one that was signed.
func FuzzDecode(f *testing.F) {
	r := rail(f, withNode)
	g := grant(f, offerOf(f, r, charge(f, request())))
	a := authorize(f, r, g)
	g.Recover = true
	f.Add(a.Value)
	f.Add("Payment e30")
	f.Fuzz(func(t *testing.T, value string) {
		b := a
		b.Value = value
		terms, err := r.Decode(b, g)
		if err == nil && terms.Hash() == g.Terms.Hash() && value != a.Value {
			t.Fatalf("taken for the grant's: %q", value)
		}
	})
}

// FuzzReceipt: no answer makes it panic, and none but a receipt of this very
// transaction claims that it was paid.
func FuzzReceipt(f *testing.F) {
	r := rail(f)
	g := grant(f, offerOf(f, r, charge(f, request())))
	g.TxHash = "0x" + strings.Repeat("1a", 32)
	f.Add(200, b64(`{"method":"tempo","reference":"`+g.TxHash+`","status":"success"}`), "")
	f.Add(402, "", `{"type":"https://paymentauth.org/problems/verification-failed","detail":"already been used"}`)
	f.Fuzz(func(t *testing.T, status int, receipt, body string) {
		resp := response(status, body, "Payment-Receipt", receipt, "Content-Type", "application/problem+json")
		got, err := r.Receipt(resp, g)
		if err != nil {
			t.Fatal(err)
		}
		if got.Claim == payment.ClaimPaid && got.TxHash != g.TxHash {
			t.Fatalf("paid by %q", got.TxHash)
		}
	})
}
