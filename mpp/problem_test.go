package mpp

import (
	"strings"
	"testing"
)

func TestReadProblem(t *testing.T) {
	t.Parallel()
	const media = "application/problem+json"
	const full = `{"type":"https://paymentauth.org/problems/verification-failed","title":"Verification Failed","status":402,"detail":"memo is not\u202e bound\n to this challenge","hint":"h","challengeId":"c","details":{}}`
	p, ok := readProblem(media+"; charset=utf-8", []byte(full))
	want := problem{problemVerificationFailed, "Verification Failed", "memo is not bound to this challenge", "h", "c", 402}
	if !ok || p != want {
		t.Errorf("case 33, 46: readProblem = %+v, %v, want %+v", p, ok, want)
	}
	for _, tt := range []struct{ name, media, body, kind string }{
		{"another base", media, `{"type":"https://mpp.example/errors/invalid-challenge"}`, problemInvalidChallenge},
		{"an old server's", media, `{"type":"urn:payment:error:verification-failed"}`, problemVerificationFailed},
		{"an old server's, another case", media, `{"type":"urn:payment:error:VERIFICATION_FAILED"}`, problemVerificationFailed},
		{"without a base", media, `{"type":"payment-expired"}`, problemPaymentExpired},
		{"a session's", media, `{"type":"https://paymentauth.org/problems/session/channel-not-found"}`, "session/channel-not-found"},
		{"a session's, an old server's", media, `{"type":"urn:payment:error:session:channel-not-found"}`, "session/channel-not-found"},
		{"a session's alone", media, `{"type":"session/channel-not-found"}`, "session/channel-not-found"},
		{"as plain JSON", "application/json", `{"type":"x/internal-payment-error"}`, problemInternal},
		{"in upper case", "Application/Problem+JSON", `{"type":"internal-payment-error"}`, problemInternal},
		{"as HTML", "text/html", full, ""},
		{"no media", "", full, ""},
		{"no type", media, `{"title":"x"}`, ""},
		{"about:blank is a name", media, `{"type":"about:blank"}`, "blank"},
		{"a type of number", media, `{"type":7}`, ""},
		{"a type that ends in a slash", media, `{"type":"https://paymentauth.org/problems/"}`, ""},
		{"a type with a query", media, `{"type":"https://paymentauth.org/problems/x?y"}`, ""},
		{"a type in other letters", media, `{"type":"a/verıfication-failed"}`, ""},
		{"a long type", media, `{"type":"` + strings.Repeat("a", 65) + `"}`, ""},
		{"a key twice", media, `{"type":"a","type":"b"}`, ""},
		{"null", media, `null`, ""},
		{"no JSON", media, `<html>`, ""},
		{"empty", media, ``, ""},
		{"too large", media, `{"type":"a","detail":"` + strings.Repeat("x", 64<<10) + `"}`, ""},
		{"too deep", media, `{"type":"a","details":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, ""},
	} {
		p, ok := readProblem(tt.media, []byte(tt.body))
		if p.kind != tt.kind || ok != (tt.kind != "") {
			t.Errorf("%s: readProblem(%s) = %+v, %v, want %q", tt.name, tt.body, p, ok, tt.kind)
		}
	}
	for _, status := range []string{`"402"`, `99`, `600`, `4e2`, `402.5`, `-402`, `null`} {
		if p, _ := readProblem(media, []byte(`{"type":"a","status":`+status+`}`)); p.status != 0 {
			t.Errorf("status %s is %d", status, p.status)
		}
	}
	long, _ := readProblem(media, []byte(`{"type":"a","title":"`+strings.Repeat("t", 4000)+`","detail":"`+strings.Repeat("é", 4000)+`"}`))
	if len(long.title) != 80 || len(long.detail) != 256 {
		t.Errorf("title of %d bytes, detail of %d", len(long.title), len(long.detail))
	}
}
