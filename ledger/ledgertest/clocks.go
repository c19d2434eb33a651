package ledgertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

func at(now time.Time) with { return func(r *ledger.Request) { r.Now, r.Began = now, now } }

// testSkew lets the caller's clock and the store's differ, and go back.
func testSkew(w *world) {
	w.allow(w.fetch(path("/0")))
	for _, d := range []time.Duration{30 * time.Second, -30 * time.Second} {
		w.serial++
		w.allow(w.fetch(path(fmt.Sprint(w.serial)), at(w.now().Add(d))))
		w.clock.Advance(time.Minute)
	}
	for _, d := range []time.Duration{30*time.Second + time.Microsecond, -30*time.Second - time.Microsecond, 48 * time.Hour, -48 * time.Hour} {
		w.fails(w.fetch(at(w.now().Add(d))), ledger.ErrClockSkew)
	}
	w.fails(w.fetch(at(time.Time{})), ledger.ErrClockSkew)

	// The ledger's time is the latest of all, and never goes back.
	ahead := w.now().Add(20 * time.Second)
	first := w.allow(w.fetch(path("/ahead"), at(ahead)))
	if !first.AuthorizedAt.Equal(ahead) || !first.ValidBefore.Equal(ahead.Add(time.Minute)) {
		w.Errorf("authorized at %v until %v, want %v", first.AuthorizedAt, first.ValidBefore, ahead)
	}
	second := w.allow(w.fetch(path("/behind")))
	if !second.AuthorizedAt.Equal(ahead) {
		w.Errorf("authorized at %v after %v", second.AuthorizedAt, ahead)
	}
	if got := w.move(second, ledger.InDoubt, ledger.ByClient); !got.OutcomeAt.Equal(ahead) {
		w.Errorf("outcome at %v after %v", got.OutcomeAt, ahead)
	}
	w.fails(w.fetch(at(w.now().Add(-11*time.Second))), ledger.ErrClockSkew)
	w.clock.Step(-11 * time.Second)
	w.fails(w.fetch(), ledger.ErrClockSkew)
	w.fails(w.fetch(at(w.now().Add(15*time.Second))), ledger.ErrClockSkew)
	w.clock.Step(time.Second)
	w.allow(w.fetch(path("/back")))

	// The guard orders callers whose clocks differ by the store's clock.
	w.clock.Advance(time.Hour)
	slow := w.now().Add(-25 * time.Second)
	e := w.allow(w.fetch(path("/guard")))
	e = w.move(e, ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(time.Second)
	w.join(w.fetch(path("/guard"), at(slow.Add(time.Second))), e.ID, ledger.JoinGuard)
	w.join(w.fetch(path("/guard"), at(slow.Add(time.Second)), began(slow.Add(time.Millisecond))), e.ID, ledger.JoinGuard)
	w.allow(w.fetch(path("/guard"), at(slow.Add(time.Second)), began(slow.Add(-time.Second))))

	// An outcome is recorded whatever the clocks say, at an instant that fits.
	e = w.allow(w.fetch(path("/outcome")))
	got := w.move(e, ledger.Claimed, ledger.ByClient, func(c *ledger.Change) { c.Now = c.Now.Add(48 * time.Hour) })
	if got.OutcomeAt.After(w.now().Add(30*time.Second)) || got.OutcomeAt.Before(e.AuthorizedAt) {
		w.Errorf("outcome at %v, authorized at %v", got.OutcomeAt, e.AuthorizedAt)
	}
	w.allow(w.fetch(path("/after")))
	w.verify()
}

// testJump sets the wall clock ahead while the process runs: refused, until it
// is right again or an operator has looked.
func testJump(w *world) {
	l := atMost(2*payment.Dollar, rolling(time.Hour))
	w.allow(w.fetch(path("/1"), caps(l)))
	w.clock.Step(60 * time.Second)
	w.allow(w.fetch(path("/2"), caps(l)))
	w.clock.Step(61 * time.Second)
	w.fails(w.fetch(), ledger.ErrClockSkew)
	w.clock.Step(-61 * time.Second)
	w.clock.Advance(time.Second)
	w.deny(w.fetch(path("/3"), caps(l)), policy.CodeCapExceeded)
	w.clock.Advance(10 * time.Hour) // time that passed is no jump
	w.allow(w.fetch(path("/4"), caps(l)))

	w.clock.Step(5 * time.Hour)
	w.fails(w.fetch(), ledger.ErrClockSkew)
	w.fails(w.fetch(), ledger.ErrClockSkew)
	// An outcome meanwhile does not bring the ledger's time along.
	w.clock.Step(-5 * time.Hour)
	e := w.allow(w.fetch(path("/5"), caps(l)))
	w.clock.Step(5 * time.Hour)
	if got := w.move(e, ledger.Claimed, ledger.ByClient); got.OutcomeAt.After(e.AuthorizedAt.Add(time.Minute)) {
		w.Errorf("outcome at %v, authorized at %v", got.OutcomeAt, e.AuthorizedAt)
	}
	w.ack()
	w.allow(w.fetch(path("/6"), caps(l)))
	w.verify()
}

// testJumpBefore sets the wall clock ahead while one process runs: one that
// starts afterwards pays from no empty window either, until an operator has
// looked, which all of them know then.
func testJumpBefore(w *world) {
	l := atMost(payment.Dollar, day24)
	w.allow(w.fetch(path("/1"), caps(l)))
	w.clock.Step(25 * time.Hour)
	first := w.s
	switch {
	case w.o.Shared:
		w.s = w.open()
	case w.o.Durable:
		must(w, w.s.Close())
		w.s = w.open()
	}
	w.fails(w.fetch(path("/2"), caps(l)), ledger.ErrClockSkew)
	w.ack()
	w.allow(w.fetch(path("/3"), caps(l)))
	if w.o.Shared {
		w.s = first
		w.deny(w.fetch(path("/4"), caps(l)), policy.CodeCapExceeded)
		w.clock.Step(61 * time.Second)
		w.fails(w.fetch(path("/5"), caps(l)), ledger.ErrClockSkew)
		w.s = w.open()
		w.fails(w.fetch(path("/6"), caps(l)), ledger.ErrClockSkew)
	}
	w.verify()
}

// testJumpAfterUptime steps the wall clock ahead by 25 minutes after a month of
// payments: what slewing may gain in a month is not allowed in one step, to the
// handle that was there and to one that is opened then.
func testJumpAfterUptime(w *world) {
	for i := range 30 {
		w.allow(w.fetch(path(fmt.Sprint("day", i))))
		w.clock.Advance(24 * time.Hour)
	}
	w.allow(w.fetch(path("before")))
	w.clock.Advance(time.Second)
	w.clock.Step(25 * time.Minute)
	if _, _, err := w.s.Reserve(w.ctx, w.fetch(path("after"))); !errors.Is(err, ledger.ErrClockSkew) {
		w.Errorf("a step of 25 minutes: %v", err)
	}
}

// testCreepingClock steps the wall clock ahead by a minute at each payment: the
// steps add up, and the cap holds by the time that passed. A clock that gains
// what slewing may is no such thing.
func testCreepingClock(w *world) {
	l := atMost(10*payment.Dollar, rolling(time.Hour))
	paid, refused := 0, false
	for i := 0; i < 600 && !refused; i++ {
		e, _, err := w.s.Reserve(w.ctx, w.fetch(path(fmt.Sprint(i)), caps(l)))
		if refused = errors.Is(err, ledger.ErrClockSkew); err == nil && e.State == ledger.Authorized {
			paid++
		}
		w.clock.Advance(time.Second)
		w.clock.Step(time.Minute)
	}
	if !refused || paid > 10 {
		w.Errorf("paid %d times in ten minutes, refused: %v; want 10 at most, and that", paid, refused)
	}
	w.ack()
	for i := range 100 {
		w.allow(w.fetch(path(fmt.Sprint("slewed", i))))
		w.clock.Advance(24 * time.Hour)
		w.clock.Step(43 * time.Second) // 500 ppm, the most that NTP slews
	}
}

func (w *world) ack() {
	w.Helper()
	a, ok := w.s.(ledger.Acker)
	if !ok {
		w.T.Skip("the store is no Acker")
	}
	if err := a.Ack(w.ctx, "ana", "looked at the clock"); err != nil {
		w.Fatalf("Ack: %v", err)
	}
}

// testSteppedClock is F20: steps of 48 hours back and forth free nothing and
// forget nothing, also after an operator acknowledged them.
func testSteppedClock(w *world) {
	l := atMost(10*payment.Dollar, day24)
	month := atMost(10*payment.Dollar, policy.Window{Kind: policy.Month})
	w.allow(w.fetch(usd(10*payment.Dollar), caps(l, month)))
	for range 3 {
		for _, d := range []time.Duration{48 * time.Hour, -48 * time.Hour, -48 * time.Hour, 48 * time.Hour} {
			w.clock.Step(d)
			e, _, err := w.s.Reserve(w.ctx, w.fetch(path("/stepped"), usd(payment.Dollar), caps(l)))
			if err == nil && e.State == ledger.Authorized {
				w.Errorf("%v from %v: paid over the cap", d, noon)
			}
		}
	}
	w.deny(w.fetch(usd(1), caps(l)), policy.CodeCapExceeded)

	// A jump that an operator lets pass ages windows; when it proves wrong and
	// is taken back, what had aged out counts again.
	w.clock.Step(40 * 24 * time.Hour)
	w.ack()
	w.uses(l, 0, 0)
	later := w.allow(w.fetch(path("/later"), usd(3*payment.Dollar), caps(l, month)))
	w.clock.Step(-40 * 24 * time.Hour)
	w.fails(w.fetch(), ledger.ErrClockSkew)
	w.ack()
	w.deny(w.fetch(usd(1), caps(l)), policy.CodeCapExceeded)
	w.deny(w.fetch(usd(1), caps(month)), policy.CodeCapExceeded)
	w.uses(l, 13*payment.Dollar, 2)
	w.move(later, ledger.Claimed, ledger.ByClient) // at an earlier instant than it was authorized
	w.verify()
	w.clock.Advance(24*time.Hour + 2*time.Minute)
	w.allow(w.fetch(path("/next"), usd(7*payment.Dollar), caps(l)))
	w.verify()
}

// testFreeze stops one agent, then everybody.
func testFreeze(w *world) {
	f, ok := w.s.(ledger.Freezer)
	if !ok {
		w.T.Skip("the store is no Freezer")
	}
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatalf("Freezer: %v", err)
		}
	}
	frozen := func(agent string, want bool, reason string) {
		w.Helper()
		if got, why, err := f.Frozen(w.ctx, agent); err != nil || got != want || why != reason {
			w.Errorf("Frozen(%q) is %v, %q, %v; want %v, %q", agent, got, why, err, want, reason)
		}
	}
	paid := w.allow(w.fetch(key("paid")))
	must(f.Freeze(w.ctx, "trader", "ana", "an odd payee"))
	frozen("trader", true, "an odd payee")
	frozen("other", false, "")
	r := w.deny(w.fetch(path("/1")), ledger.CodeFrozen)
	if !contains(r.Text, "an odd payee") {
		w.Errorf("the reason is %q", r.Text)
	}
	w.deny(w.fetch(path("/1"), asks()), ledger.CodeFrozen)
	w.deny(w.fetch(key("paid")), ledger.CodeFrozen) // freeze comes before the key
	w.allow(w.fetch(path("/1"), agent("other")))
	w.move(paid, ledger.Claimed, ledger.ByClient) // what has left is recorded
	must(f.Freeze(w.ctx, "", "ben", "everything"))
	w.deny(w.fetch(path("/2"), agent("other")), ledger.CodeFrozen)
	if all, err := f.Freezes(w.ctx); err != nil || len(all) != 2 || all["trader"] != "an odd payee" || all[""] != "everything" {
		w.Errorf("Freezes gives %v, %v", all, err)
	}
	must(f.Unfreeze(w.ctx, "trader", "ana", ""))
	frozen("trader", true, "everything")
	must(f.Unfreeze(w.ctx, "", "ana", "looked"))
	must(f.Unfreeze(w.ctx, "nobody", "ana", ""))
	frozen("trader", false, "")
	w.join(w.fetch(key("paid")), paid.ID, ledger.JoinKey)
	w.allow(w.fetch(path("/3")))
	w.verify()
}
