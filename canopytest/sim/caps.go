package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// covers reports whether l, as it judges r for that payee, counts other.
func (l *limit) covers(r, other *record, payee payment.Address) bool {
	if l.table != "" {
		if tableOf(r.agent) != l.table || tableOf(other.agent) != l.table {
			return false
		}
	}
	switch l.scope {
	case "host":
		return r.host == other.host && r.host != ""
	case "payee":
		return slices.ContainsFunc(other.terms.Recipients, func(p payment.Recipient) bool { return p.Address == payee })
	}
	return true
}

// payees are whom l judges r for: each recipient where it is one per payee, and
// else nobody in particular.
func (l *limit) payees(r *record) []payment.Address {
	if l.scope != "payee" {
		return []payment.Address{{}}
	}
	var out []payment.Address
	for _, p := range r.terms.Recipients {
		if !slices.Contains(out, p.Address) {
			out = append(out, p.Address)
		}
	}
	return out
}

// begin is the instant after which l counts at now.
func (l *limit) begin(now time.Time) time.Time {
	if l.day {
		return now.UTC().Truncate(24 * time.Hour).Add(-1)
	}
	return now.Add(-l.span)
}

// fate is what can become of r's money: it can still move, it has moved at an
// instant, or neither.
type fate struct {
	live, spent bool
	at          time.Time
	usd         payment.USD
}

func (o *oracle) fate(r *record) fate {
	c := r.chain
	switch {
	case r.slot.Kind == payment.SlotProof:
		return fate{spent: true, at: r.validBefore}
	case c.dead(r):
		return fate{}
	case c.isFinal(r.tx):
		return fate{spent: true, at: latest(c.blocks[r.tx.block].time, r.authorized), usd: r.paid()}
	case !r.watched: // nobody can be asked: it counts as spent at its end
		return fate{spent: true, at: r.validBefore, usd: r.cost}
	}
	return fate{live: true, usd: r.cost}
}

// caps is I1, at the commit that authorized r: money that can still move and
// money that moved, in every scope and window, is not above a cap.
func (o *oracle) caps(r *record) {
	w := o.w
	kept := o.active[:0]
	oldest := r.authorized.Add(-25 * time.Hour)
	fates := make([]fate, 0, len(o.active))
	for _, other := range o.active {
		f := o.fate(other)
		if !f.live && !other.state.Live() && (!f.spent || f.at.Before(oldest)) {
			if !f.spent && (other.watched || w.now.Sub(other.validBefore) > 26*time.Hour) || f.spent {
				continue
			}
		}
		kept = append(kept, other)
		fates = append(fates, f)
	}
	o.active = kept
	for i := range w.setup.caps {
		l := &w.setup.caps[i]
		for _, payee := range l.payees(r) {
			if !l.covers(r, r, payee) || o.over(r, l) {
				continue
			}
			begin := l.begin(r.authorized)
			var sum payment.USD
			var count int64
			for k, other := range o.active {
				if f := fates[k]; (f.live || f.spent && f.at.After(begin)) && l.covers(r, other, payee) {
					sum += f.usd
					count++
				}
			}
			if l.count > 0 && count > l.count || l.count == 0 && sum > l.usd {
				w.breaks("I1: with %s, %s in %d payments can move or moved, over the cap %s of %q", r, sum, count, l, l.table)
			}
		}
	}
}

// windows is I2: what moved on the chain, by the chain's own time, in any
// window of any length that a cap names.
func (o *oracle) windows() {
	w := o.w
	type move struct {
		r  *record
		at time.Time
	}
	var all []move
	for o.young < len(o.all) && w.now.Sub(o.all[o.young].authorized) > 72*time.Hour {
		o.young++
	}
	for _, r := range o.all[o.young:] {
		if r.tx != nil && r.tx.r == r && r.paid() > 0 {
			all = append(all, move{r, latest(r.chain.blocks[r.tx.block].time, r.authorized)})
		}
	}
	slices.SortFunc(all, func(a, b move) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.r.n, b.r.n)) })
	for i := range w.setup.caps {
		l := &w.setup.caps[i]
		if l.scope != "" {
			continue // the larger scopes are what a wallet loses
		}
		var sum payment.USD
		first, count := 0, int64(0)
		for k, m := range all {
			if !l.covers(m.r, m.r, payment.Address{}) || o.over(m.r, l) {
				continue
			}
			sum += m.r.paid()
			count++
			for ; !all[first].at.After(l.begin(m.at)); first++ {
				if l.covers(all[first].r, all[first].r, payment.Address{}) && !o.over(all[first].r, l) {
					sum -= all[first].r.paid()
					count--
				}
			}
			if l.count > 0 && count > l.count || l.count == 0 && sum > l.usd {
				w.breaks("I2: %s in %d payments moved in the %s before %s, over the cap %s", sum, count, l.span, all[k].at.Format(time.DateTime), l)
				return
			}
		}
	}
}

// verify has the ledger check itself: chains, sums and indexes.
func (o *oracle) verify() {
	report, err := o.w.book.Verify(context.Background())
	o.check(err)
	for _, p := range report.Problems {
		o.w.breaks("I9: %s", p)
	}
}

// audit has ledger/check count the whole ledger again, with what the key really
// signed and what the chain shows.
func (o *oracle) audit() {
	w := o.w
	opts := check.Options{Policy: w.policy}
	clear := true // the chains show what the ledger tells
	for _, r := range o.all {
		if r.signed {
			opts.Signatures = append(opts.Signatures, check.Signature{Slot: r.slotKey, At: r.signedAt, Until: r.validBefore})
		}
		clear = clear && !(r.state == ledger.Settled && r.tx != nil && r.tx.failed)
	}
	for _, c := range w.chains {
		clear = clear && !slices.ContainsFunc(c.log, (*chainTx).outside)
	}
	if clear {
		for _, c := range w.chains {
			opts.Uses = append(opts.Uses, nodes{w, c}.uses(&node{}, 0, uint64(c.final()))...)
		}
	}
	report, err := check.Run(context.Background(), w.operator(), opts)
	o.check(err)
	for _, p := range report.Problems {
		w.breaks("I9: ledger/check finds %s", p)
	}
}

// rested is I12 and I13: where there is a chain to ask, no hold outlives its
// end, and no use of the key from elsewhere stays unseen.
func (o *oracle) rested() {
	for _, c := range o.w.chains {
		for _, tx := range c.log {
			if r := o.bySlot[tx.slot.String()]; r != nil && r.released {
				continue // the ledger knows the slot, and looks at it no more
			}
			early := tx.block >= 0 && c.blocks[tx.block].time.Before(c.looked.Add(630*time.Second))
			if tx.stolen && !early && !tx.told && len(c.nodes) > 0 {
				o.w.breaks("I13: somebody else used the key in block %d of %s, and no agent was frozen for it", tx.block, c)
			}
		}
	}
	for _, r := range o.all {
		if (r.watched || r.slot.Kind == payment.SlotProof) && r.state.Live() && r.state != ledger.NeedsOperator {
			o.w.breaks("I12: %s is still %s, long after its end is final", r, r.state)
		}
	}
}

// counted is until when the ledger's own rules count r, by what was last
// recorded of it, and whether it has no end yet.
func (r *record) counted() (until time.Time, open, counts bool) {
	switch {
	case r.released && r.counts == 0:
		return time.Time{}, false, false
	case r.released:
		return r.spent, false, true
	case r.state == ledger.NeedsOperator, r.state != ledger.Settled && r.watched:
		return time.Time{}, true, true
	case r.state == ledger.Settled && !r.spent.IsZero():
		return r.spent, false, true
	}
	return r.validBefore, false, true
}

// denied judges a denial for a full cap, or for want of a lane: by the ledger's
// own rules one has to be full, or all lanes taken.
func (o *oracle) denied(e ledger.Entry) {
	has := func(codes ...string) bool {
		return slices.ContainsFunc(e.Reasons, func(r policy.Reason) bool { return slices.Contains(codes, r.Code) })
	}
	if c := o.w.chain(e.Terms.Asset.Chain); has(ledger.CodeNoFreeLane) && o.busy(c) < o.w.setup.lanes {
		o.w.breaks("I12: a payment is denied for want of a lane, and %d of %d are taken", o.busy(c), o.w.setup.lanes)
	}
	if !has(policy.CodeCapExceeded, policy.CodeCountExceeded) {
		return
	}
	o.counted = slices.DeleteFunc(o.counted, func(r *record) bool {
		until, open, counts := r.counted()
		return !open && !r.state.Live() && (!counts || o.w.now.Sub(until) > 26*time.Hour)
	})
	asked := &record{agent: e.Agent, host: e.Host, terms: e.Terms}
	for i := range o.w.setup.caps {
		l := &o.w.setup.caps[i]
		for _, payee := range l.payees(asked) {
			if !l.covers(asked, asked, payee) {
				continue
			}
			sum, count := e.Cost, int64(1)
			begin := l.begin(e.CreatedAt)
			for _, other := range o.counted {
				if until, open, counts := other.counted(); counts && (open || until.After(begin)) && l.covers(asked, other, payee) {
					sum += other.counts
					count++
				}
			}
			if l.count > 0 && count > l.count || l.count == 0 && sum > l.usd {
				return
			}
		}
	}
	o.w.breaks("I12: a payment of %s to %s is denied for a full cap, and no cap is full", e.Cost, e.Host)
}
