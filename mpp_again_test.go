package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// A second 402 within one call, on the rail of MPP.

// variants are how often the one payment was signed for a further challenge.
func (w *world) variants(want int) ledger.Entry {
	w.t.Helper()
	e := w.only()
	if e.Variants != want {
		w.t.Errorf("%d variants, want %d", e.Variants, want)
	}
	return e
}

// oneSlot fails the test unless all that the seller was handed is of one lane and
// nonce, or one expiring slot.
func (w *world) oneSlot(s *canopytest.Seller) {
	w.t.Helper()
	w.signed(1)
	first := s.Harvest().All()[0].Tempo
	for _, h := range s.Harvest().All() {
		if h.Tempo.NonceKey != first.NonceKey || h.Tempo.Nonce != first.Nonce || h.Tempo.ValidBefore == 0 {
			w.t.Errorf("handed over %v beside %v", h, first)
		}
	}
}

// Case 1, F12: the same challenge again: the same bytes, at most twice.
func TestMPPCase01_SameChallengeAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		fault canopytest.Rule
		sends int
		ends  func(*world, got)
	}{
		"once":  {canopytest.First(canopytest.SameChallenge()), 2, func(w *world, g got) { w.bought(g) }},
		"twice": {canopytest.Rule{From: 1, To: 2, Fault: canopytest.SameChallenge()}, 3, func(w *world, g got) { w.bought(g) }},
		"for ever": {canopytest.Always(canopytest.SameChallenge()), 3, func(w *world, g got) {
			if e := as[*canopy.InDoubtError](w.t, g.err); e.Phase != canopy.RefusedAfter || e.Code == "" {
				w.t.Errorf("in doubt as %+v", e)
			}
		}},
		"settled": {canopytest.First(canopytest.SettleAndSameChallenge()), 2, func(w *world, g got) {
			if e := as[*canopy.PaidError](w.t, g.err); e.Phase() != canopy.SettledPhase || !strings.Contains(e.Message, "already been used") {
				w.t.Errorf("paid as %+v", e)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{}, tc.fault)
				tc.ends(w, w.get(url))
				if n := s.Count("").Paid; n != tc.sends {
					t.Errorf("sent %d times, want %d", n, tc.sends)
				}
				w.digests(1)
				w.oneSlot(s)
				w.variants(0)
				w.counted(costly)
				if _, err := s.Harvest().SettleLate(t.Context()); err != nil {
					t.Error(err)
				}
				w.settled(dime, w.only().ID)
				w.overAll()
			})
		})
	}
}

// Case 1, F13: another challenge with equal terms, on a lane: a variant, at most
// three, each with a commit of its own, on the same lane and nonce: one debit,
// whichever the seller settles.
func TestMPPCase01_RotatedChallenge(t *testing.T) {
	for turns := range 6 {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(turns, " turns, late ", late), func(t *testing.T) {
				play(t, onTempo(setup{policy: capped("$0.15 / 24h")}), func(t *testing.T, w *world) {
					plan := canopytest.Rule{From: 1, To: turns, Fault: canopytest.AnswerAgain()}
					if turns == 0 {
						plan = canopytest.Nth(99, canopytest.AnswerAgain())
					}
					if late {
						plan.To = 0
					}
					s, url := w.asks(dime, canopytest.MPPConfig{}, plan)
					permitted := w.commits()
					g := w.get(url)
					switch {
					case late && turns > 0:
						as[*canopy.InDoubtError](t, g.err)
						w.digests(1 + 3)
						w.variants(3)
						if n := s.Count("").Paid; n > 1+3+2 {
							t.Errorf("sent %d times", n)
						}
					default:
						w.bought(g)
						w.variants(min(turns, 3))
						w.digests(1 + min(turns, 3))
					}
					if n := permitted(); n != len(w.spy.Calls()) {
						t.Errorf("%d commits permit %d signatures", n, len(w.spy.Calls()))
					}
					w.oneSlot(s)
					w.counted(costly)
					w.step("all that was handed over is settled", func() {
						if _, err := s.Harvest().SettleLate(t.Context()); err != nil {
							t.Error(err)
						}
					})
					w.settled(dime, w.only().ID)
					w.overAll()
				})
			})
		}
	}
}

// commits counts the commits from now on that permit a signature.
func (w *world) commits() func() int {
	before := map[payment.ID]int{}
	return func() (n int) {
		for _, e := range w.entries() {
			n += 1 + e.Variants - before[e.ID]
		}
		return n
	}
}

// Settled, and asked for another challenge: the variant can land nowhere, the
// seller cannot tell, and there is one debit.
func TestMPPCase01_SettledAndRotated(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$0.15 / 24h")}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.First(canopytest.SettleAndAnswerAgain()))
		g := w.get(url)
		if g.err != nil || g.StatusCode != 500 || g.paid.State != ledger.InDoubt {
			t.Errorf("got %+v, error %v", g, g.err)
		}
		w.oneSlot(s)
		w.variants(1)
		w.moved(dime)
		w.denied(w.get(url+"other"), "cap_exceeded")
		w.settled(dime, g.paid.PaymentID)
		w.overAll()
	})
}

// On the expiring nonce, which excludes nothing: the same bytes to another
// challenge, and nothing new.
func TestMPPCase01_RotatedOnTheExpiringNonce(t *testing.T) {
	for name, rule := range map[string]canopytest.Rule{"once": canopytest.First(canopytest.AnswerAgain()), "for ever": canopytest.Always(canopytest.AnswerAgain())} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, rule)
				g := w.get(url)
				if name == "once" {
					w.bought(g)
				} else {
					as[*canopy.InDoubtError](t, g.err)
				}
				w.digests(1)
				w.variants(0)
				if n := s.Count("").Paid; n > 3 {
					t.Errorf("sent %d times", n)
				}
				if name != "once" {
					w.step("again, with a new key", func() { w.get(url, canopy.WithKey("new")) })
				}
				w.handed(s, 1)
				w.digests(1)
				if _, err := s.Harvest().SettleLate(t.Context()); err != nil {
					t.Error(err)
				}
				w.settled(dime, w.only().ID)
				w.overAll()
			})
		})
	}
}

// F13: other terms in the second 402 are not signed while the first
// authorization can still settle; afterwards they are a payment of their own.
func TestF13_OtherTermsOfMPP(t *testing.T) {
	other := canopytest.Address("somebody else")
	for name, fault := range map[string]canopytest.Fault{
		"dearer": canopytest.PriceWalk(payment.Cent), "cheaper": canopytest.OtherPrice(payment.Cent), "other payee": canopytest.OtherPayee(other),
		"a split": canopytest.SplitTo(other, payment.Cent), "sponsored now": canopytest.FlipSponsor(), "another chain": canopytest.OtherChain(payment.Tempo),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(canopytest.AnswerAgain()), canopytest.From(2, fault))
				e := as[*canopy.InDoubtError](t, w.get(url).err)
				if n := s.Count("").Paid; n > 3 || name != "another chain" && (n != 1 || e.Err == nil) {
					t.Errorf("sent %d times, in doubt as %+v", n, e)
				}
				if g := w.get(url, canopy.WithKey("again")); name == "another chain" {
					w.denied(g, "no_usable_offer")
				} else {
					as[*canopy.InDoubtError](t, g.err)
				}
				w.handed(s, 1)
				w.digests(1)
				w.variants(0)
				w.counted(costly)
				w.clock.Set(e.SafeAfter)
				s.SetFaults("", nil)
				w.bought(w.get(url))
				w.handed(s, 2)
				w.moved(dime)
			})
		})
	}
}

// A variant is not signed where less than 10 s would be left of its validity, or
// the caller has left, or the agent was frozen meanwhile.
func TestMPPVariantIsPermittedAnew(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world, leave func()){
		"under 10 s left": nil,
		"frozen":          func(w *world, _ func()) { must(w.t, w.client.Freeze(context.Background(), "stop")) },
		"cancelled":       func(_ *world, leave func()) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(canopytest.AnswerAgain()))
				w.serve("127.0.0.1:8404", canopytest.SellerConfig{
					Protocol: canopytest.MPP, MPP: canopytest.MPPConfig{Lifetime: 9 * time.Second, Realm: "127.0.0.1:8402"},
					Routes: []canopytest.Route{{Pattern: "/goods/", Price: dime}},
				})
				w.wire.After = func(r *http.Response) error {
					if r.Request.Header.Get("Authorization") == "" {
						return nil
					}
					if meanwhile != nil {
						meanwhile(w, cancel)
						return nil
					}
					// The fresh challenge ends within 9 s.
					resp, err := w.net.Client(t).Get("http://127.0.0.1:8404/goods/1")
					must(t, err)
					resp.Body.Close()
					r.Header["Www-Authenticate"] = resp.Header["Www-Authenticate"]
					return nil
				}
				_, err := w.client.Fetch(ctx, w.request("GET", url, nil))
				e := as[*canopy.InDoubtError](t, err)
				if e.Err == nil || name == "cancelled" && !errors.Is(err, context.Canceled) {
					t.Errorf("in doubt as %v", err)
				}
				if n := s.Count("").Paid; n != 1 {
					t.Errorf("sent %d times", n)
				}
				w.digests(1)
				w.variants(0)
				w.counted(costly)
			})
		})
	}
}

// The same bytes are not sent where the seller asks for more patience than they
// have left.
func TestMPPNothingIsSentTooLate(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, canopytest.Always(canopytest.Both(canopytest.AnswerAgain(), canopytest.WithHeader("Retry-After", "18"))))
		e := as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
		if n := s.Count("").Paid; n != 1 || !strings.Contains(e.Error(), "its validity ends") {
			t.Errorf("sent %d times, %v", n, e)
		}
		w.clock.Advance(16 * time.Second)
		e = as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
		if n := s.Count("").Paid; n != 1 || !strings.Contains(e.Error(), "dead") {
			t.Errorf("sent %d times, %v", n, e)
		}
		w.handed(s, 1)
		w.overAll()
		w.moved(0)
	})
}

// Case 1 (mpp-rs#337): 36 calls at once against a seller that turns half of all
// payments away with a fresh challenge: 36 are served, and 36 debits.
func TestMPPCase01_ThirtySixAtOnce(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$9 / 24h")}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{},
			canopytest.Rule{From: 1, To: 54, Fault: canopytest.AnswerAgain()}, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		for i, g := range w.atOnce(36, func(int) got { return w.get(url) }) {
			if g.err != nil || g.StatusCode != 200 || g.paid.State != ledger.Claimed {
				t.Errorf("call %d: %+v, %v", i, g, g.err)
			}
		}
		if n := s.Count(""); n.Served != 36 || n.Settled != 36 || n.Paid != 90 {
			t.Errorf("%+v", n)
		}
		w.signed(36)
		w.handed(s, 36)
		w.digests(90)
		w.moved(36 * dime)
		w.counted(36 * costly)
		w.step("all that was ever signed is handed to the chain", func() { s.Harvest().SettleAll(t.Context()) })
		w.settled(36 * dime)
		w.overAll()
	})
}

// watchLanes fails the test where two payments are live on one lane as anything
// is sent.
func (w *world) watchLanes() {
	var mu sync.Mutex
	w.wire.Before = func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		live := map[[32]byte]canopy.PaymentID{}
		for _, e := range w.entries() {
			if e.Slot.Kind != payment.SlotLane || !e.State.Live() {
				continue
			}
			if before, is := live[e.Slot.NonceID]; is {
				w.t.Errorf("payments %s and %s are live on one lane", before, e.ID)
			}
			live[e.Slot.NonceID] = e.ID
		}
		return nil
	}
}

// few is a pool of n lanes.
func few(n int) func(*world, *canopy.Config) {
	return func(_ *world, c *canopy.Config) { c.Lanes = n }
}

// The pool is full: denied with no_free_lane, nothing signed, and the instant
// from which one may be free. After the chain's word lanes are used again: with
// the next nonce where it was used, with the same where it never will be.
func TestMPPLanes(t *testing.T) {
	play(t, onTempo(setup{config: few(3)}), func(t *testing.T, w *world) {
		w.watchLanes()
		w.chain.SetNodes(2, canopytest.NoLie) // by the word of one a lane is given up
		s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Nth(1, canopytest.DropBeforeSettling()), canopytest.Nth(2, canopytest.DropAfterSettling()))
		unused, used := w.doubt(url+"/1"), w.doubt(url+"/2")
		paid := w.bought(w.get(url + "/3")).paid.PaymentID
		first := w.entries()[0].ValidBefore
		w.refused("the fourth", func() {
			d := w.denied(w.get(url+"/4"), "no_free_lane")
			r := d.Result.Reasons[len(d.Result.Reasons)-1]
			if !r.Until.Equal(first) {
				t.Errorf("until %v, want %v", r.Until, first)
			}
		})
		// What the seller says frees no lane; the chain's word does.
		w.chain.Finalize()
		w.reconcile()
		w.state(used, ledger.Settled)
		w.state(paid, ledger.Settled)
		w.state(unused, ledger.InDoubt)
		for i := range 2 {
			w.bought(w.get(fmt.Sprint(url, "/5/", i)))
		}
		w.refused("the pool is full again", func() { w.denied(w.get(url+"/6"), "no_free_lane") })
		w.clock.Advance(61 * time.Second)
		w.chain.Finalize()
		w.reconcile()
		w.state(unused, ledger.ExpiredUnused)
		for i := range 3 {
			w.bought(w.get(fmt.Sprint(url, "/7/", i)))
		}
		lanes := map[[32]byte][]uint64{}
		for _, e := range w.entries() {
			if e.State != ledger.Denied {
				lanes[e.Slot.NonceID] = append(lanes[e.Slot.NonceID], e.Slot.Nonce)
			}
		}
		want := map[string]int{"[0 0]": 1, "[0 1 2]": 2}
		for _, nonces := range lanes {
			want[fmt.Sprint(nonces)]--
		}
		for nonces, n := range want {
			if n != 0 {
				t.Errorf("lanes %v: %s is off by %d", lanes, nonces, n)
			}
		}
		w.handed(s, 7) // the one that never moved, and a later one on its lane and nonce, are one
		w.settled(7 * dime)
		w.overAll()
	})
}

// Two clients on one ledger, and two processes on one file: never two payments on
// one lane, and no more lanes than the pool has.
func TestMPPLanesOfManyClients(t *testing.T) {
	play(t, onTempo(setup{config: few(5), policy: capped("$20 / 24h")}), func(t *testing.T, w *world) {
		w.watchLanes()
		s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		clients := []*canopy.Client{w.client, w.another()}
		served, full := 0, 0
		for round := range 4 {
			for i, g := range w.atOnce(16, func(i int) got {
				resp, err := clients[i%2].Fetch(t.Context(), w.request("GET", fmt.Sprint(url, "/", round, "/", i), nil))
				return w.read(resp, err)
			}) {
				var denied *canopy.DeniedError
				switch {
				case g.err == nil && g.StatusCode == 200:
					served++
				case errors.As(g.err, &denied) && denied.Result.Code == "no_free_lane":
					full++
				default:
					t.Errorf("call %d: %+v, %v", i, g, g.err)
				}
			}
			w.chain.Finalize()
			w.step("a round", func() { w.reconcile() })
		}
		if served != 20 || full != 44 {
			t.Errorf("%d served, %d found no lane", served, full)
		}
		lanes := map[[32]byte]bool{}
		for _, e := range w.entries() {
			if e.Slot.Kind == payment.SlotLane {
				lanes[e.Slot.NonceID] = true
			}
		}
		if len(lanes) != 5 {
			t.Errorf("%d lanes were opened, want 5", len(lanes))
		}
		w.handed(s, 20)
		w.settled(20 * dime)
		w.overAll()
	})
}

// The hold of a variant lives until the last of all that was signed is dead, and
// what the chain shows of an earlier one settles it.
func TestMPPVariantsHold(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$0.15 / 24h")}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(canopytest.AnswerAgain()))
		w.wire.After = func(r *http.Response) error {
			if r.Request.Header.Get("Authorization") != "" {
				w.clock.Advance(10 * time.Second)
			}
			return nil
		}
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		all := s.Harvest().All()
		first, last := all[0].Expires(), all[len(all)-1].Expires()
		if len(all) != 4 || !w.only().ValidBefore.Equal(last) || last.Sub(first) < 30*time.Second {
			t.Errorf("%d were signed, from %v to %v, held to %v", len(all), first, last, w.only().ValidBefore)
		}
		w.clock.Set(first.Add(time.Second))
		w.chain.Finalize()
		w.step("a round", func() { w.reconcile() })
		w.state(e.Result.PaymentID, ledger.InDoubt)
		w.denied(w.get(url+"other"), "cap_exceeded")
		w.late(s)
		w.settled(dime, e.Result.PaymentID)
		w.overAll()
	})
}

// Frozen between the signature and the sending, or between two sendings: nothing
// more leaves.
func TestMPPFrozenMeanwhile(t *testing.T) {
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask, canopytest.Always(canopytest.SameChallenge()))
		w.wire.After = func(r *http.Response) error {
			if r.Request.Header.Get("Authorization") != "" {
				return w.client.Freeze(t.Context(), "stop")
			}
			return nil
		}
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		if n := s.Count("").Paid; n != 1 || !strings.Contains(e.Error(), "frozen") {
			t.Errorf("sent %d times, %v", n, e)
		}
		w.refused("the same again", func() { w.get(url) })
		w.counted(k.cost)
	})
	playKinds(t, func(t *testing.T, w *world, k kind) {
		s, url := w.asks(dime, k.ask)
		w.spy.Before(func(context.Context, canopytest.Signed) { must(t, w.client.Freeze(t.Context(), "stop")) })
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		if n := s.Count("").Paid; n != 0 || e.Phase != canopy.SignedNotSent {
			t.Errorf("sent %d times, %+v", n, e)
		}
		w.handed(s, 0)
		w.counted(k.cost)
	})
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		n := &notary{}
		w.broadcastBy(n)
		w.spy.Before(func(context.Context, canopytest.Signed) { must(t, w.client.Freeze(t.Context(), "stop")) })
		_, url := w.asks(dime, canopytest.MPPConfig{Modes: []string{"push"}})
		as[*canopy.InDoubtError](t, w.get(url).err)
		if n.seen != nil || len(w.chain.TempoUses()) != 0 {
			t.Error("it was broadcast")
		}
	})
}
