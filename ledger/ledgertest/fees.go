package ledgertest

import (
	"errors"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// feeBound bounds the fee of a payment.
func feeBound(u payment.USD) with {
	return func(r *ledger.Request) { r.Payment.Terms.FeeBound = u }
}

// fee is what the chain says was paid.
func fee(u payment.USD) func(*ledger.Change) {
	return func(c *ledger.Change) { c.Fee = &u }
}

// testFees counts what was paid once the chain told it, and what was judged
// before and where it does not.
func testFees(w *world) {
	const cent = payment.Cent
	l, n := atMost(10*payment.Dollar, day24), atMostCount(100, day24)
	made := func(opts ...with) ledger.Entry {
		w.Helper()
		w.serial++
		return w.allow(w.onLane(50, append([]with{feeBound(3 * cent), caps(l, n)}, opts...)...))
	}
	counts := func(usd payment.USD, count int64) {
		w.Helper()
		w.uses(l, usd, count)
		w.uses(n, usd, count)
	}
	e := made()
	if e.Cost != 103*cent || e.Spent != e.Cost {
		w.Fatalf("it costs %v and counts for %v", e.Cost, e.Spent)
	}
	counts(103*cent, 1)
	e = w.end(e, ledger.Settled, fee(1*cent))
	if e.Cost != 103*cent || e.Spent != 101*cent {
		w.Errorf("it costs %v and counts for %v", e.Cost, e.Spent)
	}
	counts(101*cent, 1)
	w.same(w.entry(e.ID), e)
	if e := w.end(made(), ledger.Settled, fee(0)); e.Spent != 100*cent {
		w.Errorf("without a fee it counts for %v", e.Spent)
	}
	if e := w.end(made(), ledger.Settled, fee(3*cent)); e.Spent != 103*cent {
		w.Errorf("with the whole fee it counts for %v", e.Spent)
	}
	if e := w.end(made(), ledger.Settled); e.Spent != 103*cent {
		w.Errorf("with a fee that is not known it counts for %v", e.Spent)
	}
	counts(407*cent, 4)
	if e := w.end(made(), ledger.ExpiredUnused); e.Spent != 0 || e.Cost != 103*cent {
		w.Errorf("unused it counts for %v", e.Spent)
	}
	if e := w.end(made(), ledger.Cancelled); e.Spent != 0 {
		w.Errorf("cancelled it counts for %v", e.Spent)
	}
	if e := w.end(made(), ledger.Cancelled, fee(0)); e.Spent != 0 {
		w.Errorf("cancelled without a fee it counts for %v", e.Spent)
	}
	counts(407*cent, 4)
	burnt := w.end(made(key("burnt")), ledger.Cancelled, fee(2*cent), spentAt(w.now().Add(10*time.Second)))
	if burnt.Spent != 2*cent || !burnt.SpentAt.Equal(w.now().Add(10*time.Second)) {
		w.Errorf("a failed transaction counts for %v at %v", burnt.Spent, burnt.SpentAt)
	}
	counts(409*cent, 5)
	w.want(w.reserve(w.onLane(50, key("burnt"))), ledger.Authorized) // the key is free: nothing was bought
	counts(509*cent, 6)
	if e := w.move(w.end(made(), ledger.NeedsOperator), ledger.Settled, ledger.ByOperator, fee(1*cent)); e.Spent != 101*cent || !e.Assumed {
		w.Errorf("by an operator's word it counts for %v, assumed %v", e.Spent, e.Assumed)
	}
	counts(610*cent, 7)
	w.verify()

	// The room is exactly what was not spent.
	w.deny(w.fetch(path("/much"), usd(391*cent), caps(l)), policy.CodeCapExceeded)
	w.allow(w.fetch(path("/fits"), usd(390*cent), caps(l)))
	w.deny(w.fetch(path("/more"), usd(1), caps(l)), policy.CodeCapExceeded)

	held := w.move(w.allow(w.onLane(50, feeBound(3*cent))), ledger.InDoubt, ledger.ByClient)
	for name, change := range map[string]func(*ledger.Change){
		"above the bound":  fee(3*cent + 1),
		"negative":         fee(-1),
		"in doubt":         func(c *ledger.Change) { fee(1)(c); c.To = ledger.InDoubt },
		"unused":           func(c *ledger.Change) { fee(1)(c); c.To = ledger.ExpiredUnused },
		"to a person":      func(c *ledger.Change) { fee(1)(c); c.To = ledger.NeedsOperator },
		"at most to count": fee(payment.MaxUSD),
	} {
		c := ledger.Change{ID: held.ID, Version: held.Version, To: ledger.Settled, By: ledger.ByChain, Now: w.now()}
		change(&c)
		if _, err := w.s.Advance(w.ctx, c); !errors.Is(err, ledger.ErrIllegal) {
			w.Errorf("a fee %s: %v, want ErrIllegal", name, err)
		}
		w.same(w.entry(held.ID), held)
	}
	none := w.move(w.allow(w.fetch(path("/none"))), ledger.InDoubt, ledger.ByClient)
	if _, err := w.s.Advance(w.ctx, ledger.Change{ID: none.ID, Version: none.Version, To: ledger.Settled, By: ledger.ByChain, Now: w.now(), Fee: new(payment.USD(1))}); !errors.Is(err, ledger.ErrIllegal) {
		w.Errorf("a fee where none was agreed: %v, want ErrIllegal", err)
	}
	w.end(held, ledger.ExpiredUnused)
	w.end(none, ledger.ExpiredUnused)

	// What was spent ages out, all of it and no more.
	w.clock.Advance(24*time.Hour + 2*time.Minute)
	e = w.allow(w.fetch(path("/next"), caps(l, n)))
	w.uses(l, 2*payment.Dollar, 2) // with the one under the key that was free again, which is live
	w.end(e, ledger.ExpiredUnused)
	w.verify()

	for _, e := range []ledger.Entry{burnt} {
		events, err := w.s.Events(w.ctx, e.ID)
		if err != nil {
			w.Fatal(err)
		}
		if told, err := ledger.Replay(events); err != nil || told.Spent != e.Spent || told.Cost != e.Cost || !told.SpentAt.Equal(e.SpentAt) {
			w.Errorf("the events tell %v of %v at %v, %v", told.Spent, told.Cost, told.SpentAt, err)
		}
	}
}
