package ledgertest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// legal is what Advance may do, as the documentation of package ledger has it.
var legal = map[ledger.State]map[ledger.State][]ledger.Actor{
	ledger.Authorized: {
		ledger.Claimed: {ledger.ByClient}, ledger.InDoubt: {ledger.ByClient, ledger.ByRecovery},
		ledger.Authorized: actors,
	},
	ledger.InDoubt: {
		ledger.Claimed: {ledger.ByClient}, ledger.InDoubt: actors,
		ledger.Settled: {ledger.ByChain, ledger.ByOperator}, ledger.ExpiredUnused: {ledger.ByChain, ledger.ByOperator},
		ledger.Cancelled: {ledger.ByChain}, ledger.NeedsOperator: {ledger.ByChain},
	},
	ledger.Claimed: {
		ledger.Claimed: actors,
		ledger.Settled: {ledger.ByChain, ledger.ByOperator}, ledger.ExpiredUnused: {ledger.ByChain, ledger.ByOperator},
		ledger.Cancelled: {ledger.ByChain}, ledger.NeedsOperator: {ledger.ByChain},
	},
	ledger.NeedsOperator: {ledger.Settled: {ledger.ByOperator}, ledger.ExpiredUnused: {ledger.ByOperator}},
}

var actors = []ledger.Actor{ledger.ByClient, ledger.ByPerson, ledger.ByChain, ledger.ByOperator, ledger.ByRecovery}

// states are all that a stored payment can be in.
var states = []ledger.State{
	ledger.Denied, ledger.PendingApproval, ledger.Approved, ledger.Rejected, ledger.ApprovalExpired, ledger.Authorized,
	ledger.Claimed, ledger.InDoubt, ledger.Settled, ledger.ExpiredUnused, ledger.Cancelled, ledger.NeedsOperator,
}

// in makes a payment that stands in s, by the shortest way.
func (w *world) in(s ledger.State, opts ...with) ledger.Entry {
	w.Helper()
	w.serial++
	opts = append([]with{path(fmt.Sprintf("/in/%d", w.serial))}, opts...)
	var e ledger.Entry
	switch s {
	case ledger.Denied:
		e = w.reserve(w.fetch(append(opts, func(r *ledger.Request) { r.Verdict.Status = payment.Denied })...))
	case ledger.PendingApproval, ledger.Approved, ledger.Rejected, ledger.ApprovalExpired:
		e = w.ask(w.fetch(append(opts, asks())...))
		if s == ledger.Approved || s == ledger.Rejected {
			w.decide(e, s == ledger.Approved)
		}
		if s == ledger.ApprovalExpired {
			w.clock.Advance(25 * time.Hour)
			d := ledger.Decision{ID: e.ApprovalID, Approve: true, By: "ana", Now: w.now()}
			if _, err := w.s.Approvals().Decide(w.ctx, d); !errors.Is(err, ledger.ErrDecided) {
				w.Fatalf("a grant after the end: %v, want ErrDecided", err)
			}
		}
	default:
		e = w.allow(w.fetch(opts...))
		switch s {
		case ledger.Claimed, ledger.InDoubt:
			e = w.move(e, s, ledger.ByClient)
		case ledger.Settled, ledger.ExpiredUnused, ledger.Cancelled, ledger.NeedsOperator:
			e = w.move(w.move(e, ledger.InDoubt, ledger.ByClient), s, ledger.ByChain)
		}
	}
	return w.want(w.entry(e.ID), s)
}

// testMoves tries every move by everybody from every state.
func testMoves(w *world) {
	for _, from := range states {
		e := w.in(from)
		for to := ledger.Proposed; to <= ledger.NeedsOperator+1; to++ {
			for _, by := range actors {
				allowed := false
				for _, a := range legal[from][to] {
					allowed = allowed || a == by
				}
				got, err := w.s.Advance(w.ctx, ledger.Change{ID: e.ID, Version: e.Version, To: to, By: by, Now: w.now()})
				switch {
				case !allowed && !errors.Is(err, ledger.ErrIllegal):
					w.Errorf("%s to %s by %s: %v, want ErrIllegal", from, to, by, err)
				case !allowed:
					if now := w.entry(e.ID); now.State != from || now.Version != e.Version || now.Head != e.Head {
						w.Errorf("%s to %s by %s was refused and changed the payment", from, to, by)
					}
				case err != nil:
					w.Errorf("%s to %s by %s: %v", from, to, by, err)
				default:
					if got.State != to || got.Version != e.Version+1 || got.Head == e.Head {
						w.Errorf("%s to %s by %s gave %s at version %d after %d", from, to, by, got.State, got.Version, e.Version)
					}
					e = w.in(from)
				}
			}
		}
	}
	w.verify()
}

// testFacts records facts on live payments.
func testFacts(w *world) {
	e := w.allow(w.fetch())
	e = w.move(e, ledger.Authorized, ledger.ByClient, func(c *ledger.Change) { c.Sent = 1 })
	e = w.move(e, ledger.Authorized, ledger.ByClient, func(c *ledger.Change) { c.Sent = 1; c.Note = "sent again" })
	if e.Sends != 2 || e.Note != "sent again" || !e.OutcomeAt.IsZero() {
		w.Errorf("after two sends: %d sends, note %q, outcome at %v", e.Sends, e.Note, e.OutcomeAt)
	}
	receipt := payment.Receipt{Claim: payment.ClaimPaid, TxHash: "0xabc", Amount: payment.UnitsOf(7)}
	e = w.move(e, ledger.Claimed, ledger.ByClient, func(c *ledger.Change) { c.Receipt = &receipt }, delivered)
	e = w.move(e, ledger.Claimed, ledger.ByChain, func(c *ledger.Change) { c.Assumed = true })
	if e.Receipt.TxHash != "0xabc" || e.Receipt.Amount != payment.UnitsOf(7) || !e.Delivered || e.HTTP != 200 || !e.Assumed || e.Note != "sent again" {
		w.Errorf("facts did not stay: %+v, delivered %v, %d, assumed %v, note %q", e.Receipt, e.Delivered, e.HTTP, e.Assumed, e.Note)
	}
	w.same(w.entry(e.ID), e)
	w.verify()
}

// same demands that two reads of a payment give the same.
func (w *world) same(got, want ledger.Entry) {
	w.Helper()
	g, x := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		f := g.Type().Field(i)
		if !f.IsExported() || f.Name == "Permit" || f.Name == "CarryPermit" {
			continue
		}
		a, b := g.Field(i), x.Field(i)
		if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			w.Errorf("payment %s: %s is %v, want %v", want.ID, f.Name, a, b)
		}
	}
}

// testCompareAndSet races one move on one version.
func testCompareAndSet(w *world) {
	e := w.allow(w.fetch())
	var wins, stale int
	var mu sync.Mutex
	w.together(32, func(int) {
		_, err := w.s.Advance(w.ctx, ledger.Change{ID: e.ID, Version: e.Version, To: ledger.InDoubt, By: ledger.ByClient, Now: w.now()})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			wins++
		case errors.Is(err, ledger.ErrStale):
			stale++
		default:
			w.Errorf("Advance: %v", err)
		}
	})
	if wins != 1 || stale != 31 {
		w.Errorf("%d won and %d were stale, want 1 and 31", wins, stale)
	}
	for _, version := range []int64{0, e.Version, e.Version + 2, -1} {
		_, err := w.s.Advance(w.ctx, ledger.Change{ID: e.ID, Version: version, To: ledger.Claimed, By: ledger.ByClient, Now: w.now()})
		if !errors.Is(err, ledger.ErrStale) {
			w.Errorf("version %d: %v, want ErrStale", version, err)
		}
	}
	if _, err := w.s.Advance(w.ctx, ledger.Change{ID: payment.NewID(w.now()), Version: 1, To: ledger.Claimed, Now: w.now()}); !errors.Is(err, ledger.ErrNotFound) {
		w.Errorf("a payment that is not there: %v, want ErrNotFound", err)
	}
	w.verify()
}

// testOutcome checks that the first outcome's instant stays.
func testOutcome(w *world) {
	e := w.allow(w.fetch(watched()))
	w.clock.Advance(3 * time.Second)
	at := w.now()
	e = w.move(e, ledger.InDoubt, ledger.ByClient)
	w.clock.Advance(5 * time.Second)
	e = w.move(e, ledger.Claimed, ledger.ByClient)
	e = w.move(e, ledger.Settled, ledger.ByChain, spentAt(at.Add(time.Second)))
	if !e.OutcomeAt.Equal(at) {
		w.Errorf("outcome at %v, want %v", e.OutcomeAt, at)
	}
	if want := at.Add(10 * time.Minute); !e.SafeAfter().Equal(want) {
		w.Errorf("safe after %v, want %v", e.SafeAfter(), want)
	}
	early := w.in(ledger.Claimed)
	early = w.move(early, ledger.Settled, ledger.ByChain, spentAt(time.Unix(0, 0)))
	if early.SpentAt.Before(early.AuthorizedAt) {
		w.Errorf("spent at %v, before the authorization of %v", early.SpentAt, early.AuthorizedAt)
	}
	if e := w.in(ledger.InDoubt); !e.SpentAt.IsZero() {
		w.Errorf("in doubt with a spend time %v", e.SpentAt)
	}
	ignored := w.move(w.in(ledger.InDoubt), ledger.ExpiredUnused, ledger.ByChain, spentAt(w.now()))
	if !ignored.SpentAt.IsZero() {
		w.Errorf("released with a spend time %v", ignored.SpentAt)
	}
	w.verify()
}

// testHolds checks which state counts and which does not: no word but the
// chain's or an operator's lowers a hold.
func testHolds(w *world) {
	l := atMost(1000*payment.Dollar, ever)
	want := payment.USD(0)
	for _, s := range states {
		e := w.in(s, watched(), caps(l))
		switch s {
		case ledger.Authorized, ledger.Claimed, ledger.InDoubt, ledger.Settled, ledger.NeedsOperator:
			want += e.Cost
		}
		if u := w.use(l); u.USD != want || u.Count != int64(want/payment.Dollar) {
			w.Errorf("with one that is %s: %v in %d payments counts, want %v", s, u.USD, u.Count, want)
		}
	}
	w.verify()
}

// together runs f n times at once.
func (w *world) together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
