package canopy_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

func TestPayApproval(t *testing.T) {
	for _, how := range []string{"pay", "resume", "pay with a key", "resume with a key"} {
		bubbleSub(t, how, func(t *testing.T) {
			w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{})
			key := ""
			if strings.HasSuffix(how, "key") {
				key = "k"
			}
			lunch := dollars(6*payment.Dollar, key)
			p, err := w.client.Pay(t.Context(), lunch)
			if err != nil || p.Status != canopy.PendingApproval || p.ApprovalID == "" || p.Reason != "Amount $6.00 exceeds approval threshold of $5" {
				t.Fatalf("%+v, %v", p, err)
			}
			for _, again := range []func() (canopy.Result, error){
				func() (canopy.Result, error) { return w.client.Pay(t.Context(), lunch) },
				func() (canopy.Result, error) { return w.client.Resume(t.Context(), p.PaymentID) },
			} {
				if r, err := again(); err != nil || r.PaymentID != p.PaymentID || r.Status != canopy.PendingApproval {
					t.Errorf("before it is approved: %+v, %v", r, err)
				}
			}
			w.signed(0)
			w.rule(p.ApprovalID, true)
			carry := func() (canopy.Result, error) {
				if strings.HasPrefix(how, "pay") {
					return w.client.Pay(t.Context(), lunch)
				}
				return w.client.Resume(t.Context(), p.PaymentID)
			}
			// Frozen, the approval stays unspent.
			must(t, w.client.Freeze(t.Context(), "lunch is over"))
			if r, err := carry(); err != nil || r.Status != canopy.Denied || r.Code != "frozen" {
				t.Errorf("frozen: %+v, %v", r, err)
			}
			must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "tester", "ana", "go on"))
			r, err := carry()
			if err != nil || r.PaymentID != p.PaymentID || r.Status != canopy.Allowed {
				t.Fatalf("approved: %+v, %v", r, err)
			}
			w.once(6 * payment.Dollar)
			if r, err := w.client.Resume(t.Context(), p.PaymentID); err != nil || r.Status != canopy.Allowed || r.TxHash == "" {
				t.Errorf("once more: %+v, %v", r, err)
			}
			w.once(6 * payment.Dollar)
		})
	}
}

// The policy changed after a transfer was approved, and it was paid on the new
// terms: the one that was approved is not paid as well.
func TestResumeReplaced(t *testing.T) {
	for _, key := range []string{"", "k"} {
		bubbleSub(t, "key "+key, func(t *testing.T) {
			var cfg canopy.Config
			w := newTransfers(t, setup{config: func(_ *world, c *canopy.Config) { cfg = *c }}, canopytest.FacilitatorConfig{})
			lunch := dollars(6*payment.Dollar, key)
			p, err := w.client.Pay(t.Context(), lunch)
			must(t, err)
			w.rule(p.ApprovalID, true)
			changed := strings.Replace(openPolicy, `approve_above = "$5"`, "approve_above = \"$8\"\nmax_validity = \"2m\"", 1)
			cfg.Policy, err = policy.Parse("test", []byte(changed))
			must(t, err)
			next, err := canopy.New(cfg)
			must(t, err)
			r, err := next.Pay(t.Context(), lunch)
			if err != nil || r.Status != canopy.Allowed || r.PaymentID == p.PaymentID {
				t.Fatalf("on new terms: %+v, %v", r, err)
			}
			for _, c := range []*canopy.Client{next, w.client} {
				if r, err := c.Resume(t.Context(), p.PaymentID); err != nil || r.Status != canopy.Denied || r.Code != "approval_expired" {
					t.Errorf("the one that was approved: %+v, %v", r, err)
				}
				r, err := c.Pay(t.Context(), lunch)
				if key == "" && r.Code != "duplicate" || key != "" && r.PaymentID == p.PaymentID || err != nil {
					t.Errorf("an equal call: %+v, %v", r, err)
				}
			}
			w.once(6 * payment.Dollar)
		})
	}
}

func TestResumeRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{})
		ask := func(n canopy.USD) canopy.Result {
			r, err := w.client.Pay(t.Context(), dollars(n, ""))
			must(t, err)
			return r
		}
		no, late := ask(6*payment.Dollar), ask(7*payment.Dollar)
		w.rule(no.ApprovalID, false)
		w.clock.Advance(25 * time.Hour)
		for id, code := range map[canopy.PaymentID]string{no.PaymentID: "rejected", late.PaymentID: "approval_expired"} {
			r, err := w.client.Resume(t.Context(), id)
			if code == "approval_expired" && r.Status == canopy.PendingApproval {
				// Its expiry is seen by whoever decides next.
				w.client.Pay(t.Context(), dollars(7*payment.Dollar, ""))
				r, err = w.client.Resume(t.Context(), id)
			}
			if err != nil || r.Status != canopy.Denied || r.Code != code {
				t.Errorf("%s: %+v, %v", code, r, err)
			}
		}
		_, url := w.sells(dime)
		fetched := w.bought(w.get(url)).paid.PaymentID
		if _, err := w.client.Resume(t.Context(), fetched); err == nil {
			t.Error("a purchase is resumed as a transfer")
		}
		for _, id := range []canopy.PaymentID{"", "nonsense", payment.NewID(w.clock.Now())} {
			if _, err := w.client.Resume(t.Context(), id); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%q: %v", id, err)
			}
		}
		w.spent(dime)
	})
}

// TestResumeRace has many carry out one approval, and equal calls beside them:
// one payment.
func TestResumeRace(t *testing.T) {
	for _, key := range []string{"", "k"} {
		bubbleSub(t, "key "+key, func(t *testing.T) {
			w := newTransfers(t, setup{store: func(s ledger.Store) ledger.Store { return lagging{s.(store)} }}, canopytest.FacilitatorConfig{Wait: time.Second})
			p, err := w.client.Pay(t.Context(), dollars(6*payment.Dollar, key))
			must(t, err)
			w.rule(p.ApprovalID, true)
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					var r canopy.Result
					var err error
					if i%2 == 0 || key == "" { // without a key an equal Pay is a duplicate
						r, err = w.client.Resume(t.Context(), p.PaymentID)
					} else {
						r, err = w.client.Pay(t.Context(), dollars(6*payment.Dollar, key))
					}
					if err != nil || r.PaymentID != p.PaymentID || r.Status != canopy.Allowed {
						t.Errorf("%+v, %v", r, err)
					}
				})
			}
			wg.Wait()
			w.once(6 * payment.Dollar)
		})
	}
}

// lagging is a store whose entries are old when they arrive.
type lagging struct{ store }

func (l lagging) Entry(ctx context.Context, id payment.ID) (ledger.Entry, error) {
	e, err := l.store.Entry(ctx, id)
	time.Sleep(time.Millisecond)
	return e, err
}

// A process that died after signing: the next one submits the same bytes.
func TestPayAfterCrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, m := range []canopytest.Misstep{canopytest.LoseBefore, canopytest.LoseAfter} {
			w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{Missteps: []canopytest.Misstep{m}})
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := w.client.Pay(short, dollars(dime, "k"))
			id := as[*canopy.InDoubtError](t, err).Result.PaymentID
			cancel()
			key, err := signer.FromHex(testKey)
			must(t, err)
			rt := w.net.Transport()
			rail, err := x402.New(x402.Config{Facilitators: map[payment.ChainID]x402.Facilitator{payment.Base: {URL: "http://127.0.0.1:8403", Transport: rt}}})
			must(t, err)
			next := newTransfers(t, setup{config: func(o *world, c *canopy.Config) {
				c.Store, c.Rails, c.Now = w.store, []canopy.Rail{rail}, w.clock.Now
				c.Treasury.Signer = key.WithNow(w.clock.Now)
				c.Treasury.Chains = []canopy.Chain{w.chain}
			}}, canopytest.FacilitatorConfig{})
			r, err := next.client.Pay(t.Context(), dollars(dime, "k"))
			must(t, err)
			rt.CloseIdleConnections()
			if r.PaymentID != id || r.State != ledger.Claimed {
				t.Errorf("%+v, want %s", r, id)
			}
			w.once(dime)
		}
	})
}

func bubbleSub(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, f) })
}

// A freeze between the commit and the submission stops it.
func TestPayFrozenMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{})
		w.spy.Before(func(ctx context.Context, _ canopytest.Signed) { must(t, w.client.Freeze(ctx, "stop")) })
		d := w.payDoubt(dollars(dime, "k"))
		if d.Phase != canopy.SignedNotSent || w.f.Settles() != 0 {
			t.Errorf("%+v after %d submissions", d, w.f.Settles())
		}
		w.counted(dime)
		w.spent(0)
	})
}
