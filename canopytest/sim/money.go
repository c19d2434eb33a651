package main

import (
	"bytes"
	"crypto/sha256"
	"math/big"
	"net/http"
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
	if !r.signed {
		r.signed, r.signedAt = true, w.now
	}
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
	r := o.handed(t, a, false)
	sum := sha256.Sum256(body)
	if r != nil && (req.Method != r.terms.Method || req.URL.Scheme+"://"+req.URL.Host != r.terms.Origin ||
		req.URL.RequestURI() != r.terms.Target || !bytes.Equal(sum[:], r.terms.BodyDigest[:])) {
		w.breaks("I6: %s goes with another request than the one that was judged", r)
	}
}

// handed sees an authorization as it leaves, and returns its payment.
func (o *oracle) handed(t *task, a canopytest.Authorization, transfer bool) *record {
	w := o.w
	r := o.byNonce[a.Nonce]
	if r == nil {
		w.breaks("I3: %s sends what was never committed", t)
		return nil
	}
	want := r.authorization()
	want.Signature = a.Signature
	switch {
	case r.terms.IsTransfer() != transfer:
		w.breaks("I6: %s is sent by another way than it was judged for", r)
	case want.Digest(w.chain.asset) != a.Digest(w.chain.asset) || w.chain.signed[r.digest(w.chain.asset)] != string(a.Signature):
		w.breaks("I6: the bytes that %s sends do not carry out %s", t, r)
	case !t.unfrozen:
		w.breaks("F27: %s sends %s without having read whether payments are frozen", t, r)
	}
	t.unfrozen = false
	if t.last != r {
		t.last, t.sends = r, 0
	}
	if t.sends++; t.sends > 3 {
		w.breaks("F12: %s sends %s for the %dth time", t, r, t.sends)
	}
	return r
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
	r.state, r.version, r.delivered, r.spent, r.counts = e.State, e.Version, e.Delivered, e.SpentAt, e.Spent
	switch {
	case e.State.Freed() && r.counts != 0, e.State.Live() && r.counts != r.cost,
		e.State == ledger.Settled && r.counts != r.cost && r.counts != r.paid():
		w.breaks("I1: %s of %s is %s and counts for %s", r, r.cost, e.State, r.counts)
	}
	final := r.tx != nil && r.tx.block <= w.chain.final()
	switch {
	case e.State == ledger.Cancelled && !(final && r.tx.canceled):
		w.breaks("I8: %s is cancelled, and no final block shows it", r)
	case e.State == ledger.NeedsOperator && !(final && r.tx.stolen):
		w.breaks("I8: %s is put before an operator, and no final block shows why", r)
	case e.State.Freed():
		r.released = true
		if !w.chain.dead(r.nonce, r.validBefore) {
			w.breaks("I8: %s is %s, and can still move: final is %s, it ends at %s", r, e.State,
				w.chain.finalTime().Format("15:04:05"), r.validBefore.Format("15:04:05"))
		}
	case e.State == ledger.Settled:
		if !final || r.tx.outside() {
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
	switch {
	case tx.outside():
		w.note("block %d has a use of the key from elsewhere: %s, cancelled: %v", tx.block, o.nameOf(tx.auth.Nonce), tx.canceled)
		if r != nil {
			r.tx = tx
		}
		return
	case r == nil:
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
			if other != r && other.tx != nil && !other.tx.outside() && other.print == r.print {
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
