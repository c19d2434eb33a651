package canopy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

var friend = canopytest.Address("friend")

// transfers is a world whose client pays through a facilitator.
type transfers struct {
	*world
	f *canopytest.Facilitator
}

func newTransfers(t testing.TB, s setup, fc canopytest.FacilitatorConfig) *transfers {
	t.Helper()
	var f *canopytest.Facilitator
	config := s.config
	s.config = func(w *world, c *canopy.Config) {
		f = canopytest.NewFacilitator(w.chain, fc)
		url := w.net.Serve(t, "127.0.0.1:8403", f)
		rt := w.net.Transport()
		t.Cleanup(rt.CloseIdleConnections)
		rail, err := x402.New(x402.Config{Facilitators: map[payment.ChainID]x402.Facilitator{
			payment.Base: {URL: url, Transport: rt, Header: fc.Header},
		}})
		must(t, err)
		c.Rails = []canopy.Rail{rail}
		watching(w, c)
		if config != nil {
			config(w, c)
		}
	}
	w := newWorld(t, s)
	return &transfers{w, f}
}

func dollars(n canopy.USD, key string) canopy.Transfer {
	return canopy.Transfer{To: friend, Amount: n, Key: key, Purpose: "for lunch"}
}

// pay pays, and fails the test unless it is allowed.
func (w *transfers) pay(t canopy.Transfer) canopy.Result {
	w.t.Helper()
	r, err := w.client.Pay(context.Background(), t)
	must(w.t, err)
	if r.Status != canopy.Allowed || r.State != ledger.Claimed && r.State != ledger.Settled {
		w.t.Fatalf("want a payment, got %+v", r)
	}
	return r
}

// payDoubt pays, and fails the test unless it is in doubt.
func (w *transfers) payDoubt(t canopy.Transfer) *canopy.InDoubtError {
	w.t.Helper()
	r, err := w.client.Pay(context.Background(), t)
	d := as[*canopy.InDoubtError](w.t, err)
	if r.PaymentID != d.Result.PaymentID || !d.SafeAfter.After(w.clock.Now()) {
		w.t.Errorf("in doubt as %+v beside %+v", d, r)
	}
	return d
}

// once fails the test unless one authorization was signed and handed over, and
// so much moved.
func (w *transfers) once(moved canopy.USD) {
	w.t.Helper()
	if n := len(w.spy.Slots()); n != 1 {
		w.t.Errorf("%d slots were signed into, want 1", n)
	}
	if n := len(w.spy.Digests()); n != 1 {
		w.t.Errorf("%d digests were signed, want 1", n)
	}
	if n := len(w.f.Harvest().All()); n > 1 {
		w.t.Errorf("%d authorizations were handed over, want 1", n)
	}
	w.spent(moved)
}

func TestPay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{})
		r := w.pay(dollars(dime, ""))
		w.once(dime)
		w.chain.AssertTransfers(t, canopytest.Move{From: w.client.Address(), To: friend, Amount: dime})
		if r.TxHash != w.chain.Transfers()[0].TxHash || r.Amount != dime || r.Recipient != friend || r.Chain != payment.Base || r.Settlement != canopy.SettlementClaimed {
			t.Errorf("%+v", r)
		}
		e := w.state(r.PaymentID, ledger.Claimed)
		if e.Purpose != "for lunch" || e.Host != "" || !e.Terms.IsTransfer() || e.Sends != 1 || !e.Watched {
			t.Errorf("%+v", e)
		}
		var body struct {
			X402Version         int
			PaymentPayload      struct{ Accepted json.RawMessage }
			PaymentRequirements json.RawMessage
		}
		must(t, json.Unmarshal([]byte(w.f.Bodies()[0]), &body))
		if body.X402Version != 2 || string(body.PaymentPayload.Accepted) != string(body.PaymentRequirements) {
			t.Errorf("submitted %s", w.f.Bodies()[0])
		}
		w.counted(dime)
		w.chain.Finalize()
		w.reconcile()
		w.state(r.PaymentID, ledger.Settled)
		w.counted(dime)
		w.sound()
	})
}

func TestPayRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{policy: capped("$1 / 24h")}, canopytest.FacilitatorConfig{})
		for name, tt := range map[string]struct {
			canopy.Transfer
			field string
		}{
			"nothing":       {canopy.Transfer{To: friend}, "Amount"},
			"negative":      {canopy.Transfer{To: friend, Amount: -1}, "Amount"},
			"too much":      {canopy.Transfer{To: friend, Amount: payment.MaxUSD}, "Amount"},
			"nobody":        {canopy.Transfer{Amount: dime}, "To"},
			"no such chain": {canopy.Transfer{To: friend, Amount: dime, Chain: "eip155:999999"}, "Chain"},
			"no way there":  {canopy.Transfer{To: friend, Amount: dime, Chain: payment.BaseSepolia}, "Chain"},
			"a memo":        {canopy.Transfer{To: friend, Amount: dime, Memo: "hello"}, "Memo"},
			"a long key":    {canopy.Transfer{To: friend, Amount: dime, Key: strings.Repeat("k", 257)}, "Key"},
			"an odd key":    {canopy.Transfer{To: friend, Amount: dime, Key: "a\nb"}, "Key"},
			"a long story":  {canopy.Transfer{To: friend, Amount: dime, Purpose: strings.Repeat("p", 513)}, "Purpose"},
		} {
			r, err := w.client.Pay(t.Context(), tt.Transfer)
			if wrong := as[*canopy.TransferError](t, err); wrong.Field != tt.field || r.PaymentID != "" {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		// Of what nothing could send, a preview says what Pay says, unless it is denied.
		if r, err := w.client.Preview(t.Context(), canopy.Transfer{To: friend, Amount: dime, Chain: payment.BaseSepolia}); as[*canopy.TransferError](t, err).Field != "Chain" || !errors.Is(err, x402.ErrNoFacilitator) || r.Status == canopy.Allowed && r.DryRun {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := w.client.Preview(t.Context(), canopy.Transfer{To: friend, Amount: 2 * payment.Dollar, Chain: payment.BaseSepolia}); err != nil || r.Code != "cap_exceeded" {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := w.client.Preview(t.Context(), dollars(dime, "")); err != nil || r.Warning != "" || len(r.Recipients) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := w.client.Pay(t.Context(), canopy.Transfer{To: w.client.Address(), Amount: dime}); err != nil || r.Amount != dime || strings.HasPrefix(r.Reason, "payment:") {
			t.Errorf("%+v, %v", r, err)
		}
		for code, tt := range map[string]canopy.Transfer{
			"bad_terms":    {To: w.client.Address(), Amount: dime},
			"cap_exceeded": {To: friend, Amount: 2 * payment.Dollar},
			"max_payment":  {To: friend, Amount: 20 * payment.Dollar},
		} {
			if r, err := w.client.Pay(t.Context(), tt); err != nil || r.Status != canopy.Denied || r.Code != code {
				t.Errorf("%s: %+v, %v", code, r, err)
			}
		}
		if _, err := w.client.Pay(t.Context(), canopy.Transfer{To: friend, Amount: dime, Chain: payment.BaseSepolia}); !errors.Is(err, x402.ErrNoFacilitator) {
			t.Errorf("%v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.client.Pay(gone, dollars(dime, "")); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has left: %v", err)
		}
		must(t, w.client.Freeze(t.Context(), "stop"))
		if r, err := w.client.Pay(t.Context(), dollars(dime, "")); err != nil || r.Code != "frozen" {
			t.Errorf("frozen: %+v, %v", r, err)
		}
		w.signed(0)
		w.counted(0)
	})
}

func TestPayWithoutKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{config: func(_ *world, c *canopy.Config) { c.Treasury.Signer = nil }}, canopytest.FacilitatorConfig{})
		if r, err := w.client.Pay(t.Context(), dollars(dime, "")); err != nil || r.Code != "no_signer" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestPayMissteps submits through a facilitator that goes wrong once, in every
// way there is: one authorization, one transfer at most, and an outcome that is
// known or honestly in doubt. The same Pay again, and Resume, are always safe.
func TestPayMissteps(t *testing.T) {
	for m := canopytest.LoseBefore; m <= canopytest.RefuseBadStatus; m++ {
		for _, again := range []string{"pay", "resume"} {
			t.Run(fmt.Sprint(m, " ", again), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{Missteps: []canopytest.Misstep{m}})
					r, err := w.client.Pay(t.Context(), dollars(dime, "k"))
					var doubt *canopy.InDoubtError
					if err != nil && !errors.As(err, &doubt) {
						t.Fatal(err)
					}
					e := w.state(r.PaymentID, r.State)
					if (err == nil) != (r.State == ledger.Claimed) || e.Sends != w.f.Settles() {
						t.Errorf("%+v, %v, %d sends of %d", r, err, e.Sends, w.f.Settles())
					}
					w.counted(dime)
					for range 3 {
						var next canopy.Result
						if again == "pay" {
							next, err = w.client.Pay(t.Context(), dollars(dime, "k"))
						} else {
							next, err = w.client.Resume(t.Context(), r.PaymentID)
						}
						if next.PaymentID != r.PaymentID || err != nil && !errors.As(err, &doubt) {
							t.Errorf("again: %+v, %v", next, err)
						}
					}
					w.counted(dime)
					w.clock.Advance(2 * time.Minute)
					w.chain.Finalize()
					w.reconcile()
					moved := w.chain.Spent(w.client.Address())
					if w.once(moved); moved != 0 && moved != dime {
						t.Errorf("%v moved", moved)
					}
					want := ledger.Settled
					if moved == 0 {
						want = ledger.ExpiredUnused
					}
					w.state(r.PaymentID, want)
					w.counted(moved)
					// What never was tried again is what nobody but the facilitator can know.
					if moved == 0 && m != canopytest.ClaimOnly {
						t.Errorf("nothing moved after all")
					}
					w.sound()
				})
			})
		}
	}
}

// A facilitator that harvests and settles at the last second is within the cap.
func TestPayHarvested(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{policy: capped("$0.25 / 24h")}, canopytest.FacilitatorConfig{})
		w.f.SetMissteps(slices.Repeat([]canopytest.Misstep{canopytest.Refuse}, 100)...)
		for i := range 5 {
			r, err := w.client.Pay(t.Context(), canopy.Transfer{To: canopytest.Address(fmt.Sprint("friend ", i)), Amount: dime})
			if i < 2 {
				if d := as[*canopy.InDoubtError](t, err); d.Phase != canopy.RefusedAfter || d.Code != "unexpected_settle_error" {
					t.Errorf("%+v", d)
				}
			} else if r.Code != "cap_exceeded" {
				t.Errorf("%+v, %v", r, err)
			}
		}
		w.counted(2 * dime)
		if _, err := w.f.Harvest().SettleLate(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.spent(2 * dime)
		w.chain.Finalize()
		w.reconcile()
		w.counted(2 * dime)
	})
}

func TestPayKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{})
		first := w.pay(dollars(dime, "a"))
		if again := w.pay(dollars(dime, "a")); again.PaymentID != first.PaymentID || again.TxHash != first.TxHash {
			t.Errorf("the same key gives %+v, want %+v", again, first)
		}
		if _, err := w.client.Pay(t.Context(), dollars(2*dime, "a")); !errors.Is(err, canopy.ErrKeyConflict) {
			t.Errorf("the key for another amount: %v", err)
		}
		w.once(dime)
		if other := w.pay(dollars(dime, "b")); other.PaymentID == first.PaymentID {
			t.Error("another key is the same payment")
		}
		// Without a key an equal one is a duplicate, for a while.
		r, err := w.client.Pay(t.Context(), dollars(dime, ""))
		if err != nil || r.Code != "duplicate" || !strings.Contains(r.Reason, "Duplicate of payment ") {
			t.Errorf("%+v, %v", r, err)
		}
		w.pay(dollars(3*dime, ""))
		w.clock.Advance(11 * time.Minute)
		w.pay(dollars(dime, ""))
		w.spent(6 * dime)
		w.sound()
	})
}

// A key that the payment of another key answered stands for it: it is not paid
// under that key when it is asked for again.
func TestPayKeyAnsweredByAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{Missteps: []canopytest.Misstep{canopytest.RefuseAfter}})
		id := w.payDoubt(dollars(dime, "a")).Result.PaymentID
		w.clock.Advance(time.Second)
		for range 3 {
			if r := w.pay(dollars(dime, "b")); r.PaymentID != id {
				t.Errorf("paid as %s, want the answer of %s", r.PaymentID, id)
			}
			w.clock.Advance(time.Hour)
		}
		w.once(dime)
		w.pay(dollars(dime, "c")) // never answered by it
		w.spent(2 * dime)
		w.sound()
	})
}

// An equal transfer in doubt answers one without a key, or with a new one, with
// the same bytes while they are valid; dead and released, it is paid anew.
func TestPayGuard(t *testing.T) {
	for _, key := range []string{"", "b"} {
		bubbleSub(t, "key "+key, func(t *testing.T) {
			w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{Missteps: []canopytest.Misstep{
				canopytest.Refuse, canopytest.Refuse,
			}})
			id := w.payDoubt(dollars(dime, "a")).Result.PaymentID
			w.clock.Advance(time.Second)
			if d := w.payDoubt(dollars(dime, key)); d.Result.PaymentID != id {
				t.Errorf("answered by %s, want %s", d.Result.PaymentID, id)
			}
			w.once(0)
			w.clock.Advance(55 * time.Second) // under ten seconds are left
			if d := w.payDoubt(dollars(dime, key)); d.Result.PaymentID != id {
				t.Errorf("answered by %s, want %s", d.Result.PaymentID, id)
			}
			w.once(0)
			w.clock.Advance(time.Minute) // dead, and final
			r := w.pay(dollars(dime, key))
			if r.PaymentID == id {
				t.Error("a dead payment was paid")
			}
			w.state(id, ledger.ExpiredUnused)
			w.spent(dime)
			w.counted(dime)
		})
	}
}

// A preview has the status and the reasons of the Pay that follows it: of an equal
// one within the window, in doubt, before a person, approved, and at the end of a
// cap; and it leaves nothing.
func TestPreviewIsWhatPaySays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{policy: "[policy.default]\nmax_payment = \"$5\"\ncaps = [\"$9 / 24h\"]\nallow = [\"*\"]\napprove_above = \"$1\"\nmax_pending = 1\nduplicate_window = \"10m\"\n"}, canopytest.FacilitatorConfig{})
		agree := func(name string, tr canopy.Transfer, status canopy.Status, code string) canopy.Result {
			t.Helper()
			n := len(w.entries())
			p, err := w.client.Preview(t.Context(), tr)
			must(t, err)
			if len(w.entries()) != n {
				t.Errorf("%s: the preview left something", name)
			}
			r, err := w.client.Pay(t.Context(), tr)
			must(t, err)
			if p.Status != status || p.Code != code || r.Status != p.Status || r.Code != p.Code || r.Reason != p.Reason || len(r.Reasons) != len(p.Reasons) || !p.DryRun {
				t.Errorf("%s: preview %s %q %v, pay %s %q %v", name, p.Status, p.Code, p.Reasons, r.Status, r.Code, r.Reasons)
			}
			if p.PaymentID != "" && p.PaymentID != r.PaymentID {
				t.Errorf("%s: preview names %s, pay %s", name, p.PaymentID, r.PaymentID)
			}
			return p
		}
		agree("the first", dollars(dime, ""), canopy.Allowed, "")
		w.clock.Advance(time.Minute)
		if p := agree("an equal one", dollars(dime, ""), canopy.Denied, "duplicate"); !strings.Contains(p.Reason, "made 1m0s ago") {
			t.Errorf("%q", p.Reason)
		}
		agree("with a key", dollars(dime, "k"), canopy.Allowed, "")
		w.clock.Advance(10*time.Minute + time.Second)
		agree("after the window", dollars(dime, ""), canopy.Allowed, "")

		dear := dollars(2*payment.Dollar, "")
		agree("a dear one", dear, canopy.PendingApproval, "approval_threshold")
		if p := agree("that waits", dear, canopy.PendingApproval, "approval_threshold"); p.ApprovalID == "" {
			t.Errorf("%+v", p)
		}
		agree("one more", dollars(3*payment.Dollar, ""), canopy.Denied, "too_many_pending")
		asked, err := w.client.Preview(t.Context(), dear)
		must(t, err)
		w.rule(asked.ApprovalID, true)
		if p, err := w.client.Preview(t.Context(), dear); err != nil || p.Status != canopy.Allowed || p.PaymentID != asked.PaymentID {
			t.Errorf("approved: %+v, %v", p, err)
		}
		if r := w.pay(dear); r.PaymentID != asked.PaymentID {
			t.Errorf("carried out %s", r.PaymentID)
		}
		agree("approved, and paid", dear, canopy.Denied, "duplicate")

		w.f.SetMissteps(canopytest.Refuse)
		doubt := w.payDoubt(dollars(dime+1, ""))
		p, err := w.client.Preview(t.Context(), dollars(dime+1, ""))
		if must(t, err); p.PaymentID != doubt.Result.PaymentID || !strings.Contains(p.Warning, "is not resolved") {
			t.Errorf("in doubt: %+v", p)
		}
		must(t, w.client.Freeze(t.Context(), "lunch"))
		agree("frozen", dollars(dime+2, ""), canopy.Denied, "frozen")
	})
}

// TestPayRace has 32 calls with one key: one pays, and the others wait for its
// result.
func TestPayRace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{Wait: 3 * time.Second})
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids := map[canopy.PaymentID]int{}
		for range 32 {
			wg.Go(func() {
				r, err := w.client.Pay(t.Context(), dollars(dime, "k"))
				if err != nil || r.Status != canopy.Allowed || r.TxHash == "" {
					t.Errorf("%+v, %v", r, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[r.PaymentID]++
			})
		}
		wg.Wait()
		if len(ids) != 1 || w.f.Settles() != 1 {
			t.Errorf("%v in %d submissions", ids, w.f.Settles())
		}
		w.once(dime)
	})
}

// A caller that leaves loses no record, and a later one learns the outcome.
func TestPayCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{Missteps: []canopytest.Misstep{canopytest.Stall}})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := w.client.Pay(ctx, dollars(dime, "k"))
		if d := as[*canopy.InDoubtError](t, err); !errors.Is(err, context.DeadlineExceeded) || d.Phase != canopy.SentUnknown {
			t.Errorf("%+v", d)
		}
		w.pay(dollars(dime, "k"))
		w.once(dime)
		// One that waits for another call leaves too.
		w.f.SetMissteps(canopytest.Stall)
		slow, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := w.client.Pay(slow, dollars(2*dime, "l"))
			done <- err
		}()
		time.Sleep(time.Second)
		short, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		_, err = w.client.Pay(short, dollars(2*dime, "l"))
		if as[*canopy.InFlightError](t, err); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		stop()
		as[*canopy.InDoubtError](t, <-done)
	})
}
