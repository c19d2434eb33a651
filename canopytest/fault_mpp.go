package canopytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// Faults of sellers of MPP, beside those that are of every seller.

// SameChallenge answers a payment with the very challenge that it answers, and
// settles nothing.
func SameChallenge() Fault {
	return Instead("the same challenge again", OnPaid, func(x *Exchange) Answer {
		a := x.Challenge("")
		if x.answered != nil {
			x.state(&a, []mppChallenge{x.answered.challenge})
		}
		return a
	})
}

// SettleAndSameChallenge settles, and answers with the very challenge that the
// payment answers.
func SettleAndSameChallenge() Fault {
	f := SameChallenge()
	return Editing("settled, and "+f.name, OnPaid, func(x *Exchange, a *Answer) { *a = f.instead(x) })
}

// SayInternalError answers a payment with internal-payment-error, a 500 with a
// fresh challenge, and broadcasts nothing: the transaction stays in the Harvest.
func SayInternalError() Fault {
	return Instead("internal-payment-error", OnPaid, func(x *Exchange) Answer { return x.refuseMPP(broken("fetch failed")) })
}

// SettleAndSayInternalError settles, and answers as SayInternalError does.
func SettleAndSayInternalError() Fault {
	return Editing("settled, and internal-payment-error", OnPaid, func(x *Exchange, a *Answer) { *a = x.refuseMPP(broken("fetch failed")) })
}

// NoFreshChallenge leaves the challenges out of what a payment is answered with.
func NoFreshChallenge() Fault {
	return Editing("no fresh challenge", OnPaid, func(_ *Exchange, a *Answer) { a.Header.Del("Www-Authenticate") })
}

// Unauthorized states the terms in a 401.
func Unauthorized() Fault {
	return Editing("terms in a 401", OnAny, func(_ *Exchange, a *Answer) {
		if a.Status == http.StatusPaymentRequired {
			a.Status = http.StatusUnauthorized
		}
	})
}

// OtherChain names another chain, in challenges and when verifying. The seller
// settles where it always does.
func OtherChain(id payment.ChainID) Fault {
	return Fault{name: "chain " + string(id), terms: func(x *Exchange) {
		number, _ := id.Number()
		for i := range x.accepts {
			x.accepts[i].stated = number
		}
	}}
}

// SplitTo sends a part of the price to somebody else, in challenges and when
// verifying.
func SplitTo(to payment.Address, price payment.USD) Fault {
	return Fault{name: "a split of " + price.String(), terms: func(x *Exchange) {
		for i := range x.accepts {
			q := &x.accepts[i]
			if units, ok := q.asset.Units(price); ok && q.chain.tempo.on {
				q.splits = append(slices.Clone(q.splits), split{to: to, amount: units})
			}
		}
	}}
}

// FlipSponsor asks for sponsored transactions where the seller does not sponsor
// them, and the other way round, in challenges and when verifying.
func FlipSponsor() Fault {
	return Fault{name: "the other one pays the fee", terms: func(x *Exchange) {
		for i := range x.accepts {
			if q := &x.accepts[i]; q.chain.tempo.on {
				q.sponsored = !q.sponsored
			}
		}
	}}
}

// FixedMemo asks for that memo on the payment, as older servers do, and does
// not look for one that is bound to the challenge.
func FixedMemo(memo [32]byte) Fault {
	return Fault{name: "a fixed memo", terms: func(x *Exchange) {
		for i := range x.accepts {
			x.accepts[i].memo = &memo
		}
	}}
}

// ForgedPaymentReceipts is ForgedReceipts for sellers of MPP.
func ForgedPaymentReceipts() []Fault {
	set := func(name, key string, v any) Fault {
		return ForgeReceipt(name, func(r map[string]any) { r[key] = v })
	}
	raw := func(name string, change func(string) []string) Fault {
		return Editing("receipt "+name, OnPaid, func(_ *Exchange, a *Answer) {
			if v := a.Header.Get("Payment-Receipt"); v != "" {
				a.Header["Payment-Receipt"] = change(v)
			}
		})
	}
	out := []Fault{
		set("a foreign transaction", "reference", "0x"+fmt.Sprintf("%064x", 0xf0e1)),
		set("a foreign method", "method", "stripe"),
		set("the status failed", "status", "failed"),
		set("a status of true", "status", true),
		set("the status Success", "status", "Success"),
		set("an empty reference", "reference", ""),
		set("a reference that is no hash", "reference", "0x<script>"),
		set("a reference of numbers", "reference", 17),
		raw("that is not base64", func(string) []string { return []string{"%%%"} }),
		raw("that is empty", func(string) []string { return []string{""} }),
		raw("of an array", func(string) []string { return []string{b64([]byte("[1]"))} }),
		raw("of null", func(string) []string { return []string{b64([]byte("null"))} }),
		raw("cut short", func(v string) []string { return []string{v[:len(v)/2]} }),
		raw("sent twice, differing", func(v string) []string {
			return []string{v, b64([]byte(`{"method":"tempo","reference":"0x00","status":"failed"}`))}
		}),
		raw("with a key twice", func(v string) []string {
			b, _ := anyBase64(v)
			return []string{b64(append([]byte(`{"status":"failed",`), b[1:]...))}
		}),
		raw("of 64 KiB", func(v string) []string {
			b, _ := anyBase64(v)
			return []string{b64(append([]byte(`{"padding":"`+strings.Repeat("x", 64<<10)+`",`), b[1:]...))}
		}),
	}
	for _, key := range []string{"method", "reference", "status"} {
		out = append(out, ForgeReceipt("no "+key, func(r map[string]any) { delete(r, key) }))
	}
	return out
}

// rewriteMPP changes the seller's charges before they are sent; with seal they
// get ids that fit, and can be paid as far as the seller goes.
func rewriteMPP(name string, seal bool, change func(*mppChallenge)) Fault {
	return Editing(name, OnChallenge, func(x *Exchange, a *Answer) {
		if a.Header.Get("Www-Authenticate") == "" {
			return
		}
		all := x.challengesMPP()
		for i := range all {
			change(&all[i])
			if seal {
				all[i].id = all[i].seal()
			}
		}
		x.state(a, all)
	})
}

// rewriteLines changes the lines of WWW-Authenticate.
func rewriteLines(name string, change func(string) string) Fault {
	return Editing(name, OnChallenge, func(_ *Exchange, a *Answer) {
		lines := slices.Clone(a.Header["Www-Authenticate"])
		for i, line := range lines {
			lines[i] = change(line)
		}
		if len(lines) > 0 {
			a.Header["Www-Authenticate"] = lines
		}
	})
}

// rewriteRequest changes the JSON of the seller's requests.
func rewriteRequest(name string, change func(string) string) Fault {
	return rewriteMPP("request "+name, false, func(c *mppChallenge) {
		data, _ := anyBase64(c.request)
		c.request = b64([]byte(change(string(data))))
	})
}

// requestField are faults with raw JSON in place of a field of the request, or
// of its methodDetails; an empty raw takes it out.
func requestField(key string, raws ...string) []Fault {
	var out []Fault
	for _, raw := range raws {
		shown := raw
		if raw == "" {
			shown = "missing"
		}
		out = append(out, rewriteRequest(clipName(key+" "+shown), func(text string) string {
			var doc map[string]json.RawMessage
			if json.Unmarshal([]byte(text), &doc) != nil {
				return text
			}
			set := func(m map[string]json.RawMessage, key string) {
				delete(m, key)
				if raw != "" {
					m[key] = json.RawMessage(raw)
				}
			}
			if name, ok := strings.CutPrefix(key, "methodDetails."); ok {
				var details map[string]json.RawMessage
				json.Unmarshal(doc["methodDetails"], &details)
				set(details, name)
				doc["methodDetails"] = joinJSON(details)
			} else {
				set(doc, key)
			}
			return string(joinJSON(doc))
		}))
	}
	return out
}

func clipName(s string) string {
	if len(s) > 80 {
		return s[:80] + fmt.Sprintf("… (%d)", len(s))
	}
	return s
}

// joinJSON is an object of members that need not be JSON.
func joinJSON(m map[string]json.RawMessage) []byte {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = string(mustJSON(k)) + ":" + string(m[k])
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}
