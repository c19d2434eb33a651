package canopy_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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

// Attacks on the rail of MPP, rows 1 to 5, 13 to 18, 24, 35, 50 and 84.

// Rows 1 to 5, 13, 16, 19, 21 and 24, and cases 4, 5, 15, 17, 29 and 34: a
// challenge with one defect is never paid, and the answer is typed. Where nothing
// of the scheme is left it goes back whole.
func TestAttack01_MalformedPaymentChallenges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, onTempo(setup{}))
		w.clock.Set(time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC))
		s, url := w.asks(payment.Cent, canopytest.MPPConfig{})
		whole := 0
		for _, fault := range canopytest.MalformedPaymentChallenges() {
			s.SetFaults("", canopytest.Plan{canopytest.Always(fault)})
			g := w.get(url)
			var denied *canopy.DeniedError
			switch {
			case errors.As(g.err, &denied):
			case g.err == nil && g.StatusCode == 402 && !g.cost && strings.Contains(g.body, "payment-required"):
				whole++
			default:
				t.Errorf("%s: %+v, %v", fault, g, g.err)
			}
		}
		w.signed(0)
		w.handed(s, 0)
		w.counted(0)
		if whole > 10 {
			t.Errorf("%d answers went back as if nobody knew them", whole)
		}
		s.SetFaults("", nil)
		w.bought(w.get(url))
	})
}

// Cases 18 and 21: what is unusual and right is paid, and echoed as it came.
func TestMPPCase21_OddPaymentChallenges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, onTempo(setup{policy: capped("$100 / 24h")}))
		s, url := w.asks(payment.Cent, canopytest.MPPConfig{})
		n := 0
		for i, fault := range canopytest.OddPaymentChallenges() {
			s.SetFaults("", canopytest.Plan{canopytest.Always(fault)})
			if g := w.get(fmt.Sprint(url, "/", i)); g.err != nil || g.StatusCode != 200 || g.paid.State != ledger.Claimed {
				t.Errorf("%s: %+v, %v", fault, g, g.err)
			}
			n++
		}
		w.handed(s, n)
		w.moved(payment.USD(n) * payment.Cent)
	})
}

// Row 13: every recipient of a split passes the list; a host admits the first one
// only; a person who is asked sees them all.
func TestAttack13_SplitsToStrangers(t *testing.T) {
	seller, stranger, known := canopytest.Address("seller"), canopytest.Address("stranger"), canopytest.Address("known")
	dust := []canopytest.Split{{To: stranger, Price: dime - 1}}
	hidden := []canopytest.Split{}
	for i := range 10 {
		hidden = append(hidden, canopytest.Split{To: canopytest.Address(fmt.Sprint("hidden ", i)), Price: payment.Cent - 1})
	}
	for name, tc := range map[string]struct {
		allow, more string
		splits      []canopytest.Split
		code        string // empty: paid
	}{
		"dust for the seller, by host":  {`"host:127.0.0.1"`, "", dust, "split_not_allowed"},
		"ten hidden payees, by host":    {`"host:127.0.0.1"`, "", hidden, "split_not_allowed"},
		"a stranger among addresses":    {`"address:` + seller.String() + `"`, "", dust, "split_not_allowed"},
		"all known":                     {`"host:127.0.0.1", "address:` + known.String() + `"`, "", []canopytest.Split{{To: known, Price: payment.Cent}}, ""},
		"splits:any":                    {`"host:127.0.0.1 splits:any"`, "", hidden, ""},
		"denied by address, among many": {`"*"`, "deny = [\"address:" + canopytest.Address("hidden 7").String() + "\"]\n", hidden, "denied_destination"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\"]\nallow = [" + tc.allow + "]\n" + tc.more}), func(t *testing.T, w *world) {
				s, url := w.asksFor(canopytest.Route{Price: dime, Splits: tc.splits}, canopytest.MPPConfig{})
				if tc.code == "" {
					w.settled(dime, w.bought(w.get(url)).paid.PaymentID)
					return
				}
				w.refused("a split", func() {
					d := as[*canopy.DeniedError](t, w.get(url).err)
					if tc.code != "denied_destination" && d.Result.Code != tc.code {
						t.Errorf("denied with %s", d.Result.Code)
					}
				})
				w.handed(s, 0)
			})
		})
	}
	t.Run("a person sees all", func(t *testing.T) {
		play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\"]\napprove_above = \"$0.05\"\nallow = [\"*\"]\n"}), func(t *testing.T, w *world) {
			s, url := w.asksFor(canopytest.Route{Price: dime, Splits: hidden[:9]}, canopytest.MPPConfig{})
			p := as[*canopy.PendingError](t, w.get(url).err)
			a, err := w.client.ApprovalStatus(t.Context(), p.Result.ApprovalID)
			if must(t, err); len(a.Terms.Recipients) != 10 || a.Terms.Amount != payment.UnitsOf(100_000) {
				t.Errorf("put to a person: %+v", a.Terms)
			}
			w.rule(p.Result.ApprovalID, true)
			// Another split in the next challenge is another decision.
			s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.SplitTo(stranger, 1))})
			w.refused("other splits than were approved", func() { as[*canopy.PendingError](t, w.get(url).err) })
			s.SetFaults("", nil)
			if g := w.bought(w.get(url)); g.paid.PaymentID != p.Result.PaymentID {
				t.Errorf("paid %s, approved was %s", g.paid.PaymentID, p.Result.PaymentID)
			}
		})
	})
	t.Run("as much as the amount", func(t *testing.T) {
		play(t, onTempo(setup{}), func(t *testing.T, w *world) {
			_, url := w.asksFor(canopytest.Route{Price: dime, Splits: []canopytest.Split{{To: known, Price: dime / 2}, {To: seller, Price: dime / 2}}}, canopytest.MPPConfig{})
			w.refused("nothing is left for the payee", func() { w.denied(w.get(url), "no_usable_offer") })
		})
	})
}

// Row 14: what the fee can be at most is configured, stands in the cost, and is
// what is signed, whatever a node or a seller says; it is paid in the token of the
// charge. A sponsor's fee is bounded too.
func TestAttack14_FeeDrain(t *testing.T) {
	play(t, onTempo(setup{policy: "[policy.default]\nmax_payment = \"$0.129999\"\ncaps = [\"$1 / 24h\"]\nallow = [\"*\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.asks(dime, canopytest.MPPConfig{})
		w.refused("a fee that takes it over the maximum", func() { w.denied(w.get(url), "max_payment") })
	})
	for name, fees := range map[string]mpp.Fees{"small": {Gas: 1_100_000, MaxPrice: 21_000_000_000, Tip: 1}, "absurd": {Gas: 30_000_000, MaxPrice: 1_000_000_000_000}} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{policy: "[policy.default]\nmax_payment = \"$1\"\ncaps = [\"$5 / 24h\"]\nallow = [\"*\"]\n", config: func(w *world, c *canopy.Config) {
				c.Rails = []canopy.Rail{w.mpp(mpp.Config{Fees: fees})}
			}}), func(t *testing.T, w *world) {
				alpha := w.chain.Assets()[1]
				w.chain.Mint(alpha, w.client.Address(), payment.UnitsOf(10_000_000))
				s, url := w.asksFor(canopytest.Route{Price: dime, Asset: alpha}, canopytest.MPPConfig{})
				if name == "absurd" {
					w.refused("thirty dollars of fee", func() { w.denied(w.get(url), "max_payment") })
				} else {
					g := w.bought(w.get(url))
					tx := s.Requests()[1].Tempo
					if tx.Gas != fees.Gas || tx.MaxFee != payment.UnitsOf(fees.MaxPrice) || tx.FeeToken != alpha.Address || g.paid.Fee != 23_100 {
						t.Errorf("signed %d gas at %s in %s, the bound is %v", tx.Gas, tx.MaxFee, tx.FeeToken, g.paid.Fee)
					}
				}
				sponsored, url := w.serve("127.0.0.1:8404", canopytest.SellerConfig{Protocol: canopytest.MPP, MPP: canopytest.MPPConfig{Sponsor: true}, Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}}})
				w.bought(w.get(url + "/goods/"))
				tx := sponsored.Requests()[1].Tempo
				if total := tx.MaxFee.Big(); tx.Gas > 2_000_000 || total.Mul(total, payment.UnitsOf(tx.Gas).Big()).Cmp(payment.UnitsOf(50_000_000_000_000_000).Big()) > 0 || !tx.FeeToken.IsZero() {
					t.Errorf("a sponsor is asked for %d gas at %s", tx.Gas, tx.MaxFee)
				}
			})
		})
	}
}

// carrying is a rail that is bent.
type carrying struct {
	canopy.Rail
	also func(payment.Offer) payment.Offer
}

func (r carrying) Offers(resp *http.Response, body []byte) ([]payment.Offer, error) {
	offers, err := r.Rail.Offers(resp, body)
	for i := range offers {
		offers[i] = r.also(offers[i])
	}
	return offers, err
}

// Row 15: what is signed is held to the terms call by call. Terms that say less
// than the bytes would do are not signed, or not sent, and nothing leaves.
func TestAttack15_TransactionCarriesTheTermsOnly(t *testing.T) {
	for name, bend := range map[string]func(payment.Offer) payment.Offer{
		"a recipient hidden": func(o payment.Offer) payment.Offer { o.Recipients = o.Recipients[:1]; return o },
		"another payee":      func(o payment.Offer) payment.Offer { o.Recipients[0].Address = canopytest.Address("honest"); return o },
		"a smaller fee":      func(o payment.Offer) payment.Offer { o.FeeBound = 1; return o },
		"no fee":             func(o payment.Offer) payment.Offer { o.FeeBound = 0; return o },
		"another slot":       func(o payment.Offer) payment.Offer { o.Slot = payment.SlotExpiring; return o },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{config: func(_ *world, c *canopy.Config) { c.Rails[0] = carrying{c.Rails[0], bend} }}), func(t *testing.T, w *world) {
				s, url := w.asksFor(canopytest.Route{Price: dime, Splits: []canopytest.Split{{To: canopytest.Address("ana"), Price: payment.Cent}}}, canopytest.MPPConfig{})
				g := w.get(url)
				if name == "another payee" {
					// The terms that were judged are what is signed; the seller does not get its money.
					w.chain.AssertTransfers(t)
				}
				if g.err == nil && g.StatusCode == 200 {
					t.Errorf("bought: %+v", g.paid)
				}
				for _, h := range s.Harvest().All() {
					if calls, err := h.Tempo.Transfers(); err != nil || len(calls) != 2 || calls[0].To != canopytest.Address("honest") {
						t.Errorf("handed over %v", calls)
					}
				}
				w.moved(0)
			})
		})
	}
	t.Run("another decoding", func(t *testing.T) {
		play(t, onTempo(setup{config: func(_ *world, c *canopy.Config) { c.Rails[0] = lyingRail{c.Rails[0]} }}), func(t *testing.T, w *world) {
			s, url := w.asks(dime, canopytest.MPPConfig{})
			as[*canopy.InDoubtError](t, w.get(url).err)
			w.handed(s, 0)
			w.frozen(true)
			w.refused("frozen", func() { w.denied(w.get(url+"/2"), "frozen") })
		})
	})
	t.Run("another key", func(t *testing.T) {
		for _, k := range kinds {
			play(t, onTempo(setup{bend: func(_ *world, s payment.Signer) payment.Signer { return canopytest.BrokenSigner(s) }}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, k.ask)
				as[*canopy.InDoubtError](t, w.get(url).err)
				w.handed(s, 0)
				w.frozen(true)
			})
		}
	})
}

// Row 16, cases 28 and 29: the chain is ours, never the challenge's: another one
// is refused, and where none is named it is the only one that is configured.
func TestAttack16_ChainOfTheChallenge(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(canopytest.OtherChain(payment.Tempo)))
		w.refused("the main network", func() {
			d := w.denied(w.get(url), "no_usable_offer")
			if !strings.Contains(d.Error(), "other_chain") {
				t.Errorf("%v", d)
			}
		})
		w.handed(s, 0)
	})
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		_, url := w.asks(dime, canopytest.MPPConfig{NoChain: true})
		if g := w.bought(w.get(url)); g.paid.Chain != payment.TempoTest {
			t.Errorf("%+v", g.paid)
		}
	})
	play(t, onTempo(setup{config: func(w *world, c *canopy.Config) {
		rail, err := mpp.New(mpp.Config{}) // both networks
		must(w.t, err)
		c.Rails = []canopy.Rail{rail}
	}}), func(t *testing.T, w *world) {
		_, url := w.asks(dime, canopytest.MPPConfig{NoChain: true})
		w.refused("no guess", func() { w.denied(w.get(url), "no_usable_offer") })
	})
}

// Row 17, cases 25 to 27, I10: every transaction that was ever signed ends, not
// later than the policy, the challenge and the network allow; on a lane that is
// one, or on the expiring nonce.
func TestAttack17_EveryTransactionEnds(t *testing.T) {
	for _, validity := range []time.Duration{10 * time.Second, 25 * time.Second, time.Minute, 10 * time.Minute} {
		for _, lifetime := range []time.Duration{11 * time.Second, 30 * time.Second, time.Hour} {
			t.Run(fmt.Sprint(validity, " of ", lifetime), func(t *testing.T) {
				play(t, onTempo(setup{policy: fmt.Sprintf("[policy.default]\ncaps = [\"$5 / 24h\"]\nallow = [\"*\"]\nmax_validity = \"%ds\"\n", int(validity.Seconds()))}), func(t *testing.T, w *world) {
					for i, c := range []canopytest.MPPConfig{{Lifetime: lifetime}, {Lifetime: lifetime, Sponsor: true}, {Lifetime: lifetime, Modes: []string{"push"}}} {
						s, url := w.serve(fmt.Sprintf("127.0.0.1:%d", 8410+i), canopytest.SellerConfig{Protocol: canopytest.MPP, MPP: c, Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}}})
						start := w.clock.Now()
						w.get(url + "/goods/")
						for _, h := range s.Harvest().All() {
							most := min(validity, lifetime)
							if c.Sponsor {
								most = min(most, 25*time.Second)
							}
							if ahead := h.Expires().Sub(start); h.Tempo.ValidBefore == 0 || ahead > most || ahead <= 0 {
								t.Errorf("it is valid for %v, at most %v is allowed", ahead, most)
							}
							if expiring := h.Tempo.Expiring(); expiring != c.Sponsor || expiring && h.Tempo.Nonce != 0 || h.Tempo.NonceKey == [32]byte{} {
								t.Errorf("signed %v", h.Tempo)
							}
						}
					}
					r, err := w.client.Pay(t.Context(), onChain(dollars(payment.Cent, ""), ""))
					if err == nil && r.Status == canopy.Allowed {
						uses := w.chain.TempoUses()
						if last := uses[len(uses)-1].Tx; last.ValidBefore == 0 || time.Unix(int64(last.ValidBefore), 0).After(w.clock.Now().Add(validity)) {
							t.Errorf("signed %v", last)
						}
					}
				})
			})
		}
	}
}

// Row 18: a proof is a signature: refused where the destination is not allowed,
// where the program wants none, and bound to the realm that it was asked for.
func TestAttack18_ProofPhishing(t *testing.T) {
	play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\"]\nallow = [\"host:good.example\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{Realm: "good.example"})
		w.refused("a proof for another host", func() { w.denied(w.get(url), "no_usable_offer") })
	})
	named := func(w *world, c *canopy.Config) {
		c.Rails = []canopy.Rail{w.mpp(mpp.Config{ProofRealms: []string{"good.example"}})}
	}
	play(t, onTempo(setup{config: named, policy: "[policy.default]\ncaps = [\"$1 / 24h\"]\nallow = [\"host:good.example\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{Realm: "good.example"})
		w.refused("a realm is no host", func() { w.denied(w.get(url), "not_allowed") })
	})
	play(t, onTempo(setup{config: named}), func(t *testing.T, w *world) {
		_, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{Realm: "good.example"})
		w.bought(w.get(url))
		w.counted(0)
	})
	play(t, onTempo(setup{config: func(w *world, c *canopy.Config) { c.Rails = []canopy.Rail{w.mpp(mpp.Config{NoProofs: true})} }}), func(t *testing.T, w *world) {
		_, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{})
		w.refused("no proofs", func() { w.denied(w.get(url), "no_usable_offer") })
	})
	play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\"]\nallow = [\"*\"]\nfrozen = true\n"}), func(t *testing.T, w *world) {
		_, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{})
		w.refused("frozen", func() { w.denied(w.get(url), "frozen") })
	})
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{}, canopytest.Always(canopytest.AnswerAgain()))
		as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
		if n := s.Count("").Paid; n > 3 {
			t.Errorf("sent %d times", n)
		}
		w.signed(1)
		w.digests(1)
		w.counted(0)
	})
}

// Row 24, cases 4 and 5: what is stale, about to be, or does not say so readably
// is not answered; a challenge that was answered is not answered by another payment.
func TestAttack24_StaleChallenges(t *testing.T) {
	for name, lifetime := range map[string]time.Duration{"expired": -time.Second, "now": time.Millisecond, "under 10 s": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				for _, k := range kinds {
					k.ask.Lifetime = lifetime
					_, url := w.serve("127.0.0.1:84"+fmt.Sprint(20+len(k.name)), canopytest.SellerConfig{Protocol: canopytest.MPP, MPP: k.ask, Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}}})
					w.refused(k.name, func() {
						d := as[*canopy.DeniedError](t, w.get(url+"/goods/").err)
						if d.Result.Code != "expired_offer" && d.Result.Code != "no_usable_offer" {
							t.Errorf("denied with %s", d.Result.Code)
						}
					})
				}
			})
		})
	}
	t.Run("from a cache", func(t *testing.T) {
		play(t, onTempo(setup{}), func(t *testing.T, w *world) {
			s, url := w.asks(dime, canopytest.MPPConfig{})
			var kept http.Header
			w.wire.After = func(r *http.Response) error {
				if r.StatusCode == 402 && kept == nil {
					kept = r.Header.Clone()
				} else if r.StatusCode == 402 {
					r.Header["Www-Authenticate"] = kept["Www-Authenticate"]
				}
				return nil
			}
			_, err := w.client.CheckURL(t.Context(), url)
			must(t, err)
			w.bought(w.get(url)) // by the kept one, which the cache of offers is not paid with
			w.clock.Advance(4*time.Minute + 55*time.Second)
			w.refused("the kept one is about to end", func() { w.denied(w.get(url), "expired_offer") })
			w.handed(s, 1)
		})
	})
}

// Row 35: a seller's line breaks, and names of headers that are none of its
// business, come into no header.
func TestAttack35_PaymentHeaderInjection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, onTempo(setup{policy: capped("$20 / 24h")}))
		s, url := w.asks(payment.Cent, canopytest.MPPConfig{})
		s.SetFaults("", canopytest.Plan{canopytest.First(canopytest.Unauthorized())})
		line := ""
		w.wire.After = func(r *http.Response) error {
			if v := r.Header.Get("Www-Authenticate"); v != "" && r.Request.Header.Get("Authorization") == "" && line != "" {
				r.Header.Set("Www-Authenticate", v+line)
			}
			return nil
		}
		for i, bad := range []string{
			"a\r\nX-Evil: 1", "a\nX-Evil: 1", `a\r\nX-Evil: 1`, `a\u000d\u000aX-Evil: 1`, "a\x00b", "a\x7fb", "\u2028X-Evil: 1",
		} {
			for _, param := range []string{"opaque", "header", "digest", "description", "id", "x"} {
				line = ", " + param + `="` + bad + `"`
				w.get(fmt.Sprint(url, "/", i, param))
			}
		}
		for _, name := range []string{"Cookie", "Host", "X-Evil", "Payment-Signature", "Content-Length", "Transfer-Encoding", "Authorization2", "Proxy-Authorization"} {
			line = `, header="` + name + `"`
			w.get(fmt.Sprint(url, "/", name))
		}
		paid := 0
		for _, sent := range w.wire.Sent() {
			for name, values := range sent.Header {
				for _, v := range values {
					if strings.ContainsAny(v, "\r\n\x00\x7f") {
						t.Errorf("sent %q in %s", v, name)
					}
					if strings.HasPrefix(v, "Payment ") {
						if paid++; name != "Authorization" && name != "Payment-Authorization" {
							t.Errorf("a payment in %s", name)
						}
					}
				}
			}
			if sent.Header.Get("X-Evil") != "" {
				t.Errorf("sent %v", sent.Header)
			}
		}
		if paid == 0 {
			t.Error("nothing was paid at all")
		}
	})
}

// Row 50: no text of a seller changes a decision, and nothing of it comes out raw.
func TestAttack50_HostilePaymentTexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, onTempo(setup{policy: capped("$1000 / 24h"), config: few(1024)}))
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: []canopytest.Route{
			{Pattern: "/cheap/", Price: 1}, {Pattern: "/dear", Price: 11 * payment.Dollar}, {Pattern: "/fails/", Price: 1},
		}})
		for i, text := range canopytest.HostileTexts() {
			s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.HostileText(text))})
			s.SetFaults("/fails/", canopytest.Plan{canopytest.Always(canopytest.SayFailed(""))})
			check, err := w.client.CheckURL(w.context(), fmt.Sprint(url, "/dear?", i))
			must(t, err)
			deny := w.get(url + "/dear")
			shown := fmt.Sprintf("%v %+v", deny.err, check)
			// No control character is in a header's text: such a challenge is skipped.
			odd, code := strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }), "max_payment"
			if odd {
				code = "no_usable_offer"
			}
			if d := as[*canopy.DeniedError](t, deny.err); d.Result.Code != code || check.Code != code {
				t.Errorf("with %.60q: %s, and %s on checking", text, d.Result.Code, check.Code)
			}
			if i%7 == 0 && !odd { // signatures take their time
				pay, fail := w.get(fmt.Sprint(url, "/cheap/", i)), w.get(fmt.Sprint(url, "/fails/", i))
				if long := len(text) > 2<<10; pay.err != nil || pay.paid.State != ledger.Claimed && !(long && pay.paid.State == ledger.InDoubt) { // more receipt than is read
					t.Errorf("with %.60q: %+v, %v", text, pay, pay.err)
				}
				as[*canopy.InDoubtError](t, fail.err)
				b, _ := json.Marshal(fail.err)
				shown += fmt.Sprintf("%v %+v %s", fail.err, pay.paid, b)
			}
			if r := raw(shown); r != 0 {
				t.Errorf("%U of %.60q comes out", r, text)
			}
			if len(shown) > 20_000 {
				t.Errorf("%d bytes come out of %d", len(shown), len(text))
			}
		}
		for _, e := range w.entries() {
			if r := raw(e.Note + e.Receipt.Code + e.Receipt.Message + e.Receipt.TxHash); r != 0 {
				t.Fatalf("%U stands in the ledger", r)
			}
		}
		if r := raw(strings.ReplaceAll(w.logs.String(), "\n", "")); r != 0 {
			t.Errorf("%U stands in the log", r)
		}
	})
}

// Rows 84 and 85: a credential, a signature and a raw transaction are in no
// error, result, log or ledger, although the seller says them all.
func TestAttack84_NothingSecretOfMPPComesOut(t *testing.T) {
	says := func(how string) canopytest.Fault {
		return canopytest.Instead("says "+how, canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
			words := x.Request.Header.Get("Authorization") + x.Request.Header.Get("Payment-Authorization")
			if how == "the transaction" || how == "the signature" {
				if c := credentialIn(words); c != "" {
					words = "0x" + c[max(len(c)-130, 0):]
					if how == "the transaction" {
						words = "0x" + c
					}
				}
			}
			a := x.Challenge("verification-failed")
			a.Body, _ = json.Marshal(map[string]any{
				"type": "https://paymentauth.org/problems/verification-failed", "title": words, "detail": "no: " + words, "hint": words, "challengeId": words,
			})
			if how == "an error page" {
				a.Status = 503
			}
			return a
		})
	}
	for _, how := range []string{"the credential", "the transaction", "the signature", "an error page"} {
		for name, c := range map[string]canopytest.MPPConfig{"pull": {}, "sponsored": {Sponsor: true}, "push": {Modes: []string{"push"}}, "another header": {Header: "Payment-Authorization"}} {
			t.Run(how+", "+name, func(t *testing.T) {
				play(t, onTempo(setup{}), func(t *testing.T, w *world) {
					s, url := w.asks(dime, c, canopytest.Always(says(how)))
					g := w.get(url)
					shown := fmt.Sprintf("%v %+v %#v %+v", g.err, g.err, g.err, g.paid)
					b, _ := json.Marshal(g.err)
					shown += string(b) + w.logs.String()
					for _, e := range w.entries() {
						shown += fmt.Sprintf("%v %+v %#v", e, e, e.Grant())
						events, err := w.store.Events(t.Context(), e.ID)
						must(t, err)
						for _, ev := range events {
							shown += string(ev.Data)
						}
					}
					for _, sent := range w.wire.Payments() {
						for at := 40; at+40 < len(sent); at += 40 {
							if strings.Contains(shown, sent[at:at+40]) && name != "push" {
								// What the seller itself said in its challenge is no secret.
								if !strings.Contains(challenged(w), sent[at:at+40]) {
									t.Fatalf("a part of the credential came out: %.60s", sent[at:at+40])
								}
							}
						}
					}
					for _, h := range s.Harvest().All() {
						sig := hex.EncodeToString(h.Tempo.Signature[:64])
						if strings.Contains(strings.ToLower(shown), sig[:40]) || strings.Contains(strings.ToLower(shown), sig[60:100]) {
							t.Fatal("a part of the signature came out")
						}
					}
				})
			})
		}
	}
}

// challenged is all that the seller ever said.
func challenged(w *world) string {
	var b strings.Builder
	for _, s := range w.wire.Sent() {
		b.WriteString(strings.Join(s.Response["Www-Authenticate"], "\n"))
	}
	return b.String()
}
