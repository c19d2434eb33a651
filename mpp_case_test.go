package canopy_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// What went wrong with other buyers of MPP, by the number of the case, and the
// tests that hold the right behaviour. Cases that are not here are of sessions
// and of MCP.
var mppCases = map[int][]string{
	1: {"canopy.TestMPPCase01_SameChallengeAgain", "canopy.TestMPPCase01_RotatedChallenge", "canopy.TestMPPCase01_SettledAndRotated",
		"canopy.TestMPPCase01_RotatedOnTheExpiringNonce", "canopy.TestMPPCase01_ThirtySixAtOnce"},
	2:  {"canopy.TestMPPCase02_RedirectToAnotherOrigin", "canopy.TestMPPCase02_RedirectAfterPayment"},
	4:  {"canopy.TestAttack01_MalformedPaymentChallenges", "mpp.TestReadChallenges"},
	5:  {"canopy.TestAttack24_StaleChallenges"},
	7:  {"canopy.TestMPPBody"},
	8:  {"canopy.TestF4_MPPLinkDropsBeforeSettling", "canopy.TestF28_MPPCancelled", "canopy.TestF11_MPPRetryStorm"},
	9:  {"canopy.TestMPPCase10_HeaderBesideABearer"},
	10: {"canopy.TestMPPCase10_HeaderBesideABearer"},
	12: {"canopy.TestMPPCase13_SeveralChallenges"},
	13: {"canopy.TestMPPCase13_SeveralChallenges"},
	15: {"canopy.TestAttack01_MalformedPaymentChallenges"},
	17: {"canopy.TestAttack01_MalformedPaymentChallenges"},
	18: {"canopy.TestMPPCase21_OddPaymentChallenges", "canopy.TestMPPOpaque"},
	21: {"canopy.TestMPPCase21_WireStringsAreEchoed", "canopy.TestMPPCase21_OddPaymentChallenges"},
	22: {"canopy.TestMPPProof"},
	23: {"canopy.TestMPPCase23_Envelopes"},
	24: {"canopy.TestMPPCase23_Envelopes"},
	25: {"canopy.TestMPPSponsored", "canopy.TestAttack17_EveryTransactionEnds"},
	26: {"canopy.TestMPPSponsored", "canopy.TestAttack17_EveryTransactionEnds"},
	27: {"canopy.TestMPPPull", "canopytest.TestDecodeTempoIntegers"},
	28: {"canopy.TestAttack16_ChainOfTheChallenge"},
	29: {"canopy.TestAttack16_ChainOfTheChallenge"},
	33: {"canopy.TestMPPCase33_RefusalWithoutAChallenge"},
	34: {"canopy.TestAttack01_MalformedPaymentChallenges", "canopy.TestF13_OtherTermsOfMPP"},
	36: {"canopy.TestMPPCase36_ErrorAfterTheCredential", "canopy.TestAttack22_OneRailAPayment"},
	44: {"canopy.TestMPPCase44_BusyNode"},
	45: {"canopy.TestMPPCase44_BusyNode"},
	46: {"canopy.TestMPPCase33_RefusalWithoutAChallenge"},
	47: {"canopy.TestMPPCase47_TheChallengeCounts"},
	48: {"canopy.TestMPPCase48_BalanceThatLags"},
}

func TestMPPCasesAreMapped(t *testing.T) {
	t.Parallel()
	for n, tests := range mppCases {
		for _, test := range tests {
			pkg, name, _ := strings.Cut(test, ".")
			if !declared(t, pkg, name) {
				t.Errorf("case %d: there is no %s", n, test)
			}
		}
	}
}

// Case 2: a redirect to another origin is not paid, by whichever door.
func TestMPPCase02_RedirectToAnotherOrigin(t *testing.T) {
	for _, door := range []string{"Fetch", "HTTPClient", "RoundTrip"} {
		t.Run(door, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{Header: "Payment-Authorization"})
				from := w.redirect("127.0.0.1:9000", "/", url)
				w.refused("redirected", func() {
					w.denied(w.read(doors(w)[door](w.send("GET", from+"/", map[string]string{"Authorization": "Bearer t"}))), "redirected")
				})
				w.handed(s, 0)
			})
		})
	}
}

// A paid answer that leads elsewhere: what is there gets no credential, in
// whichever header, and no second payment.
func TestMPPCase02_RedirectAfterPayment(t *testing.T) {
	for _, header := range []string{"", "Payment-Authorization"} {
		for _, settled := range []bool{true, false} {
			for _, door := range []string{"Fetch", "HTTPClient", "RoundTrip"} {
				t.Run(fmt.Sprint(header, settled, door), func(t *testing.T) {
					play(t, onTempo(setup{}), func(t *testing.T, w *world) {
						other, there := w.serve("127.0.0.2:8402", canopytest.SellerConfig{
							Protocol: canopytest.MPP, PayTo: canopytest.Address("b"), Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}},
						})
						fault := canopytest.Redirect(307, there+"/goods/").At(canopytest.OnPaid)
						if settled {
							fault = canopytest.RedirectAfterSettling(307, there+"/goods/")
						}
						s, url := w.asks(dime, canopytest.MPPConfig{Header: header}, canopytest.Always(fault))
						g := w.read(doors(w)[door](w.request("GET", url, nil)))
						if g.err != nil || g.StatusCode != 402 || !g.cost || g.paid.Recipient != canopytest.Address("seller") {
							t.Errorf("got %+v, %v", g, g.err)
						}
						w.handed(s, 1)
						w.handed(other, 0)
						w.signed(1)
						for _, r := range other.Requests() {
							if r.Paid || r.Header.Get("Authorization")+r.Header.Get("Payment-Authorization") != "" {
								t.Error("the credential was carried along")
							}
						}
						w.overAll()
					})
				})
			}
		}
	}
}

// Cases 12 and 13: several challenges, on one line or on several, beside those of
// other schemes and methods: the charge is found and paid.
func TestMPPCase13_SeveralChallenges(t *testing.T) {
	for name, c := range map[string]canopytest.MPPConfig{"one line": {Session: true}, "two lines": {Session: true, Lines: true}} {
		for before, line := range map[string]string{
			"nothing": "", "Bearer": `Bearer realm="x, Payment id=\"y\""`, "stripe": `Payment id="s", realm="r", method="stripe", intent="charge", request="e30"`,
			"a bad one": `Payment id="s", id="t", realm="r", method="tempo", intent="charge", request="e30"`, "an unterminated one": `Payment id="s", realm="oops`,
		} {
			t.Run(name+" behind "+before, func(t *testing.T) {
				play(t, onTempo(setup{}), func(t *testing.T, w *world) {
					s, url := w.asks(dime, c)
					w.wire.After = func(r *http.Response) error {
						if lines := r.Header["Www-Authenticate"]; len(lines) > 0 && line != "" {
							r.Header["Www-Authenticate"] = append([]string{line}, lines...)
						}
						return nil
					}
					g := w.bought(w.get(url))
					w.handed(s, 1)
					w.settled(dime, g.paid.PaymentID)
				})
			})
		}
	}
}

// stub is a seller that says what it is told, and keeps the credentials.
type stub struct {
	challenge string
	seen      []map[string]any // the challenges of credentials
	after     http.HandlerFunc // answers a credential
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value, paid := strings.CutPrefix(r.Header.Get("Authorization"), "Payment ")
	if !paid {
		w.Header().Set("WWW-Authenticate", s.challenge)
		w.WriteHeader(402)
		return
	}
	doc, err := base64.RawURLEncoding.DecodeString(value)
	var c struct{ Challenge map[string]any }
	if err != nil || json.Unmarshal(doc, &c) != nil {
		http.Error(w, "no credential", 400)
		return
	}
	s.seen = append(s.seen, c.Challenge)
	if s.after != nil {
		s.after(w, r)
		return
	}
	io.WriteString(w, "ok")
}

// r0 is the request of a challenge, with members before the others.
func r0(w *world, more string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{` + more + `"recipient":"0x742d35cc6634c0532925a3b844bc9e7595f8fe00","methodDetails":{"chainId":42431},"currency":"` +
		w.chain.Dollar().Address.Lower() + `","amount":"100000"}`))
}

// Case 21: the request and opaque come back as the bytes that came, whatever
// another encoder would make of them.
func TestMPPCase21_WireStringsAreEchoed(t *testing.T) {
	for name, more := range map[string]string{
		"HTML": `"description":"Access <premium> & analytics",`, "1e21": `"x":1e21,`, "order": `"b":1,"a":2,`, "spaces": `"b" :  1 ,`, "escapes": `"externalId":"\u003c\u00e9\/",`, "big": `"n":12345678901234567890.10,`,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				request, opaque := r0(w, more), base64.RawURLEncoding.EncodeToString([]byte(`{"b":"<&>","a":"2"}`))
				s := &stub{challenge: `Payment id="i", realm="r", method="tempo", intent="charge", request="` + request + `", opaque="` + opaque + `"`}
				g := w.get(w.handler(s.ServeHTTP))
				if g.err != nil || g.StatusCode != 200 || g.paid.State != ledger.InDoubt {
					t.Fatalf("got %+v, %v", g, g.err)
				}
				if c := s.seen[0]; c["request"] != request || c["opaque"] != opaque || c["id"] != "i" || c["realm"] != "r" {
					t.Errorf("echoed %v", c)
				}
				w.overAll()
				w.counted(0)
			})
		})
	}
}

// Cases 23 and 24: a sponsored transaction is handed over in either form, and the
// seller that signs along recovers the buyer from it.
func TestMPPCase23_Envelopes(t *testing.T) {
	for _, e := range []mpp.Envelope{mpp.EnvelopeSender, mpp.EnvelopeTransaction} {
		t.Run(fmt.Sprint(e), func(t *testing.T) {
			play(t, onTempo(setup{config: func(w *world, c *canopy.Config) { c.Rails = []canopy.Rail{w.mpp(mpp.Config{Envelope: e})} }}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true})
				g := w.bought(w.get(url))
				if raw := s.Harvest().All()[0].Tempo.Raw(); raw[0] != map[mpp.Envelope]byte{mpp.EnvelopeSender: 0x78, mpp.EnvelopeTransaction: 0x76}[e] {
					t.Errorf("it begins with %x", raw[0])
				}
				if w.fees() != 0 {
					t.Errorf("it paid fees of %v", w.fees())
				}
				w.settled(dime, g.paid.PaymentID)
				w.overAll()
			})
		})
	}
}

// Cases 33 and 46: a refusal without a fresh challenge tells the seller's code
// and its words, cleaned, and is in doubt.
func TestMPPCase33_RefusalWithoutAChallenge(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		words := canopytest.Editing("words", canopytest.OnPaid, func(_ *canopytest.Exchange, a *canopytest.Answer) {
			a.Body = []byte(`{"type":"https://paymentauth.org/problems/verification-failed","title":"Verification Failed","status":402,"detail":"the merchant's \u202erail cannot complete","challengeId":"x"}`)
		})
		s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.SayFailed("")), canopytest.Always(canopytest.NoFreshChallenge()), canopytest.Always(words))
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		if e.Phase != canopy.RefusedAfter || e.Code != "verification_failed" || e.Message != "the merchant's rail cannot complete" || strings.Contains(e.Error(), "no usable") {
			t.Errorf("in doubt as %+v", e)
		}
		if n := s.Count("").Paid; n > 3 {
			t.Errorf("sent %d times", n)
		}
		w.digests(1)
		w.handed(s, 1)
		w.late(s)
		w.settled(dime, e.Result.PaymentID)
		w.overAll()
	})
}

// Case 36: an error after the credential left is neither paid nor free: in doubt,
// and the retry pays nothing more.
func TestMPPCase36_ErrorAfterTheCredential(t *testing.T) {
	for _, status := range []int{400, 403, 409, 410, 429, 500, 502, 503, 504} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			playKinds(t, func(t *testing.T, w *world, k kind) {
				s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.Status(status)))
				g := w.get(url)
				if g.err != nil || g.StatusCode != status || g.paid.State != ledger.InDoubt || g.paid.Settlement != "" {
					t.Fatalf("got %+v, %v", g, g.err)
				}
				again := w.get(url)
				if again.err != nil || again.paid.PaymentID != g.paid.PaymentID {
					t.Errorf("again: %+v, %v", again, again.err)
				}
				w.digests(1)
				w.handed(s, 1)
				w.counted(k.cost)
				w.overAll()
				w.counted(0)
				w.moved(0)
			})
		})
	}
}

// Case 47: whatever was said of a price elsewhere, what is judged is the
// challenge that is answered.
func TestMPPCase47_TheChallengeCounts(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$0.15 / 24h")}), func(t *testing.T, w *world) {
		s, url := w.asks(payment.Cent, canopytest.MPPConfig{})
		c, err := w.client.CheckURL(t.Context(), url)
		if must(t, err); c.Status != canopy.Allowed || c.Amount != payment.Cent {
			t.Errorf("%+v", c)
		}
		s.SetPrice("/goods/", 20*payment.Cent)
		w.refused("it costs more by now", func() { w.denied(w.get(url), "cap_exceeded") })
	})
}

// Case 48: a balance that was read before the account was funded stops nothing
// for longer than a second; one that is short by the fee is short.
func TestMPPCase48_BalanceThatLags(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		_, url := w.asks(dime, canopytest.MPPConfig{})
		w.drain(w.chain, costly-1)
		w.refused("short of the fee", func() { w.denied(w.get(url), "insufficient_balance") })
		w.chain.Fund(w.client.Address(), 1)
		w.clock.Advance(time.Second)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Second) // what was read is old
		w.denied(w.get(url+"/3"), "insufficient_balance")
	})
}
