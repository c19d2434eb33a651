package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// people is the power of the store to keep approvers.
func (w *world) people() ledger.ApproverStore {
	w.Helper()
	p, ok := w.s.(ledger.ApproverStore)
	if !ok {
		w.Fatalf("the store is no ledger.ApproverStore")
	}
	return p
}

// hire lets people of these names rule, each with "secret of " and the name.
func (w *world) hire(names ...string) {
	w.Helper()
	for _, n := range names {
		if err := w.people().AddApprover(w.ctx, n, ledger.HashCredential("secret of "+n), w.now()); err != nil {
			w.Fatalf("AddApprover(%s): %v", n, err)
		}
	}
}

// testApprovers keeps who may rule.
func testApprovers(w *world) {
	p := w.people()
	if all, err := p.Approvers(w.ctx); err != nil || len(all) != 0 {
		w.Errorf("a new ledger has approvers %v, %v", all, err)
	}
	w.hire("Ben", "ana")
	began := w.now()
	holds := func(name, credential string, want bool) {
		w.Helper()
		a, err := p.Approver(w.ctx, name)
		if err != nil || a.Holds(credential) != want {
			w.Errorf("%s holds %q: %v, %v; want %v", name, credential, !want, err, want)
		}
	}
	holds("ana", "secret of ana", true)
	holds("ANA", "secret of ana", true)
	holds("ben", "secret of Ben", true)
	holds("ana", "secret of Ben", false)
	holds("ana", "", false)
	if a, err := p.Approver(w.ctx, "BEN"); err != nil || a.Name != "Ben" || !a.CreatedAt.Equal(began) || !a.RotatedAt.IsZero() || !a.RevokedAt.IsZero() {
		w.Errorf("Ben is %+v, %v", a, err)
	}
	if _, err := p.Approver(w.ctx, "eve"); !errors.Is(err, ledger.ErrNotFound) {
		w.Errorf("nobody is found: %v", err)
	}

	other := ledger.HashCredential("other")
	for _, name := range []string{"ana", "ANA", "Ana"} {
		if err := p.AddApprover(w.ctx, name, other, w.now()); !errors.Is(err, ledger.ErrApproverExists) {
			w.Errorf("%s added twice: %v", name, err)
		}
	}
	for _, name := range []string{"", "a b", "ana\n", "änä", "ana/../ben", strings.Repeat("x", 65), "agt_01", "AGT_x"} {
		if err := p.AddApprover(w.ctx, name, other, w.now()); err == nil {
			w.Errorf("an approver named %q", name)
		}
	}
	if err := p.AddApprover(w.ctx, "cyd", payment.Hash{}, w.now()); err == nil {
		w.Errorf("an approver without a credential")
	}

	w.clock.Advance(time.Minute)
	if err := p.RotateApprover(w.ctx, "ANA", other, w.now()); err != nil {
		w.Fatalf("rotate: %v", err)
	}
	holds("ana", "secret of ana", false)
	holds("ana", "other", true)
	if a, err := p.Approver(w.ctx, "ana"); err != nil || !just(a.RotatedAt, w.now()) || !just(a.CreatedAt, began) || a.Name != "ana" {
		w.Errorf("ana is %+v, %v", a, err)
	}
	if err := p.RevokeApprover(w.ctx, "ana", w.now()); err != nil {
		w.Fatalf("revoke: %v", err)
	}
	holds("ana", "other", false)
	for name, err := range map[string]error{
		"a second time":       p.RevokeApprover(w.ctx, "ana", w.now()),
		"who never was":       p.RevokeApprover(w.ctx, "eve", w.now()),
		"rotated when gone":   p.RotateApprover(w.ctx, "ana", other, w.now()),
		"rotated and unknown": p.RotateApprover(w.ctx, "eve", other, w.now()),
	} {
		if !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("%s: %v", name, err)
		}
	}
	all, err := p.Approvers(w.ctx)
	if err != nil || len(all) != 2 || all[0].Name != "ana" || !just(all[0].RevokedAt, w.now()) || all[1].Name != "Ben" || !all[1].RevokedAt.IsZero() {
		w.Errorf("the approvers are %+v, %v", all, err)
	}

	// Back, with a credential of her own and no other.
	if err := p.AddApprover(w.ctx, "ana", ledger.HashCredential("third"), w.now()); err != nil {
		w.Fatalf("back: %v", err)
	}
	holds("ana", "other", false)
	holds("ana", "third", true)
	if w.o.Shared {
		a, err := w.open().(ledger.ApproverStore).Approver(w.ctx, "ana")
		if err != nil || !a.Holds("third") {
			w.Errorf("another handle has %+v, %v", a, err)
		}
	}
	w.verify()
}

// testApproverRace gives a name to one of many.
func testApproverRace(w *world) {
	handles := []ledger.Store{w.s}
	if w.o.Shared {
		handles = append(handles, w.open(), w.open())
	}
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		p := handles[i%len(handles)].(ledger.ApproverStore)
		name := []string{"ana", "ANA", "Ana"}[i%3]
		wg.Go(func() {
			switch err := p.AddApprover(w.ctx, name, ledger.HashCredential(fmt.Sprint(i)), w.now()); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ledger.ErrApproverExists):
				w.Errorf("add: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		w.Errorf("%d have the name, want 1", won.Load())
	}
}

// just reports whether t is at, or so little later that acts and votes of one
// instant are told apart.
func just(t, at time.Time) bool { return !t.Before(at) && t.Sub(at) < time.Millisecond }
