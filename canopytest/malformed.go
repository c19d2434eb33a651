package canopytest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// doc is the JSON of a challenge and the names of its version.
type doc struct {
	version Version
	text    string
	entry   string // the first entry of accepts, as it stands in text
}

// rewrite changes the JSON of the seller's challenge.
func rewrite(name string, change func(doc) string) Fault {
	return Editing(name, OnChallenge, func(x *Exchange, a *Answer) {
		q := x.exact()
		if a.Status != http.StatusPaymentRequired || q == nil {
			return
		}
		if x.seller.version == V1 {
			a.Body = []byte(change(doc{V1, string(a.Body), string(q.v1(x))}))
			return
		}
		text, err := base64.StdEncoding.DecodeString(a.Header.Get("Payment-Required"))
		if err != nil {
			return
		}
		edited := change(doc{V2, string(text), string(q.v2())})
		a.Header.Set("Payment-Required", base64.StdEncoding.EncodeToString([]byte(edited)))
	})
}

// set returns the document with the value of key, in the first entry, replaced
// by raw JSON; an empty raw takes the key out.
func (d doc) set(key, raw string) string {
	if key == "amount" && d.version == V1 {
		key = "maxAmountRequired"
	}
	member := regexp.MustCompile(`"` + key + `":("[^"]*"|[0-9]+|\{[^{}]*\})`)
	with := fmt.Sprintf("%q:%s", key, raw)
	if raw == "" {
		// Any other name will do: the key is absent.
		with = fmt.Sprintf("%q:0", "x-"+key)
	}
	entry := member.ReplaceAllLiteralString(d.entry, with)
	return strings.Replace(d.text, d.entry, entry, 1)
}

// accepts returns the document with the list of terms replaced by raw JSON.
func (d doc) accepts(raw string) string {
	return strings.Replace(d.text, `"accepts":[`+d.entry+`]`, `"accepts":`+raw, 1)
}

// field returns the fault of a field that has raw in place of its value.
func malformedField(key string, raws ...string) []Fault {
	var out []Fault
	for _, raw := range raws {
		shown := raw
		if raw == "" {
			shown = "missing"
		}
		out = append(out, rewrite(key+" "+shown, func(d doc) string { return d.set(key, raw) }))
	}
	return out
}

func quoted(texts ...string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = string(mustJSON(s))
	}
	return out
}

// MalformedChallenges is a corpus of challenges that nobody may pay: each is
// the seller's own with one defect, in the amount, the payee, the token, the
// network, the scheme, the domain, the validity or the document. Play each with
// Always, on a route with one set of terms that would be paid, and expect no
// signature.
func MalformedChallenges() []Fault {
	var out []Fault
	out = append(out, malformedField("amount", quoted(
		"+10000", "-10000", "-0", "-1", "0", "00", "010000", "0x2710", "10_000", "10,000", "10 000", " 10000", "10000 ", "1e4", "1E4",
		"10000.0", "10000.", ".1", "", " ", "NaN", "Infinity", "null", "true", "ten", "１００００", "١٠٠٠٠", "10000\n", "10000\x00", "0b1", "0o7", "²", "½",
		"--1", "+", "-", "10000n", "$0.01", "115792089237316195423570985008687907853269984665640564039457584007913129639936",
		"1"+strings.Repeat("0", 78), strings.Repeat("9", 400),
	)...)...)
	out = append(out, malformedField("amount", "10000", "1e30", "-1", "1e-30", "10000.0", "null", "true", "[]", `["10000"]`, "{}", "")...)
	out = append(out, malformedField("payTo", quoted(
		"0x0000000000000000000000000000000000000000", "0x000000000000000000000000000000000000dEaD", "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045",
		"0x209693Bc6afc0C5328bA36FaF03C514EF312287", "0x209693Bc6afc0C5328bA36FaF03C514EF312287C0", "209693Bc6afc0C5328bA36FaF03C514EF312287C",
		"0X209693BC6AFC0C5328BA36FAF03C514EF312287C", "0x209693Bc6afc0C5328bA36FaF03C514EF312287G", "merchant", "vitalik.eth", "",
		" 0x209693bc6afc0c5328ba36faf03c514ef312287c", "0x209693bc6afc0c5328ba36faf03c514ef312287c\n",
	)...)...)
	out = append(out, malformedField("payTo", "null", "0", "[]", "{}", "")...)
	out = append(out, malformedField("asset", quoted(
		"0x0000000000000000000000000000000000000000", "0x1111111111111111111111111111111111111111", "USDC", "USD", "", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA0291",
	)...)...)
	out = append(out, malformedField("asset", "null", "1", "")...)
	out = append(out, malformedField("network", quoted(
		"eip155:0", "eip155:08453", "eip155:-1", "eip155:1e3", "eip155:", "eip155:8453 ", "eip155:99999999999999999999", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
		"solana", "cosmos:hub", "unheard-of", "", "\u202eesab",
	)...)...)
	out = append(out, malformedField("network", "null", "8453", "")...)
	out = append(out, malformedField("scheme", quoted("EXACT", "upto", "batch-settlement", "auth-capture", "cloudflare:402", "exact ", "subscription", "")...)...)
	out = append(out, malformedField("scheme", "null", "1", "")...)
	out = append(out, malformedField("maxTimeoutSeconds", "0", "-1", "5", `"60"`, "true", "[]")...)
	out = append(out, malformedField("extra",
		`{"name":"Unknown Token","version":"1"}`, `{"name":"USD Coin","version":"1"}`, `{"name":"Permit2","version":"2"}`, `{"name":5,"version":"2"}`,
		`{"name":"USD Coin","version":"2","assetTransferMethod":"permit2"}`, `{"name":"USD Coin","version":"2","assetTransferMethod":"erc7710"}`,
		`{"name":"USD Coin","version":"2","assetTransferMethod":"telepathy"}`, `{"name":"USD Coin","version":"2","paymentFlow":"later"}`,
		`{"name":"USD Coin","version":"2","paymentFlow":"escrow"}`,
	)...)
	return append(out, malformedDocuments()...)
}

func malformedDocuments() []Fault {
	out := []Fault{
		rewrite("accepts null", func(d doc) string { return d.accepts("null") }),
		rewrite("accepts empty", func(d doc) string { return d.accepts("[]") }),
		rewrite("accepts object", func(d doc) string { return d.accepts("{}") }),
		rewrite("accepts text", func(d doc) string { return d.accepts(`"exact"`) }),
		rewrite("accepts of null", func(d doc) string { return d.accepts("[null,5,[],\"x\",{}]") }),
		rewrite("accepts missing", func(d doc) string { return strings.Replace(d.text, `"accepts"`, `"offers"`, 1) }),
		rewrite("amount twice", func(d doc) string { return d.both("amount", `"amount":"1",`) }),
		rewrite("amount in two cases", func(d doc) string { return d.both("amount", `"AMOUNT":"1","MAXAMOUNTREQUIRED":"1",`) }),
		rewrite("payTo twice", func(d doc) string {
			return d.both("payTo", `"payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C",`)
		}),
		rewrite("payTo in two cases", func(d doc) string {
			return d.both("payTo", `"PAYTO":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C",`)
		}),
		rewrite("accepts twice", func(d doc) string { return `{"accepts":[],` + d.text[1:] }),
		rewrite("cut short", func(d doc) string { return d.text[:len(d.text)-20] }),
		rewrite("followed by more", func(d doc) string { return d.text + "x" }),
		rewrite("two documents", func(d doc) string { return d.text + d.text }),
		rewrite("a list", func(d doc) string { return "[" + d.text + "]" }),
		rewrite("text", func(d doc) string { return string(mustJSON(d.text)) }),
		rewrite("null", func(doc) string { return "null" }),
		rewrite("a number", func(doc) string { return "402" }),
		rewrite("an empty object", func(doc) string { return "{}" }),
		rewrite("nothing", func(doc) string { return "" }),
		rewrite("single quotes", func(d doc) string { return strings.ReplaceAll(d.text, `"`, "'") }),
		rewrite("a trailing comma", func(d doc) string { return strings.TrimSuffix(d.text, "}") + ",}" }),
		rewrite("a comment", func(d doc) string { return "/* pay */" + d.text }),
		rewrite("a control character", func(d doc) string { return strings.Replace(d.text, "exact", "exa\x00ct", 1) }),
		rewrite("bytes that are not UTF-8", func(d doc) string { return strings.Replace(d.text, "exact", "exact\xff\xfe", 1) }),
		rewrite("half a surrogate", func(d doc) string { return strings.Replace(d.text, "exact", `exact\ud800`, 1) }),
		rewrite("10,000 nested lists", func(d doc) string {
			return d.set("extra", strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000))
		}),
		rewrite("10,000 entries", func(d doc) string {
			return d.accepts("[" + strings.Repeat(`{"scheme":"none"},`, 10_000) + "{}]")
		}),
	}
	for _, v := range []string{"0", "3", "-2", "2.5", `"2"`, "[]", "true", "1e400"} {
		out = append(out, rewrite("version "+v, func(d doc) string {
			return regexp.MustCompile(`"x402Version":\d`).ReplaceAllLiteralString(d.text, `"x402Version":`+v)
		}))
	}
	for _, e := range []struct {
		name   string
		change func(string) string
	}{
		{"not base64", func(string) string { return "!!!!" }},
		{"base64 of base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
		{"hex", func(s string) string { return fmt.Sprintf("%x", s) }},
		{"two values in one", func(s string) string { return s + ", " + s }},
		{"base64 cut short", func(s string) string { return s[:len(s)/2] }},
	} {
		out = append(out, Editing("header "+e.name, OnChallenge, func(x *Exchange, a *Answer) {
			if h := a.Header.Get("Payment-Required"); h != "" {
				a.Header.Set("Payment-Required", e.change(h))
			} else if a.Status == http.StatusPaymentRequired {
				a.Body = []byte(e.change(string(a.Body)))
			}
		}))
	}
	return out
}

// both puts more members before key in the first entry.
func (d doc) both(key, members string) string {
	if key == "amount" && d.version == V1 {
		key, members = "maxAmountRequired", strings.Replace(members, `"amount"`, `"maxAmountRequired"`, 1)
	}
	entry := strings.Replace(d.entry, `"`+key+`":`, members+`"`+key+`":`, 1)
	return strings.Replace(d.text, d.entry, entry, 1)
}

// OddChallenges is a corpus of challenges that are unusual and can be paid: the
// seller's own, spelled as some servers spell them. Play each with Always, and
// expect a purchase.
func OddChallenges() []Fault {
	header := func(name string, change func(*Answer, string)) Fault {
		return Editing(name, OnChallenge, func(_ *Exchange, a *Answer) {
			if h := a.Header.Get("Payment-Required"); h != "" && a.Status == http.StatusPaymentRequired {
				change(a, h)
			}
		})
	}
	plain := func(h string) []byte { b, _ := base64.StdEncoding.DecodeString(h); return b }
	return []Fault{
		header("header unpadded", func(a *Answer, h string) { a.Header.Set("Payment-Required", strings.TrimRight(h, "=")) }),
		header("header for URLs", func(a *Answer, h string) {
			a.Header.Set("Payment-Required", base64.URLEncoding.EncodeToString(plain(h)))
		}),
		header("header of plain JSON", func(a *Answer, h string) { a.Header.Set("Payment-Required", string(plain(h))) }),
		header("terms in the body only", func(a *Answer, h string) {
			a.Header.Del("Payment-Required")
			a.Body = plain(h)
		}),
		rewrite("error null", func(d doc) string {
			return regexp.MustCompile(`"error":"[^"]*"`).ReplaceAllLiteralString(d.text, `"error":null`)
		}),
		rewrite("keys of tomorrow", func(d doc) string { return `{"x-new":{"a":[1,2]},` + d.text[1:] }),
		rewrite("a bad entry first", func(d doc) string {
			return d.accepts(`[{"scheme":"exact","network":"x","amount":5},null,` + d.entry + `]`)
		}),
		rewrite("an unknown scheme first", func(d doc) string {
			return d.accepts("[" + strings.Replace(d.entry, `"exact"`, `"teleport"`, 1) + "," + d.entry + "]")
		}),
		rewrite("a number above 2^53 in extra", func(d doc) string {
			return strings.Replace(d.text, `"extra":{`, `"extra":{"serial":1152921504606846977,`, 1)
		}),
		rewrite("a name that is not ASCII", func(d doc) string {
			return strings.Replace(d.text, `"extra":{`, `"extra":{"note":"USD₮0 — caffè ☕",`, 1)
		}),
		rewrite("white space", func(d doc) string { return "\n\t " + strings.ReplaceAll(d.text, `","`, "\",\n  \"") + "\r\n" }),
		rewrite("an escaped key", func(d doc) string { return strings.Replace(d.text, `"payTo"`, `"pay\u0054o"`, 1) }),
	}
}
