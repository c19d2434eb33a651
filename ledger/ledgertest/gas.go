package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// gas pays by transactions of the account's own, of bound at most, where a day
// has perDay.
func gas(bound, perDay uint64) with {
	return func(r *ledger.Request) {
		r.Watched = true
		r.Gas = &ledger.Gas{Bound: payment.UnitsOf(bound), PerDay: payment.UnitsOf(perDay)}
	}
}

// carried is a transfer of its own that such transactions carry.
func (w *world) carried(bound, perDay uint64, opts ...with) ledger.Request {
	w.serial++
	return w.pay(append([]with{key(fmt.Sprintf("carried %d", w.serial)), gas(bound, perDay)}, opts...)...)
}

// carry asks for a transaction of 10 units of gas.
func carry(nonce, fee uint64) func(*ledger.Change) {
	return func(c *ledger.Change) {
		c.Carry = &payment.Carry{Nonce: nonce, GasLimit: 10, MaxFee: fee, MaxTip: 1}
	}
}

// permit permits e a transaction.
func (w *world) permit(e ledger.Entry, opts ...func(*ledger.Change)) ledger.Entry {
	w.Helper()
	return w.move(e, e.State, ledger.ByClient, opts...)
}

// permitFails demands that e gets none, and stays as it is.
func (w *world) permitFails(e ledger.Entry, want error, opts ...func(*ledger.Change)) {
	w.Helper()
	c := ledger.Change{ID: e.ID, Version: e.Version, To: e.State, By: ledger.ByClient, Now: w.now(), Sent: 1, Note: "not stored"}
	carry(1, 1)(&c)
	for _, o := range opts {
		o(&c)
	}
	got, err := w.s.Advance(w.ctx, c)
	if !errors.Is(err, want) || got.CarryPermit.Slot() != "" {
		w.Errorf("a transaction of a payment that is %s: %v, permit %q; want %v", e.State, err, got.CarryPermit.Slot(), want)
	}
	w.same(w.entry(e.ID), e)
}

// testGas counts a day's gas to the last unit, for each account on each chain.
func testGas(w *world) {
	a := w.allow(w.carried(60, 100))
	if a.Gas != payment.UnitsOf(60) || len(a.Carries) != 0 || a.CarryPermit.Slot() != "" {
		w.Errorf("gas %v, %d transactions, permit %q", a.Gas, len(a.Carries), a.CarryPermit.Slot())
	}
	w.same(w.entry(a.ID), a)
	frees := a.ValidBefore.Add(24 * time.Hour)
	r := w.deny(w.carried(41, 100), ledger.CodeGasPerDay)
	if want := "Gas cap exceeded: 0.00000000000000006 + 0.000000000000000041 > 0.0000000000000001 / 24h of the coin of base"; r.Text != want || !r.Until.Equal(frees) {
		w.Errorf("%q until %v, want %q until %v", r.Text, r.Until, want, frees)
	}
	b := w.allow(w.carried(40, 100))
	w.deny(w.carried(1, 100), ledger.CodeGasPerDay)
	w.allow(w.carried(1, 101))                        // a limit that was raised
	w.deny(w.carried(1, 0), ledger.CodeGasPerDay)     // none at all
	w.deny(w.carried(500, 300), ledger.CodeGasPerDay) // never
	w.deny(w.carried(1, 1, asks()), ledger.CodeGasPerDay)
	w.allow(w.pay(key("facilitator")))
	w.allow(w.carried(100, 100, func(r *ledger.Request) { r.Payer = payment.Address{19: 0x55} }))
	w.allow(w.carried(100, 100, func(r *ledger.Request) { r.Payment.Terms.Asset.Chain = payment.BaseSepolia }))
	huge := payment.UnitsFromBytes(allOnes)
	e := w.reserve(w.carried(1, 1, func(r *ledger.Request) { r.Gas.Bound, r.Gas.PerDay = huge, huge }))
	w.reason(e, ledger.CodeGasPerDay)

	// What could cost nothing counts no more; what could, does.
	w.end(b, ledger.ExpiredUnused)
	b = w.allow(w.carried(40, 101))
	b = w.permit(b, carry(5, 4))
	w.end(b, ledger.ExpiredUnused)
	w.deny(w.carried(1, 101), ledger.CodeGasPerDay)
	w.verify()

	for name, opt := range map[string]with{
		"no bound": gas(0, 100),
		"of a fetch": func(r *ledger.Request) {
			r.Payment.Terms.Method, r.Payment.Terms.Origin = "GET", "https://feed.example"
		},
		"on a lane": func(r *ledger.Request) { r.Slot = payment.Slot{Kind: payment.SlotLane} },
	} {
		if e, _, err := w.s.Reserve(w.ctx, w.carried(1, 100, opt)); err == nil {
			w.Errorf("%s: %s", name, e.State)
		}
	}
}

// testGasFrees frees a day's gas when it is over, and never while the chain has
// not told.
func testGasFrees(w *world) {
	var all []ledger.Entry
	for range 3 {
		e := w.allow(w.carried(30, 100))
		all = append(all, w.permit(e, carry(uint64(len(all)), 3)))
		w.clock.Advance(10 * time.Second)
	}
	until := func(bound uint64, at time.Time) {
		w.Helper()
		if r := w.deny(w.carried(bound, 100), ledger.CodeGasPerDay); !r.Until.Equal(at) {
			w.Errorf("%d frees at %v, want %v", bound, r.Until, at)
		}
	}
	day := 24 * time.Hour
	until(11, all[0].ValidBefore.Add(day))
	until(41, all[1].ValidBefore.Add(day))
	until(71, all[2].ValidBefore.Add(day))
	until(101, time.Time{})
	w.end(all[0], ledger.Settled)
	w.end(all[1], ledger.ExpiredUnused)
	w.clock.Advance(all[0].ValidBefore.Add(day - time.Microsecond).Sub(w.now()))
	w.deny(w.carried(11, 100), ledger.CodeGasPerDay)
	w.clock.Advance(time.Microsecond)
	w.allow(w.carried(30, 100))
	w.clock.Advance(all[1].ValidBefore.Add(day).Sub(w.now()))
	w.allow(w.carried(30, 100))
	w.clock.Advance(time.Hour)
	w.deny(w.carried(30, 100), ledger.CodeGasPerDay) // the third is still in flight
	w.end(all[2], ledger.Cancelled)
	w.allow(w.carried(30, 100))
	w.verify()
}

// testGasApproved checks a day's gas again when an approval is consumed.
func testGasApproved(w *world) {
	r := w.carried(60, 100, asks())
	asked := w.ask(r)
	if !asked.Gas.IsZero() {
		w.Errorf("a pending payment has a gas of %v", asked.Gas)
	}
	other := w.allow(w.carried(60, 100))
	w.decide(asked, true)
	again := func() ledger.Request { return w.pay(key(r.Key), gas(60, 100), asks()) }
	if e := w.reserve(again()); e.ID != asked.ID || e.State != ledger.Approved {
		w.Fatalf("%s %s, want the approved one", e.State, e.ID)
	} else {
		w.reason(e, ledger.CodeGasPerDay)
	}
	w.end(other, ledger.ExpiredUnused)
	e := w.allow(again())
	if e.ID != asked.ID || e.Gas != payment.UnitsOf(60) {
		w.Errorf("carried out %s with a gas of %v, want %s", e.ID, e.Gas, asked.ID)
	}
	w.permit(e, carry(1, 6))
	w.verify()
}

// testGasRace has 64 payers and several handles race for the gas of a day, and
// for the account's nonces.
func testGasRace(w *world) {
	handles := []ledger.Store{w.s}
	if w.o.Shared {
		handles = append(handles, w.open(), w.open())
	}
	var won, denied atomic.Int64
	var mu sync.Mutex
	nonces := map[uint64]bool{}
	w.together(64, func(i int) {
		s := handles[i%len(handles)]
		e, _, err := s.Reserve(w.ctx, w.pay(key(fmt.Sprint(i)), gas(7, 100)))
		switch {
		case err != nil:
			w.Errorf("Reserve: %v", err)
			return
		case e.State != ledger.Authorized:
			if len(e.Reasons) != 1 || e.Reasons[0].Code != ledger.CodeGasPerDay {
				w.Errorf("denied: %v", codes(e.Reasons))
			}
			denied.Add(1)
			return
		}
		won.Add(1)
		c := ledger.Change{ID: e.ID, Version: e.Version, To: e.State, By: ledger.ByClient, Now: w.now(), Carry: &payment.Carry{Nonce: 40, GasLimit: 7, MaxFee: 1}}
		if e, err = s.Advance(w.ctx, c); err != nil {
			w.Errorf("Advance: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if n := e.Carries[0].Nonce; nonces[n] || n < 40 || n >= 54 {
			w.Errorf("nonce %d is given twice, or out of order", n)
		} else {
			nonces[n] = true
		}
	})
	if won.Load() != 14 || denied.Load() != 50 {
		w.Errorf("%d paid and %d were denied, want 14 and 50", won.Load(), denied.Load())
	}
	w.verify()
}

// testCarries permits the transactions of a payment, each its own signature.
func testCarries(w *world) {
	e := w.allow(w.carried(200, 1000))
	check := func(n int, nonces ...uint64) {
		w.Helper()
		var got []uint64
		for _, c := range e.Carries {
			got = append(got, c.Nonce)
		}
		key := payment.CarryKey(e.ID, n)
		if !slices.Equal(got, nonces) || e.CarryPermit.Slot() != key || !e.CarryPermit.Deadline().Equal(e.SignBefore) || e.Permit.Slot() != e.Slot.String() {
			w.Errorf("nonces %v, permits %q and %q until %v; want %v, %q", got, e.Permit.Slot(), e.CarryPermit.Slot(), e.CarryPermit.Deadline(), nonces, key)
		}
		if g := e.CarryGrant(payment.Authorization{}); g.Carry != e.Carries[n-1] || g.Key != key || g.Permit != e.CarryPermit || g.Grant.Slot != e.Slot {
			w.Errorf("grant %+v", g)
		}
		if err := e.CarryPermit.Use([32]byte{byte(n)}, w.now()); err != nil {
			w.Error(err)
		}
		if err := e.CarryPermit.Use([32]byte{99}, w.now()); err == nil {
			w.Error("one permit signs two digests")
		}
		w.same(w.entry(e.ID), e)
	}
	e = w.permit(e, carry(7, 10))
	check(1, 7)
	other := w.permit(w.allow(w.carried(100, 1000)), carry(7, 10))
	if other.Carries[0].Nonce != 8 {
		w.Errorf("the next payment has nonce %d, want 8", other.Carries[0].Nonce)
	}
	e = w.permit(e, carry(7, 12)) // in the place of the first
	check(2, 7, 7)
	e = w.move(e, ledger.InDoubt, ledger.ByClient)
	w.permitFails(e, ledger.ErrOverGas, carry(8, 9)) // 8 is taken, and 9 costs 90 more than the 120
	w.permitFails(e, ledger.ErrOverGas, carry(7, 21))
	w.permitFails(e, ledger.ErrOverGas, carry(9, 1), func(c *ledger.Change) { c.Carry.DataFee = payment.UnitsOf(71) })
	w.permitFails(e, ledger.ErrOverGas, carry(9, 1), func(c *ledger.Change) { c.Carry.GasLimit, c.Carry.MaxFee = 1<<63, 1<<63 })
	e = w.permit(e, carry(8, 8)) // to the last unit
	check(3, 7, 7, 9)
	e = w.permit(e, carry(7, 1))
	e = w.permit(e, carry(9, 8))
	check(5, 7, 7, 9, 7, 9)
	w.permitFails(e, ledger.ErrIllegal, carry(9, 8)) // that were five

	// Of one in doubt nodes tell whether its transaction left; what it had is given
	// again, once.
	after := w.permit(w.allow(w.carried(100, 1000, usd(2*payment.Dollar))), carry(7, 10))
	if after.Carries[0].Nonce != 7 {
		w.Errorf("a payment after one in doubt has nonce %d, want 7", after.Carries[0].Nonce)
	}
	if last := w.permit(w.allow(w.carried(100, 1000, usd(3*payment.Dollar))), carry(7, 10)); last.Carries[0].Nonce != 9 {
		w.Errorf("the payment after that has nonce %d, want 9", last.Carries[0].Nonce)
	}

	events, err := w.s.Events(w.ctx, e.ID)
	if err != nil {
		w.Fatal(err)
	}
	told, err := ledger.Replay(events)
	if err != nil || !slices.Equal(told.Carries, e.Carries) || told.Gas != e.Gas {
		w.Errorf("the events tell %v of %v, %v", told.Carries, told.Gas, err)
	}
	if w.o.Durable {
		if err := w.s.Close(); err != nil {
			w.Fatal(err)
		}
		w.s = w.open()
		if e.State == ledger.Authorized {
			e = w.entry(e.ID)
		}
		check(5, 7, 7, 9, 7, 9)
	}
	if e = w.end(e, ledger.Settled); e.CarryPermit.Slot() != "" {
		w.Error("a settled payment has a permit for a transaction")
	}
	w.verify()
}

// testCarryRules permits no transaction that Reserve would not.
func testCarryRules(w *world) {
	e := w.allow(w.carried(1000, 1<<40))
	w.permitFails(e, ledger.ErrStale, func(c *ledger.Change) { c.Version++ })
	w.permitFails(e, ledger.ErrIllegal, func(c *ledger.Change) { c.To = ledger.InDoubt })
	w.permitFails(e, ledger.ErrIllegal, func(c *ledger.Change) { c.To = ledger.Claimed })
	w.permitFails(e, ledger.ErrIllegal, variant("two", time.Minute))
	for _, by := range actors {
		if by != ledger.ByClient {
			w.permitFails(e, ledger.ErrIllegal, func(c *ledger.Change) { c.By = by })
		}
	}
	for _, f := range []func(*payment.Carry){
		func(c *payment.Carry) { c.GasLimit = 0 },
		func(c *payment.Carry) { c.MaxFee, c.MaxTip = 0, 0 },
		func(c *payment.Carry) { c.MaxTip = c.MaxFee + 1 },
		func(c *payment.Carry) { c.Nonce = 1 << 63 },
		func(c *payment.Carry) { c.Nonce = 1<<64 - 1 },
	} {
		w.permitFails(e, ledger.ErrIllegal, func(c *ledger.Change) { f(c.Carry) })
	}
	w.permitFails(w.allow(w.pay(key("no gas"), usd(9*payment.Dollar))), ledger.ErrIllegal)
	w.permitFails(w.allow(w.onLane(20)), ledger.ErrIllegal)
	for _, s := range []ledger.State{ledger.Claimed, ledger.Settled, ledger.ExpiredUnused, ledger.Cancelled, ledger.NeedsOperator} {
		done := w.allow(w.carried(10, 1<<40, usd(4*payment.Dollar)))
		if s == ledger.Claimed {
			done = w.move(done, s, ledger.ByClient)
		} else {
			done = w.end(done, s)
		}
		w.permitFails(done, ledger.ErrIllegal)
	}
	w.permitFails(e, ledger.ErrClockSkew, func(c *ledger.Change) { c.Now = w.now().Add(31 * time.Second) })
	w.permitFails(e, ledger.ErrClockSkew, func(c *ledger.Change) { c.Now = w.now().Add(-31 * time.Second) })
	f := w.s.(ledger.Freezer)
	for _, who := range []string{"trader", ""} {
		if err := f.Freeze(w.ctx, who, "ana", "stop"); err != nil {
			w.Fatal(err)
		}
		w.permitFails(e, ledger.ErrFrozen)
		if err := f.Unfreeze(w.ctx, who, "ana", "go on"); err != nil {
			w.Fatal(err)
		}
	}
	w.clock.Advance(e.SignBefore.Add(-10*time.Second + time.Microsecond).Sub(w.now()))
	w.permitFails(e, ledger.ErrTooShort)
	e = w.allow(w.carried(1000, 1<<40, usd(3*payment.Dollar)))
	w.permit(e, carry(1<<63-2, 1)) // as far as an account counts
	w.verify()
}
