package canopy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Attacks are tested where they would succeed: docs/attacks.md says which test
// is of which row, and TestAttacksAreMapped holds it to that. In this package
// rows 1 to 5, 8, 12, 19, 21 to 26, 29, 33, 35, 39, 42 to 45, 50 and 98 are
// tested in this file; the others by the file of what they attack.

// Rows 1-8, 12, 19, 21: a challenge with one defect is never paid. Every text of
// the corpus in both versions: no signature, nothing held, no panic.
func TestAttack01_MalformedChallenges(t *testing.T) {
	for _, v := range []canopytest.Version{canopytest.V2, canopytest.V1} {
		t.Run(fmt.Sprint("version ", v), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /goods", Price: payment.Cent}}})
				for _, fault := range canopytest.MalformedChallenges() {
					s.SetFaults("", canopytest.Plan{canopytest.Always(fault)})
					g := w.get(url + "/goods")
					var denied *canopy.DeniedError
					if !errors.As(g.err, &denied) && (g.err != nil || g.StatusCode != 402 || g.cost) {
						t.Errorf("%s: %+v", fault, g)
					}
				}
				w.signed(0)
				w.handed(s, 0)
				w.counted(0)
				s.SetFaults("", nil)
				w.bought(w.get(url + "/goods"))
			})
		})
	}
}

// Row 9: the payee of a preview is not the payee of the payment: each is judged
// as it stands.
func TestAttack09_PayeeIsJudgedWhenItIsPaid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		honest := canopytest.Address("seller")
		w := newWorld(t, setup{policy: "[policy.default]\ncaps=[\"$1 / 24h\"]\nallow=[\"host:127.0.0.1 address:" + honest.String() + "\"]\n"})
		s, url := w.sells(dime)
		if c, err := w.client.CheckURL(w.context(), url); err != nil || c.Status != canopy.Allowed {
			t.Fatalf("check %+v, %v", c, err)
		}
		s.SetPayTo("GET /goods/", canopytest.Address("thief"))
		w.denied(w.get(url), "not_allowed")
		w.signed(0)
		s.SetPayTo("GET /goods/", honest)
		w.bought(w.get(url))
	})
}

// Rows 21 and 22: what is said twice and differently is refused.
func TestAttack21_ContradictingChallenges(t *testing.T) {
	for _, tc := range []struct {
		v     canopytest.Version
		fault canopytest.Fault
	}{{canopytest.V2, canopytest.TwoChallenges()}, {canopytest.V2, canopytest.BodyDiffers()}, {canopytest.V1, canopytest.BodyDiffers()}} {
		t.Run(fmt.Sprint(tc.fault, tc.v), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Version: tc.v, Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}}, Faults: canopytest.Plan{canopytest.Always(tc.fault)}})
				w.denied(w.get(url+"/goods"), "no_usable_offer")
				w.handed(s, 0)
				w.signed(0)
			})
		})
	}
}

// Row 23: where a seller says that its resource lies decides nothing.
func TestAttack23_ResourceURLIsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: "[policy.default]\ncaps=[\"$1 / 24h\"]\nallow=[\"host:good.example\"]\n"})
		doc := strings.Replace(terms(entry()), "http://127.0.0.1/", "https://good.example/", 1)
		w.denied(w.get(w.handler(challenge(doc, "{}"))), "not_allowed")
		w.signed(0)
	})
}

// Row 25: a huge thing to echo is not signed for.
func TestAttack25_EchoIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		doc := strings.TrimSuffix(terms(entry()), "}") + `,"extensions":{"x":{"info":"` + strings.Repeat("a", 20<<10) + `"}}}`
		g := w.get(w.handler(challenge(doc, "{}")))
		w.denied(g, "no_usable_offer")
		w.signed(0)
	})
}

// Row 26: nobody, the token and the payer are no payees.
func TestAttack26_PayeesThatAreNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(dime)
		for payee, code := range map[payment.Address]string{w.spy.Address(): "bad_terms", dollar().Address: "no_usable_offer", {18: 0xde, 19: 0xad}: "no_usable_offer"} {
			s.SetPayTo("GET /goods/", payee)
			w.denied(w.get(url), code)
		}
		w.signed(0)
	})
}

// Rows 29 and 33: addresses that cannot be judged are not paid, however they are
// spelled.
func TestAttack33_OddHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) {
		c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			resp := challengeOf(terms(entry()))
			resp.Request = r
			return resp, nil
		})
	}})
	for _, tc := range []struct{ url, code string }{
		{"https://good@evil.example/", "bad_origin"}, {"https://good:pw@127.0.0.1/", "bad_origin"}, {"https://0x7f.1/", "bad_origin"}, {"https://2130706433/", "bad_origin"},
		{"https://127.1/", "bad_origin"}, {"https://017700000001/", "bad_origin"}, {"https://feed..example/", "bad_origin"}, {"https://fe ed.example/", ""},
		{"https://feed_.example/", "bad_origin"}, {"https://[fe80::1%25eth0]/", "bad_origin"}, {"http://feed.example/", "insecure_transport"}, {"http://127.0.0.1.evil.example/", "insecure_transport"},
		{"http://localhost.evil.example/", "insecure_transport"}, {"http://10.0.0.1/", "insecure_transport"}, {"http://x.localhost/", "insecure_transport"},
	} {
		req, err := http.NewRequest("GET", "https://placeholder.example/", nil)
		must(t, err)
		if req.URL, err = req.URL.Parse(tc.url); err != nil {
			continue // net/url itself refuses it
		}
		req.Host = ""
		_, err = w.client.RoundTrip(req)
		w.denied(got{err: err}, tc.code)
	}
	req := w.request("GET", "https://good.example/", nil)
	req.Host = "evil.example"
	_, err := w.client.RoundTrip(req)
	w.denied(got{err: err}, "host_mismatch")
	w.signed(0)
}

func challengeOf(doc string) *http.Response {
	rec := httptest.NewRecorder()
	challenge(doc, "{}")(rec, nil)
	return rec.Result()
}

// Row 35: a seller's line breaks do not get into a header.
func TestAttack35_HeaderInjection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		for i, bad := range []string{`a\r\nX-Evil: 1`, `a\u000aX-Evil: 1`, `a\u0000b`} {
			doc := strings.TrimSuffix(terms(entry(`"version":"2"`, `"version":"2","note":"`+bad+`"`)), "}") + `,"extensions":{"x":{"info":{"n":"` + bad + `"}}}}`
			url := w.net.Serve(t, fmt.Sprintf("127.0.0.1:%d", 8600+i), challenge(doc, "{}"))
			w.get(url)
		}
		for _, s := range w.wire.Sent() {
			if s.Header.Get("X-Evil") != "" || strings.ContainsAny(s.Header.Get("Payment-Signature"), "\r\n\x00") {
				t.Errorf("sent %v", s.Header)
			}
		}
	})
}

// Row 39: ten thousand 402s get one authorization, a few sends a call.
func TestAttack39_Endless402s(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(dime, canopytest.Always(canopytest.Both(canopytest.AnswerAgain(), canopytest.WithHeader("Retry-After", "0"))))
		for range 300 {
			w.get(url)
		}
		w.handed(s, 1)
		w.signed(1)
		w.counted(dime)
		if n := s.Count("").Paid; n > 900 {
			t.Errorf("sent %d times in 300 calls", n)
		}
	})
}

// Rows 42 and 43: receipts that must not be believed as they stand. Each is of
// a payment that settled: none frees the budget, and a claimed transaction is
// kept only where it can be one.
func TestAttack43_ForgedReceipts(t *testing.T) {
	for _, v := range []canopytest.Version{canopytest.V2, canopytest.V1} {
		for _, fault := range canopytest.ForgedReceipts() {
			t.Run(fmt.Sprint(v, fault), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, setup{policy: capped("$0.15 / 24h")})
					_, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /goods/{id}", Price: dime}}, Faults: canopytest.Plan{canopytest.Always(fault)}})
					g := w.get(url + "/goods/1")
					if g.err != nil || g.StatusCode != 200 || !g.cost || g.paid.State != ledger.Claimed && g.paid.State != ledger.InDoubt {
						t.Fatalf("got %+v", g)
					}
					if tx := g.paid.TxHash; tx != "" && (len(tx) != 66 || strings.Trim(tx, "0x123456789abcdef") != "") {
						t.Errorf("tx %q", tx)
					}
					w.counted(dime)
					w.denied(w.get(url+"/goods/2"), "cap_exceeded")
				})
			})
		}
	}
}

// Row 44: somebody else settles first. The money moved once, and the caller
// learns that it was paid.
func TestAttack44_SettledBySomebodyElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		var s *canopytest.Seller
		s, url := w.sells(dime, canopytest.First(canopytest.Instead("front run", canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
			if _, err := s.Harvest().SettleAll(context.Background()); err != nil {
				t.Error(err)
			}
			return x.Honest()
		})))
		e := as[*canopy.PaidError](t, w.get(url).err)
		if e.Code != "invalid_exact_evm_nonce_already_used" || e.Result.State != ledger.Claimed {
			t.Errorf("paid as %+v", e)
		}
		w.spent(dime)
		w.counted(dime)
	})
}

// Row 50: no text of a seller changes a decision, and none of its control or
// bidirectional characters comes out raw.
func TestAttack50_HostileTexts(t *testing.T) {
	type outcome struct{ pay, deny, fail string }
	for _, v := range []canopytest.Version{canopytest.V2, canopytest.V1} {
		t.Run(fmt.Sprint("version ", v), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var want outcome
				w := newWorld(t, setup{policy: capped("$1000 / 24h")})
				s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{
					{Pattern: "GET /cheap/{id}", Price: 1}, {Pattern: "GET /dear", Price: 11 * payment.Dollar}, {Pattern: "GET /fails/{id}", Price: 1},
				}})
				for i, text := range append([]string{"a plain text"}, canopytest.HostileTexts()...) {
					if v == canopytest.V1 && i%5 != 0 {
						continue
					}
					s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.HostileText(text))})
					s.SetFaults("GET /fails/{id}", canopytest.Plan{canopytest.Always(canopytest.SayFailed(text))})
					deny := w.get(url + "/dear")
					check, err := w.client.CheckURL(w.context(), fmt.Sprint(url, "/dear?", i))
					must(t, err)
					got := outcome{deny: fmt.Sprintf("%T %s", deny.err, check.Code), pay: want.pay, fail: want.fail}
					shown := fmt.Sprintf("%v %+v", deny.err, check)
					if i%5 == 0 { // signatures take their time
						pay, fail := w.get(fmt.Sprint(url, "/cheap/", i)), w.get(fmt.Sprint(url, "/fails/", i))
						got.pay, got.fail = fmt.Sprintf("%T %v %v", pay.err, pay.paid.State, pay.paid.Amount), fmt.Sprintf("%T", fail.err)
						b, _ := json.Marshal(fail.err)
						shown += fmt.Sprintf("%v %+v %s", fail.err, pay.paid, b)
					}
					if i == 0 {
						want = got
					}
					long := len(text) > 4<<10 && check.Code == "no_usable_offer" // more than is read, or echoed
					if got != want && !long {
						t.Errorf("with %.60q: %v, want %v", text, got, want)
					}
					if r := raw(shown); r != 0 {
						t.Errorf("%U of %.60q comes out", r, text)
					}
					if len(shown) > 20_000 {
						t.Errorf("%d bytes come out of %d", len(shown), len(text))
					}
				}
				for e, err := range w.store.Entries(w.context(), ledger.Query{}) {
					must(t, err)
					if r := raw(e.Note + e.Receipt.Code + e.Receipt.Message + e.Receipt.TxHash); r != 0 {
						t.Fatalf("%U stands in the ledger", r)
					}
				}
				if r := raw(strings.ReplaceAll(w.logs.String(), "\n", "")); r != 0 {
					t.Errorf("%U stands in the log", r)
				}
			})
		})
	}
}

// raw is a control or formatting character in s, or 0.
func raw(s string) rune {
	for _, r := range s {
		if unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029' {
			return r
		}
	}
	return 0
}

// Row 98: middleware above us that sends again whatever failed: one debit.
func TestAttack98_RetryMiddlewareAboveUs(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{
		"dropped": canopytest.DropAfterSettling(), "500 after settling": canopytest.StatusAfterSettling(500), "503 before": canopytest.Status(503),
		"500 with a receipt": canopytest.StatusWithReceipt(500), "402 again": canopytest.SettleAndAnswerAgain(), "reset": canopytest.Reset().At(canopytest.OnPaid),
	} {
		for _, version := range []canopytest.Version{canopytest.V1, canopytest.V2} {
			t.Run(fmt.Sprint(name, version), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, setup{})
					s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
						Version: version, Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}}, Faults: canopytest.Plan{canopytest.Always(fault)},
					})
					hc := &http.Client{Transport: retrying{w.client}}
					if resp, err := hc.Get(url + "/goods"); err == nil {
						resp.Body.Close()
					}
					w.handed(s, 1)
					w.signed(1)
					w.chain.AssertSpentAtMost(t, w.spy.Address(), dime)
					w.counted(dime)
				})
			})
		}
	}
}

// retrying sends again, five times, what failed or answered 5xx.
type retrying struct{ base http.RoundTripper }

func (r retrying) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 5 {
		if resp, err = r.base.RoundTrip(req); err == nil && resp.StatusCode < 500 {
			return resp, nil
		}
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, errors.Join(err, errors.New("gave up"))
}
