package ledgertest

import (
	"fmt"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// testHoldOutlivesWindow is F29: a live hold counts in every window, also those
// that began after it was taken.
func testHoldOutlivesWindow(w *world) {
	l := []policy.Limit{
		atMost(10*payment.Dollar, rolling(10*time.Second)), atMost(10*payment.Dollar, rolling(time.Hour)),
		atMost(10*payment.Dollar, policy.Window{Kind: policy.Day}), atMost(10*payment.Dollar, policy.Window{Kind: policy.Week}),
		atMost(10*payment.Dollar, policy.Window{Kind: policy.Month}), atMost(10*payment.Dollar, ever),
	}
	held := w.allow(w.fetch(usd(10*payment.Dollar), caps(l...), watched()))
	held = w.move(held, ledger.InDoubt, ledger.ByClient)
	for range 10 {
		w.clock.Advance(9 * 24 * time.Hour)
		for _, one := range l {
			w.serial++
			w.deny(w.fetch(path(fmt.Sprint(w.serial)), usd(1), caps(one)), policy.CodeCapExceeded)
			if u := w.use(one); u.USD != held.Cost || u.Held != held.Cost {
				w.Errorf("%v counts %v, %v held, want all", one, u.USD, u.Held)
			}
		}
	}
	// The chain says that it settled when it was sent: all but ever forget it.
	w.move(held, ledger.Settled, ledger.ByChain, spentAt(held.AuthorizedAt.Add(time.Second)))
	for i, one := range l {
		w.serial++
		e := w.reserve(w.fetch(path(fmt.Sprint(w.serial)), usd(1), caps(one)))
		if want := map[bool]ledger.State{false: ledger.Authorized, true: ledger.Denied}[i == len(l)-1]; e.State != want {
			w.Errorf("%v after the settlement: %s, want %s", one, e.State, want)
		}
	}
	w.verify()
}

// testWindows walks over the edges of every kind of window. A payment that is
// not watched counts until its validity ends and is spent at that instant.
func testWindows(w *world) {
	const hours = time.Hour
	at := func(zone, s string) time.Time {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			w.Fatalf("zone: %v", err)
		}
		t, err := time.ParseInLocation("2006-01-02 15:04:05", s, loc)
		if err != nil {
			w.Fatalf("time: %v", err)
		}
		return t.UTC()
	}
	us := time.Microsecond
	for i, tt := range []struct {
		window policy.Window
		paid   time.Time // authorized; spent 60 s later
		in     []time.Time
		out    time.Time // zero for never
	}{
		{
			rolling(hours), noon,
			[]time.Time{noon, noon.Add(time.Minute), noon.Add(hours), noon.Add(hours + time.Minute - us)},
			noon.Add(hours + time.Minute),
		},
		{
			policy.Window{Kind: policy.Day}, at("UTC", "2026-03-04 23:58:00"),
			[]time.Time{at("UTC", "2026-03-04 23:59:59")}, at("UTC", "2026-03-05 00:00:00"),
		},
		{ // [authorized, spend time] touches two days
			policy.Window{Kind: policy.Day}, at("UTC", "2026-03-05 23:59:30"),
			[]time.Time{at("UTC", "2026-03-05 23:59:59"), at("UTC", "2026-03-06 00:00:00"), at("UTC", "2026-03-06 23:59:59")},
			at("UTC", "2026-03-07 00:00:00"),
		},
		{ // and where it touches the first instant only
			policy.Window{Kind: policy.Day}, at("UTC", "2026-03-07 23:59:00"),
			[]time.Time{at("UTC", "2026-03-08 00:00:00"), at("UTC", "2026-03-08 23:59:59")}, at("UTC", "2026-03-09 00:00:00"),
		},
		{ // weeks begin on Monday; 2026-03-15 is a Sunday
			policy.Window{Kind: policy.Week}, at("UTC", "2026-03-15 20:00:00"),
			[]time.Time{at("UTC", "2026-03-15 23:59:59")}, at("UTC", "2026-03-16 00:00:00"),
		},
		{
			policy.Window{Kind: policy.Week, Zone: "America/New_York"}, at("America/New_York", "2026-03-22 23:00:00"),
			[]time.Time{at("America/New_York", "2026-03-22 23:59:59")}, at("America/New_York", "2026-03-23 00:00:00"),
		},
		{ // the day on which Berlin's clocks go forward has 23 hours
			policy.Window{Kind: policy.Day, Zone: "Europe/Berlin"}, at("Europe/Berlin", "2026-03-29 00:00:00"),
			[]time.Time{at("UTC", "2026-03-29 21:59:59")}, at("UTC", "2026-03-29 22:00:00"),
		},
		{
			policy.Window{Kind: policy.Month, Zone: "Asia/Kolkata"}, at("UTC", "2026-03-31 18:00:00"),
			[]time.Time{at("UTC", "2026-03-31 18:29:59")}, at("UTC", "2026-03-31 18:30:00"),
		},
		{
			policy.Window{Kind: policy.Month}, at("UTC", "2026-04-01 00:00:00"),
			[]time.Time{at("UTC", "2026-04-30 23:59:59")}, at("UTC", "2026-05-01 00:00:00"),
		},
		{ // a midnight that does not exist: Santiago, 2026-09-06
			policy.Window{Kind: policy.Day, Zone: "America/Santiago"}, at("America/Santiago", "2026-09-05 23:00:00"),
			[]time.Time{at("America/Santiago", "2026-09-05 23:59:59")}, at("America/Santiago", "2026-09-06 01:00:00"),
		},
		{ // the day on which Berlin's clocks go back has 25 hours
			policy.Window{Kind: policy.Day, Zone: "Europe/Berlin"}, at("Europe/Berlin", "2026-10-25 00:00:00"),
			[]time.Time{at("UTC", "2026-10-25 22:59:59")}, at("UTC", "2026-10-25 23:00:00"),
		},
		{
			ever, at("UTC", "2026-11-01 00:00:00"), []time.Time{at("UTC", "2100-01-01 00:00:00")}, time.Time{},
		},
	} {
		// Each has an agent and a host of its own, so that one is not the
		// other's past; the second is counted by Reserve, the first by Use.
		name := fmt.Sprintf("agent %d", i)
		l := scoped(atMost(payment.Dollar, tt.window), policy.Scope{Kind: policy.ScopeAgent, Agent: name})
		w.until(tt.paid)
		w.allow(w.fetch(path("/paid"), agent(name), caps(l)))
		for _, now := range tt.in {
			w.until(now)
			if u := w.use(l); u.USD != payment.Dollar || u.Count != 1 {
				w.Errorf("%v at %v counts %v in %d, want the payment of %v", tt.window, now, u.USD, u.Count, tt.paid)
			}
			w.deny(w.fetch(path("/in"), agent(name), usd(1), caps(l)), policy.CodeCapExceeded)
		}
		if tt.out.IsZero() {
			continue
		}
		w.until(tt.out)
		if u := w.use(l); u.USD != 0 || u.Count != 0 {
			w.Errorf("%v at %v counts %v, want none of the payment of %v", tt.window, tt.out, u.USD, tt.paid)
		}
		w.allow(w.fetch(path("/out"), agent(name), usd(payment.Dollar), caps(l)))
	}
	w.verify()
}

// until lets time pass until t.
func (w *world) until(t time.Time) {
	w.Helper()
	d := t.Sub(w.now())
	if d < 0 {
		w.Fatalf("the test's instants are not in order: %v comes after %v", t, w.now())
	}
	w.clock.Advance(d)
}

// testAgeing lets many payments of one instant and of several age out at once,
// more than a store would age in one step.
func testAgeing(w *world) {
	const n = 300
	hour := atMost(n*payment.Dollar, rolling(time.Hour))
	count := atMostCount(n, rolling(time.Hour))
	edge := scoped(hour, policy.Scope{Kind: policy.ScopeAgent, Agent: "edge"})
	for i := range n {
		w.allow(w.fetch(path(fmt.Sprint(i)), caps(hour, count)))
		if i%100 == 99 {
			w.clock.Advance(10 * time.Minute)
		}
	}
	w.deny(w.fetch(usd(1), caps(hour)), policy.CodeCapExceeded)
	w.deny(w.fetch(usd(1), caps(count)), policy.CodeCountExceeded)
	w.clock.Advance(31 * time.Minute) // the first 100 of noon are out
	w.uses(hour, 200*payment.Dollar, 200)
	for i := range 100 {
		w.allow(w.fetch(path(fmt.Sprint("again", i)), caps(hour, count)))
	}
	w.deny(w.fetch(usd(1), caps(count)), policy.CodeCountExceeded)
	w.verify()
	// To the microsecond, while a counter lags.
	last := w.allow(w.fetch(path("/last"), agent("edge"), caps(edge)))
	w.clock.Advance(time.Second)
	next := w.allow(w.fetch(path("/next"), agent("edge"), caps(edge)))
	for i, e := range []ledger.Entry{last, next} {
		w.until(e.ValidBefore.Add(time.Hour - time.Microsecond))
		w.uses(edge, payment.USD(2-i)*payment.Dollar, int64(2-i))
		w.clock.Advance(time.Microsecond)
		w.uses(edge, payment.USD(1-i)*payment.Dollar, int64(1-i))
	}
	w.clock.Advance(1000 * time.Hour)
	w.uses(hour, 0, 0)
	// All at once is what a cap of the whole needs.
	w.allow(w.fetch(path("/whole"), usd(n*payment.Dollar), caps(hour)))
	w.uses(hour, n*payment.Dollar, 1)
	w.verify()
}

// testUse asks for the held part and for when a cap has room again.
func testUse(w *world) {
	hour, day := rolling(time.Hour), policy.Window{Kind: policy.Day}
	if u := w.use(atMost(payment.Dollar, hour)); u.USD != 0 || u.Held != 0 || !u.ResetsAt.IsZero() || u.Limit.USD != payment.Dollar {
		w.Errorf("of an empty ledger: %+v", u)
	}
	free := w.allow(w.fetch(path("/1"), usd(1*payment.Dollar)))
	w.move(free, ledger.Claimed, ledger.ByClient)
	watched := w.allow(w.fetch(path("/2"), usd(2*payment.Dollar), watched()))
	settled := w.allow(w.fetch(path("/3"), usd(4*payment.Dollar)))
	w.move(w.move(settled, ledger.Claimed, ledger.ByClient), ledger.Settled, ledger.ByChain, spentAt(w.now()))
	check := func(win policy.Window, sum, held payment.USD, resets time.Time) {
		w.Helper()
		u := w.use(atMost(0, win))
		if u.USD != sum*payment.Dollar || u.Held != held*payment.Dollar || !u.ResetsAt.Equal(resets) {
			w.Errorf("%v counts %v, %v held, until %v; want %v, %v, %v", win, u.USD, u.Held, u.ResetsAt, sum*payment.Dollar, held*payment.Dollar, resets)
		}
	}
	midnight := noon.Add(12 * time.Hour)
	check(hour, 7, 3, noon.Add(time.Hour))
	check(day, 7, 3, midnight)
	check(ever, 7, 3, time.Time{})
	w.clock.Advance(time.Minute + time.Second)
	check(hour, 7, 2, noon.Add(time.Hour))
	w.clock.Advance(58*time.Minute + 59*time.Second)
	check(hour, 3, 2, noon.Add(time.Hour+time.Minute))
	w.clock.Advance(time.Minute)
	check(hour, 2, 2, time.Time{})
	check(day, 7, 2, midnight)
	w.until(midnight)
	check(day, 2, 2, time.Time{})
	check(ever, 7, 2, time.Time{})
	w.move(w.move(watched, ledger.InDoubt, ledger.ByClient), ledger.ExpiredUnused, ledger.ByChain)
	check(day, 0, 0, time.Time{})
	check(ever, 5, 0, time.Time{})
	w.verify()
}
