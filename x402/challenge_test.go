package x402_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// A whole challenge: where it stands, and what becomes of it. offers counts
// what can be paid; a code may stand beside them.
func TestChallenges(t *testing.T) {
	t.Parallel()
	required := "PAYMENT-REQUIRED"
	dear := edit(t, R, `"1000"`, `"2000"`)
	other := edit(t, R1, payee, "0x1111111111111111111111111111111111111111")
	for _, tc := range []struct {
		name    string
		headers []string
		body    string
		offers  int
		version int
		code    string
	}{
		{"case 6: plain text", nil, "please pay", 0, 0, "not mine"},
		{"case 6: another protocol's", []string{"WWW-Authenticate", `Payment id="x"`}, "", 0, 0, "not mine"},
		{"no body", nil, "", 0, 0, "not mine"},
		{"HTML", nil, `<html>{"x402Version":1}</html>`, 0, 0, "not mine"},
		{"JSON of something else", nil, `{"error":"x402Version"}`, 0, 0, "not mine"},
		{"a list", nil, `[{"x402Version":1}]`, 0, 0, "not mine"},
		{"the version deeper", nil, `{"a":{"x402Version":1,"accepts":[` + R1 + `]}}`, 0, 0, "not mine"},
		{"case 22: an error alone", nil, `{"error":"pay"}`, 0, 0, "not mine"},
		{"case 22: accepts null", nil, `{"x402Version":1,"accepts":null}`, 0, 0, "no_terms"},
		{"case 22: accepts empty", nil, `{"x402Version":1,"accepts":[]}`, 0, 0, "no_terms"},
		{"case 22: no accepts", nil, `{"x402Version":2,"error":"pay"}`, 0, 0, "no_terms"},
		{"case 22: in the header", []string{required, b64(`{"x402Version":2,"accepts":[]}`)}, "{}", 0, 0, "no_terms"},
		{"accepts is an object", nil, v1(R1)[:16] + `,"accepts":` + R1 + `}`, 0, 0, "no_terms"},

		{"case 10, 11: version 2 in the header, body {}", []string{required, b64(v2(R))}, "{}", 1, 2, ""},
		{"header name in lower case", []string{"payment-required", b64(v2(R))}, "", 1, 2, ""},
		{"version 1 in the body", nil, v1(R1), 1, 1, ""},
		{"version 1 in the body, white space", nil, " \r\n\t" + v1(R1) + "\n", 1, 1, ""},
		{"case 14: version 2 in the body", nil, v2(R), 1, 2, ""},
		{"case 12: header without a version", []string{required, b64(`{"accepts":[` + R + `]}`)}, "{}", 1, 2, ""},
		{"header with a null version", []string{required, b64(`{"x402Version":null,"accepts":[` + R + `]}`)}, "", 1, 2, ""},
		{"case 15: raw JSON in the header", []string{required, v2(R)}, "", 1, 2, ""},
		{"case 17: base64url", []string{required, base64.URLEncoding.EncodeToString([]byte(v2(R, `"ÿÿÿ>>>???~~~"`)))}, "", 1, 2, "malformed"},
		{"case 17: unpadded", []string{required, base64.RawStdEncoding.EncodeToString([]byte(v2(R) + " "))}, "", 1, 2, ""},
		{"case 17: base64url, unpadded", []string{required, base64.RawURLEncoding.EncodeToString([]byte(v2(R, `"ÿÿÿ>>>???~~~"`)))}, "", 1, 2, "malformed"},
		{"case 24: a bad entry first", []string{required, b64(v2(`{"scheme":"exact","network":"x","amount":5}`, R))}, "", 1, 2, "unknown_network"},
		{"entries that are no objects", []string{required, b64(v2(`null`, `7`, `"x"`, `[]`, R))}, "", 1, 2, "malformed malformed malformed malformed"},

		{"header unreadable, version 1 in the body", []string{required, "%%%"}, v1(R1), 1, 1, ""},
		{"header cut, version 1 in the body", []string{required, b64(v2(R)[:99])}, v1(R1), 1, 1, ""},
		{"header empty, version 2 in the body", []string{required, ""}, v2(R), 1, 2, ""},
		{"header is JSON of a list", []string{required, b64("[]")}, v1(R1), 1, 1, ""},
		{"header unreadable alone", []string{required, "%%%"}, "{}", 0, 0, "unreadable_header"},
		{"header mixes two base64 spellings", []string{required, "+-" + b64(v2(R))}, "", 0, 0, "unreadable_header"},
		{"header with a line break", []string{required, b64(v2(R))[:40] + "\r\n" + b64(v2(R))[40:]}, "", 0, 0, "unreadable_header"},
		{"header with more after it", []string{required, b64(v2(R)) + ", " + b64(v2(R))}, "", 0, 0, "unreadable_header"},
		{"header not UTF-8", []string{required, b64(v2(edit(t, R, "USDC", "US\xffDC")))}, "", 0, 0, "unreadable_header"},
		{"header with more JSON after it", []string{required, b64(v2(R) + v2(R))}, "", 0, 0, "unreadable_header"},
		{"body cut", nil, v1(R1)[:99], 0, 0, "unreadable_body"},

		{"attack 21: header twice", []string{required, b64(v2(R)), required, b64(v2(R))}, "", 0, 0, "several_headers"},
		{"attack 21: header twice in other cases", []string{required, b64(v2(R)), "payment-required", b64(v2(dear))}, "", 0, 0, "several_headers"},
		{"attack 21: key twice", []string{required, b64(v2(edit(t, R, `"amount"`, `"amount":"1","amount"`)))}, "", 0, 0, "duplicate_key"},
		{"attack 21: key in two cases", []string{required, b64(v2(edit(t, R, `"payTo"`, `"PAYTO":"`+payee+`","payTo"`)))}, "", 0, 0, "duplicate_key"},
		{"attack 21: key in two cases, Unicode", []string{required, b64(v2(edit(t, R, `"asset"`, `"a\u017fset":"x","asset"`)))}, "", 0, 0, "duplicate_key"},
		{"attack 21: accepts twice", nil, edit(t, v1(R1), `"accepts"`, `"accepts":[],"accepts"`), 0, 0, "duplicate_key"},
		{"attack 21: duplicate in the header does not fall back", []string{required, b64(v2(edit(t, R, `"amount"`, `"amount":"1","amount"`)))}, v1(R1), 0, 0, "duplicate_key"},
		{"attack 21: the body asks more", []string{required, b64(v2(R))}, v2(dear), 0, 0, "header_body_conflict"},
		{"attack 21: the body pays another", []string{required, b64(v2(R))}, v1(other), 0, 0, "header_body_conflict"},
		{"the body repeats the header", []string{required, b64(v2(R))}, v2(R), 1, 2, ""},
		{"the body says the same in version 1", []string{required, b64(v2(R))}, v1(R1), 1, 2, ""},
		{"the body says less", []string{required, b64(v2(R, dear))}, v1(R1), 2, 2, ""},
		{"the body is cut", []string{required, b64(v2(R))}, v1(other)[:99], 1, 2, ""},
		{"the header has nothing to pay, the body has", []string{required, b64(v2(edit(t, R, "exact", "upto")))}, v1(R1), 0, 0, "header_body_conflict"},

		{"version 3 in the header", []string{required, b64(edit(t, v2(R), ":2", ":3"))}, "", 0, 0, "unsupported_version"},
		{"version 3 does not fall back", []string{required, b64(edit(t, v2(R), ":2", ":3"))}, v1(R1), 0, 0, "unsupported_version"},
		{"version 1 in the header", []string{required, b64(v1(R1))}, "", 0, 0, "unsupported_version"},
		{"version 2 as text", []string{required, b64(edit(t, v2(R), ":2", `:"2"`))}, "", 0, 0, "unsupported_version"},
		{"version 2.0", []string{required, b64(edit(t, v2(R), ":2", `:2.0`))}, "", 0, 0, "unsupported_version"},
		{"version 3 in the body", nil, edit(t, v2(R), ":2", ":3"), 0, 0, "unsupported_version"},
		{"version 0 in the body", nil, edit(t, v1(R1), ":1", ":0"), 0, 0, "unsupported_version"},
		{"version as text in the body", nil, edit(t, v1(R1), ":1", `:"1"`), 0, 0, "unsupported_version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			offers, err := rail(t).Offers(response(402, tc.body, tc.headers...), []byte(tc.body))
			if len(offers) != tc.offers || code(err) != tc.code {
				t.Fatalf("%d offers, %v; want %d and %q", len(offers), err, tc.offers, tc.code)
			}
			for _, o := range offers {
				if o.Version != tc.version {
					t.Errorf("version %d, want %d", o.Version, tc.version)
				}
			}
		})
	}
}

// Attacks 19, 36 and 37: no document costs more than 5 ms or 1 MiB.
func TestBombs(t *testing.T) {
	many := func(entry string, n int) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	deep := strings.Repeat(`[`, 30000) + strings.Repeat(`]`, 30000)
	var keys strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&keys, `"k%d":0,`, i)
	}
	for _, tc := range []struct {
		name, doc string
		offers    int
		code      string
	}{
		{"100,000 entries", v2(many(R, 100_000)), 0, "too_large"},
		{"17 entries", v2(many(R, 17)), 16, "too_many"},
		{"30,000 small entries", v2(R, many("7", 30_000)), 1, strings.Repeat("malformed ", 15) + "too_many"},
		{"depth", v2(R, deep), 0, "too_deep"},
		{"depth in extra", v2(edit(t, R, `"version":"2"`, `"version":"2","x":`+strings.Repeat(`{"x":`, 20)+`1`+strings.Repeat(`}`, 20))), 0, "too_deep"},
		{"many keys", v2(edit(t, R, `{`, `{`+keys.String())), 0, "echo_too_large"},
		{"a key of 60 KiB", v2(edit(t, R, `{`, `{"`+strings.Repeat("ſ", 30<<10)+`":1,`)), 0, "echo_too_large"},
		{"a number of 60 KiB", v2(edit(t, R, `:60`, `:`+strings.Repeat("9", 60<<10))), 0, "echo_too_large"},
		{"an amount of 60 KiB", v2(edit(t, R, `"1000"`, `"`+strings.Repeat("9", 60<<10)+`"`)), 0, "bad_amount"},
		{"escapes", v2(edit(t, R, `"exact"`, `"`+strings.Repeat(`\u0065`, 10<<10)+`"`)), 0, "unknown_scheme"},
		{"9 MiB", strings.Repeat(" ", 9<<20) + v2(R), 0, "too_large"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for where, resp := range map[string]*http.Response{
				"header": response(402, "", "PAYMENT-REQUIRED", b64(tc.doc)),
				"raw":    response(402, "", "PAYMENT-REQUIRED", tc.doc),
				"body":   response(402, ""),
			} {
				var body []byte
				want := tc.code
				if where == "body" {
					body = []byte(tc.doc)
				}
				if tc.doc[0] == ' ' && where != "header" {
					want = map[string]string{"raw": "too_large", "body": "not mine"}[where]
				}
				r := rail(t)
				best, most := time.Hour, uint64(0)
				limit := 5 * time.Millisecond * slowdown
				for try := 0; try < 3 || try < 20 && best > limit; try++ {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					start := time.Now()
					offers, err := r.Offers(resp, body)
					best = min(best, time.Since(start))
					runtime.ReadMemStats(&after)
					most = after.TotalAlloc - before.TotalAlloc
					if len(offers) != tc.offers || code(err) != want {
						t.Fatalf("%s: %d offers, %.300v; want %d and %q", where, len(offers), err, tc.offers, want)
					}
				}
				if best > limit {
					t.Errorf("%s: took %v, want below %v", where, best, limit)
				}
				if most > 1<<20 {
					t.Errorf("%s: took %d bytes, want below 1 MiB", where, most)
				}
			}
		})
	}
}

// Attack 23: what a seller says of its own URL is shown and decides nothing.
func TestResourceSpoof(t *testing.T) {
	t.Parallel()
	o := offer(t, edit(t, v2(R), "https://feed.example/a", "https://bank.example/transfer"))
	if terms := grant(t, o).Terms; terms.Origin != "https://feed.example" || terms.Target != "/a" {
		t.Errorf("terms name %s %s", terms.Origin, terms.Target)
	}
	if o.Resource != "https://bank.example/transfer" {
		t.Errorf("shown: %s", o.Resource)
	}
}

// Attack 35: line breaks in what is echoed cannot reach a header: it is base64.
func TestNoHeaderInjection(t *testing.T) {
	t.Parallel()
	o := offer(t, `{"x402Version":2,"resource":{"url":"a\r\nX-Evil: 1"},"accepts":[`+R+`],"extensions":{"a\r\nb":{"info":{"c":"\r\n"}},"payment-identifier":{}}}`)
	for _, c := range authorize(t, grant(t, o)).Value {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", c) {
			t.Fatalf("the header holds %q", c)
		}
	}
}

// Attack 24 has no place here: version 1 and 2 challenges carry no instant.
func TestChallengesDoNotExpire(t *testing.T) {
	t.Parallel()
	if o := offer(t, v2(R)); !o.Expires.IsZero() || o.ChallengeID != "" || o.Realm != "" {
		t.Errorf("got %+v", o)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	_, err := rail(t).Offers(inHeader(v2(edit(t, R, "exact", "upto"), R)))
	var s *x402.SkippedError
	if !errors.As(err, &s) || s.Has("bad_amount") || err.Error() != "x402: offers skipped: accepts[0]: unknown_scheme (upto)" {
		t.Errorf("got %v", err)
	}
	_, err = rail(t).Offers(inHeader(edit(t, v2(R), ":2", ":3")))
	var c *x402.ChallengeError
	if !errors.As(err, &c) || errors.Is(err, payment.ErrNotMine) || err.Error() != "x402: challenge refused: unsupported_version: PAYMENT-REQUIRED has version 3" {
		t.Errorf("got %v", err)
	}
}
