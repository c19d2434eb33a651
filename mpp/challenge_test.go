package mpp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/internal/mppserver"
	"github.com/canopy-go/canopy/payment"
)

const (
	requestDoc = `{"amount":"10000","currency":"0x20c0000000000000000000000000000000000000","methodDetails":{"chainId":42431},"recipient":"0x742d35cc6634c0532925a3b844bc9e7595f8fe00"}`
	plainLine  = `Payment id="i", realm="r", method="tempo", intent="charge", request="{}"`
)

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// line is a WWW-Authenticate line with one challenge, its text replaced by
// pairs: old, new. A new text that begins with a comma goes at the end where
// old is empty.
func line(t testing.TB, pairs ...string) string {
	t.Helper()
	s := strings.Replace(plainLine, "{}", b64(requestDoc), 1)
	for i := 0; i < len(pairs); i += 2 {
		switch {
		case pairs[i] == "":
			s += pairs[i+1]
		case !strings.Contains(s, pairs[i]):
			t.Fatalf("%s is not in %s", pairs[i], s)
		default:
			s = strings.Replace(s, pairs[i], pairs[i+1], 1)
		}
	}
	return s
}

// outline is what was found, by id, and why others were skipped, in order.
func outline(found []challenge, bad []Skipped) string {
	var s []string
	for _, c := range found {
		s = append(s, c.id)
	}
	for _, b := range bad {
		s = append(s, b.Code)
	}
	return strings.Join(s, " ")
}

func TestReadChallenges(t *testing.T) {
	t.Parallel()
	good := line(t)
	id := func(id string) string { return line(t, `id="i"`, `id="`+id+`"`) }
	j := id("j")
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"none", nil, ""},
		{"another scheme", []string{`Bearer realm="x"`}, ""},
		{"the word in quotes", []string{`Bearer realm="Payment id=\"i\", Payment ", error="Payment"`}, ""},
		{"a parameter called so", []string{`Bearer Payment="x"`}, ""},
		{"a scheme that begins so", []string{strings.Replace(good, "Payment", "Payments", 1)}, ""},
		{"one", []string{good}, "i"},
		{"scheme in lower case", []string{strings.Replace(good, "Payment", "pAYMENT", 1)}, "i"},
		{"case 12: the second line", []string{id("a"), j}, "a j"},
		{"case 12: behind another scheme's line", []string{`Bearer realm="x"`, `Basic dXNlcjpwYXNz`, j}, "j"},
		{"case 13: two on one line", []string{id("a") + ", " + j}, "a j"},
		{"two without a space", []string{id("a") + "," + j}, "a j"},
		{"behind Bearer on one line", []string{`Bearer realm="a, Payment", scope="b", ` + j}, "j"},
		{"behind a token68", []string{`Negotiate oYG2/+a==, ` + j}, "j"},
		{"behind padding", []string{`Negotiate oYG2=, ` + j}, "j"},
		{"behind a bare scheme", []string{`Negotiate, ` + j}, "j"},
		{"before Bearer", []string{j + `, Bearer realm="x"`}, "j"},
		{"between two", []string{`Basic realm="x", ` + j + `, Digest nonce="a", qop="auth,auth-int"`}, "j"},
		{"another's parameters are its own", []string{j + `, Bearer id="x", realm="y"`}, "j"},

		{"names in any case", []string{line(t, `id=`, `ID=`, `realm=`, `Realm=`, `request=`, `rEQUEST=`)}, "i"},
		{"blanks around = and ,", []string{line(t, `id="i", `, "id\t=  \"i\" \t , ,, ", `realm=`, `realm =`)}, "i"},
		{"two blanks, and blanks before commas", []string{strings.ReplaceAll(strings.Replace(good, " ", "  ", 1), ", ", " ,  ")}, "i"},
		{"another order", []string{`Payment request="e30", intent="charge", id="i", method="tempo", realm="r"`}, "i"},
		{"a comma after the scheme", []string{line(t, `Payment id`, `Payment , id`)}, "i"},
		{"tokens", []string{line(t, `"i"`, `i`, `"r"`, `r`, `"tempo"`, `tempo`, `"charge"`, `charge`)}, "i"},
		{"a request without quotes", []string{strings.ReplaceAll(good, `"`, "")}, "i"},
		{"an instant without quotes", []string{good + ", expires=2030-01-01T00:00:00Z"}, "i"},
		{"unknown parameters", []string{line(t, "", `, __proto__="x", constructor=y, x-y="z"`)}, "i"},
		{"a quoted pair", []string{line(t, `"i"`, `"\i"`)}, "i"},

		{"case 15: id twice", []string{line(t, "", `, id="b"`), j}, "j duplicate_parameter"},
		{"id twice in another case", []string{line(t, "", `, ID="i"`) + ", " + j}, "j duplicate_parameter"},
		{"an unknown one twice", []string{line(t, "", `, foo="b", Foo="c"`)}, "duplicate_parameter"},
		{"no id", []string{line(t, `id="i", `, ``) + ", " + j}, "j missing_parameter"},
		{"no realm", []string{line(t, `realm="r", `, ``), j}, "j missing_parameter"},
		{"no method", []string{line(t, `method="tempo", `, ``)}, "missing_parameter"},
		{"no intent", []string{line(t, `intent="charge", `, ``)}, "missing_parameter"},
		{"no request", []string{good[:strings.Index(good, ", request")]}, "missing_parameter"},
		{"no parameters", []string{"Payment", "Payment,Payment", j}, "j missing_parameter missing_parameter missing_parameter"},
		{"empty id", []string{line(t, `"i"`, `""`)}, "empty_parameter"},
		{"empty realm", []string{line(t, `"r"`, `""`)}, "empty_parameter"},
		{"empty expires", []string{line(t, "", `, expires=""`)}, "empty_parameter"},
		{"no value", []string{line(t, `"i"`, ``), j}, "j malformed"},
		{"no value at the end", []string{good + ", foo="}, "malformed"},
		{"a token68", []string{"Payment abcd==", "Payment abcd/+==, " + j}, "j missing_parameter malformed"},
		{"no commas", []string{strings.ReplaceAll(good, ", ", " ")}, "malformed"},
		{"quotes in the description", []string{line(t, "", `, description="say "hi" now", opaque="e30"`) + ", " + j}, "j malformed"},
		{"what is quoted in a bad element is text", []string{`Payment ! "a, ` + strings.ReplaceAll(j, `"`, ``) + ` \", b", Bearer x=y`, j}, "j malformed"},
		{"a quote in a token", []string{line(t, `"i"`, `i"x"`), j}, "j malformed"},
		{"a raw Latin-1 byte in a token", []string{line(t, `"r"`, "r\xe9")}, "malformed"},
		{"case 17: an open quote", []string{good + `, description="oops`, j}, "j unterminated"},
		{"an open quote behind a good one", []string{j + ", " + good + `, description="oops`}, "j unterminated"},
		{"what follows an open quote is text", []string{good + `, description="oops, ` + j}, "malformed"},
		{"an escaped closing quote", []string{good + `, description="oops\"`, j}, "j unterminated"},
		{"a backslash at the end", []string{good + `, description="oops\`, j}, "j unterminated"},

		{"method in upper case", []string{line(t, "tempo", "Tempo")}, "bad_method"},
		{"method with a digit first", []string{line(t, "tempo", "1tempo")}, "bad_method"},
		{"intent with a slash", []string{line(t, "charge", "ch/arge")}, "bad_intent"},
		{"an intent that nobody knows", []string{line(t, "charge", "x-2")}, "i"},

		{"case 4: expires is no instant", []string{line(t, "", `, expires="not-a-timestamp"`), j}, "j bad_expires"},
		{"expires is a number", []string{line(t, "", `, expires="1767225600"`)}, "bad_expires"},
		{"expires without a zone", []string{line(t, "", `, expires="2030-01-01T00:00:00"`)}, "bad_expires"},
		{"expires with a comma", []string{line(t, "", `, expires="2030-01-01T00:00:00,5Z"`)}, "bad_expires"},
		{"expires with an hour of one digit", []string{line(t, "", `, expires="2030-01-01T0:00:00Z"`), line(t, "", `, expires="2030-01-01T0:00:00.1Z"`)}, "bad_expires bad_expires"},
		{"expires with an offset of a day", []string{line(t, "", `, expires="2030-01-01T00:00:00+24:00"`)}, "bad_expires"},
		{"expires without seconds", []string{line(t, "", `, expires="2030-01-01T00:00Z"`)}, "bad_expires"},
		{"expires on a day that is none", []string{line(t, "", `, expires="2030-02-30T00:00:00Z"`)}, "bad_expires"},
		{"expires with an offset", []string{line(t, "", `, expires="2030-01-01T02:00:00.123+02:00"`)}, "i"},
		{"case 5: expires long ago is read", []string{line(t, "", `, expires="2020-01-01T00:00:00Z"`)}, "i"},

		{"case 10: header", []string{line(t, "", `, header="Payment-Authorization"`)}, "i"},
		{"header is the usual one", []string{line(t, "", `, header="authorization"`)}, "i"},
		{"header is the cookie", []string{line(t, "", `, header="Cookie"`), j}, "j bad_header"},
		{"header is the host", []string{line(t, "", `, header="Host"`)}, "bad_header"},
		{"header is another protocol's", []string{line(t, "", `, header="PAYMENT-SIGNATURE"`)}, "bad_header"},
		{"header is a prefix", []string{line(t, "", `, header="Payment-"`)}, "bad_header"},
		{"header with a colon", []string{line(t, "", `, header="Payment-A: b"`)}, "bad_header"},
		{"header in other letters", []string{line(t, "", `, header="Payment-Authorizati\u006fn\u0131"`)}, "bad_header"},

		{"attack 35: line break in the id", []string{line(t, `"i"`, `"i\u000d\u000aX: y"`), j}, "j control_character"},
		{"attack 35: raw line break in the realm", []string{line(t, `"r"`, "\"r\r\nX: y\""), j}, "j control_character"},
		{"attack 35: in the opaque", []string{line(t, "", ", opaque=\"e30\n\"")}, "control_character"},
		{"attack 35: in the description", []string{line(t, "", `, description="\u0000"`)}, "control_character"},
		{"attack 35: a quoted tab in the realm", []string{line(t, `"r"`, "\"r\\\ts\"")}, "control_character"},
		{"attack 35: DEL in the request", []string{line(t, `request="`, "request=\"\x7f")}, "control_character"},
		{"half a surrogate pair", []string{line(t, `"r"`, `"\ud83d"`), line(t, `"r"`, `"\ude00\ud83d"`), j}, "j half_character half_character"},

		{"case 34: request is null", []string{line(t, b64(requestDoc), "bnVsbA"), j}, "j wrong_type"},
		{"case 34: request is a list", []string{line(t, b64(requestDoc), "WyJhIl0")}, "wrong_type"},
		{"case 34: request is no JSON", []string{line(t, b64(requestDoc), "enp6")}, "bad_json"},
		{"request is no base64", []string{line(t, b64(requestDoc), "a$b")}, "bad_base64"},
		{"request is of one digit too many", []string{line(t, b64(requestDoc), "abcde")}, "bad_base64"},
		{"request is a string", []string{line(t, b64(requestDoc), b64(`"x"`))}, "wrong_type"},
		{"request has more behind it", []string{line(t, b64(requestDoc), b64(`{}{}`))}, "bad_json"},
		{"attack 21: a key twice", []string{line(t, b64(requestDoc), b64(`{"amount":"1","amount":"2"}`)), j}, "j duplicate_key"},
		{"attack 21: a key in two cases", []string{line(t, b64(requestDoc), b64(`{"amount":"1","Amount":"2"}`))}, "duplicate_key"},
		{"attack 21: deeper", []string{line(t, b64(requestDoc), b64(`{"a":[{"b":1,"\u0042":2}]}`))}, "duplicate_key"},
		{"attack 19: nested", []string{line(t, b64(requestDoc), b64(strings.Repeat(`{"a":`, 17)+"1"+strings.Repeat(`}`, 17)))}, "too_deep"},
		{"request is not UTF-8", []string{line(t, b64(requestDoc), b64("{\"a\":\"\xff\"}"))}, "bad_json"},
		{"request padded", []string{line(t, b64(requestDoc), base64.URLEncoding.EncodeToString([]byte(requestDoc+" ")))}, "i"},
		{"request in the standard alphabet", []string{line(t, b64(requestDoc), base64.StdEncoding.EncodeToString([]byte(`{"a":"ÿÿÿ>>>???~~~"}`)))}, "i"},
		{"attack 36: a large request", []string{line(t, b64(requestDoc), b64(`{"a":"`+strings.Repeat("x", 16<<10)+`"}`)), j}, "j too_large"},
		{"attack 36: a large description", []string{line(t, "", `, description="`+strings.Repeat("x", 17<<10)+`"`), j}, "j too_large"},
		{"attack 36: a large id", []string{line(t, `"i"`, `"`+strings.Repeat("x", 1025)+`"`), j}, "j too_large"},
		{"attack 36: a large realm", []string{line(t, `"r"`, `"`+strings.Repeat("x", 1025)+`"`), j}, "j too_large"},
		{"attack 36: a line cut in quotes", []string{good + ", " + line(t, "", `, foo="`+strings.Repeat("x", 64<<10)+`"`), j}, "i j unterminated"},
		{"attack 36: a line cut between parameters", []string{good + ", " + good + strings.Repeat(", ", 32<<10) + `id="i"`, j}, "i j too_large"},
		{"attack 36: another scheme's large line", []string{`Basic x="` + strings.Repeat("x", 64<<10) + `"`}, ""},
		{"attack 36: large lines", []string{good, strings.Repeat(" ", 128<<10), j, strings.Repeat(" ", 128<<10), j}, "i j"},

		{"digest", []string{line(t, "", `, digest="sha-256=AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI="`)}, "i"},
		{"digest without quotes", []string{line(t, "", `, digest=sha-256=:AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI=:`)}, "i"},
		{"digest of another algorithm", []string{line(t, "", `, digest="md5=AVq9f1zFei3ZS3WQ8ErYCA=="`), j}, "j unknown_digest"},
		{"digest of another length", []string{line(t, "", `, digest="sha-256=AVq9f1zFei3ZS3WQ8ErYCA=="`)}, "bad_digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found, bad := readChallenges(tt.lines)
			if got := outline(found, bad); got != tt.want {
				t.Errorf("readChallenges(%q) = %s, want %s (%v)", tt.lines, got, tt.want, bad)
			}
		})
	}
}

// TestChallengesAreCounted: the 33rd is not looked at, and those before it are.
func TestChallengesAreCounted(t *testing.T) {
	t.Parallel()
	all := make([]string, 40)
	for i := range all {
		all[i] = line(t, `id="i"`, fmt.Sprintf(`id="i%d"`, i))
	}
	for name, lines := range map[string][]string{"lines": all, "one line": {strings.Join(all, ", ")}} {
		found, bad := readChallenges(lines)
		if len(found) != 32 || len(bad) != 1 || bad[0].Code != "too_many" || bad[0].Index != 32 {
			t.Errorf("%s: %d challenges, skipped %v", name, len(found), bad)
		}
		for i, c := range found {
			if c.index != i || c.id != fmt.Sprintf("i%d", i) {
				t.Errorf("%s: challenge %d has index %d and id %s", name, i, c.index, c.id)
			}
		}
	}
	found, bad := readChallenges(append([]string{"Payment x", all[0]}, all[1:]...))
	if len(found) != 31 || found[0].index != 1 || bad[0].Index != 0 {
		t.Errorf("a bad one first: %d challenges from %d, skipped %v", len(found), found[0].index, bad)
	}
}

func TestParametersAreCounted(t *testing.T) {
	t.Parallel()
	with := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `, p%d="x"`, i)
		}
		return line(t, "", b.String())
	}
	found, bad := readChallenges([]string{with(27), with(28) + ", " + line(t, `"i"`, `"j"`)})
	if got := outline(found, bad); got != "i j too_many_parameters" {
		t.Errorf("%s", got)
	}
}

// TestEchoIsExact writes challenges as a seller does, and holds what comes back
// against what it issued.
func TestEchoIsExact(t *testing.T) {
	t.Parallel()
	secret := []byte("a secret of at least 32 bytes ....")
	for _, tt := range []struct {
		name    string
		c       mppserver.Challenge
		request any
	}{
		{"plain", mppserver.Challenge{Realm: "api.example.com"}, map[string]any{"amount": "1"}},
		{"case 21: markup", mppserver.Challenge{Realm: "r", Description: "a & b"}, map[string]any{"description": "Access <premium> & analytics", "b": 1, "a": 2}},
		{"case 18: other letters", mppserver.Challenge{Realm: "r", Description: "Café — 5€"}, map[string]any{}},
		{"a realm in other letters", mppserver.Challenge{Realm: "Café — 日本 😀 Ā"}, map[string]any{}},
		{"quotes and backslashes", mppserver.Challenge{Realm: `a "b", Payment \u0041 \\`, Description: `\"`}, map[string]any{}},
		{"all of them", mppserver.Challenge{Realm: "r", Expires: "2030-01-01T00:00:00.000Z", Digest: "sha-256=AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI=", Opaque: "eyJiIjoiMiIsImEiOiIxIn0", Header: "Payment-Authorization", Description: "x"}, map[string]any{"ключ": "ü", "😀": true, "ﬀ": nil}},
		{"an opaque that is no base64", mppserver.Challenge{Realm: "r", Opaque: "a b=!"}, map[string]any{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.c
			want.Method, want.Intent = "tempo", "charge"
			var err error
			if want.Request, err = mppserver.Encode(tt.request); err != nil {
				t.Fatal(err)
			}
			want = want.Sign(secret)
			found, bad := readChallenges([]string{`Basic realm="x", ` + want.Line() + ", " + want.Line()})
			if len(found) != 2 {
				t.Fatalf("readChallenges(%q): skipped %v", want.Line(), bad)
			}
			echo, why := found[1].echo()
			if why != (skip{}) {
				t.Fatal(why)
			}
			for _, p := range payloads {
				got, err := mppserver.ReadCredential(writeCredential(echo, p, source{}))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got.Challenge); diff != "" || !got.Challenge.Issued(secret) {
					t.Errorf("issued %v (-want +got):\n%s", got.Challenge.Issued(secret), diff)
				}
			}
			v, err := jsonscan.Parse(echo, jsonscan.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			again, err := readEcho(v)
			again.index = found[1].index
			if diff := cmp.Diff(found[1], again, cmp.AllowUnexported(challenge{}, jsonscan.Value{})); err != nil || diff != "" {
				t.Errorf("readEcho: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestEchoLeavesNothingOut: a challenge without optional members has none in
// its echo, which would not be the one that was issued.
func TestEchoLeavesNothingOut(t *testing.T) {
	t.Parallel()
	found, _ := readChallenges([]string{line(t, "", `, header="AUTHORIZATION", description="", opaque=""`)})
	echo, why := found[0].echo()
	if why != (skip{}) {
		t.Fatal(why)
	}
	var got map[string]string
	if err := json.Unmarshal(echo, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"id": "i", "realm": "r", "method": "tempo", "intent": "charge", "request": b64(requestDoc)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("echo (-want +got):\n%s", diff)
	}
	if f := found[0].field(); f != "Authorization" {
		t.Errorf("field = %s", f)
	}
}

func TestEchoIsBounded(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{
		"long":              `, opaque="` + strings.Repeat("a", 8<<10) + `", description="` + strings.Repeat("b", 8<<10) + `"`,
		"long when escaped": `, description="` + strings.Repeat(`\"`, 8<<10) + `"`,
	} {
		found, bad := readChallenges([]string{line(t, "", more)})
		if len(found) != 1 {
			t.Fatalf("%s: %v", name, bad)
		}
		if echo, why := found[0].echo(); why.code != "echo_too_large" || echo != nil {
			t.Errorf("%s: %d bytes, %v", name, len(echo), why)
		}
	}
	if maxEcho >= payment.MaxEcho {
		t.Error("nothing is left for the rail")
	}
}

func TestReadEchoRefuses(t *testing.T) {
	t.Parallel()
	found, _ := readChallenges([]string{line(t)})
	echo, _ := found[0].echo()
	for name, pair := range map[string][2]string{
		"a number":          {`"id":"i"`, `"id":1`},
		"no id":             {`"id":"i",`, ``},
		"another member":    {`"id":"i"`, `"id":"i","more":"x"`},
		"another case":      {`"id":"i"`, `"ID":"i"`},
		"an empty realm":    {`"realm":"r"`, `"realm":""`},
		"a line break":      {`"realm":"r"`, `"realm":"r\n"`},
		"another header":    {`"id":"i"`, `"id":"i","header":"Host"`},
		"no instant":        {`"id":"i"`, `"id":"i","expires":"soon"`},
		"a request of null": {b64(requestDoc), "bnVsbA"},
	} {
		doc := strings.Replace(string(echo), pair[0], pair[1], 1)
		v, err := jsonscan.Parse([]byte(doc), jsonscan.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := readEcho(v); err == nil || doc == string(echo) {
			t.Errorf("%s: readEcho(%s) = %+v", name, doc, c)
		}
	}
}
