package ledgertest

import (
	"errors"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// proof makes a request one for a proof: of nothing, and on no chain.
func proof(r *ledger.Request) {
	usd(0)(r)
	r.Slot = payment.Slot{Kind: payment.SlotProof}
}

func claims(c payment.Claim) func(*ledger.Change) {
	return func(ch *ledger.Change) { ch.Receipt = &payment.Receipt{Claim: c} }
}

// testProofs checks how proofs end: with their receipt or with their validity, as
// one payment of nothing that counts to the end of it. Nothing else ends so.
func testProofs(w *world) {
	count := atMostCount(100, rolling(time.Hour))
	refuses := func(e ledger.Entry, by ledger.Actor, opts ...func(*ledger.Change)) {
		w.Helper()
		c := ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Settled, By: by, Now: w.now()}
		for _, o := range opts {
			o(&c)
		}
		if got, err := w.s.Advance(w.ctx, c); !errors.Is(err, ledger.ErrIllegal) {
			w.Errorf("%s of %s, settled by %s: %s, %v, want ErrIllegal", e.State, e.Cost, by, got.State, err)
		}
		if now := w.entry(e.ID); now.State != e.State || now.Head != e.Head {
			w.Errorf("a refused move left %s after %s", now.State, e.State)
		}
	}
	ends := func(e ledger.Entry, by ledger.Actor, opts ...func(*ledger.Change)) ledger.Entry {
		w.Helper()
		got := w.move(e, ledger.Settled, by, opts...)
		if got.Spent != 0 || !got.SpentAt.IsZero() || got.Assumed || got.Note == "" {
			w.Errorf("a proof ended as %+v", got)
		}
		w.same(w.entry(e.ID), got)
		return got
	}
	serial := 0
	ask := func(opts ...with) ledger.Entry {
		w.Helper()
		serial++
		return w.allow(w.fetch(append([]with{proof, path(string(rune('a' + serial))), caps(count)}, opts...)...))
	}

	now := ask(key("k"))
	refuses(now, ledger.ByClient) // nothing came back
	refuses(now, ledger.ByClient, claims(payment.ClaimRefused))
	refuses(now, ledger.ByClient, claims(payment.ClaimPending))
	refuses(now, ledger.ByRecovery)
	now = ends(now, ledger.ByClient, claims(payment.ClaimPaid), delivered)
	if now.Permit.Slot() == "" || !now.HoldsKey() {
		w.Errorf("a proof that ended has no permit or no key: %+v", now)
	}
	cost := w.allow(w.fetch(watched(), path("/money"), agent("other")))
	refuses(cost, ledger.ByClient, claims(payment.ClaimPaid))
	cost = w.move(cost, ledger.Claimed, ledger.ByClient, claims(payment.ClaimPaid))
	refuses(cost, ledger.ByClient)
	w.clock.Advance(2 * time.Minute)
	refuses(cost, ledger.ByRecovery)

	claimed := w.move(ask(), ledger.Claimed, ledger.ByClient, claims(payment.ClaimPaid))
	doubt := w.move(ask(), ledger.InDoubt, ledger.ByClient)
	again := w.move(ask(), ledger.InDoubt, ledger.ByClient, claims(payment.ClaimPending))
	refuses(claimed, ledger.ByRecovery)
	refuses(doubt, ledger.ByRecovery)
	refuses(doubt, ledger.ByClient)
	refuses(again, ledger.ByClient)
	again = ends(again, ledger.ByClient, claims(payment.ClaimUsed))
	w.clock.Advance(doubt.ValidBefore.Add(-time.Microsecond).Sub(w.now()))
	refuses(doubt, ledger.ByRecovery)
	w.clock.Advance(doubt.ValidBefore.Sub(w.now()))
	ends(claimed, ledger.ByRecovery)
	if got := ends(doubt, ledger.ByRecovery); !got.OutcomeAt.Equal(doubt.OutcomeAt) || got.Recovered {
		w.Errorf("its outcome is of %v, recovered %v", got.OutcomeAt, got.Recovered)
	}
	w.uses(count, 0, 4)
	w.verify()

	// They counted to the end of their validity, whenever they were ended.
	w.clock.Advance(now.ValidBefore.Add(time.Hour).Sub(w.now()))
	w.uses(count, 0, 3)
	w.clock.Advance(again.ValidBefore.Add(time.Hour).Sub(w.now()))
	w.uses(count, 0, 0)
	w.verify()
}
