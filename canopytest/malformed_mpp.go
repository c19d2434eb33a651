package canopytest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// MalformedPaymentChallenges is MalformedChallenges for sellers of MPP on Tempo:
// challenges that nobody may pay, each the seller's own with one defect.
func MalformedPaymentChallenges() []Fault {
	var out []Fault
	out = append(out, requestField("amount", quoted(
		"+10000", "-10000", "-0", "00", "010000", "0x2710", "10_000", "10 000", " 10000", "10000 ", "1e4", "10000.0", ".1", "", "NaN", "Infinity", "null",
		"ten", "１００００", "١٠٠٠٠", "10000\n", "10000\x00", "²", "115792089237316195423570985008687907853269984665640564039457584007913129639936",
		strings.Repeat("9", 400),
	)...)...)
	out = append(out, requestField("amount", "10000", "1e30", "-1", "null", "true", "[]", `["10000"]`, "{}", "")...)
	for _, key := range []string{"recipient", "currency"} {
		out = append(out, requestField(key, quoted(
			"0x0000000000000000000000000000000000000000", "0x742d35cc6634c0532925a3b844bc9e7595f8fe0", "0x742d35cc6634c0532925a3b844bc9e7595f8fe001",
			"742d35cc6634c0532925a3b844bc9e7595f8fe00", "0X742D35CC6634C0532925A3B844BC9E7595F8FE00", "0x742d35cc6634c0532925a3b844bc9e7595f8fe0g",
			"merchant", "", " 0x742d35cc6634c0532925a3b844bc9e7595f8fe00",
		)...)...)
		out = append(out, requestField(key, "null", "0", "[]", "{}", "")...)
	}
	out = append(out, requestField("currency", quoted("0x1111111111111111111111111111111111111111", "USD", "0x20c0000000000000000000000000000000000009")...)...)
	out = append(out, requestField("recipient", quoted("0x000000000000000000000000000000000000dEaD", "0x20c0000000000000000000000000000000000000")...)...)
	out = append(out, requestField("methodDetails", "[]", `"x"`, "5")...)
	out = append(out, requestField("methodDetails.chainId", "1", "0", "-42431", "8453", "42431.5", "1e99", `"42431x"`, "true", "[]", "{}")...)
	out = append(out, requestField("methodDetails.feePayer", `"true"`, "1", "[]")...)
	out = append(out, requestField("methodDetails.supportedModes", "[]", `["teleport"]`, `"pull"`, "{}", "[1]")...)
	out = append(out, requestField("methodDetails.memo", `"0x12"`, `"memo"`, "5", `"0x`+strings.Repeat("zz", 32)+`"`)...)
	split := func(amount string) string {
		return `{"amount":` + amount + `,"recipient":"0x742d35cc6634c0532925a3b844bc9e7595f8fe00"}`
	}
	out = append(out, requestField("methodDetails.splits",
		"[]", "{}", `"x"`, "[null]", "[5]", "["+split(`"0"`)+"]", "["+split(`"10000"`)+"]", "["+split(`"-1"`)+"]", "["+split("1")+"]",
		"["+split(`"115792089237316195423570985008687907853269984665640564039457584007913129639935"`)+","+split(`"2"`)+"]",
		`[{"amount":"1"}]`, `[{"recipient":"0x742d35cc6634c0532925a3b844bc9e7595f8fe00"}]`, `[{"amount":"1","recipient":"0x0000000000000000000000000000000000000000"}]`,
		"["+strings.TrimSuffix(strings.Repeat(split(`"1"`)+",", 11), ",")+"]",
		"["+strings.Replace(split(`"1"`), "}", `,"memo":"0x12"}`, 1)+"]",
	)...)
	out = append(out, malformedRequests()...)
	out = append(out, malformedParams()...)
	return out
}

func malformedRequests() []Fault {
	with := func(name string, change func(string) string) Fault { return rewriteRequest(name, change) }
	constant := func(name, text string) Fault { return with(name, func(string) string { return text }) }
	out := []Fault{
		constant("null", "null"), constant("a list", `["a"]`), constant("text", `"a"`), constant("a number", "5"),
		constant("an empty object", "{}"), constant("no JSON", "zzz"),
		with("cut short", func(s string) string { return s[:len(s)-3] }),
		with("followed by more", func(s string) string { return s + "x" }),
		with("two documents", func(s string) string { return s + s }),
		with("amount twice", func(s string) string { return `{"amount":"1",` + s[1:] }),
		with("amount in two cases", func(s string) string { return `{"Amount":"1",` + s[1:] }),
		with("recipient twice", func(s string) string {
			return `{"recipient":"0x742d35cc6634c0532925a3b844bc9e7595f8fe00",` + s[1:]
		}),
		with("chainId twice", func(s string) string { return strings.Replace(s, `"chainId":`, `"chainId":1,"chainId":`, 1) }),
		with("bytes that are not UTF-8", func(s string) string { return `{"x":"` + "\xff\xfe" + `",` + s[1:] }),
		with("10,000 nested lists", func(s string) string {
			return `{"x":` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + "," + s[1:]
		}),
		rewriteMPP("request not base64", false, func(c *mppChallenge) { c.request = "%%%" }),
		rewriteMPP("request of 20 KiB", false, func(c *mppChallenge) {
			data, _ := anyBase64(c.request)
			c.request = b64([]byte(`{"x":"` + strings.Repeat("x", 20<<10) + `",` + string(data[1:])))
		}),
	}
	return out
}

func malformedParams() []Fault {
	var out []Fault
	for _, name := range []string{"id", "realm", "method", "intent", "request"} {
		member := regexp.MustCompile(name + `="[^"]*"(, )?`)
		out = append(out,
			rewriteLines("no "+name, func(s string) string { return member.ReplaceAllString(s, "") }),
			rewriteLines("empty "+name, func(s string) string { return member.ReplaceAllString(s, name+`=""$1`) }),
			rewriteLines(name+" twice", func(s string) string { return s + ", " + name + `="b"` }),
			rewriteLines(name+" twice, in two cases", func(s string) string { return s + ", " + strings.ToUpper(name) + `="b"` }),
		)
	}
	for _, v := range []string{"not-a-timestamp", "2020-01-01T00:00:00Z", "never", "1767225600", "2026-13-01T00:00:00Z", "2026-03-01", "tomorrow"} {
		out = append(out, rewriteMPP("expires "+v, false, func(c *mppChallenge) { c.expires = v }))
	}
	for _, v := range []string{"md5=1B2M2Y8AsgTpgAmY7PhCfg==", "sha-256=", "sha-256=AAAA", "sha-256", "sha-512=AAAA", "sha-256=" + base64.StdEncoding.EncodeToString(make([]byte, 32))} {
		out = append(out, rewriteMPP("digest "+v, false, func(c *mppChallenge) { c.digest = v }))
	}
	for _, v := range []string{"Cookie", "Host", "X-Evil", "Payment Authorization", "Content-Length"} {
		out = append(out, rewriteMPP("header "+v, false, func(c *mppChallenge) { c.header = v }))
	}
	for _, v := range []string{"stripe", "evm", "TEMPO", "solana", "__proto__", "tempo "} {
		out = append(out, rewriteMPP("method "+v, false, func(c *mppChallenge) { c.method = v }))
	}
	for _, v := range []string{"session", "subscription", "authorize", "Charge", "charge "} {
		out = append(out, rewriteMPP("intent "+v, false, func(c *mppChallenge) { c.intent = v }))
	}
	out = append(out,
		rewriteLines("an unterminated quote", func(s string) string { return s + `, description="oops` }),
		rewriteLines("12,000 backslashes", func(s string) string { return s + `, description="` + strings.Repeat(`\`, 12_000) }),
		rewriteLines("another scheme", func(s string) string { return strings.ReplaceAll(s, "Payment ", "Pay ") }),
		rewriteLines("no parameters", func(string) string { return "Payment" }),
		rewriteLines("8,192 schemes", func(string) string { return strings.Repeat("Payment ", 8192) }),
		rewriteLines("16,000 parameters", func(string) string { return "Payment " + strings.Repeat(`a="",`, 12_000) }),
	)
	return out
}

// OddPaymentChallenges is OddChallenges for sellers of MPP: unusual, and paid by
// whoever reads the scheme as it is.
func OddPaymentChallenges() []Fault {
	out := []Fault{
		rewriteLines("names in capitals", func(s string) string {
			return regexp.MustCompile(`(id|realm|method|intent|request|expires)=`).ReplaceAllStringFunc(s, strings.ToUpper)
		}),
		rewriteLines("the scheme in small letters", func(s string) string { return strings.ReplaceAll(s, "Payment ", "payment ") }),
		rewriteLines("white space", func(s string) string {
			return strings.NewReplacer(`", `, "\" \t,  ", `="`, `  =  "`).Replace(s)
		}),
		rewriteLines("parameters of tomorrow", func(s string) string { return s + `, x-new="1", __proto__="2"` }),
		rewriteLines("a token", func(s string) string { return strings.ReplaceAll(s, `intent="charge"`, `intent=charge`) }),
		rewriteLines("behind Bearer", func(s string) string { return `Bearer realm="api, Payment id=\"x\"", error="invalid_token", ` + s }),
		rewriteLines("before Basic", func(s string) string { return s + `, Basic realm="x"` }),
		rewriteLines("before a scheme without parameters", func(s string) string { return s + `, Negotiate` }),
		rewriteLines("behind a bad one", func(s string) string { return `Payment id="a", id="b", realm="r", ` + s }),
		rewriteLines("behind another method", func(s string) string {
			return `Payment id="s", realm="r", method="stripe", intent="charge", request="e30", ` + s
		}),
		Editing("on a second line", OnChallenge, func(_ *Exchange, a *Answer) {
			if lines := a.Header["Www-Authenticate"]; len(lines) > 0 {
				a.Header["Www-Authenticate"] = append([]string{`Payment id="s", realm="r", method="lightning", intent="charge", request="e30"`}, lines...)
			}
		}),
		rewriteMPP("whole seconds", true, func(c *mppChallenge) { c.expires = seconds3339(c.expires) }),
		rewriteMPP("no description", true, func(c *mppChallenge) { c.description = "" }),
		rewriteMPP("a description that is not ASCII", true, func(c *mppChallenge) { c.description = "Café — 日本 \"5€\" \\ 🎉" }),
		rewriteMPP("4 KB of description", true, func(c *mppChallenge) { c.description = strings.Repeat("x", 4096) }),
		rewriteMPP("opaque", true, func(c *mppChallenge) { c.opaque = b64(jcs(map[string]any{"z": "1", "a": "<&>"})) }),
	}
	spell := func(name, format string, enc *base64.Encoding) Fault {
		return Editing("digest "+name, OnChallenge, func(x *Exchange, a *Answer) {
			sum := sha256.Sum256(x.Body)
			rewriteMPP("", true, func(c *mppChallenge) { c.digest = fmt.Sprintf(format, enc.EncodeToString(sum[:])) }).edit(x, a)
		})
	}
	return append(out,
		spell("padded", "sha-256=%s", base64.StdEncoding), spell("unpadded", "sha-256=%s", base64.RawStdEncoding),
		spell("between colons", "sha-256=:%s:", base64.StdEncoding))
}

func seconds3339(s string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return s
	}
	return t.Truncate(time.Second).Format(time.RFC3339)
}

// digestSum is the SHA-256 in a digest of any of the three spellings.
func digestSum(s string) string {
	rest, ok := strings.CutPrefix(s, "sha-256=")
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Trim(rest, ":"), "="))
	if !ok || err != nil {
		return ""
	}
	return hex.EncodeToString(b)
}
