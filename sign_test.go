package canopy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

// signers is a setup with a signer that is made of the honest one.
func signers(bend func(*world, payment.Signer) payment.Signer) setup { return setup{bend: bend} }

// Signed by another key: nothing is sent, and the agent is frozen.
func TestAttack87_ForeignSignatureFreezes(t *testing.T) {
	other, err := signer.FromHex(strings.Repeat("11", 32))
	must(t, err)
	for name, bend := range map[string]func(*world, payment.Signer) payment.Signer{
		"another key": func(_ *world, s payment.Signer) payment.Signer { return canopytest.WrongKeySigner(s, other) },
		"broken":      func(_ *world, s payment.Signer) payment.Signer { return canopytest.BrokenSigner(s) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, signers(bend))
				s, url := w.sells(dime)
				e := as[*canopy.InDoubtError](t, w.get(url).err)
				if e.Phase != canopy.SignedNotSent || !errors.Is(e, payment.ErrForeignSignature) || !strings.Contains(e.Error(), "frozen") {
					t.Errorf("in doubt as %+v", e)
				}
				w.handed(s, 0)
				if n := s.Count("").Requests; n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
				w.denied(w.get(url+"/2"), "frozen")
				if p, err := w.client.Ping(w.context()); err != nil || p.Status != "frozen" || p.Frozen == "" {
					t.Errorf("ping %+v, %v", p, err)
				}
				w.counted(dime) // it exists, wherever it went
			})
		})
	}
}

// A rail that signs other terms than it was told: the agent is frozen. I6,
// attack 15.
func TestAttack15_SignedTermsAreCompared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Rails[0] = lyingRail{c.Rails[0]} }})
		s, url := w.sells(dime)
		e := as[*canopy.InDoubtError](t, w.get(url).err)
		if e.Phase != canopy.SignedNotSent {
			t.Errorf("in doubt as %+v", e)
		}
		w.handed(s, 0)
		w.denied(w.get(url+"/2"), "frozen")
	})
}

// lyingRail decodes what it signed as dearer terms.
type lyingRail struct{ canopy.Rail }

func (r lyingRail) Decode(a payment.Authorization, g payment.Grant) (payment.Terms, error) {
	terms, err := r.Rail.Decode(a, g)
	terms.Amount = payment.UnitsOf(1)
	return terms, err
}

// Foreign spellings of a good signature are brought to the accepted one.
func TestAttack87_OddSignaturesAreNormalised(t *testing.T) {
	for name, bend := range map[string]func(payment.Signer) payment.Signer{"high s": canopytest.HighSSigner, "v 0 or 1": canopytest.ParitySigner} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, signers(func(_ *world, s payment.Signer) payment.Signer { return bend(s) }))
				s, url := w.sells(dime)
				w.bought(w.get(url))
				w.handed(s, 1)
				w.spent(dime)
			})
		})
	}
}

// A signer that fails, or answers with no signature: not sent, held, and the
// agent is not frozen.
func TestSignersThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		bend func(payment.Signer) payment.Signer
		is   error
		says string
	}{
		"fails":  {func(s payment.Signer) payment.Signer { return canopytest.FailingSigner(s, nil) }, canopytest.ErrSigner, "the signer failed"},
		"short":  {canopytest.ShortSigner, nil, "signature"},
		"panics": {func(s payment.Signer) payment.Signer { return panicky{s} }, nil, "panicked: no HSM"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, signers(func(_ *world, s payment.Signer) payment.Signer { return tc.bend(s) }))
				s, url := w.sells(dime)
				e := as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
				if e.Phase != canopy.SignedNotSent || e.Result.State != ledger.InDoubt || tc.is != nil && !errors.Is(e, tc.is) || !strings.Contains(e.Error(), tc.says) {
					t.Errorf("in doubt as %v", e)
				}
				w.handed(s, 0)
				w.counted(dime)
				if p, _ := w.client.Ping(w.context()); p.Status != "active" {
					t.Errorf("ping %+v", p)
				}
				as[*canopy.InDoubtError](t, w.get(url, canopy.WithKey("k")).err)
				w.counted(dime)
			})
		})
	}
}

type panicky struct{ payment.Signer }

func (panicky) Sign(context.Context, payment.Permit, [32]byte) ([]byte, error) {
	panic("no HSM\x1b[2J")
}

// A signer that takes longer than the validity: not sent, and the error names
// what to raise. Case 35.
func TestCase35_SlowSigner(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		sent  bool
	}{{40 * time.Second, true}, {55 * time.Second, false}, {70 * time.Second, false}} {
		t.Run(tc.takes.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, signers(func(w *world, s payment.Signer) payment.Signer { return canopytest.SlowSigner(s, w.clock, tc.takes) }))
				s, url := w.sells(dime)
				g := w.get(url)
				if tc.sent {
					w.bought(g)
					return
				}
				e := as[*canopy.InDoubtError](t, g.err)
				if e.Phase != canopy.SignedNotSent || !strings.Contains(e.Error(), "max_validity") {
					t.Errorf("in doubt as %v", e)
				}
				w.handed(s, 0)
				w.counted(dime)
			})
		})
	}
}

// A signer without equal signatures for equal digests: the bytes in memory are
// sent again within a call, and never others by a later one.
func TestSignerThatIsNotDeterministic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, signers(func(w *world, s payment.Signer) payment.Signer { return canopytest.SlowSigner(s, w.clock, 0) }))
		s, url := w.sells(dime, canopytest.Always(canopytest.AnswerAgain()))
		as[*canopy.InDoubtError](t, w.get(url).err)
		again := as[*canopy.InDoubtError](t, w.get(url).err)
		if !strings.Contains(again.Error(), "cannot make the same bytes again") {
			t.Errorf("in doubt as %v", again)
		}
		if n := s.Count("").Paid; n != 3 {
			t.Errorf("sent %d times, want 3", n)
		}
		if n := w.spy.Signatures(); n != 1 {
			t.Errorf("signed %d times, want 1", n)
		}
	})
}

// Every signature has a committed entry before it: I3. And it ends soon: I10.
func TestEverySignatureIsWrittenAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime)
		w.spy.Before(func(ctx context.Context, call canopytest.Signed) {
			found := false
			for e, err := range w.store.Entries(ctx, ledger.Query{}) {
				must(t, err)
				found = found || e.SlotKey() == call.Slot && e.State == ledger.Authorized
			}
			if left := call.Deadline.Sub(w.clock.Now()); !found || left > time.Minute {
				t.Errorf("asked to sign %s, entry there: %v, valid for %v", call.Slot, found, left)
			}
		})
		for range 5 {
			w.bought(w.get(url))
		}
	})
}

// Frozen between the commit and the signature, and between two sendings.
func TestFreezeStopsAtEveryStep(t *testing.T) {
	t.Run("before signing", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{store: func(s ledger.Store) ledger.Store {
				m := s.(*ledger.Memory)
				return hookStore{m, func() { must(t, m.Freeze(context.Background(), "", "ana", "stop")) }}
			}})
			_, url := w.sells(dime)
			if e := as[*canopy.InDoubtError](t, w.get(url).err); e.Phase != canopy.SignedNotSent || !strings.Contains(e.Error(), "stop") {
				t.Errorf("in doubt as %v", e)
			}
			w.signed(0)
		})
	})
	t.Run("before sending", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{})
			s, url := w.sells(dime)
			w.spy.Before(func(context.Context, canopytest.Signed) { must(t, w.client.Freeze(context.Background(), "stop")) })
			if e := as[*canopy.InDoubtError](t, w.get(url).err); e.Phase != canopy.SignedNotSent {
				t.Errorf("in doubt as %v", e)
			}
			w.handed(s, 0)
			w.counted(dime)
		})
	})
	t.Run("before sending again", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, setup{})
			s, url := w.sells(dime, canopytest.Always(canopytest.Both(canopytest.AnswerAgain(), canopytest.WithHeader("Retry-After", "5"))))
			time.AfterFunc(time.Second, func() { must(t, w.client.Freeze(context.Background(), "stop")) })
			as[*canopy.InDoubtError](t, w.get(url).err)
			if n := s.Count("").Paid; n != 1 {
				t.Errorf("sent %d times after the freeze", n-1)
			}
		})
	})
}
