package canopy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// What one of two nodes leaves out for a while is found all the same.
func TestForeignUseLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		w.reconcile()
		w.elsewhere(url + "other")
		w.chain.Finalize()
		w.chain.SetNodes(2, canopytest.LieNoLogs)
		w.reconcile(true)
		w.frozen(false)
		w.chain.SetNodes(2, canopytest.NoLie)
		if r := w.reconcile(); len(r.Foreign) != 1 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)
	})
}

// inventor is a chain of which one of two nodes shows a use that never was, in
// a block of its choice.
type inventor struct {
	*canopytest.Chain
	block uint64
}

func (i *inventor) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	uses, err := i.Chain.Uses(ctx, a, of, first, at)
	if err == nil && i.block >= first && i.block <= at.Number {
		slot := payment.Slot{Kind: payment.SlotEVM, Chain: a.Chain, Token: a.Address, From: of, NonceID: [32]byte{9}}
		uses = append([]payment.Settlement{{Slot: slot, TxHash: "0x09", Block: i.block, Canceled: true}}, uses...)
	}
	return uses, err
}

// What one node makes up freezes nobody, and hides nothing.
func TestInventedUseHidesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i := &inventor{}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			i.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{i}
		}})
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		w.reconcile()
		at, err := w.chain.Finalized(t.Context())
		must(t, err)
		i.block = at.Number + 1
		w.clock.Advance(time.Minute)
		w.reconcile(true)
		w.frozen(false)
		w.elsewhere(url + "other")
		w.chain.Finalize()
		if r := w.reconcile(true); len(r.Foreign) != 1 || r.Known != 0 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)

		// It is looked at again while the node goes on. Whoever let the agents go
		// has judged it.
		must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "it was us"))
		for range 2 {
			if r := w.reconcile(true); len(r.Foreign) != 0 || r.Known != 1 {
				t.Errorf("again: %+v, %d known", r.Foreign, r.Known)
			}
			w.frozen(false)
		}
		w.elsewhere(url + "more")
		w.chain.Finalize()
		if r := w.reconcile(true); len(r.Foreign) != 1 || r.Known != 1 {
			t.Errorf("one more: %+v, %d known", r.Foreign, r.Known)
		}
		w.frozen(true)
		i.block = 0
		w.reconcile()
		if r := w.reconcile(); len(r.Foreign)+r.Known != 0 {
			t.Errorf("at last: %+v, %d known", r.Foreign, r.Known)
		}
	})
}

// What may have been signed before a ledger's first look is told, and freezes
// nobody.
func TestUseOfBeforeTheLedger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime)
		w.elsewhere(url + "before")
		w.reconcile() // the first look, before that block is final
		w.clock.Advance(10 * time.Minute)
		w.elsewhere(url + "at the same time")
		w.chain.Finalize()
		if r := w.reconcile(); len(r.Foreign) != 2 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(false)
		w.clock.Advance(time.Minute)
		w.elsewhere(url + "after")
		w.chain.Finalize()
		if r := w.reconcile(); len(r.Foreign) != 1 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)
	})
}

// old is a chain whose final block is the first one.
type old struct {
	*canopytest.Chain
	is bool
}

func (o *old) Finalized(ctx context.Context) (payment.Block, error) {
	at, err := o.Chain.Finalized(ctx)
	if o.is {
		at.Number, at.Time = 0, time.Unix(1000, 0).UTC()
	}
	return at, err
}

// A first look that goes by nodes far behind is none: what is between was
// before this ledger.
func TestFirstLookFarBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := &old{is: true}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			o.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{o}
		}})
		_, url := w.sells(dime)
		w.elsewhere(url + "long ago")
		w.clock.Advance(48 * time.Hour)
		w.chain.Finalize()
		w.reconcile(true)
		o.is = false
		if r := w.reconcile(); len(r.Foreign) != 0 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(false)
		w.clock.Advance(11 * time.Minute)
		w.elsewhere(url + "now")
		w.chain.Finalize()
		w.reconcile()
		w.frozen(true)
	})
}

// A payment that was released on a false word, and whose money then moved, is
// the worst that can be found: everybody is frozen.
func TestUseAfterRelease(t *testing.T) {
	for _, by := range []ledger.Actor{ledger.ByChain, ledger.ByOperator} {
		for _, call := range []bool{false, true} { // that meets it before it is told
			t.Run(fmt.Sprint(by, call), func(t *testing.T) { bubble(t, func(t *testing.T) { useAfterRelease(t, by, call) }) })
		}
	}
}

func useAfterRelease(t *testing.T, by ledger.Actor, call bool) {
	w := newWorld(t, setup{config: watching})
	s, url := w.sells(dime, canopytest.Always(canopytest.AnswerAgain()))
	w.reconcile() // the first look
	d := as[*canopy.InDoubtError](t, w.get(url).err)
	e, err := w.store.Entry(t.Context(), d.Result.PaymentID)
	must(t, err)
	_, err = w.store.Advance(t.Context(), ledger.Change{
		ID: e.ID, Version: e.Version, To: ledger.ExpiredUnused, By: by, Now: w.clock.Now(),
	})
	must(t, err)
	_, err = s.Harvest().SettleAll(t.Context())
	must(t, err)
	w.spent(dime)
	w.chain.Finalize()
	if call {
		w.again()
		w.denied(w.get(url+"2"), policy.CodeFrozen)
		must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "looked at"))
	}
	r := w.reconcile()
	if len(r.Foreign) != 1 || len(r.Late) != 1 {
		t.Fatalf("found %+v, %+v", r.Foreign, r.Late)
	}
	if l, ok := r.LateUse(r.Foreign[0]); !ok || l.PaymentID != e.ID || l.ReleasedBy != by {
		t.Errorf("told as %+v", l)
	}
	if why := w.frozen(!call); !call && strings.Contains(why, "an operator had called it unused") != (by == ledger.ByOperator) {
		t.Errorf("frozen for %q", why)
	}
	if r := w.reconcile(); len(r.Foreign)+len(r.Late) != 0 {
		t.Errorf("told again: %+v", r.Foreign)
	}
}

// hider is of two nodes, of which one makes up n uses in a block of its choice,
// before all that the other shows there.
type hider struct {
	*canopytest.Chain
	block uint64
	n     int
	asked []payment.Settlement // for confirmation, in order
}

func (h *hider) Uses(ctx context.Context, a canopy.Asset, of canopy.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	uses, err := h.Chain.Uses(ctx, a, of, first, at)
	if err != nil || a != h.Dollar() || h.block < first || h.block > at.Number {
		return uses, err
	}
	var all []payment.Settlement
	for i := range h.n {
		all = append(all, payment.Settlement{
			Slot:   payment.Slot{Kind: payment.SlotLane, Chain: a.Chain, From: of, NonceID: [32]byte{9, byte(i)}},
			TxHash: fmt.Sprintf("0x%064x", i+1), Block: h.block, Token: a.Address,
		})
	}
	return append(all, uses...), nil
}

func (h *hider) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	if h.asked = append(h.asked, s); s.Slot.NonceID[0] == 9 {
		return false, canopytest.ErrDisagree
	}
	return h.Chain.Confirm(ctx, s)
}

// lookedTo is up to which block the uses of the dollar were looked at.
func (w *world) lookedTo() uint64 {
	w.t.Helper()
	name := fmt.Sprintf("uses/%s/%s/%s", w.chain.ID(), w.chain.Dollar().Address.Lower(), w.client.Address().Lower())
	at, known, err := w.store.(ledger.Cursors).Cursor(w.t.Context(), name)
	if must(w.t, err); !known {
		w.t.Errorf("nothing was looked at under %s", name)
	}
	return at
}

// hiding is a world after its first look, where one of two nodes can hide.
func hiding(t *testing.T) (*world, *hider) {
	t.Helper()
	w := newWorld(t, onTempo(setup{}))
	h := &hider{Chain: w.chain}
	w.chain.SetNodes(2, canopytest.NoLie)
	w.changed(func(c *canopy.Config) { c.Treasury.Chains = []canopy.Chain{h} })
	w.chain.Finalize()
	w.reconcile()
	w.clock.Advance(12 * time.Minute)
	return w, h
}

// However many uses one of two nodes makes up, what both show of the key's use
// elsewhere, or of one after its release, is acted on; and what was made up is
// asked about again.
func TestInventedUsesHideNoTheft(t *testing.T) {
	for name, released := range map[string]bool{"elsewhere": false, "after its release": true} {
		for _, n := range []int{1, 16, 200} {
			t.Run(fmt.Sprint(name, ", behind ", n), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w, h := hiding(t)
					h.n, h.block = n, w.chain.Head().Number+1
					before := w.lookedTo()
					_, url := w.asks(dime, canopytest.MPPConfig{})
					id := w.bought(w.get(url)).paid.PaymentID
					if released {
						e := w.state(id, ledger.Claimed)
						_, err := w.store.Advance(t.Context(), ledger.Change{
							ID: e.ID, Version: e.Version, To: ledger.ExpiredUnused, By: ledger.ByChain, Now: w.clock.Now(),
						})
						must(t, err)
					} else {
						must(t, w.chain.Send(w.chain.Dollar(), w.client.Address(), canopytest.Address("thief"), payment.UnitsOf(5_000_000)))
					}
					w.chain.Finalize()
					stolen := w.chain.Transfers()[0]
					if !released {
						stolen = w.chain.Transfers()[len(w.chain.Transfers())-1]
					}
					r := w.reconcile(true)
					if !slices.ContainsFunc(r.Foreign, func(s payment.Settlement) bool { return s.TxHash == stolen.TxHash && len(s.Moved) == 1 }) {
						t.Errorf("found %+v", r.Foreign)
					}
					if h.asked[0].TxHash != stolen.TxHash || len(h.asked) > 16+len(w.chain.Assets()) {
						t.Errorf("asked %d times, and first about %+v", len(h.asked), h.asked[0])
					}
					w.frozen(true)
					if got := w.lookedTo(); got < before || got >= h.block {
						t.Errorf("looked up to block %d, from %d on, with block %d not confirmed", got, before, h.block)
					}
					h.n = 0
					w.reconcile()
					if got := w.lookedTo(); got <= h.block {
						t.Errorf("looked up to block %d, of more than %d", got, h.block)
					}
				})
			})
		}
	}
}

// What one of two nodes makes up hides nothing in the blocks of a later step.
func TestInventedUseHidesNoLaterTheft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, h := hiding(t)
		h.n, h.block = 200, w.chain.Head().Number+1
		for range 50_001 {
			w.clock.Advance(time.Second)
			w.chain.Mine()
		}
		must(t, w.chain.Send(w.chain.Dollar(), w.client.Address(), canopytest.Address("thief"), payment.UnitsOf(5_000_000)))
		w.chain.Finalize()
		before := w.lookedTo()
		if r := w.reconcile(true); len(r.Foreign) != 1 {
			t.Errorf("found %+v", r.Foreign)
		}
		w.frozen(true)
		if got := w.lookedTo(); got < before || got >= h.block {
			t.Errorf("looked up to block %d, from %d on, with block %d not confirmed", got, before, h.block)
		}
		h.n = 0
		w.reconcile()
		if got := w.lookedTo(); got < w.chain.Final().Number {
			t.Errorf("looked up to block %d", got)
		}
	})
}

// again is a new process on the world's ledger.
func (w *world) again() {
	w.t.Helper()
	c, err := canopy.New(w.cfg)
	must(w.t, err)
	w.client = c
}

// A use that the sweep within a call meets is logged there, acted on once, and
// told by the next Reconcile, once.
func TestUseMetWithinACall(t *testing.T) {
	for _, what := range []canopy.ForeignUse{canopy.FreezeOnForeignUse, canopy.WarnOnForeignUse} {
		t.Run(fmt.Sprint(what), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
					watching(w, c)
					c.ForeignUse = what
				}})
				freezes := what == canopy.FreezeOnForeignUse
				_, url := w.sells(dime)
				w.bought(w.get(url))
				w.clock.Advance(11 * time.Minute)
				w.reconcile()
				w.elsewhere(url + "other")
				w.chain.Finalize()
				w.again()
				if g := w.get(url + "2"); (g.err != nil) != freezes {
					t.Fatalf("the call that met it: %+v", g)
				}
				if log := w.logs.String(); !strings.Contains(log, "outside this ledger") {
					t.Error("the call logged nothing of it")
				}
				w.frozen(freezes)
				if freezes {
					must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "it was us"))
				}
				w.clock.Advance(time.Minute)
				w.chain.Finalize()
				w.again()
				w.bought(w.get(url + "3")) // a second call looks further, and acts on it no more
				w.frozen(false)
				cursor := w.lookedTo()
				if r := w.reconcile(); len(r.Foreign) != 1 || r.Known != 0 {
					t.Errorf("told %+v, %d known", r.Foreign, r.Known)
				}
				w.frozen(false)
				if now := w.lookedTo(); now < cursor {
					t.Errorf("the cursor went from %d to %d", cursor, now)
				}
				for range 2 {
					if r := w.reconcile(); len(r.Foreign)+r.Known != 0 {
						t.Errorf("told again: %+v, %d known", r.Foreign, r.Known)
					}
				}

				// The next ones: one that a call meets, and one that is told at once.
				w.elsewhere(url + "more")
				w.chain.Finalize()
				w.again()
				w.get(url + "4")
				w.frozen(freezes)
				w.elsewhere(url + "most")
				w.chain.Finalize()
				if r := w.reconcile(); len(r.Foreign) != 2 {
					t.Errorf("told %+v", r.Foreign)
				}
				if r := w.reconcile(); len(r.Foreign)+r.Known != 0 {
					t.Errorf("told again: %+v, %d known", r.Foreign, r.Known)
				}
			})
		})
	}
}

// What a call met in the minutes of a ledger's first look is told too.
func TestEarlyUseMetWithinACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{config: watching})
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.elsewhere(url + "other")
		w.chain.Finalize()
		w.again()
		w.bought(w.get(url + "2"))
		w.frozen(false)
		if r := w.reconcile(); len(r.Foreign) != 1 {
			t.Errorf("told %+v", r.Foreign)
		}
		if r := w.reconcile(); len(r.Foreign) != 0 {
			t.Errorf("told again: %+v", r.Foreign)
		}
		w.frozen(false)
	})
}

// during is a chain that has something happen within one question.
type during struct {
	*canopytest.Chain
	happens func()
}

func (d *during) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	if f := d.happens; f != nil {
		d.happens = nil
		f()
	}
	return d.Chain.Confirm(ctx, s)
}

// What a Reconcile told of while a call looked less far is not told again, and
// freezes nobody a second time.
func TestToldWhileACallLooks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &during{}
		w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
			d.Chain = w.chain
			c.Treasury.Chains = []canopy.Chain{d}
		}})
		_, url := w.sells(dime)
		w.bought(w.get(url))
		w.clock.Advance(11 * time.Minute)
		w.reconcile()
		w.elsewhere(url + "other")
		w.chain.Finalize()
		d.happens = func() {
			w.elsewhere(url + "later")
			w.chain.Finalize()
			if r := w.reconcile(); len(r.Foreign) != 2 {
				t.Errorf("told %+v", r.Foreign)
			}
		}
		w.again()
		w.denied(w.get(url+"2"), policy.CodeFrozen)
		must(t, w.store.(ledger.Freezer).Unfreeze(t.Context(), "", "ana", "it was us"))
		if r := w.reconcile(); len(r.Foreign) != 1 {
			t.Errorf("told %+v", r.Foreign)
		}
		w.frozen(false)
	})
}
