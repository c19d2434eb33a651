package canopy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// A seller with both rails, on Base by x402 and on Tempo by MPP.

// sellsBoth serves a seller of both rails, with one price for both unless
// other says another one for Tempo.
func (w *world) sellsBoth(price, other payment.USD, faults ...canopytest.Rule) (*canopytest.Seller, string) {
	w.t.Helper()
	s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
		Protocol: canopytest.X402 | canopytest.MPP, Faults: faults,
		Routes: []canopytest.Route{{Pattern: "/goods/", Price: price, Also: []canopytest.Accept{{Chain: w.tempo(), Price: other}}}},
	})
	return s, url + "/goods/1"
}

func (w *world) tempo() *canopytest.Chain { return w.others[0] }

// rich leaves so much on each chain.
func (w *world) rich(base, tempo payment.USD) {
	w.drain(w.chain, base)
	w.drain(w.tempo(), tempo)
	w.clock.Advance(11 * time.Second) // what was read is old
}

// The chain that has the money is paid on, the cheaper one of two; the choice and
// the reasons against the other stand in the ledger and in CheckURL, and agree.
func TestMPPChosenByFunds(t *testing.T) {
	for name, tc := range map[string]struct {
		base, tempo payment.USD // balances
		other       payment.USD // the price on Tempo, where it is another
		down        bool        // the nodes of Base
		want        canopy.ChainID
		against     string
	}{
		"both, and fees make it dearer on Tempo": {10 * payment.Dollar, 10 * payment.Dollar, 0, false, payment.Base, "it costs more: $0.13 against $0.10, with fees"},
		"both, and Tempo is cheaper":             {10 * payment.Dollar, 10 * payment.Dollar, payment.Cent, false, payment.TempoTest, "it costs more: $0.10 against $0.04, with fees"},
		"money on Tempo":                         {0, 10 * payment.Dollar, 0, false, payment.TempoTest, "Insufficient balance"},
		"money on Base":                          {10 * payment.Dollar, 0, payment.Cent, false, payment.Base, "Insufficient balance: $0.04 ($0.01 and a fee of at most $0.03) is needed, and the account holds $0.00"},
		"enough for the price but the fee":       {dime - 1, costly, 0, false, payment.TempoTest, "Insufficient balance: $0.10 is needed, and the account holds $0.099999"},
		"Base cannot be read, and is dearer":     {10 * payment.Dollar, 10 * payment.Dollar, payment.Cent, true, payment.TempoTest, "none of its nodes answered; and it costs more: $0.10 against $0.04, with fees"},
		"Base cannot be read":                    {10 * payment.Dollar, 10 * payment.Dollar, 0, true, payment.TempoTest, "the balance on base is unknown: none of its nodes answered"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onBoth(setup{}), func(t *testing.T, w *world) {
				_, url := w.sellsBoth(dime, tc.other)
				w.rich(tc.base, tc.tempo)
				if tc.down {
					w.chain.SetDown(errors.New("no route to host"))
				}
				saved := [2]payment.USD{w.chain.Spent(w.spy.Address()), w.tempo().Spent(w.spy.Address())}
				var c canopy.Check
				w.refused("checking", func() {
					var err error
					c, err = w.client.CheckURL(t.Context(), url)
					must(t, err)
				})
				g := w.bought(w.get(url))
				if g.paid.Chain != tc.want || c.Chain != tc.want || c.Status != canopy.Allowed {
					t.Errorf("paid on %s, checked %+v, want %s", g.paid.Chain, c, tc.want)
				}
				if len(c.Others) != 1 || c.Others[0].Chain == tc.want || !strings.Contains(c.Others[0].Reason, tc.against) {
					t.Errorf("against the others: %+v, want %q", c.Others, tc.against)
				}
				told := ""
				for _, r := range w.only().Reasons {
					if r.Code == canopy.CodeChosen {
						told = r.Text
					}
				}
				if len(c.Others) != 1 || !strings.Contains(told, g.paid.Rail+" on ") || !strings.Contains(told, "not "+c.Others[0].Rail+" on ") || !strings.Contains(told, tc.against) {
					t.Errorf("the ledger tells %q", told)
				}
				moved := [2]bool{w.chain.Spent(w.spy.Address()) != saved[0], w.tempo().Spent(w.spy.Address()) != saved[1]}
				if moved != [2]bool{tc.want == payment.Base, tc.want == payment.TempoTest} {
					t.Errorf("money moved on Base and Tempo: %v", moved)
				}
			})
		})
	}
	t.Run("nowhere", func(t *testing.T) {
		play(t, onBoth(setup{}), func(t *testing.T, w *world) {
			_, url := w.sellsBoth(dime, 0)
			w.rich(dime-1, costly-1)
			w.refused("short on both", func() { w.denied(w.get(url), "insufficient_balance") })
		})
	})
}

// Attack 22: while a payment on one rail is in doubt the other one is never
// tried, whatever moves meanwhile: the money, the keys of the caller, and what
// the seller offers after it was paid.
func TestAttack22_OneRailAPayment(t *testing.T) {
	for first, rail := range map[canopy.ChainID]string{payment.Base: "x402", payment.TempoTest: "mpp"} {
		for name, fault := range map[string]canopytest.Fault{
			"dropped": canopytest.DropBeforeSettling(), "settled and dropped": canopytest.DropAfterSettling(), "402 again": canopytest.AnswerAgain(),
			"settled, 402 again": canopytest.SettleAndAnswerAgain(), "failed": canopytest.SayFailed(""), "a 500": canopytest.Status(500),
		} {
			t.Run(rail+" "+name, func(t *testing.T) {
				play(t, onBoth(setup{}), func(t *testing.T, w *world) {
					s, url := w.sellsBoth(dime, 0, canopytest.Always(fault))
					if first == payment.TempoTest {
						w.rich(0, 10*payment.Dollar)
					}
					w.get(url, canopy.WithKey("k"))
					if first == payment.Base {
						w.rich(0, 10*payment.Dollar)
					} else {
						w.chain.Fund(w.spy.Address(), 10*payment.Dollar)
						w.rich(10*payment.Dollar, 0)
					}
					e := w.only()
					if e.Terms.Rail != rail {
						t.Fatalf("first paid by %s", e.Terms.Rail)
					}
					for _, key := range []string{"k", "other", ""} {
						var opts []canopy.Option
						if key != "" {
							opts = append(opts, canopy.WithKey(key))
						}
						if g := w.get(url, opts...); g.err == nil && g.StatusCode == 200 {
							t.Errorf("under %q: %+v", key, g)
						}
					}
					if all := w.entries(); len(all) != 1 {
						t.Errorf("%d payments", len(all))
					}
					w.signed(1)
					for _, h := range s.Harvest().All() {
						if (h.Tempo == nil) != (rail == "x402") {
							t.Errorf("handed over %v", h)
						}
					}
					w.step("the seller settles all it has", func() { s.Harvest().SettleAll(t.Context()) })
					w.overAll()
					w.signed(1)
				})
			})
		}
	}
}

// Once the chain has released the payment on one rail, the next call may be paid
// on the other.
func TestMPPOtherRailAfterTheRelease(t *testing.T) {
	play(t, onBoth(setup{}), func(t *testing.T, w *world) {
		_, url := w.sellsBoth(dime, 0, canopytest.First(canopytest.DropBeforeSettling()))
		id := w.doubt(url, canopy.WithKey("k"))
		w.rich(0, 10*payment.Dollar)
		w.clock.Advance(2 * time.Minute)
		w.chain.Finalize()
		w.step("a round", func() { w.reconcile() })
		w.state(id, ledger.ExpiredUnused)
		g := w.bought(w.get(url, canopy.WithKey("k")))
		if g.paid.PaymentID == id || g.paid.Rail != "mpp" {
			t.Errorf("%+v", g.paid)
		}
		w.signed(2)
	})
}

// One policy and one cap over both rails: dollars, counts and destinations.
func TestMPPOneCapOverBothRails(t *testing.T) {
	play(t, onBoth(setup{policy: "[policy.default]\ncaps = [\"$0.37 / 24h\", \"5 payments / 1h\"]\nallow = [\"host:127.0.0.1:8402\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.sellsBoth(dime, 0)
		if g := w.bought(w.get(url + "/1")); g.paid.Rail != "x402" {
			t.Errorf("%+v", g.paid)
		}
		w.rich(0, 10*payment.Dollar)
		if g := w.bought(w.get(url + "/2")); g.paid.Rail != "mpp" {
			t.Errorf("%+v", g.paid)
		}
		w.bought(w.get(url + "/3"))
		w.counted(dime + 2*costly)
		w.refused("over the cap, on either rail", func() {
			w.denied(w.get(url+"/4"), "cap_exceeded")
			w.chain.Fund(w.spy.Address(), payment.Dollar)
			w.clock.Advance(11 * time.Second)
			w.denied(w.get(url+"/4"), "cap_exceeded")
		})
		// What a fee did not take lets a payment more: by the chain's word.
		w.tempo().Finalize()
		w.chain.Finalize()
		w.step("a round", func() { w.client.Reconcile(t.Context()) })
		w.counted(3*dime + w.fees())
		for i := range 2 {
			w.denied(w.get(fmt.Sprint(url, "/5/", i)), "cap_exceeded") // $0.30, fees and $0.10
		}
		other, _ := w.serve("127.0.0.1:8409", canopytest.SellerConfig{
			Protocol: canopytest.X402 | canopytest.MPP,
			Routes:   []canopytest.Route{{Pattern: "/goods/", Price: payment.Cent, Also: []canopytest.Accept{{Chain: w.tempo()}}}},
		})
		w.refused("a host that no list allows", func() { w.denied(w.get("http://127.0.0.1:8409/goods/"), "not_allowed") })
		if n := other.Count("").Paid; n != 0 {
			t.Errorf("it was paid %d times", n)
		}
	})
}

// The dearer offer that a policy allows is taken where the cheaper one is denied:
// a list of chains decides too.
func TestMPPChosenByPolicy(t *testing.T) {
	play(t, onBoth(setup{policy: "[policy.default]\ncaps = [\"$5 / 24h\"]\nallow = [\"*\", \"chain:eip155:42431\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.sellsBoth(dime, 0)
		g := w.bought(w.get(url))
		c, err := w.client.CheckURL(t.Context(), url+"/2")
		if must(t, err); g.paid.Rail != "mpp" || c.Rail != "mpp" || len(c.Others) != 1 || c.Others[0].Status != canopy.Denied {
			t.Errorf("paid %+v, checked %+v", g.paid, c)
		}
		w.settled(dime, g.paid.PaymentID)
	})
}

// A chain without nodes is not preferred where another one's balance is known,
// and the reason says what is missing.
func TestMPPChosenWithoutNodes(t *testing.T) {
	play(t, onBoth(setup{config: func(w *world, c *canopy.Config) { c.Treasury.Chains = []canopy.Chain{w.tempo()} }}), func(t *testing.T, w *world) {
		_, url := w.sellsBoth(dime, 0)
		c, err := w.client.CheckURL(t.Context(), url)
		if must(t, err); c.Rail != "mpp" || len(c.Others) != 1 || c.Others[0].Reason != "the balance on base is unknown: no rpc is configured for that chain" {
			t.Errorf("%+v", c)
		}
		if g := w.bought(w.get(url)); g.paid.Rail != "mpp" {
			t.Errorf("%+v", g.paid)
		}
	})
}

// The offer that a person approved is taken though another one is cheaper by
// now, and the reason says so.
func TestMPPChosenByApproval(t *testing.T) {
	play(t, onBoth(setup{policy: "[policy.default]\ncaps = [\"$5 / 24h\"]\napprove_above = \"$0.05\"\nallow = [\"*\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.sellsBoth(dime, 0)
		w.rich(0, 10*payment.Dollar)
		p := as[*canopy.PendingError](t, w.get(url).err)
		w.rule(p.Result.ApprovalID, true)
		w.chain.Fund(w.spy.Address(), 10*payment.Dollar)
		w.clock.Advance(11 * time.Second)
		c, err := w.client.CheckURL(t.Context(), url)
		if must(t, err); c.Rail != "mpp" || len(c.Others) != 1 || c.Others[0].Reason != "a person approved the other offer" {
			t.Errorf("%+v", c)
		}
		if g := w.bought(w.get(url)); g.paid.Rail != "mpp" || g.paid.PaymentID != p.Result.PaymentID {
			t.Errorf("%+v", g.paid)
		}
	})
}

// What is asked for is told with its cost, and the other offers with why they
// cannot be taken, also where none can.
func TestMPPMaxPrice(t *testing.T) {
	play(t, onBoth(setup{}), func(t *testing.T, w *world) {
		_, url := w.sellsBoth(2*dime, dime)
		w.refused("above the maximum", func() {
			c, err := w.client.CheckURL(t.Context(), url, canopy.WithMaxPrice(dime))
			if must(t, err); c.Status != canopy.Denied || c.Amount != 2*dime || c.Cost() != 2*dime || c.Reason != "Amount $0.20 exceeds the caller's maximum of $0.10" {
				t.Errorf("%+v", c)
			}
			if len(c.Others) != 1 || c.Others[0].Reason != "Cost $0.13 ($0.10 and a fee of at most $0.03) exceeds the caller's maximum of $0.10" || c.Others[0].Cost() != costly {
				t.Errorf("others %+v", c.Others)
			}
			d := as[*canopy.DeniedError](t, w.get(url, canopy.WithMaxPrice(dime)).err)
			if d.Result.Amount != 2*dime || d.Result.Reasons[0].Limit != dime || d.Result.Reasons[0].Cost != 2*dime {
				t.Errorf("%+v", d.Result)
			}
		})
	})
}

// Where every offer is denied, each is by its own reason.
func TestMPPEveryOfferDenied(t *testing.T) {
	play(t, onBoth(setup{policy: "[policy.default]\nmax_payment = \"$0.05\"\ncaps = [\"$5 / 24h\"]\nallow = [\"*\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.sellsBoth(dime, 0)
		c, err := w.client.CheckURL(t.Context(), url)
		if must(t, err); c.Status != canopy.Denied || c.Reason != "Amount $0.10 exceeds the maximum of $0.05 per payment" ||
			len(c.Others) != 1 || c.Others[0].Reason != "Amount $0.13 exceeds the maximum of $0.05 per payment" {
			t.Errorf("%+v", c)
		}
	})
}

// The reason against an offer stands whole in the record, figures and all.
func TestMPPReasonAgainstIsWhole(t *testing.T) {
	play(t, onBoth(setup{policy: "[policy.default]\ncaps = [\"$5 / 24h\"]\nallow = [\"host:127.0.0.1\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
			Protocol: canopytest.X402 | canopytest.MPP,
			Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime, Also: []canopytest.Accept{{
				Chain: w.tempo(), Splits: []canopytest.Split{{To: canopytest.Address("a"), Price: payment.Cent}, {To: canopytest.Address("b"), Price: payment.Cent}},
			}}}},
		})
		g := w.bought(w.get(url + "/goods/1"))
		if g.paid.Rail != "x402" {
			t.Fatalf("%+v", g.paid)
		}
		want := fmt.Sprintf("x402 on base was chosen, at a cost of $0.10; not mpp on tempo-testnet, at a cost of $0.145 ($0.10 and a fee of at most $0.045): "+
			"Further recipient %[1]s of Host 127.0.0.1 (payee %[3]s) is not on the allow list; Further recipient %[2]s of Host 127.0.0.1 (payee %[3]s) is not on the allow list",
			canopytest.Address("a"), canopytest.Address("b"), canopytest.Address("seller"))
		told := w.only().Reasons
		if len(told) != 1 || told[0].Code != canopy.CodeChosen || told[0].Text != want {
			t.Errorf("%+v, want %q", told, want)
		}
	})
}
