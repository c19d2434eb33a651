package canopy_test

import (
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// An approval is for terms, not for a challenge: the next challenge with equal
// terms is paid with it, once; others are another decision.
func TestMPPApproval(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\"]\napprove_above = \"$0.05\"\nallow = [\"*\"]\n"}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, k.ask)
				p := as[*canopy.PendingError](t, w.get(url).err)
				w.counted(0)
				w.clock.Advance(time.Hour) // its challenge is long dead
				w.refused("not answered yet", func() {
					if again := as[*canopy.PendingError](t, w.get(url).err); again.Result.ApprovalID != p.Result.ApprovalID {
						t.Errorf("another approval %+v", again.Result)
					}
				})
				w.rule(p.Result.ApprovalID, true)
				s.SetPrice("/goods/", dime+1)
				w.refused("a price that nobody approved", func() {
					if other := as[*canopy.PendingError](t, w.get(url).err); other.Result.ApprovalID == p.Result.ApprovalID {
						t.Errorf("the same approval for %v", other.Result.Amount)
					}
				})
				s.SetPrice("/goods/", dime)
				if g := w.bought(w.get(url)); g.paid.PaymentID != p.Result.PaymentID {
					t.Errorf("paid %+v, approved was %s", g.paid, p.Result.PaymentID)
				}
				w.refused("it is spent", func() { as[*canopy.PendingError](t, w.get(url).err) })
				w.settled(dime, p.Result.PaymentID)
			})
		})
	}
}

// A pushed payment is shown again with the same hash, whatever the seller says of
// its challenge; nothing else is broadcast.
func TestMPPPushIsShownAgain(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{
		"another challenge": canopytest.AnswerAgain(), "the same challenge": canopytest.SameChallenge(), "failed": canopytest.SayFailed(""),
		"settled, failed": canopytest.SettleAndSayFailed(""), "settled, dropped": canopytest.DropAfterSettling(), "a 500": canopytest.SayInternalError(),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{policy: capped("$0.15 / 24h")}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{Modes: []string{"push"}}, canopytest.First(fault))
				for range 3 {
					g := w.get(url, canopy.WithKey("k"))
					if g.err != nil {
						as[*canopy.PaidError](t, g.err) // the chain has it
					} else if !g.cost || g.paid.State != ledger.Claimed {
						t.Errorf("got %+v", g)
					}
				}
				if n := s.Count("").Served; n > 1 {
					t.Errorf("served %d times", n)
				}
				if n := len(w.chain.TempoUses()); n != 1 {
					t.Errorf("%d transactions", n)
				}
				w.digests(1)
				w.denied(w.get(url+"other"), "cap_exceeded")
				w.settled(dime, w.entries()[0].ID)
				w.overAll()
			})
		})
	}
}

// An authorization of evm/charge is bound to its challenge by its nonce: another
// challenge gets the same bytes, and there is one debit.
func TestMPPEVMChargeRotated(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{
		"again": canopytest.AnswerAgain(), "settled, again": canopytest.SettleAndAnswerAgain(), "the same": canopytest.SameChallenge(), "other price": canopytest.OtherPrice(payment.Cent).At(canopytest.OnPaid),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{policy: capped("$0.15 / 24h"), config: func(w *world, c *canopy.Config) {
				watching(w, c)
				c.Rails = []canopy.Rail{w.mpp(mpp.Config{})}
			}}, func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(fault))
				if g := w.get(url); g.err == nil && g.StatusCode == 200 {
					t.Errorf("got %+v", g)
				}
				w.digests(1)
				w.signed(1)
				w.handed(s, 1)
				w.counted(dime)
				w.denied(w.get(url+"other"), "cap_exceeded")
				w.step("the seller settles what it has", func() { s.Harvest().SettleLate(t.Context()) })
				w.overAll()
				w.spent(dime)
				w.counted(dime)
			})
		})
	}
}

// A proof whose answer was lost: the same bytes again, which the seller knows;
// it counts as one payment, for as long as its cap says.
func TestMPPProofAnswerLost(t *testing.T) {
	play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\", \"1 payments / 1h\"]\nallow = [\"*\"]\n"}), func(t *testing.T, w *world) {
		s, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{ProofOnce: true}, canopytest.First(canopytest.DropAfterSettling()))
		id := w.doubt(url, canopy.WithKey("k"))
		if again := as[*canopy.PaidError](t, w.get(url, canopy.WithKey("k")).err); again.Result.PaymentID != id {
			t.Errorf("%+v", again)
		}
		w.digests(1)
		if n := s.Count("").Served; n != 1 {
			t.Errorf("served %d times", n)
		}
		w.refused("one an hour", func() { w.denied(w.get(url+"2"), "count_exceeded") })
		w.counted(0)
		w.clock.Advance(62 * time.Minute)
		w.bought(w.get(url + "2"))
		w.digests(2)
	})
}

// Thirty-six at once that a sponsor pays the fees of, on one nonce that expires:
// each is a payment of its own, and each is served.
func TestMPPSponsoredAtOnce(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$3.60 / 24h")}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true}, canopytest.Rule{From: 1, To: 54, Fault: canopytest.AnswerAgain()}, canopytest.Always(canopytest.Delay(time.Second).At(canopytest.OnPaid)))
		for i, g := range w.atOnce(36, func(int) got { return w.get(url) }) {
			if g.err != nil || g.StatusCode != 200 || g.paid.State != ledger.Claimed {
				t.Errorf("call %d: %+v, %v", i, g, g.err)
			}
		}
		if n := s.Count(""); n.Served != 36 || n.Settled != 36 {
			t.Errorf("%+v", n)
		}
		w.signed(36)
		w.digests(36)
		w.refused("the cap is full", func() { w.denied(w.get(url+"/37"), "cap_exceeded") })
		w.settled(36 * dime)
		w.overAll()
	})
}

// Without a chain to ask, each payment takes a lane of its own, never used again,
// and what is in doubt counts as spent for good.
func TestMPPWithoutAChain(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$0.45 / 24h"), config: func(_ *world, c *canopy.Config) { c.Treasury.Chains, c.Lanes = nil, 1 }}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.First(canopytest.DropBeforeSettling()))
		id := w.doubt(url + "/1")
		w.bought(w.get(url + "/2"))
		w.clock.Advance(11 * time.Minute)
		if r := w.reconcile(); r.Released != 0 || r.Settled != 0 {
			t.Errorf("%+v", r)
		}
		w.state(id, ledger.InDoubt)
		w.bought(w.get(url + "/3"))
		lanes := map[[32]byte]bool{}
		for _, e := range w.entries() {
			if lanes[e.Slot.NonceID] || e.Slot.Nonce != 0 || e.Watched {
				t.Errorf("in %v", e.Slot)
			}
			lanes[e.Slot.NonceID] = true
		}
		w.handed(s, 3)
		w.counted(3 * costly)
		w.denied(w.get(url+"/4"), "cap_exceeded")
	})
}
