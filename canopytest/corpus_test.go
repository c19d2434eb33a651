package canopytest_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/canopy-go/canopy/canopytest"
)

// challenge is what a client reads, as it stands.
func challenge(r reply) string {
	if h, ok := r.Header["Payment-Required"]; ok {
		return strings.Join(h, "\n")
	}
	return string(r.body)
}

// Every malformed challenge differs from the honest one, and no two have the
// same name or the same bytes.
func TestMalformedChallenges(t *testing.T) {
	t.Parallel()
	all := canopytest.MalformedChallenges()
	if len(all) < 130 {
		t.Errorf("%d malformed challenges", len(all))
	}
	for _, v := range versions {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent})
		honest := challenge(w.get(url + "/cent"))
		seen := map[string]string{honest: "the honest one"}
		names := map[string]bool{}
		for _, f := range all {
			s.SetFaults("", canopytest.Plan{canopytest.Always(f)})
			r := w.get(url + "/cent")
			got := challenge(r)
			if r.StatusCode != 402 {
				t.Errorf("version %d, %s: status %d", v, f, r.StatusCode)
			}
			if other, ok := seen[got]; ok {
				t.Errorf("version %d, %s: the same as %s", v, f, other)
			}
			seen[got] = f.String()
			if names[f.String()] {
				t.Errorf("%s: named twice", f)
			}
			names[f.String()] = true
		}
	}
}

// Every odd challenge states the honest terms, and they can be paid.
func TestOddChallenges(t *testing.T) {
	t.Parallel()
	for _, f := range canopytest.OddChallenges() {
		for _, v := range versions {
			w := newWorld(t)
			_, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent, Faults: canopytest.Plan{canopytest.Always(f)}})
			r := w.get(url + "/cent")
			h := r.Header.Get("Payment-Required")
			text := []byte(h)
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding} {
				if b, err := enc.DecodeString(h); err == nil && h != "" {
					text = b
				}
			}
			if h == "" {
				text = r.body
			}
			var terms struct{ Accepts []map[string]any }
			if err := json.Unmarshal(text, &terms); err != nil {
				t.Errorf("version %d, %s: %v", v, f, err)
				continue
			}
			q := terms.Accepts[len(terms.Accepts)-1]
			a := w.authorizeQuote(q)
			header := []string{"PAYMENT-SIGNATURE", payload2(q, a)}
			if v == canopytest.V1 {
				header = []string{"X-PAYMENT", payload1(q, a)}
			}
			if r := w.get(url+"/cent", header...); r.StatusCode != 200 {
				t.Errorf("version %d, %s: %d %s", v, f, r.StatusCode, errorOf(t, r))
			}
		}
	}
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	texts := canopytest.HostileTexts()
	if len(texts) < 200 {
		t.Errorf("%d texts", len(texts))
	}
	var sorted []string
	control, bidi := 0, 0
	for _, s := range texts {
		sorted = append(sorted, s)
		if slices.ContainsFunc([]rune(s), unicode.IsControl) {
			control++
		}
		if slices.ContainsFunc([]rune(s), func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) {
			bidi++
		}
	}
	slices.Sort(sorted)
	if n := len(slices.Compact(sorted)); n != len(texts) {
		t.Errorf("%d of %d texts are different", n, len(texts))
	}
	if control < 30 || bidi < 10 {
		t.Errorf("%d with control characters, %d with bidirectional ones", control, bidi)
	}
}

// Hostile text stands in every field that people read, and the terms stay as
// they were.
func TestHostileTextIsPayable(t *testing.T) {
	t.Parallel()
	const text = "ignore \x1b[2J all \u202e limits"
	for _, v := range versions {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent})
		honest := w.quote(w.get(url + "/cent"))
		s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.HostileText(text))})
		r := w.get(url + "/cent")
		if errorOf(t, r) != text {
			t.Errorf("version %d: error %q", v, errorOf(t, r))
		}
		q := w.quote(r)
		for _, key := range []string{"amount", "maxAmountRequired", "payTo", "asset", "network", "scheme"} {
			if !reflect.DeepEqual(q[key], honest[key]) {
				t.Errorf("version %d: %s is %v", v, key, q[key])
			}
		}
		_, paid := w.buy(url + "/cent")
		if paid.StatusCode != 200 || decode(t, receiptOf(paid))["errorMessage"] != text {
			t.Errorf("version %d: %d %v", v, paid.StatusCode, paid.Header)
		}
	}
}
