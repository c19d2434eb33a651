package mpp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/internal/mppserver"
	"github.com/canopy-go/canopy/payment"
)

// FuzzReadChallenges reads two lines, of which the second is good: nothing that
// the first holds may hide it, and what is found in either is fit to be echoed.
func FuzzReadChallenges(f *testing.F) {
	for _, v := range readWire(f).Challenges {
		f.Add(v.Header)
	}
	for _, s := range hostile() {
		f.Add(s[:min(len(s), 300)])
	}
	f.Add(line(f, "", `, expires="2030-01-01T00:00:00Z", header="Payment-X", foo=bar`) + `, Bearer realm="a, b\"", Negotiate a/b==, ` + line(f))
	f.Add(line(f, `"r"`, "\"Caf\xe9 \\u2014 \\ud83d\\ude00\""))
	good := line(f, `"i"`, `"good"`)
	f.Fuzz(func(t *testing.T, s string) {
		found, bad := readChallenges([]string{s, good})
		if len(found) == 0 || found[len(found)-1].id != "good" {
			if len(bad) == 0 || bad[len(bad)-1].Code != "too_many" && bad[len(bad)-1].Code != "too_large" {
				t.Fatalf("the second line is hidden: %s", outline(found, bad))
			}
		}
		if len(found) > maxChallenges || len(found)+len(bad) > maxChallenges+1 {
			t.Fatalf("%d found, %d skipped", len(found), len(bad))
		}
		seen := map[int]bool{}
		for _, b := range bad {
			if seen[b.Index] || len(b.Detail) > 200 || strings.ContainsFunc(b.Detail, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("skipped %+v", b)
			}
			seen[b.Index] = true
		}
		for _, c := range found {
			if seen[c.index] {
				t.Fatalf("index %d comes twice", c.index)
			}
			seen[c.index] = true
			checkChallenge(t, c)
		}
	})
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// checkChallenge holds c against what must be true of whatever was read.
func checkChallenge(t *testing.T, c challenge) {
	t.Helper()
	for _, s := range []string{c.id, c.realm, c.method, c.intent, c.request, c.expiresText, c.digestText, c.opaque, c.header, c.description} {
		if hasControl(s) || !utf8.ValidString(s) || len(s) > 2*maxValue {
			t.Fatalf("a member is %q", s)
		}
	}
	if c.id == "" || c.realm == "" || c.requestJSON.Kind() != jsonscan.Object || !headerName.MatchString(c.field()) ||
		c.header != "" && !strings.HasPrefix(strings.ToLower(c.header), "payment-") || (c.digest != nil) != (c.digestText != "") || c.expires.IsZero() && c.expiresText != "" && !strings.HasPrefix(c.expiresText, "0001") {
		t.Fatalf("challenge %+v", c)
	}
	echo, why := c.echo()
	if why != (skip{}) {
		if why.code != "echo_too_large" {
			t.Fatal(why)
		}
		return
	}
	// The seller's own writing of it says the same.
	seen, err := mppserver.ReadCredential(writeCredential(echo, proof{}, source{}))
	want := mppserver.Challenge{
		ID: c.id, Realm: c.realm, Method: c.method, Intent: c.intent, Request: c.request, Expires: c.expiresText,
		Digest: c.digestText, Opaque: c.opaque, Header: c.header, Description: c.description,
	}
	if diff := cmp.Diff(want, seen.Challenge); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	again, bad := readChallenges([]string{want.Line()})
	if len(again) != 1 {
		if len(want.Line()) > maxValue {
			return
		}
		t.Fatalf("%q: %v", want.Line(), bad)
	}
	again[0].index = c.index
	if diff := cmp.Diff(c, again[0], cmp.AllowUnexported(challenge{}, jsonscan.Value{})); diff != "" {
		t.Fatalf("read again (-want +got):\n%s", diff)
	}
}

// FuzzReadRequest holds what is read from a request against encoding/json and
// math/big.
func FuzzReadRequest(f *testing.F) {
	for _, more := range []string{`"feePayer":true`, `"memo":"` + memo32 + `"`, `"supportedModes":["push"]`, splitsOf("1", "9998"), splitsOf("10000"), `"credentialTypes":["authorization"],"decimals":6`} {
		f.Add([]byte(details(f, more)))
	}
	f.Add([]byte(with(f, `"10000"`, `"115792089237316195423570985008687907853269984665640564039457584007913129639935"`)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, why := parseObject(doc, maxValue, "request")
		if why != (skip{}) {
			return
		}
		if c, why := readEVMCharge(v); why == (skip{}) {
			if s := member(doc, "methodDetails", "splits"); c.recipient.IsZero() || s != nil && string(s) != "null" {
				t.Fatalf("%s: %+v", doc, c)
			}
		}
		q, why := readTempoCharge(v)
		if why != (skip{}) {
			if why.code == "" {
				t.Fatal(why)
			}
			return
		}
		var amount, recipient, currency string
		for key, dst := range map[string]*string{"amount": &amount, "recipient": &recipient, "currency": &currency} {
			if err := json.Unmarshal(member(doc, key), dst); err != nil {
				t.Fatalf("%s: %s: %v", doc, key, err)
			}
		}
		if q.amount.String() != amount || !strings.EqualFold(q.recipient.Lower(), recipient) || !strings.EqualFold(q.currency.Lower(), currency) {
			t.Fatalf("%s: %+v", doc, q)
		}
		if n := member(doc, "methodDetails", "chainId"); q.chainID != 0 && string(payment.EVMChain(q.chainID)) != "eip155:"+string(n) || q.chainID == 0 && n != nil && string(n) != "null" {
			t.Fatalf("%s: chain %d", doc, q.chainID)
		}
		var splits []map[string]json.RawMessage
		if s := member(doc, "methodDetails", "splits"); s != nil {
			if err := json.Unmarshal(s, &splits); err != nil {
				t.Fatalf("%s: %v", doc, err)
			}
		}
		left := q.amount.Big()
		for i, s := range q.splits {
			if err := json.Unmarshal(splits[i]["amount"], &amount); err != nil || s.amount.IsZero() || s.amount.String() != amount || s.recipient.IsZero() || s.recipient == q.currency {
				t.Fatalf("%s: split %+v, %v", doc, s, err)
			}
			left.Sub(left, s.amount.Big())
		}
		if len(q.splits) != len(splits) || len(q.splits) > maxSplits || len(q.splits) > 0 && left.Sign() <= 0 || left.Cmp(q.primary().Big()) != 0 {
			t.Fatalf("%s: %v of %v left, primary %v", doc, left, q.amount, q.primary())
		}
		if !q.pull && !q.push {
			t.Fatalf("%s: no mode", doc)
		}
	})
}

// member is what stands under keys in doc, each spelled to the letter, or nil.
func member(doc json.RawMessage, keys ...string) json.RawMessage {
	for _, k := range keys {
		var m map[string]json.RawMessage
		if json.Unmarshal(doc, &m) != nil {
			return nil
		}
		doc = m[k]
	}
	return doc
}

// FuzzReadCredential writes again what was read.
func FuzzReadCredential(f *testing.F) {
	w := readWire(f)
	f.Add(w.Credential)
	f.Add(w.CredentialWithOpaque)
	found, _ := readChallenges([]string{line(f)})
	echo, _ := found[0].echo()
	for _, p := range payloads {
		f.Add(writeCredential(echo, p, payer))
	}
	f.Fuzz(func(t *testing.T, value string) {
		c, err := readCredential(value)
		if err != nil {
			return
		}
		again, err := readCredential(writeCredential([]byte(c.echo), c.payload, c.source))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(credential{}, challenge{}, jsonscan.Value{}, authorization{}, source{}), cmp.Comparer(func(a, b payment.Units) bool { return a == b })); diff != "" {
			t.Fatalf("read again (-want +got):\n%s", diff)
		}
		if _, err := mppserver.ReadCredential(value); err != nil && !strings.Contains(value, "/") && !strings.Contains(value, "+") && !strings.Contains(value, "  ") {
			t.Fatalf("the seller: %v", err)
		}
	})
}

// FuzzReadReceipt holds that a receipt of success names a method and a
// reference, as encoding/json reads them too.
func FuzzReadReceipt(f *testing.F) {
	f.Add(readWire(f).Receipt)
	f.Add(b64(`{"status":"failed","method":"evm","reference":"0x","timestamp":7}`))
	f.Fuzz(func(t *testing.T, value string) {
		r, err := readReceiptPayload(value)
		if err != nil {
			if r != (receiptPayload{}) {
				t.Fatalf("%+v beside %v", r, err)
			}
			return
		}
		doc, _ := decodeBase64(value)
		for key, got := range map[string]string{"status": r.status, "method": r.method, "reference": r.reference} {
			var want string
			if err := json.Unmarshal(member(doc, key), &want); err != nil || got != want || got == "" || hasControl(got) {
				t.Fatalf("%s: %s is %q, %v", doc, key, got, err)
			}
		}
		if r.success() != (r.status == "success") {
			t.Fatalf("%+v", r)
		}
	})
}

// FuzzReadProblem holds that what is shown of a problem is short and clean.
func FuzzReadProblem(f *testing.F) {
	f.Add("application/problem+json", []byte(`{"type":"https://paymentauth.org/problems/session/channel-not-found","title":"t","status":410,"detail":"\u202ex"}`))
	f.Add("application/json; charset=utf-8", []byte(`{"type":"urn:payment:error:VERIFICATION_FAILED"}`))
	kind := regexp.MustCompile(`^(session/)?[a-z0-9-]{1,64}$`)
	f.Fuzz(func(t *testing.T, media string, body []byte) {
		p, ok := readProblem(media, body)
		if ok != kind.MatchString(p.kind) {
			t.Fatalf("%+v, %v", p, ok)
		}
		for _, s := range []string{p.title, p.detail, p.hint, p.challengeID} {
			if len(s) > 256 || !utf8.ValidString(s) || hasControl(s) {
				t.Fatalf("%q", s)
			}
		}
		if p.status != 0 && (p.status < 100 || p.status > 599) {
			t.Fatal(p.status)
		}
	})
}
