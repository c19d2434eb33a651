package canopy_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

// The cases that other buyers got wrong, by their numbers.

// handler serves h at a loopback name of the world's network.
func (w *world) handler(h http.HandlerFunc) string {
	w.t.Helper()
	return w.net.Serve(w.t, "127.0.0.1:8500", h)
}

// challenge answers with a 402 that has the header, where it is not empty, and
// the body.
func challenge(header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if header != "" {
			w.Header().Set("PAYMENT-REQUIRED", base64.StdEncoding.EncodeToString([]byte(header)))
		}
		w.WriteHeader(http.StatusPaymentRequired)
		io.WriteString(w, body)
	}
}

// terms is a version 2 document with the entries given.
func terms(entries ...string) string {
	return `{"x402Version":2,"resource":{"url":"http://127.0.0.1/"},"accepts":[` + strings.Join(entries, ",") + `]}`
}

// entry is a requirement that would be paid, with old replaced by new.
func entry(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(`{"scheme":"exact","network":"eip155:84532","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","amount":"1000",` +
		`"payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60,"extra":{"name":"USDC","version":"2"}}`)
}

func TestCase04_ChallengeBodyIsBounded(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{"64 MiB": canopytest.HugeBody(64 << 20), "bomb": canopytest.Bomb(200 << 20)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				_, url := w.sells(dime, canopytest.Always(fault))
				w.bought(w.get(url)) // the terms stand in the header
				w.spent(dime)
			})
		})
	}
}

// A challenge of nobody we know goes back with its body.
func TestCase06_ForeignChallengeIsReturnedWhole(t *testing.T) {
	long := strings.Repeat("please pay ", 20_000)
	for name, h := range map[string]http.HandlerFunc{
		"text":  challenge("", long),
		"json":  challenge("", `{"error":"pay"}`),
		"empty": challenge("", ""),
		"mpp": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Payment id="a", method="tempo"`)
			challenge("", long)(w, r)
		},
		"mpp, 401": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer, Payment id="a"`)
			w.WriteHeader(401)
			io.WriteString(w, long)
		},
		"plain 401": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer`)
			w.WriteHeader(401)
			io.WriteString(w, long)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				url := w.handler(h)
				want, err := w.net.Client(t).Get(url)
				must(t, err)
				body, err := io.ReadAll(want.Body)
				must(t, err)
				g := w.get(url)
				if g.err != nil || g.StatusCode != want.StatusCode || g.body != string(body) || g.cost {
					t.Errorf("got %v %d bytes, want %d bytes", g.err, len(g.body), len(body))
				}
				w.signed(0)
			})
		})
	}
}

func TestCase08_DefaultClientIsNotTouched(t *testing.T) {
	t.Parallel()
	transport, client := http.DefaultTransport, *http.DefaultClient
	newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Transport = nil }}).client.HTTPClient()
	if http.DefaultTransport != transport || http.DefaultClient.Transport != client.Transport || http.DefaultClient.CheckRedirect != nil {
		t.Error("net/http's own client was changed")
	}
}

func TestCase18_ZeroIsARealCap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(1000)
		w.denied(w.get(url, canopy.WithMaxPrice(0)), "max_price")
		w.denied(w.get(url, canopy.WithMaxPrice(999)), "max_price")
		w.bought(w.get(url, canopy.WithMaxPrice(1000)))
		w.handed(s, 1)
	})
}

// A payment that was refused is told from a first quote, with the seller's
// reason and the phase.
func TestCase21_RefusalIsNotAQuote(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		code := "invalid_exact_evm_payload_signature"
		_, url := w.sells(dime, canopytest.Always(canopytest.Instead("refused", canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
			return x.Challenge(code)
		})))
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		if e.Code != code || e.Phase != canopy.RefusedAfter || !strings.Contains(e.Error(), code) || e.Message != code {
			t.Errorf("refused as %+v", e)
		}
	})
}

// A 402 that states no terms goes back to the caller; a check names the reason.
func TestCase22_NoTerms(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"v1, none": challenge("", `{"x402Version":1,"error":"pay"}`), "v1, null": challenge("", `{"x402Version":1,"accepts":null}`),
		"v1, empty": challenge("", `{"x402Version":1,"accepts":[]}`), "v2, empty": challenge(`{"x402Version":2,"accepts":[]}`, "why"),
		"v2, none": challenge(`{"x402Version":2,"error":"pay"}`, "why"), "v2, null": challenge(`{"accepts":null}`, "why"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				url := w.handler(h)
				if g := w.get(url); g.err != nil || g.StatusCode != 402 || g.body == "" || g.cost {
					t.Errorf("got %+v, want the 402 as it is", g)
				}
				check, err := w.client.CheckURL(context.Background(), url)
				if err != nil || check.Status != canopy.Denied || check.Code != "no_terms" {
					t.Errorf("check %+v, %v, want no_terms", check, err)
				}
				w.signed(0)
			})
		})
	}
}

// One entry that cannot be read does not block the others.
func TestCase24_BadEntryIsSkipped(t *testing.T) {
	for _, fault := range canopytest.OddChallenges() {
		t.Run(fault.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.sells(dime, canopytest.Always(fault))
				w.bought(w.get(url))
				w.handed(s, 1)
				w.spent(dime)
			})
		})
	}
}

// A filter that matches nothing matches nothing: there is no falling back.
func TestCase25_NoFallBackToTheFirstOffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rail, err := x402.New(x402.Config{Chains: []payment.ChainID{"eip155:137"}})
		must(t, err)
		w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Rails = []canopy.Rail{rail} }})
		s, url := w.sells(dime)
		d := w.denied(w.get(url), "no_usable_offer")
		var skipped *x402.SkippedError
		if !errors.As(d, &skipped) || !skipped.Has("chain_not_configured") {
			t.Errorf("denied as %v", d)
		}
		w.signed(0)
		w.handed(s, 0)
	})
}

// What cannot be paid is not paid, and the reason has a name: cases 27, 29, 38,
// 39, 49, 55.
func TestCase27_UnpayableEntries(t *testing.T) {
	for name, tc := range map[string]struct{ entry, code string }{
		"27 18 decimals":        {entry(`"0x036CbD53842c5426634e7929541eC2318f3dCF7e"`, `"0xFAfDdbb3FC7688494971a79cc65DCa3EF82079E7"`, "84532", "4326", `"1000"`, `"1000000000000000000"`), "no_authorization"},
		"27 unknown token":      {entry("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0x1111111111111111111111111111111111111111"), "unknown_asset"},
		"29 erc7710":            {entry(`"version":"2"`, `"version":"2","assetTransferMethod":"erc7710"`), "unknown_method"},
		"29 unknown method":     {entry(`"version":"2"`, `"version":"2","assetTransferMethod":"foo"`), "unknown_method"},
		"29 unknown flow":       {entry(`"version":"2"`, `"version":"2","paymentFlow":"escrow"`), "unknown_flow"},
		"33 timeout 0":          {entry(`:60`, `:0`), "bad_timeout"},
		"33 timeout negative":   {entry(`:60`, `:-60`), "bad_timeout"},
		"38 plus":               {entry(`"1000"`, `"+1000"`), "bad_amount"},
		"38 zeros":              {entry(`"1000"`, `"0001000"`), "bad_amount"},
		"38 number":             {entry(`"1000"`, `1000`), "bad_amount"},
		"38 zero payee":         {entry("0x209693Bc6afc0C5328bA36FaF03C514EF312287C", "0x0000000000000000000000000000000000000000"), "zero_payee"},
		"39 unknown token name": {entry("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0x1111111111111111111111111111111111111111", `{"name":"USDC","version":"2"}`, "{}"), "unknown_asset"},
		"49 batch settlement":   {entry("exact", "batch-settlement", `"version":"2"`, `"version":"2","minDeposit":"100000000"`), "unknown_scheme"},
		"55 permit2":            {entry(`"version":"2"`, `"version":"2","assetTransferMethod":"permit2"`), "unknown_method"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				d := w.denied(w.get(w.handler(challenge(terms(tc.entry), "{}"))), "no_usable_offer")
				var skipped *x402.SkippedError
				if !errors.As(d, &skipped) || !skipped.Has(tc.code) {
					t.Errorf("denied as %v, want %s", d, tc.code)
				}
				w.signed(0)
			})
		})
	}
}

// The validity follows the seller's, between 10 s and the policy's maximum.
func TestCase33_ValidityFollowsTheSeller(t *testing.T) {
	for _, tc := range []struct{ seller, want time.Duration }{
		{15 * time.Second, 15 * time.Second}, {60 * time.Second, 60 * time.Second}, {24 * time.Hour, 60 * time.Second}, {10 * 365 * 24 * time.Hour, 60 * time.Second},
	} {
		t.Run(tc.seller.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.sells(dime, canopytest.Always(canopytest.OtherTimeout(tc.seller)))
				w.bought(w.get(url))
				a := s.Harvest().All()[0]
				if got := a.Expires().Sub(w.clock.Now()); got > tc.want || got < tc.want-time.Second {
					t.Errorf("valid for %v, want %v", got, tc.want)
				}
				if !a.ValidAfter.IsZero() {
					t.Errorf("valid after %v, want 0", a.ValidAfter)
				}
			})
		})
	}
}

// No ceiling given, none open: the default denies above a dollar.
func TestCase41_DefaultCeiling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: "[policy.default]\ncaps = [\"$100 / 24h\"]\nallow = [\"*\"]\n"})
		url := w.handler(challenge(terms(entry(`"1000"`, `"1000000000000000000000000000000"`)), "{}"))
		w.denied(w.get(url), "amount_overflow")
		_, url = w.sells(payment.Dollar + 1)
		w.denied(w.get(url), "max_payment")
		w.signed(0)
	})
}

// A corrective 402 with a hundred times the price, for somebody else.
func TestCase43_CorrectiveChallengeIsANewDecision(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.sells(payment.Cent, canopytest.From(2, canopytest.Both(canopytest.OtherPrice(payment.Dollar), canopytest.OtherPayee(canopytest.Address("thief")))))
		as[*canopy.InDoubtError](t, w.get(url).err)
		w.handed(s, 1)
		w.counted(payment.Cent)
		w.spent(0)
	})
}

func TestCase45_FacilitatorTimeoutIsUnknown(t *testing.T) {
	for code, settle := range map[string]canopytest.Fault{
		"settlement_pending": canopytest.SettleAndSayFailed("settlement_pending"), "facilitator_unavailable": canopytest.SayFailed("facilitator_unavailable"),
	} {
		t.Run(code, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.sells(dime, canopytest.Always(settle))
				if err := w.get(url).err; err == nil || !strings.Contains(err.Error(), "canopy: payment ") {
					t.Errorf("got %v", err)
				}
				w.handed(s, 1)
				w.counted(dime)
			})
		})
	}
}

// An identifier and its bytes stay together, over calls too.
func TestCase47_IdentifierKeepsItsPayload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
			PaymentID: canopytest.PaymentIDRequired,
			Routes:    []canopytest.Route{{Pattern: "GET /goods", Price: dime}},
			Faults:    canopytest.Plan{canopytest.First(canopytest.DropBeforeSettling())},
		})
		as[*canopy.InDoubtError](t, w.get(url+"/goods", canopy.WithKey("k")).err)
		w.bought(w.get(url+"/goods", canopy.WithKey("k")))
		if sent := w.wire.Payments(); len(sent) != 1 {
			t.Errorf("%d different payments were sent, want one", len(sent))
		}
		w.handed(s, 1)
		w.spent(dime)
	})
}

// A 402 with nothing but a receipt of failure: the reason is named.
func TestCase48_SettleFailureIsTyped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime, canopytest.Always(canopytest.SayFailed("insufficient_funds")))
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		if e.Code != "insufficient_funds" || e.Phase != canopy.RefusedAfter {
			t.Errorf("failed as %+v", e)
		}
	})
}

func TestCase50_PlainHTTPIsNotPaid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.serve("feed.example", canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}}})
		w.denied(w.get(url+"/goods"), "insecure_transport")
		w.signed(0)
		w.handed(s, 0)
	})
}

// What the seller declares goes back to the byte, and from the latest 402.
func TestCase53_ExtensionsAreEchoed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		declared := map[string]json.RawMessage{"bazaar": json.RawMessage(`{"info":{"input":{"type":"http","method":"GET"},"big":1152921504606846977},"schema":{}}`)}
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Extensions: declared, Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}}})
		w.bought(w.get(url + "/goods"))
		raw, err := base64.StdEncoding.DecodeString(s.Harvest().All()[0].Header)
		must(t, err)
		var sent struct{ Extensions map[string]json.RawMessage }
		must(t, json.Unmarshal(raw, &sent))
		if got := string(sent.Extensions["bazaar"]); got != string(declared["bazaar"]) {
			t.Errorf("echoed %s", got)
		}
	})
}

func TestCase54_EchoIsOfTheLatestChallenge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		n := 0
		url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
			if h := r.Header.Get("PAYMENT-SIGNATURE"); h != "" {
				raw, _ := base64.StdEncoding.DecodeString(h)
				if want := fmt.Sprintf(`"nonce":"n-%d"`, n); !strings.Contains(string(raw), want) {
					t.Errorf("call %d does not echo %s", n, want)
				}
				io.WriteString(rw, "goods")
				return
			}
			n++
			challenge(fmt.Sprintf(`{"x402Version":2,"accepts":[%s],"extensions":{"siwx":{"info":{"nonce":"n-%d"},"schema":{}}}}`, entry(), n), "{}")(rw, r)
		})
		for range 2 {
			if g := w.get(url); g.err != nil || g.body != "goods" || g.paid.State != ledger.InDoubt {
				t.Errorf("got %+v", g)
			}
		}
	})
}

// Errors carry phase, payment, whether it may have settled, from when it is
// safe to pay again, and the reason.
func TestCase60_ErrorsNameThePhase(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime, canopytest.Always(canopytest.Both(canopytest.SayFailed("x_y"), canopytest.WithHeader("Retry-After", "2"))))
		start := w.clock.Now()
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		if !e.Result.PaymentID.Valid() || e.Phase != canopy.RefusedAfter || e.Code != "x_y" || !e.SafeAfter.After(start) || e.Result.Amount != dime {
			t.Errorf("error %+v", e)
		}
		if d := w.clock.Now().Sub(start); d != 4*time.Second {
			t.Errorf("two resends took %v, want the seller's 2 s each", d)
		}
	})
}
