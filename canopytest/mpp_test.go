package canopytest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// mppSeller is a seller of MPP on the chain of w.
func (w *world) mppSeller(c canopytest.SellerConfig) (*canopytest.Seller, string) {
	w.Helper()
	c.Protocol = canopytest.MPP
	if c.Routes == nil {
		c.Routes = cent
	}
	return w.seller(c)
}

func TestChargePull(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	s, url := w.mppSeller(canopytest.SellerConfig{})
	first := w.get(url + "/cent")
	if first.Header.Get("Cache-Control") != "no-store" || first.Header.Get("Content-Type") != "application/problem+json" || problemOf(first) != "payment-required" {
		t.Errorf("%v %s", first.Header, first.body)
	}
	a, credential, paid := w.buyMPP(url + "/cent")
	if paid.StatusCode != 200 || string(paid.body) != "{\"path\":\"/cent\"}\n" || paid.Header.Get("Cache-Control") != "private" {
		t.Fatalf("%d %s %v", paid.StatusCode, paid.body, paid.Header)
	}
	reqs := s.Requests()
	last := reqs[len(reqs)-1]
	receipt := receiptIn(t, paid)
	if receipt["status"] != "success" || receipt["method"] != "tempo" || receipt["reference"] != last.TxHash || last.Tempo.Hash() != last.TxHash {
		t.Errorf("receipt %v, request %+v", receipt, last)
	}
	seller := canopytest.Address("seller")
	w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: seller, Amount: payment.Cent})
	if m := w.chain.Memos(w.wallet.Address(), boundMemo(a)); len(m) != 1 || m[0].TxHash != last.TxHash {
		t.Errorf("by memo %v", m)
	}
	if n := s.Count("GET /cent"); n != (canopytest.Count{Requests: 3, Paid: 1, Served: 1, Settled: 1}) {
		t.Errorf("%+v", n)
	}

	// The same credential again is refused, and after its end the node is asked
	// in vain: either way nothing moves.
	spent := w.chain.Spent(w.wallet.Address())
	again := w.get(url+"/cent", "Authorization", credential)
	if again.StatusCode != 402 || problemOf(again) != "verification-failed" || !strings.Contains(string(again.body), "already been used") {
		t.Errorf("again: %d %s", again.StatusCode, again.body)
	}
	fresh := challengesIn(t, again.Header["Www-Authenticate"])
	if len(fresh) != 1 || fresh[0].params["id"] == a.params["id"] || fresh[0].params["request"] != a.params["request"] {
		t.Errorf("fresh %v", fresh)
	}
	w.clock.Advance(30 * time.Second)
	if late := w.get(url+"/cent", "Authorization", credential); late.StatusCode != 500 || problemOf(late) != "internal-payment-error" || late.Header.Get("Www-Authenticate") == "" {
		t.Errorf("after its end: %d %s", late.StatusCode, late.body)
	}
	// Another transaction for the same challenge is another payment.
	x := w.tempo(a).on(maxKey, 0)
	if r := w.get(url+"/cent", "Authorization", credentialOf(a, pull(w.wallet.raw(x)), "")); r.StatusCode != 200 {
		t.Errorf("another transaction: %d %s", r.StatusCode, r.body)
	}
	if w.chain.Spent(w.wallet.Address()) < spent+payment.Cent {
		t.Error("the challenge was taken as used")
	}
}

// What mppx 0.11 was measured to say to each defect of a payment, and that none
// of them moves money.
func TestChargeVerification(t *testing.T) {
	t.Parallel()
	plain := func(edit func(*world, *asked, *tempoTx)) func(*world, asked) (string, string) {
		return func(w *world, a asked) (string, string) {
			x := w.tempo(a)
			edit(w, &a, x)
			return a.field(), credentialOf(a, pull(w.wallet.raw(x)), "")
		}
	}
	echo := func(key, v string) func(*world, asked) (string, string) {
		return plain(func(_ *world, a *asked, _ *tempoTx) {
			if v == "" {
				delete(a.params, key)
				return
			}
			a.params[key] = v
		})
	}
	raw := func(value string) func(*world, asked) (string, string) {
		return func(*world, asked) (string, string) { return "Authorization", value }
	}
	config := canopytest.SellerConfig{MPP: canopytest.MPPConfig{Opaque: map[string]string{"b": "2", "a": "1"}}, Routes: []canopytest.Route{
		{Pattern: "GET /cent", Price: payment.Cent, Description: "one – cent"},
		{Pattern: "GET /dear", Price: payment.Dollar},
	}}
	for _, tc := range []struct {
		name   string
		make   func(*world, asked) (field, value string)
		status int
		kind   string
	}{
		{"nothing", plain(func(*world, *asked, *tempoTx) {}), 200, ""},
		{"one unit more", plain(func(w *world, _ *asked, x *tempoTx) { x.calls[0].Data[67]++ }), 402, "verification-failed"},
		{"one unit less", plain(func(w *world, _ *asked, x *tempoTx) { x.calls[0].Data[67]-- }), 402, "verification-failed"},
		{"another payee", plain(func(w *world, _ *asked, x *tempoTx) { x.calls[0].Data[20]++ }), 402, "verification-failed"},
		{"another token", plain(func(w *world, _ *asked, x *tempoTx) { x.calls[0].To = append(make([]byte, 19), 1) }), 402, "verification-failed"},
		{"another memo", plain(func(w *world, _ *asked, x *tempoTx) { x.calls[0].Data[99]++ }), 402, "verification-failed"},
		{"no memo", plain(func(w *world, a *asked, x *tempoTx) {
			x.calls[0] = transferCall(w.chain.Dollar().Address, canopytest.Address("seller"), 10_000)
		}), 402, "verification-failed"},
		{"one transfer more", plain(func(w *world, _ *asked, x *tempoTx) {
			x.calls = append(x.calls, transferCall(w.chain.Dollar().Address, payee, 1))
		}), 200, ""},
		{"another call first", plain(func(w *world, _ *asked, x *tempoTx) {
			x.calls = append([]rlpCall{{To: x.calls[0].To, Value: x.calls[0].Value, Data: []byte{9, 5, 0xea, 0xb3}}}, x.calls...)
		}), 402, "verification-failed"},
		{"the own nonce", plain(func(w *world, _ *asked, x *tempoTx) { x.key = x.key.SetUint64(0) }), 200, ""},
		{"no fee token", plain(func(w *world, _ *asked, x *tempoTx) { x.token = nil }), 200, ""},
		{"another chain", plain(func(w *world, _ *asked, x *tempoTx) { x.chain = 4217 }), 500, "internal-payment-error"},
		{"an end that has passed", plain(func(w *world, _ *asked, x *tempoTx) { x.before = uint64(start.Unix()) }), 500, "internal-payment-error"},
		{"an end too near", plain(func(w *world, _ *asked, x *tempoTx) { x.before = uint64(start.Unix()) + 3 }), 500, "internal-payment-error"},
		{"a beginning in the future", plain(func(w *world, _ *asked, x *tempoTx) { x.after = uint64(start.Unix()) + 1 }), 500, "internal-payment-error"},
		{"too little gas", plain(func(w *world, _ *asked, x *tempoTx) { x.gas = 1_000_000 }), 500, "internal-payment-error"},
		{"nonce 1 of a new lane", plain(func(w *world, _ *asked, x *tempoTx) { x.nonce = 1 }), 500, "internal-payment-error"},
		{"a sponsor where there is none", plain(func(w *world, _ *asked, x *tempoTx) { x.sponsored, x.envelope = true, 0x78 }), 500, "internal-payment-error"},
		{"an id of its own", echo("id", "x"), 402, "invalid-challenge"},
		{"another realm", echo("realm", "elsewhere"), 402, "invalid-challenge"},
		{"another end of the challenge", echo("expires", "2026-03-01T13:00:00.000Z"), 402, "invalid-challenge"},
		{"no opaque", echo("opaque", ""), 402, "invalid-challenge"},
		{"a header that was not asked for", echo("header", "Payment-Authorization"), 402, "payment-required"},
		{"another request", echo("request", base64.RawURLEncoding.EncodeToString([]byte(`{"amount":"1"}`))), 402, "invalid-challenge"},
		{"no description", echo("description", ""), 200, ""},
		{"another description", echo("description", "free"), 200, ""},
		{"the challenge of another route", func(w *world, a asked) (string, string) { return a.field(), "" }, 402, "invalid-challenge"},
		{"not base64", raw("Payment %%%"), 402, "malformed-credential"},
		{"no JSON", raw("Payment enp6"), 402, "malformed-credential"},
		{"a list", raw("Payment WyJhIl0"), 402, "malformed-credential"},
		{"nothing in it", raw("Payment e30"), 402, "malformed-credential"},
		{"no transaction", func(_ *world, a asked) (string, string) {
			return a.field(), credentialOf(a, pull([]byte{0x76, 0xc0}), "")
		}, 500, "internal-payment-error"},
		{"a payload of no kind", func(_ *world, a asked) (string, string) {
			return a.field(), credentialOf(a, map[string]any{"type": "voucher"}, "")
		}, 402, "invalid-payload"},
		{"a source of nobody", func(w *world, a asked) (string, string) {
			return a.field(), credentialOf(a, pull(w.wallet.raw(w.tempo(a))), "nobody")
		}, 200, ""},
		{"padded, of the other alphabet", func(w *world, a asked) (string, string) {
			v := credentialOf(a, pull(w.wallet.raw(w.tempo(a))), "")
			data, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(v, "Payment "))
			return a.field(), "payment " + base64.StdEncoding.EncodeToString(data)
		}, 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newTempo(t, canopytest.Instant)
			s, url := w.mppSeller(config)
			a := w.ask(url + "/cent")[0]
			field, value := tc.make(w, a)
			target := url + "/cent"
			if value == "" {
				value, target = credentialOf(a, pull(w.wallet.raw(w.tempo(a))), ""), url+"/dear"
			}
			r := w.get(target, field, value)
			if r.StatusCode != tc.status || tc.status != 200 && problemOf(r) != tc.kind {
				t.Fatalf("%d %s", r.StatusCode, r.body)
			}
			if moved := w.chain.Spent(w.wallet.Address()) > 0; moved != (tc.status == 200) || (s.Count("").Settled == 1) != moved || (receiptIn(t, r) != nil) != moved {
				t.Errorf("moved %v, %+v", moved, s.Count(""))
			}
			if tc.status != 200 && len(challengesIn(t, r.Header["Www-Authenticate"])) != 1 {
				t.Errorf("no fresh challenge: %v", r.Header)
			}
		})
	}
}

// A challenge is refused once it ended, or once the route asks for something
// else.
func TestChargeChallengeEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before func(*world, *canopytest.Seller)
		kind   string
	}{
		"its end":       {func(w *world, _ *canopytest.Seller) { w.clock.Advance(5*time.Minute + time.Second) }, "payment-expired"},
		"another price": {func(_ *world, s *canopytest.Seller) { s.SetPrice("GET /cent", 2*payment.Cent) }, "invalid-challenge"},
		"another payee": {func(_ *world, s *canopytest.Seller) { s.SetPayTo("GET /cent", payee) }, "invalid-challenge"},
	} {
		w := newTempo(t, canopytest.Instant)
		s, url := w.mppSeller(canopytest.SellerConfig{})
		a := w.ask(url + "/cent")[0]
		tc.before(w, s)
		r := w.get(url+"/cent", "Authorization", credentialOf(a, pull(w.wallet.raw(w.tempo(a))), ""))
		if r.StatusCode != 402 || problemOf(r) != tc.kind {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
		w.chain.AssertTransfers(t)
	}
}

// The seller's own words for its ids, requests and headers are those of the
// reference: the vectors of mppx.
func TestChargeVectors(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/tempo.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		MPP struct {
			SecretKey  string
			Challenges []struct {
				Challenge       map[string]any
				Header, JCS     string
				RequestB64      string
				IgnoredForTests bool
			}
			ProofCrossCheck struct {
				ChainID            uint64
				Account, V3, Realm string
				ChallengeID        string
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.MPP.Challenges) != 3 {
		t.Fatalf("%d challenges", len(doc.MPP.Challenges))
	}
	for i, c := range doc.MPP.Challenges {
		params := map[string]string{"request": c.RequestB64}
		for k, v := range c.Challenge {
			if s, ok := v.(string); ok {
				params[k] = s
			}
		}
		if opaque, ok := c.Challenge["opaque"].(map[string]any); ok {
			params["opaque"] = base64.RawURLEncoding.EncodeToString(canopytest.JCSForTest(opaque))
		}
		id, header := canopytest.ChallengeForTest(doc.MPP.SecretKey, params)
		if id != c.Challenge["id"] {
			t.Errorf("%d: id %s, want %s", i, id, c.Challenge["id"])
		}
		var latin []byte // the vector is text, the wire ISO-8859-1
		for _, r := range c.Header {
			latin = append(latin, byte(r))
		}
		if params := sorted(header); !slices.Equal(params, sorted(string(latin))) {
			t.Errorf("%d: header\n%s\nwant\n%s", i, header, c.Header)
		}
		request, _ := c.Challenge["request"].(map[string]any)
		if details, ok := request["methodDetails"].(map[string]any); ok {
			details["chainId"] = uint64(details["chainId"].(float64))
		}
		if got := string(canopytest.JCSForTest(request)); got != c.JCS {
			t.Errorf("%d: request %s, want %s", i, got, c.JCS)
		}
	}
	p := doc.MPP.ProofCrossCheck
	account, _ := payment.ParseAddress(p.Account)
	if digest := canopytest.ProofForTest(p.ChainID, account, p.ChallengeID, p.Realm); "0x"+hex.EncodeToString(digest[:]) != p.V3 {
		t.Errorf("proof digest %x", digest)
	}
}

// sorted are the parameters of a header.
func sorted(header string) []string {
	out := param.FindAllString(header, -1)
	slices.Sort(out)
	return out
}

func TestChargePush(t *testing.T) {
	t.Parallel()
	push := func(hash string) map[string]any { return map[string]any{"type": "hash", "hash": hash} }
	w := newTempo(t, canopytest.Instant)
	_, url := w.mppSeller(canopytest.SellerConfig{MPP: canopytest.MPPConfig{Modes: []string{"push"}}})
	a := w.ask(url + "/cent")[0]
	if !slices.Equal(a.request.MethodDetails.Modes, []string{"push"}) {
		t.Errorf("modes %v", a.request.MethodDetails.Modes)
	}
	x := w.tempo(a)
	if r := w.get(url+"/cent", "Authorization", credentialOf(a, pull(w.wallet.raw(x)), "")); r.StatusCode != 402 || problemOf(r) != "invalid-payload" {
		t.Errorf("pulled: %d %s", r.StatusCode, r.body)
	}
	hash := w.send(x)
	other := w.send(w.memoTx(10_000, memo1).on(maxKey, 0))
	failed := w.memoTx(200_000_000, boundMemo(a)).expiring()
	for _, tc := range []struct {
		name, hash, source string
		status             int
		kind               string
	}{
		{"a hash of nothing", "0x" + strings.Repeat("ab", 32), "", 500, "internal-payment-error"},
		{"no hash", "0x12", "", 402, "invalid-payload"},
		{"another payment", other, "", 402, "verification-failed"},
		{"one that failed", w.send(failed), "", 402, "verification-failed"},
		{"another source", hash, "did:pkh:eip155:42431:" + payee.Lower(), 402, "verification-failed"},
		{"a source on another chain", hash, w.source(4217), 402, "verification-failed"},
		{"the payment", hash, w.source(42431), 200, ""},
		{"the payment again", hash, w.source(42431), 402, "verification-failed"},
	} {
		r := w.get(url+"/cent", "Authorization", credentialOf(a, push(tc.hash), tc.source))
		if r.StatusCode != tc.status || tc.status != 200 && problemOf(r) != tc.kind {
			t.Errorf("%s: %d %s", tc.name, r.StatusCode, r.body)
		}
		if tc.status == 200 && receiptIn(t, r)["reference"] != hash {
			t.Errorf("receipt %v", receiptIn(t, r))
		}
	}
}

func TestChargeSponsored(t *testing.T) {
	t.Parallel()
	config := canopytest.SellerConfig{MPP: canopytest.MPPConfig{Sponsor: true}}
	for _, tc := range []struct {
		name   string
		edit   func(*tempoTx)
		status int
	}{
		{"0x78", func(*tempoTx) {}, 200},
		{"0x76", func(x *tempoTx) { x.envelope = 0x76 }, 200},
		{"60 s", func(x *tempoTx) { x.before += 35 }, 500},
		{"its own lane", func(x *tempoTx) { x.key = payment.UnitsOf(5).Big() }, 500},
		{"the own nonce", func(x *tempoTx) { x.key = payment.UnitsOf(0).Big() }, 500},
		{"no end", func(x *tempoTx) { x.before = 0 }, 500},
		{"2,000,000 gas", func(x *tempoTx) { x.gas = 2_000_000 }, 200},
		{"2,000,001 gas", func(x *tempoTx) { x.gas = 2_000_001 }, 500},
		{"a tip of 51 gwei", func(x *tempoTx) { x.tip, x.maxFee, x.gas = 51e9, 60e9, 790_000 }, 500},
		{"101 gwei", func(x *tempoTx) { x.maxFee = 101e9 }, 500},
		{"5.2e16 in all", func(x *tempoTx) { x.gas, x.maxFee = 2_000_000, 26e9 }, 500},
		{"who pays for himself", func(x *tempoTx) {
			x.sponsored, x.envelope, x.token = false, 0x76, make([]byte, 20)
			x.token[0], x.token[1] = 0x20, 0xc0
		}, 500},
		{"a transfer more", func(x *tempoTx) { x.calls = append(x.calls, transferCall(payment.Address(x.calls[0].To), payee, 1)) }, 402},
	} {
		w := newTempo(t, canopytest.Instant)
		s, url := w.mppSeller(config)
		a := w.ask(url + "/cent")[0]
		if !a.request.MethodDetails.FeePayer {
			t.Fatal("nobody sponsors")
		}
		x := w.tempo(a)
		tc.edit(x)
		v := credentialOf(a, pull(w.wallet.raw(x)), "")
		r := w.get(url+"/cent", "Authorization", v)
		if r.StatusCode != tc.status {
			t.Errorf("%s: %d %s", tc.name, r.StatusCode, r.body)
		}
		want := payment.USD(0)
		if tc.status == 200 {
			want = payment.Cent
			reqs := s.Requests()
			if ref := receiptIn(t, r)["reference"]; ref != reqs[1].TxHash || ref == reqs[1].Tempo.Hash() {
				t.Errorf("%s: receipt of %v, and the buyer's hash is %s", tc.name, ref, reqs[1].Tempo.Hash())
			}
			if fee := w.chain.Fees(s.Sponsor()); fee == 0 {
				t.Errorf("%s: the sponsor paid nothing", tc.name)
			}
			if again := w.get(url+"/cent", "Authorization", v); again.StatusCode != 402 || problemOf(again) != "verification-failed" {
				t.Errorf("%s again: %d %s", tc.name, again.StatusCode, again.body)
			}
		}
		w.chain.AssertSpent(t, w.wallet.Address(), want)
	}
}

func TestChargeSplits(t *testing.T) {
	t.Parallel()
	memo := [32]byte{8}
	routes := []canopytest.Route{{Pattern: "GET /", Price: 10 * payment.Cent, Splits: []canopytest.Split{
		{To: canopytest.Address("a"), Price: payment.Cent}, {To: canopytest.Address("b"), Price: 2 * payment.Cent, Memo: &memo},
	}}}
	for _, tc := range []struct {
		name   string
		edit   func(*tempoTx)
		status int
	}{
		{"as asked", func(*tempoTx) {}, 200},
		{"in another order", func(x *tempoTx) { slices.Reverse(x.calls) }, 200},
		{"one left out", func(x *tempoTx) { x.calls = x.calls[:2] }, 402},
		{"another memo", func(x *tempoTx) { x.calls[2].Data[99]++ }, 402},
		{"more for one", func(x *tempoTx) { x.calls[1].Data[67]++ }, 402},
	} {
		w := newTempo(t, canopytest.Instant)
		_, url := w.mppSeller(canopytest.SellerConfig{Routes: routes})
		a := w.ask(url + "/")[0]
		x := w.tempo(a)
		tc.edit(x)
		r := w.get(url+"/", "Authorization", credentialOf(a, pull(w.wallet.raw(x)), ""))
		if r.StatusCode != tc.status {
			t.Errorf("%s: %d %s", tc.name, r.StatusCode, r.body)
		}
		if moved := len(w.chain.Transfers()) > 0; moved != (tc.status == 200) {
			t.Errorf("%s: moved %v", tc.name, moved)
		}
		if tc.status == 200 {
			w.chain.AssertSpent(t, w.wallet.Address(), 10*payment.Cent+w.chain.Fees(w.wallet.Address()))
			if m := w.chain.Memos(w.wallet.Address(), memo); len(m) != 1 || m[0].To != canopytest.Address("b") {
				t.Errorf("%s: %v", tc.name, m)
			}
		}
	}
}

func TestChargeProof(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	_, url := w.mppSeller(canopytest.SellerConfig{
		MPP:    canopytest.MPPConfig{Header: "Payment-Authorization", ProofOnce: true},
		Routes: []canopytest.Route{{Pattern: "GET /", Proof: true}},
	})
	a := w.ask(url + "/")[0]
	if a.request.Amount != "0" || a.field() != "Payment-Authorization" {
		t.Errorf("%v %v", a.request, a.params)
	}
	wrong := w.proof(a)
	wrong["signature"] = wrong["signature"].(string)[:130] + "1b"
	if wrong["signature"] == w.proof(a)["signature"] {
		wrong["signature"] = wrong["signature"].(string)[:130] + "1c"
	}
	mixed := []byte(w.source(42431))
	for i := len(mixed) - 1; ; i-- {
		if mixed[i] > '9' {
			mixed[i] ^= 0x20 // another case
			break
		}
	}
	for _, tc := range []struct {
		name, field, source string
		payload             map[string]any
		status              int
		kind                string
	}{
		{"in the other field", "Authorization", w.source(42431), w.proof(a), 402, "payment-required"},
		{"no source", a.field(), "", w.proof(a), 402, "verification-failed"},
		{"another chain", a.field(), w.source(4217), w.proof(a), 402, "verification-failed"},
		{"another account", a.field(), "did:pkh:eip155:42431:" + payee.Lower(), w.proof(a), 402, "verification-failed"},
		{"a wrong checksum", a.field(), string(mixed), w.proof(a), 402, "verification-failed"},
		{"another signature", a.field(), w.source(42431), wrong, 402, "verification-failed"},
		{"a transaction", a.field(), w.source(42431), pull(w.wallet.raw(w.memoTx(1, boundMemo(a)))), 402, "invalid-payload"},
		{"in small letters", a.field(), strings.ToLower(w.source(42431)), w.proof(a), 200, ""},
		{"again", a.field(), w.source(42431), w.proof(a), 402, "verification-failed"},
	} {
		r := w.get(url+"/", tc.field, credentialOf(a, tc.payload, tc.source), "X-Other", "1")
		if r.StatusCode != tc.status || tc.status != 200 && problemOf(r) != tc.kind {
			t.Errorf("%s: %d %s", tc.name, r.StatusCode, r.body)
		}
		if tc.status == 200 && receiptIn(t, r)["reference"] != a.params["id"] {
			t.Errorf("receipt %v", receiptIn(t, r))
		}
	}
	w.chain.AssertTransfers(t)
}

// evm/charge on an EVM chain, and both protocols at one route.
func TestChargeEVM(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		edit   func(map[string]any, asked)
		status int
	}{
		{"as asked", func(map[string]any, asked) {}, 200},
		{"another nonce", func(p map[string]any, _ asked) { p["nonce"] = hexOf([32]byte{1}) }, 402},
		{"another value", func(p map[string]any, _ asked) { p["value"] = "1" }, 402},
		{"another payee", func(p map[string]any, _ asked) { p["to"] = payee.String() }, 402},
		{"another kind", func(p map[string]any, _ asked) { p["type"] = "permit2" }, 402},
		{"another end", func(p map[string]any, _ asked) { p["validBefore"] = "99999999999" }, 402},
	} {
		w := newWorld(t)
		s, url := w.mppSeller(canopytest.SellerConfig{})
		a := w.ask(url + "/cent")[0]
		if a.params["method"] != "evm" || a.request.MethodDetails.ChainID != 8453 {
			t.Fatalf("%v", a.params)
		}
		p := w.evm(w.chain, a)
		tc.edit(p, a)
		r := w.get(url+"/cent", "Authorization", credentialOf(a, p, w.source(8453)))
		if r.StatusCode != tc.status {
			t.Errorf("%s: %d %s", tc.name, r.StatusCode, r.body)
		}
		want := payment.USD(0)
		if tc.status == 200 {
			want = payment.Cent
			if got := receiptIn(t, r); got["method"] != "evm" || got["reference"] != s.Requests()[1].TxHash {
				t.Errorf("receipt %v", got)
			}
			if again := w.get(url+"/cent", "Authorization", credentialOf(a, p, "")); again.StatusCode != 402 {
				t.Errorf("again: %d %s", again.StatusCode, again.body)
			}
		}
		w.chain.AssertSpent(t, w.wallet.Address(), want)
	}
}

// A nonce that was signed and is not bound to the challenge.
func TestChargeEVMIsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.mppSeller(canopytest.SellerConfig{})
	a := w.ask(url + "/cent")[0]
	r := w.get(url+"/cent", "Authorization", credentialOf(a, w.evmOn(w.chain, a, [32]byte{1}), ""))
	if r.StatusCode != 402 || !strings.Contains(string(r.body), "not bound") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	w.chain.AssertTransfers(t)
}

// The same credential four times at once: one is served.
func TestChargeAtOnce(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	s, url := w.mppSeller(canopytest.SellerConfig{})
	a := w.ask(url + "/cent")[0]
	v := credentialOf(a, pull(w.wallet.raw(w.tempo(a))), "")
	statuses := make(chan int)
	for range 4 {
		go func() {
			r, err := w.do("GET", url+"/cent", "Authorization", v)
			if err != nil {
				t.Error(err)
				statuses <- 0
				return
			}
			statuses <- r.StatusCode
		}()
	}
	for s.Count("").Paid < 4 || len(w.chain.Pending()) == 0 {
		time.Sleep(time.Millisecond)
	}
	var got []int
	for range 3 {
		select {
		case n := <-statuses:
			got = append(got, n)
		case <-time.After(5 * time.Second): // more than one waits for the block
		}
	}
	w.chain.Mine()
	for len(got) < 4 {
		got = append(got, <-statuses)
	}
	if want := []int{402, 402, 402, 200}; !slices.Equal(got, want) || s.Count("").Served != 1 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestBothProtocols(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		base := newWorld(t)
		w := newTempo(t, canopytest.Instant)
		s := canopytest.NewSeller(base.chain, canopytest.SellerConfig{
			Protocol: canopytest.X402 | canopytest.MPP, Version: v,
			Routes: []canopytest.Route{{Pattern: "GET /cent", Price: payment.Cent, Also: []canopytest.Accept{{Chain: w.chain}}}},
		})
		url := s.Start(t) + "/cent"
		if all := w.ask(url); len(all) != 1 || all[0].params["method"] != "tempo" || all[0].request.Amount != "10000" {
			t.Errorf("charges %v", all)
		}
		if q := base.quote(base.get(url)); q["scheme"] != "exact" {
			t.Errorf("terms %v", q)
		}
		_, credential, r := w.buyMPP(url)
		if r.StatusCode != 200 || receiptIn(t, r) == nil || receiptOf(r) != "" {
			t.Errorf("version %d, by MPP: %d %s", v, r.StatusCode, r.body)
		}
		header, r := base.buy(url)
		if r.StatusCode != 200 || receiptOf(r) == "" || receiptIn(t, r) != nil {
			t.Errorf("version %d, by x402: %d %s", v, r.StatusCode, r.body)
		}
		if r := base.get(url, append(header, "Authorization", credential)...); r.StatusCode != 400 {
			t.Errorf("version %d, by both at once: %d %s", v, r.StatusCode, r.body)
		}
		base.chain.AssertSpent(t, base.wallet.Address(), payment.Cent)
		w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: canopytest.Address("seller"), Amount: payment.Cent})
		s.SetPrice("GET /cent", 2*payment.Cent)
		if all := w.ask(url); all[0].request.Amount != "20000" {
			t.Errorf("the price of MPP stayed %s", all[0].request.Amount)
		}
	}
}

// How a seller may ask: several charges, lines and a session before them, a
// digest, no chain.
func TestChallengeForms(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	routes := []canopytest.Route{{Pattern: "POST /", Price: payment.Cent, Description: "Café — 日本 🎉 \"x\" \\", ExternalID: "e1", Also: []canopytest.Accept{{PayTo: payee, Price: 2 * payment.Cent}}}}
	for _, tc := range []struct {
		name   string
		config canopytest.MPPConfig
		lines  int
	}{
		{"on one line", canopytest.MPPConfig{Session: true, Digest: true, NoChain: true, Realm: `Payment desk, "one"`}, 1},
		{"on several", canopytest.MPPConfig{Session: true, Digest: true, NoChain: true, Realm: `Payment desk, "one"`, Lines: true}, 3},
	} {
		_, url := w.mppSeller(canopytest.SellerConfig{MPP: tc.config, Routes: routes})
		r, err := w.do("POST", url+"/")
		if err != nil {
			t.Fatal(err)
		}
		lines := r.Header["Www-Authenticate"]
		if len(lines) != tc.lines || !strings.Contains(lines[0], `intent="session"`) || !strings.Contains(lines[0], "Caf\xe9 "+`\u2014 \u65e5\u672c \ud83c\udf89 \"x\" \\"`) {
			t.Errorf("%s: %q", tc.name, lines)
		}
		if tc.lines == 1 {
			continue
		}
		all, sum := challengesIn(t, lines), sha256.Sum256([]byte("body"))
		if len(all) != 2 || all[0].params["digest"] != "sha-256="+base64.StdEncoding.EncodeToString(sum[:]) || all[0].params["description"] != routes[0].Description || all[0].request.MethodDetails.ChainID != 0 {
			t.Fatalf("%s: %v", tc.name, all)
		}
		second := credentialOf(all[1], pull(w.wallet.raw(w.tempo(all[1]))), "")
		if r, err := w.do("POST", url+"/", "Authorization", second); err != nil || r.StatusCode != 200 {
			t.Errorf("%s: %d %s", tc.name, r.StatusCode, r.body)
		}
	}
	_, url := w.mppSeller(canopytest.SellerConfig{MPP: canopytest.MPPConfig{Digest: true}, Routes: []canopytest.Route{{Pattern: "/", Price: payment.Cent}}})
	a := w.ask(url + "/")[0]
	if r, err := w.do("POST", url+"/", "Authorization", credentialOf(a, pull(w.wallet.raw(w.tempo(a))), "")); err != nil || r.StatusCode != 402 || problemOf(r) != "invalid-challenge" {
		t.Errorf("another body: %d %s", r.StatusCode, r.body)
	}
}

// A handler that fails was paid for, and gives no receipt.
func TestChargeHandlerFails(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	_, url := w.mppSeller(canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent, Handler: http.NotFoundHandler()}}})
	_, _, r := w.buyMPP(url + "/")
	if r.StatusCode != 404 || receiptIn(t, r) != nil || len(w.chain.Transfers()) == 0 {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
}
