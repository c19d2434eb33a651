package canopy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// A charge on Tempo: one signature, one transaction, one debit, and once it is
// final the fee that the chain took counts in place of the bound.
func TestMPPPull(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{})
		g := w.bought(w.get(url))
		w.chain.AssertTransfers(t, canopytest.Move{From: w.client.Address(), To: canopytest.Address("seller"), Amount: dime})
		if r := g.paid; r.Amount != dime || r.Fee != feeBound || r.Rail != "mpp" || r.Chain != payment.TempoTest ||
			r.Recipient != canopytest.Address("seller") || r.TxHash != w.chain.TempoUses()[0].TxHash || r.Settlement != canopy.SettlementClaimed {
			t.Errorf("%+v", r)
		}
		if n := s.Count("").Paid; n != 1 {
			t.Errorf("sent %d times", n)
		}
		w.handed(s, 1)
		w.digests(1)
		w.counted(costly)
		e := w.state(g.paid.PaymentID, ledger.Claimed)
		if tx := s.Requests()[1].Tempo; tx.ValidBefore != uint64(e.ValidBefore.Unix()) || e.Slot.NonceID != tx.NonceKey || tx.FeeToken != w.chain.Dollar().Address || e.Host != "127.0.0.1" || e.Realm != "127.0.0.1:8402" {
			t.Errorf("signed %v for %+v", tx, e)
		}
		w.settled(dime, g.paid.PaymentID)
		w.overAll()
	})
}

// Case 7, MPP: the paid request has the bytes of the first one, and its
// digest is bound in the challenge.
func TestMPPBody(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		const body = `{"items":[1,2,3]}`
		s, url := w.asks(dime, canopytest.MPPConfig{Digest: true})
		g := w.bought(w.do(w.request("POST", url, strings.NewReader(body))))
		for i, r := range s.Requests() {
			if string(r.Body) != body || r.Method != "POST" {
				t.Errorf("request %d: %s %q", i, r.Method, r.Body)
			}
		}
		// A body that no GetBody makes again is kept.
		req := w.request("POST", url+"2", io.MultiReader(strings.NewReader(body)))
		w.bought(w.do(req))
		// One that is too long to keep is refused before anything is signed.
		w.refused("a body of 2 MiB", func() {
			req := w.request("POST", url+"3", io.MultiReader(bytes.NewReader(make([]byte, 2<<20))))
			if g := w.do(req); !errors.Is(g.err, canopy.ErrBodyNotReplayable) {
				t.Errorf("got %v", g.err)
			}
		})
		w.settled(2*dime, g.paid.PaymentID)
		w.overAll()
	})
}

// A check tells all recipients of a charge with splits, and a denial each that
// is not allowed.
func TestMPPCheckSplits(t *testing.T) {
	ana, ben, seller := canopytest.Address("ana"), canopytest.Address("ben"), canopytest.Address("seller")
	want := []canopy.Payee{{Address: seller, Amount: 7 * payment.Cent}, {Address: ana, Amount: payment.Cent}, {Address: ben, Amount: 2 * payment.Cent}}
	play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$5 / 24h\"]\nallow = [\"host:127.0.0.1\"]\n"}), func(t *testing.T, w *world) {
		_, url := w.asksFor(canopytest.Route{Price: dime, Splits: []canopytest.Split{{To: ana, Price: payment.Cent}, {To: ben, Price: 2 * payment.Cent}}}, canopytest.MPPConfig{})
		w.refused("the splits", func() {
			c, err := w.client.CheckURL(t.Context(), url)
			if must(t, err); c.Status != canopy.Denied || c.Amount != dime || c.Recipient != seller || !slices.Equal(c.Recipients, want) || c.Cost() != c.Amount+c.Fee {
				t.Errorf("%+v", c)
			}
			d := as[*canopy.DeniedError](t, w.get(url).err)
			if !slices.Equal(d.Result.Recipients, want) || d.Result.Amount != dime {
				t.Errorf("%+v", d.Result)
			}
			for _, reasons := range [][]canopy.Reason{c.Reasons, d.Result.Reasons} {
				if len(reasons) != 2 || !strings.Contains(reasons[0].Text, ana.String()) || !strings.Contains(reasons[1].Text, ben.String()) {
					t.Errorf("%+v", reasons)
				}
			}
		})
	})
}

// A charge with splits moves all parts in one transaction, at one cost.
func TestMPPSplits(t *testing.T) {
	ana, ben := canopytest.Address("ana"), canopytest.Address("ben")
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asksFor(canopytest.Route{Price: dime, Splits: []canopytest.Split{{To: ana, Price: payment.Cent}, {To: ben, Price: 2 * payment.Cent, Memo: &[32]byte{7}}}}, canopytest.MPPConfig{})
		g := w.bought(w.get(url))
		from := w.client.Address()
		w.chain.AssertTransfers(t,
			canopytest.Move{From: from, To: canopytest.Address("seller"), Amount: 7 * payment.Cent},
			canopytest.Move{From: from, To: ana, Amount: payment.Cent}, canopytest.Move{From: from, To: ben, Amount: 2 * payment.Cent})
		e := w.state(g.paid.PaymentID, ledger.Claimed)
		if len(e.Terms.Recipients) != 3 || e.Terms.FeeBound <= feeBound || len(w.chain.Memos(from, [32]byte{7})) != 1 {
			t.Errorf("%+v", e.Terms)
		}
		w.handed(s, 1)
		w.counted(dime + e.Terms.FeeBound)
		w.settled(dime, e.ID)
		w.overAll()
	})
}

// What a challenge says beside its terms comes back as it was said.
func TestMPPOpaque(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asksFor(canopytest.Route{Price: dime, ExternalID: "order <17> & more", Description: `Café — 日本 "5€" \ 🎉`}, canopytest.MPPConfig{
			Opaque: map[string]string{"z": "1", "a": "<&>"}, Realm: "Café, Payment id=\"x\" — 日本",
		})
		g := w.bought(w.get(url)) // the seller's id binds all of it
		w.handed(s, 1)
		c, err := w.client.CheckURL(t.Context(), url)
		if must(t, err); c.Realm != "Café, Payment id=\"x\" — 日本" || !strings.HasPrefix(c.Description, "Café — 日本") {
			t.Errorf("%+v", c)
		}
		w.settled(dime, g.paid.PaymentID)
	})
}

// Case 10: the seller needs a Bearer and a payment, and gets both; case 9: where
// the payment goes into Authorization it replaces what the caller had, and never
// stands beside it.
func TestMPPCase10_HeaderBesideABearer(t *testing.T) {
	for name, tc := range map[string]struct{ header, bearer string }{
		"its own header": {"Payment-Authorization", "Bearer t"}, "the default": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, onTempo(setup{}), func(t *testing.T, w *world) {
				s, url := w.asks(dime, canopytest.MPPConfig{Header: tc.header})
				w.bought(w.do(w.send("GET", url, map[string]string{"Authorization": "Bearer t"})))
				sent := w.wire.Sent()
				paid := sent[len(sent)-1].Header
				own := paid.Values("Authorization")
				if tc.bearer != "" {
					if len(own) != 1 || own[0] != tc.bearer || len(paid.Values(tc.header)) != 1 || !strings.HasPrefix(paid.Get(tc.header), "Payment ") {
						t.Errorf("sent %d and %d values", len(own), len(paid.Values(tc.header)))
					}
				} else if len(own) != 1 || !strings.HasPrefix(own[0], "Payment ") || paid.Get("Payment-Authorization") != "" {
					t.Errorf("sent %d values of Authorization", len(own))
				}
				w.handed(s, 1)
				w.moved(dime)
			})
		})
	}
}

// A charge of nothing is answered by a signature that is a payment of $0: judged,
// recorded, counted as one, on no chain, and final with its receipt.
func TestMPPProof(t *testing.T) {
	play(t, onTempo(setup{policy: "[policy.default]\ncaps = [\"$1 / 24h\", \"2 payments / 1h\"]\nallow = [\"host:127.0.0.1:8402\"]\n"}), func(t *testing.T, w *world) {
		s, url := w.asksFor(canopytest.Route{Proof: true}, canopytest.MPPConfig{ProofOnce: true})
		g := w.bought(w.get(url))
		if g.paid.Amount != 0 || g.paid.Fee != 0 || g.paid.TxHash != "" || g.paid.Settlement != canopy.SettlementClaimed {
			t.Errorf("%+v", g.paid)
		}
		e := w.state(g.paid.PaymentID, ledger.Settled)
		if e.Slot.Kind != payment.SlotProof || e.Cost != 0 || e.Watched || !e.SpentAt.IsZero() || !strings.Contains(e.Note, "moved nothing") {
			t.Errorf("%+v", e)
		}
		w.bought(w.get(url))
		w.refused("a third in an hour", func() { w.denied(w.get(url), "count_exceeded") })
		w.counted(0)
		w.spent(0)
		if n := s.Count("").Paid; n != 2 {
			t.Errorf("sent %d times", n)
		}
		w.clock.Advance(2 * time.Hour)
		w.bought(w.get(url))
		// The same to a host that no list allows.
		_, other := w.serve("127.0.0.1:8409", canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: []canopytest.Route{{Pattern: "/goods/", Proof: true}}})
		w.refused("attack 18: a host that is not allowed", func() { w.denied(w.get(other+"/goods/1"), "not_allowed") })
	})
}

// Push: the hash is committed before the broadcast, the transaction is on the
// chain before the seller sees its hash, and there is one debit.
func TestMPPPush(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{Modes: []string{"push"}})
		var before []ledger.Entry
		w.wire.Before = func(r *http.Request) error {
			if r.Header.Get("Authorization") != "" {
				before = w.entries()
			}
			return nil
		}
		g := w.bought(w.get(url))
		if len(before) != 1 || before[0].State != ledger.Claimed || before[0].Receipt.TxHash != g.paid.TxHash {
			t.Errorf("as the hash was shown: %+v", before)
		}
		w.digests(1)
		if n := s.Count("").Paid; n != 1 {
			t.Errorf("sent %d times", n)
		}
		w.settled(dime, g.paid.PaymentID)
		w.overAll()
	})
}

// notary is a node that looks at the ledger as it is told to broadcast.
type notary struct {
	*canopytest.Chain
	w     *world
	fail  error // in place of broadcasting
	lost  error // after it
	after func()
	seen  []ledger.Entry
}

func (n *notary) Broadcast(ctx context.Context, raw []byte) (string, error) {
	n.seen = n.w.entries()
	if n.fail != nil {
		return "", n.fail
	}
	hash, err := n.Chain.Broadcast(ctx, raw)
	if n.after != nil {
		n.after()
	}
	if n.lost != nil {
		return "", n.lost
	}
	return hash, err
}

func (n *notary) Receipt(ctx context.Context, hash string) (bool, bool, payment.Block, error) {
	if n.fail != nil {
		return false, false, payment.Block{}, n.fail
	}
	return n.Chain.Receipt(ctx, hash)
}

// broadcastBy has the client broadcast by n.
func (w *world) broadcastBy(n *notary) {
	n.Chain, n.w = w.chain, w
	w.changed(func(c *canopy.Config) { c.Rails = []canopy.Rail{w.mppBy(n)} })
}

// The node is down: in doubt, nothing is shown to the seller, and the same call
// goes on with the same bytes once it is up.
func TestMPPPushNodeDown(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		down := &notary{fail: errors.New("connection refused")}
		w.broadcastBy(down)
		s, url := w.asks(dime, canopytest.MPPConfig{Modes: []string{"push"}})
		e := as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
		if s.Count("").Paid != 0 || !strings.Contains(e.Error(), "connection refused") || len(down.seen) != 1 || down.seen[0].Receipt.TxHash == "" {
			t.Errorf("shown %d times, %v, the ledger at the broadcast: %+v", s.Count("").Paid, e, down.seen)
		}
		w.moved(0)
		w.counted(costly)
		down.fail = nil
		again := w.bought(w.get(url, canopy.WithKey("k")))
		if again.paid.PaymentID != e.Result.PaymentID {
			t.Errorf("paid %s, in doubt was %s", again.paid.PaymentID, e.Result.PaymentID)
		}
		w.digests(1)
		w.settled(dime, e.Result.PaymentID)
		w.overAll()
	})
}

// The node broadcasts and does not say so: in doubt or found, one debit.
func TestMPPPushAnswerLost(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		deaf := &notary{lost: errors.New("connection reset")}
		w.broadcastBy(deaf)
		_, url := w.asks(dime, canopytest.MPPConfig{Modes: []string{"push"}})
		g := w.bought(w.get(url))
		w.digests(1)
		w.settled(dime, g.paid.PaymentID)
	})
}

// Sponsored: on the expiring nonce, at most 25 s ahead, with no fee of ours.
func TestMPPSponsored(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$0.20 / 24h")}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{Sponsor: true})
		start := w.clock.Now()
		g := w.bought(w.get(url))
		tx := s.Requests()[1].Tempo
		if ahead := time.Unix(int64(tx.ValidBefore), 0).Sub(start); !tx.Expiring() || tx.Nonce != 0 || ahead > 25*time.Second || ahead < 20*time.Second || !tx.Sponsored || g.paid.Fee != 0 {
			t.Errorf("%v of %v, fee %v", tx, ahead, g.paid.Fee)
		}
		if w.fees() != 0 {
			t.Errorf("fees of %v", w.fees())
		}
		w.counted(dime)
		w.bought(w.get(url + "2"))
		w.settled(2*dime, g.paid.PaymentID)
		w.overAll()
	})
}

// An EIP-3009 authorization as a charge of MPP, on another chain than Tempo: the
// nonce is the one that the challenge binds.
func TestMPPEVMCharge(t *testing.T) {
	play(t, setup{config: func(w *world, c *canopy.Config) {
		watching(w, c)
		c.Rails = []canopy.Rail{w.mpp(mpp.Config{})}
	}}, func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{})
		g := w.bought(w.get(url))
		if g.paid.Rail != "mpp" || g.paid.Chain != payment.Base || g.paid.Fee != 0 {
			t.Errorf("%+v", g.paid)
		}
		w.handed(s, 1)
		w.spent(dime)
		w.settled(dime, g.paid.PaymentID)

		s.SetFaults("", canopytest.Plan{canopytest.First(canopytest.DropAfterSettling())})
		lost := w.doubt(url+"2", canopy.WithKey("k"))
		w.get(url+"2", canopy.WithKey("k"))
		w.handed(s, 2)
		w.settled(2*dime, lost)
		w.overAll()
	})
}

// A 401 with a challenge of the scheme is one; without it is an answer.
func TestMPPUnauthorized(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{}, canopytest.Always(canopytest.Unauthorized()))
		w.bought(w.get(url))
		w.handed(s, 1)
		s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.Instead("a plain 401", canopytest.OnAny, func(*canopytest.Exchange) canopytest.Answer {
			return canopytest.Answer{Status: 401, Header: http.Header{"Www-Authenticate": {`Bearer realm="Payment id=x"`}}, Body: []byte("who are you")}
		}))})
		w.refused("a plain 401", func() {
			if g := w.get(url + "2"); g.err != nil || g.StatusCode != 401 || g.body != "who are you" || g.cost {
				t.Errorf("got %+v", g)
			}
		})
	})
}

// Fetch and CheckURL say what can be paid by, on a copy of the request; the
// transport only where it is told to.
func TestMPPAnnounce(t *testing.T) {
	play(t, onTempo(setup{}), func(t *testing.T, w *world) {
		s, url := w.asks(dime, canopytest.MPPConfig{})
		last := func() string {
			all := s.Requests()
			return all[len(all)-1].Header.Get("Accept-Payment")
		}
		req := w.send("GET", url, nil)
		w.bought(w.do(req))
		if req.Header.Get("Accept-Payment") != "" || !strings.Contains(last(), "tempo/charge") {
			t.Errorf("the caller's request has %q, the seller saw %q", req.Header.Get("Accept-Payment"), last())
		}
		_, err := w.client.CheckURL(t.Context(), url+"2")
		if must(t, err); !strings.Contains(last(), "tempo/charge") {
			t.Errorf("CheckURL said %q", last())
		}
		resp, err := w.client.HTTPClient().Get(url + "3")
		w.bought(w.read(resp, err))
		if last() != "" {
			t.Errorf("the transport said %q", last())
		}
		w.bought(w.do(w.send("GET", url+"4", map[string]string{"Accept-Payment": "tempo/charge;q=0.1"})))
		if last() != "tempo/charge;q=0.1" {
			t.Errorf("the caller's own became %q", last())
		}
		w.changed(func(c *canopy.Config) { c.Announce = true })
		resp, err = w.client.HTTPClient().Get(url + "5")
		w.bought(w.read(resp, err))
		if !strings.Contains(last(), "tempo/charge") {
			t.Errorf("a transport that announces said %q", last())
		}
	})
}

// What CheckURL tells of a charge is what Fetch then does.
func TestMPPCheck(t *testing.T) {
	play(t, onTempo(setup{policy: capped("$0.20 / 24h")}), func(t *testing.T, w *world) {
		_, url := w.asks(dime, canopytest.MPPConfig{Session: true, Lines: true})
		w.refused("checking", func() {
			c, err := w.client.CheckURL(t.Context(), url)
			if must(t, err); c.Status != canopy.Allowed || c.Rail != "mpp" || c.Scheme != "tempo/charge" || c.Chain != payment.TempoTest || c.Amount != dime || c.Fee != feeBound ||
				c.Recipient != canopytest.Address("seller") || c.Realm != "127.0.0.1:8402" || c.HTTP != 402 || c.Asset.Symbol != "pathUSD" {
				t.Errorf("%+v", c)
			}
		})
		w.bought(w.get(url)) // case 13: the session stands before the charge
		w.refused("a cap that the fee fills", func() {
			c, err := w.client.CheckURL(t.Context(), url+"2")
			if must(t, err); c.Status != canopy.Denied || c.Code != "cap_exceeded" {
				t.Errorf("%+v", c)
			}
			w.denied(w.get(url+"2"), "cap_exceeded")
		})
		w.settled(dime)
		w.denied(w.get(url+"2"), "cap_exceeded") // $0.10, a real fee and $0.13
	})
}
