package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

type approvalRuling = approvals.Ruling

var payer = mustPayer()

// fee is what paying a host costs beside the amount.
func (w *world) fee(host string) payment.USD {
	if s := w.sellers[host]; s != nil {
		return s.fee
	}
	return 0
}

// signed sees a signature before it is handed out.
func (o *oracle) signed(t *task, slot string, digest [32]byte) {
	w := o.w
	r := o.bySlot[slot]
	switch {
	case r == nil:
		w.breaks("I3: %s signs for a slot that was never committed", t)
		return
	case r.released && !w.chain.dead(r.nonce, r.validBefore):
		w.breaks("I3: %s signs for %s, which is %s", t, r, r.state)
	case digest != r.digest(w.chain.asset) && !t.bent:
		w.breaks("I6: what is signed for %s does not carry out its terms", r)
	case !t.unfrozen:
		w.breaks("F27: %s signs for %s without having read whether payments are frozen", t, r)
	}
	w.note("%s: signs %s", t, r)
	t.unfrozen = false
	t.signed = append(t.signed, r)
	r.signed = true
}

// authorization is what r should have signed, laid out by canopytest.
func (r *record) authorization() canopytest.Authorization {
	before, _ := payment.UnitsFromBig(big.NewInt(r.validBefore.Unix()))
	return canopytest.Authorization{
		Token: r.terms.Asset.Address, From: payer, To: r.terms.Payee(), Value: r.terms.Amount,
		ValidBefore: before, Nonce: r.nonce,
	}
}

func (r *record) digest(asset payment.Asset) [32]byte { return r.authorization().Digest(asset) }

// sent sees a request as it leaves.
func (o *oracle) sent(t *task, req *http.Request, body []byte) {
	w := o.w
	a, paid := w.protocol.Read(req.Header)
	if !paid {
		return
	}
	r := o.byNonce[a.Nonce]
	if r == nil {
		w.breaks("I3: %s sends what was never committed", t)
		return
	}
	want := r.authorization()
	want.Signature = a.Signature
	sum := sha256.Sum256(body)
	switch {
	case want.Digest(w.chain.asset) != a.Digest(w.chain.asset) || w.chain.signed[r.digest(w.chain.asset)] != string(a.Signature):
		w.breaks("I6: the bytes that %s sends do not carry out %s", t, r)
	case req.Method != r.terms.Method || req.URL.Scheme+"://"+req.URL.Host != r.terms.Origin || req.URL.RequestURI() != r.terms.Target ||
		!bytes.Equal(sum[:], r.terms.BodyDigest[:]):
		w.breaks("I6: %s goes with another request than the one that was judged", r)
	case !t.unfrozen:
		w.breaks("F27: %s sends %s without having read whether payments are frozen", t, r)
	}
	t.unfrozen = false
	if t.sends++; t.sends > 3 {
		w.breaks("F12: %s sends %s for the %dth time", t, r, t.sends)
	}
}

// advanced sees an Advance at the instant of its commit.
func (o *oracle) advanced(t *task, c *ledger.Change, e ledger.Entry, err error) {
	if err != nil {
		o.w.note("%s: advance %s: %s", t, o.name(c.ID), firstWords(err))
		return
	}
	r := o.byID[c.ID]
	if r == nil {
		o.w.breaks("I3: %s advances what was never authorized", t)
		return
	}
	o.w.note("%s: %s from %s to %s", t, r, r.state, e.State)
	o.became(r, e)
}

// became judges what a payment turned into.
func (o *oracle) became(r *record, e ledger.Entry) {
	w := o.w
	if e.Version <= r.version {
		w.breaks("I9: %s goes from version %d to %d", r, r.version, e.Version)
	}
	if e.Slot.String() != r.slot || e.TermsHash != r.hash || e.Cost != r.cost || !e.ValidBefore.Equal(r.validBefore) {
		w.breaks("I9: %s is another payment than was authorized", r)
	}
	if r.delivered && !e.Delivered {
		w.breaks("I9: %s is no longer delivered", r)
	}
	if r.outcome == 0 {
		r.outcome, r.outcomeAt, r.outcomeGen = w.step, e.OutcomeAt, w.clockGen
	}
	r.state, r.version, r.delivered = e.State, e.Version, e.Delivered
	switch {
	case e.State.Freed():
		r.released = true
		if !w.chain.dead(r.nonce, r.validBefore) {
			w.breaks("I8: %s is %s, and can still move: final is %s, it ends at %s", r, e.State,
				w.chain.finalTime().Format("15:04:05"), r.validBefore.Format("15:04:05"))
		}
	case e.State == ledger.Settled:
		if r.tx == nil || r.tx.block > w.chain.final() {
			w.breaks("I8: %s is settled, and no final block shows it", r)
		} else if moved := latest(w.chain.blocks[r.tx.block].time, r.authorized); !e.SpentAt.IsZero() && e.SpentAt.Before(moved) {
			w.breaks("I8: %s counts until %s, and moved at %s", r, e.SpentAt, moved)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// moved sees a transfer in a block.
func (o *oracle) moved(tx *chainTx) {
	w := o.w
	r := o.byNonce[tx.auth.Nonce]
	if r == nil {
		o.foreign++
		w.breaks("I13: money moved by a nonce that no payment explains")
		return
	}
	w.note("%s moves in block %d", r, tx.block)
	switch {
	case r.tx != nil:
		w.breaks("I5: %s moves a second time", r)
	case r.released:
		w.breaks("I8: %s moves after it was %s", r, r.state)
	case tx.auth.To != r.terms.Payee() || tx.auth.Value != r.terms.Amount:
		w.breaks("I6: %s moves other money than its terms", r)
	}
	r.tx = tx
	for _, key := range r.keys {
		for _, other := range o.keys[keyOf{r.agent, key}] {
			if other != r && other.tx != nil && other.print == r.print {
				w.breaks("I5: %s and %s moved for one key", other, r)
			}
		}
	}
}

// undone sees a transfer taken back by a reorganisation.
func (o *oracle) undone(tx *chainTx) {
	if r := o.byNonce[tx.auth.Nonce]; r != nil {
		r.tx = nil
	}
}

// covers reports whether l counts other when it judges r.
func (l *limit) covers(r, other *record) bool {
	if l.table != "" {
		if tableOf(r.agent) != l.table || tableOf(other.agent) != l.table {
			return false
		}
	}
	switch l.scope {
	case "host":
		return r.host == other.host && r.host != ""
	case "payee":
		return r.terms.Payee() == other.terms.Payee()
	}
	return true
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
}

func (o *oracle) fate(r *record) fate {
	c := o.w.chain
	switch {
	case r.tx != nil && r.tx.block <= c.final():
		return fate{spent: true, at: latest(c.blocks[r.tx.block].time, r.authorized)}
	case r.tx == nil && c.dead(r.nonce, r.validBefore):
		return fate{}
	case !r.watched: // nobody can be asked: it counts as spent at its end
		return fate{spent: true, at: r.validBefore}
	}
	return fate{live: true}
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
		if !f.live && (!f.spent || f.at.Before(oldest)) {
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
		if !l.covers(r, r) {
			continue
		}
		begin := l.begin(r.authorized)
		var sum payment.USD
		var count int64
		for k, other := range o.active {
			if f := fates[k]; (f.live || f.spent && f.at.After(begin)) && l.covers(r, other) {
				sum += other.cost
				count++
			}
		}
		if l.count > 0 && count > l.count || l.count == 0 && sum > l.usd {
			w.breaks("I1: with %s, %s in %d payments can move or moved, over the cap %s of %q", r, sum, count, l, l.table)
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
	for _, r := range o.all {
		if r.tx != nil {
			all = append(all, move{r, latest(w.chain.blocks[r.tx.block].time, r.authorized)})
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
			if !l.covers(m.r, m.r) {
				continue
			}
			sum += m.r.cost
			count++
			for ; !all[first].at.After(l.begin(m.at)); first++ {
				if l.covers(all[first].r, all[first].r) {
					sum -= all[first].r.cost
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

// settled checks the ledger as a whole, at rest.
func (o *oracle) settled(ctx context.Context) {
	report, err := o.w.book.Verify(ctx)
	o.check(err)
	for _, p := range report.Problems {
		o.w.breaks("I9: %s", p)
	}
	for _, r := range o.all {
		if r.watched && r.state.Live() && r.state != ledger.NeedsOperator {
			o.w.breaks("I12: %s is still %s, long after its end is final", r, r.state)
		}
	}
}
