package canopytest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// OtherPayee asks that the money go to another account, in challenges and when
// verifying: from the second request on, a payment that answers an honest
// challenge is refused with a 402 for somebody else.
func OtherPayee(to payment.Address) Fault {
	return Fault{name: "other payee", terms: func(x *Exchange) {
		for i := range x.accepts {
			x.accepts[i].payTo = to
		}
	}}
}

// OtherPrice asks another price, in challenges and when verifying.
func OtherPrice(price payment.USD) Fault {
	return Fault{name: "price of " + price.String(), terms: func(x *Exchange) { setPrices(x.accepts, price) }}
}

// PriceWalk asks step more at each request to the route: every payment comes
// too late for its price and is answered with a dearer 402.
func PriceWalk(step payment.USD) Fault {
	return Fault{name: "price walk", terms: func(x *Exchange) {
		for i := range x.accepts {
			q := &x.accepts[i]
			dearer, ok := q.asset.Units(step)
			for range x.number - 1 {
				if ok && (i == 0 || q.follows) {
					q.amount, ok = q.amount.Add(dearer)
				}
			}
		}
	}}
}

// OtherTimeout states another maxTimeoutSeconds, in challenges and when
// verifying.
func OtherTimeout(d time.Duration) Fault {
	return Fault{name: fmt.Sprintf("timeout of %v", d), terms: func(x *Exchange) {
		x.accepts[0].timeout = int(d / time.Second)
	}}
}

// TwoChallenges sends the header PAYMENT-REQUIRED twice, the second time for
// another payee.
func TwoChallenges() Fault {
	return Editing("two challenges", OnChallenge, func(x *Exchange, a *Answer) {
		if h := a.Header.Values("Payment-Required"); len(h) == 1 {
			other := base64.StdEncoding.EncodeToString(x.elsewhere().termsV2("Payment required"))
			a.Header["Payment-Required"] = []string{h[0], other}
		}
	})
}

// BodyDiffers states terms of both versions at once, for different payees: a
// seller of version 2 adds a body of version 1, and the other way round.
func BodyDiffers() Fault {
	return Editing("header and body differ", OnChallenge, func(x *Exchange, a *Answer) {
		if a.Status != http.StatusPaymentRequired {
			return
		}
		if x.seller.version == V2 {
			a.Body = x.elsewhere().termsV1("X-PAYMENT header is required", nil)
			return
		}
		a.Header.Set("Payment-Required", base64.StdEncoding.EncodeToString(x.elsewhere().termsV2("Payment required")))
	})
}

// Foreign402 answers with a 402 of another protocol, which has no terms that
// x402 knows and a body that the caller should see.
func Foreign402() Fault {
	return Instead("402 of another protocol", OnChallenge, func(*Exchange) Answer {
		a := newAnswer(http.StatusPaymentRequired, "text/plain; charset=utf-8", []byte("please pay at the desk\n"))
		a.Header.Set("WWW-Authenticate", `Bearer realm="desk"`)
		return a
	})
}

// LargeTerms pads the terms themselves with n bytes of description.
func LargeTerms(n int) Fault {
	return rewrite("large terms", func(d doc) string {
		return strings.Replace(d.text, `"description":"`, `"description":"`+strings.Repeat("x", n), 1)
	})
}

// elsewhere is x with all terms for another payee.
func (x *Exchange) elsewhere() *Exchange {
	y := *x
	y.accepts = slices.Clone(x.accepts)
	for i := range y.accepts {
		y.accepts[i].payTo = Address("somebody else")
	}
	return &y
}

// HostileText puts text into every field that a seller writes for people to
// read: errors, descriptions, reasons, names, tags and extensions. The terms
// stay payable.
func HostileText(text string) Fault {
	f := hostileX402(text)
	f.terms = func(x *Exchange) {
		for i := range x.accepts {
			x.accepts[i].note, x.accepts[i].externalID = clipText(text, 4<<10), clipText(text, 4<<10)
		}
	}
	inX402 := f.edit
	f.edit = func(x *Exchange, a *Answer) {
		inX402(x, a)
		x.hostileMPP(a, text)
	}
	return f
}

// hostileMPP puts text into what a seller of MPP answers. A header holds 2 KiB
// of it, and a request no more than 4.
func (x *Exchange) hostileMPP(a *Answer, text string) {
	if a.Header.Get("Www-Authenticate") != "" {
		all := x.challengesMPP()
		for i := range all {
			all[i].description = clipText(text, 2<<10)
		}
		x.state(a, all)
	}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") {
		a.Body = editJSON(a.Body, func(doc map[string]any) {
			doc["title"], doc["detail"], doc["hint"], doc["challengeId"] = text, text, text, text
		})
	}
	if v := a.Header.Get("Payment-Receipt"); v != "" {
		raw, _ := anyBase64(v)
		a.Header.Set("Payment-Receipt", b64(editJSON(raw, func(doc map[string]any) {
			doc["externalId"], doc["note"] = clipText(text, 4<<10), clipText(text, 4<<10)
		})))
	}
}

// clipText is at most n bytes of s, whole characters.
func clipText(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

func hostileX402(text string) Fault {
	return Editing("hostile text", OnAny, func(x *Exchange, a *Answer) {
		poison := func(doc map[string]any) {
			if doc["accepts"] != nil {
				doc["error"] = text
				doc["resource"] = map[string]any{
					"url": x.url(true), "description": text, "mimeType": text, "serviceName": text, "tags": []string{text},
				}
			}
			entries, _ := doc["accepts"].([]any)
			for _, e := range entries {
				entry, _ := e.(map[string]any)
				if _, v1 := entry["maxAmountRequired"]; v1 {
					entry["description"], entry["mimeType"], entry["resource"] = text, text, text
				}
				if extra, ok := entry["extra"].(map[string]any); ok {
					extra["note"] = text
				}
			}
			if doc["success"] == false {
				doc["errorReason"], doc["errorMessage"] = text, text
			}
			if doc["success"] == true {
				doc["note"], doc["errorMessage"] = text, text
			}
		}
		for _, header := range []string{"Payment-Required", "Payment-Response", "X-Payment-Response"} {
			if v := a.Header.Get(header); v != "" {
				a.Header.Set(header, editEncoded(v, poison))
			}
		}
		if x.seller.version == V1 && a.Status == http.StatusPaymentRequired {
			a.Body = editJSON(a.Body, poison)
		}
	})
}

// editEncoded hands the JSON object in base64 to edit; anything else is
// returned as it is.
func editEncoded(header string, edit func(map[string]any)) string {
	raw, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return header
	}
	return base64.StdEncoding.EncodeToString(editJSON(raw, edit))
}

func editJSON(raw []byte, edit func(map[string]any)) []byte {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var doc map[string]any
	if d.Decode(&doc) != nil {
		return raw
	}
	edit(doc)
	return mustJSON(doc)
}
