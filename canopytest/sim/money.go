package main

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

var payer = mustPayer()

// fee is what paying a host costs beside the amount.
func (w *world) fee(host string) payment.USD {
	if s := w.sellers[host]; s != nil {
		return s.fee
	}
	return 0
}

// signed sees a signature before it is handed out.
func (o *oracle) signed(t *task, slot string, digest [32]byte, sig string) {
	w := o.w
	r := o.byID[t.grant]
	if r == nil || r.slotKey != slot {
		w.breaks("I3: %s signs for a slot that was never committed", t)
		return
	}
	if !t.bent && !slices.Contains(r.digests, digest) {
		r.digests = append(r.digests, digest)
	}
	switch {
	case r.released && !r.chain.dead(r) && !r.chain.isFinal(r.chain.use(r)):
		w.breaks("I3: %s signs for %s, which is %s", t, r, r.state)
	case !t.bent && r.slot.Kind == payment.SlotEVM && digest != r.authorization().Digest(r.terms.Asset),
		!t.bent && r.slot.Kind == payment.SlotProof && digest != proofDigest(r.terms.Asset.Chain, r.challenge, r.realm):
		w.breaks("I6: what is signed for %s does not carry out its terms", r)
	case len(r.digests) > 1+r.variants:
		w.breaks("I4: %s signs a further time for %s, which may be signed %d times", t, r, 1+r.variants)
	case !t.unfrozen:
		w.breaks("F27: %s signs for %s without having read whether payments are frozen", t, r)
	}
	w.note("%s: signs %s", t, r)
	t.unfrozen = false
	t.signed = append(t.signed, r)
	o.bySig[sig] = r
	if !r.signed {
		r.signed, r.signedAt = true, w.now
	}
}

// built sees what a rail made of a payment, which is signed and not sent yet.
func (o *oracle) built(t *task, speak protocol, a payment.Authorization) {
	w := o.w
	r := o.byID[t.grant]
	s := &spend{chain: speak.Chain()}
	ok := len(a.Raw) > 0 && s.carry(a.Raw)
	if len(a.Raw) == 0 {
		h := http.Header{}
		h.Set(a.Header, a.Value)
		s, ok = speak.Read(h)
	} else if ok {
		s.challenge, s.realm = r.challenge, r.realm // a transaction has them in its memo only
		o.byTx[s.tx.Hash()] = r
	}
	if !ok || o.payment(s) != r && s.hash == "" {
		if !t.bent && ok && o.bySig[s.sig] == nil {
			return // another key signed it
		}
		w.breaks("I6: nobody can read what %s made of %s", t, r)
		return
	}
	if s.tx != nil && !s.tx.Sponsored {
		o.byTx[s.tx.Hash()] = r
	}
	if s.hash == "" { // another call may have the bytes of an earlier challenge made again
		if what := s.differs(r); what != "" {
			w.breaks("I6: what is signed for %s does not carry out its terms: %s", r, what)
		}
	}
}

// sent sees a request as it leaves.
func (o *oracle) sent(t *task, req *http.Request, body []byte) {
	w := o.w
	s, _ := w.read(req.Header)
	if s == nil {
		return
	}
	r := o.handed(t, s, false)
	sum := sha256.Sum256(body)
	if r != nil && (req.Method != r.terms.Method || req.URL.Scheme+"://"+req.URL.Host != r.terms.Origin ||
		req.URL.RequestURI() != r.terms.Target || !bytes.Equal(sum[:], r.terms.BodyDigest[:])) {
		w.breaks("I6: %s goes with another request than the one that was judged", r)
	}
}

// broadcast sees a transaction as it goes to a node: of a transfer, or of a
// payment that a seller is shown it for.
func (o *oracle) broadcast(t *task, s *spend) {
	if r := o.payment(s); r != nil {
		s.challenge, s.realm = r.challenge, r.realm
		if hash := s.tx.Hash(); r.txHash != hash {
			o.w.breaks("I3: %s broadcasts %s before its hash is committed", t, r)
		}
		o.handed(t, s, r.terms.IsTransfer())
		return
	}
	o.handed(t, s, false)
}

// handed sees a payment as it leaves, and returns it.
func (o *oracle) handed(t *task, s *spend, transfer bool) *record {
	w := o.w
	r := o.payment(s)
	if r == nil {
		w.breaks("I3: %s sends what was never committed", t)
		return nil
	}
	what := s.differs(r)
	switch {
	case r.terms.IsTransfer() != transfer:
		w.breaks("I6: %s is sent by another way than it was judged for", r)
	case what != "":
		w.breaks("I6: the bytes that %s sends do not carry out %s: %s", t, r, what)
	case !t.unfrozen:
		w.breaks("F27: %s sends %s without having read whether payments are frozen", t, r)
	}
	t.unfrozen = false
	if bytes := s.sig + s.hash; t.last != bytes {
		t.last, t.sends = bytes, 0
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
	if c.Variant != nil {
		o.varied(r, e)
	}
	o.became(t, r, e)
}

// varied judges a commit that lets r be signed for a further challenge: at most
// three of them, on a lane, while nobody is frozen, and the hold lasts as long as
// what is signed.
func (o *oracle) varied(r *record, e ledger.Entry) {
	w := o.w
	w.note("%s may be signed for a further challenge", r)
	r.variants++
	r.challenged[r.challenge] = true
	r.challenge = e.ChallengeID
	validity := e.SignBefore.Sub(w.now.Add(w.machine))
	switch {
	case r.variants > 3:
		w.breaks("I4: %s is signed for %d further challenges", r, r.variants)
	case r.slot.Kind != payment.SlotLane || r.state != e.State || !e.State.Live():
		w.breaks("I4: %s, which is %s, is signed for a further challenge", r, r.state)
	case w.isFrozen(r.agent):
		w.breaks("I11: %s is signed for a further challenge while %s is frozen", r, r.agent)
	case e.ValidBefore.Before(r.validBefore) || e.ValidBefore.Before(e.SignBefore):
		w.breaks("I8: the hold of %s ends at %s, and what is signed at %s and %s", r, e.ValidBefore, r.validBefore, e.SignBefore)
	case validity > r.terms.Validity+90*time.Second || validity > w.setup.valid+90*time.Second:
		w.breaks("I10: %s is valid for %v more", r, validity)
	}
	r.validBefore = e.ValidBefore
}

// became judges what a payment turned into, by the call t or somebody else.
func (o *oracle) became(t *task, r *record, e ledger.Entry) {
	w := o.w
	if e.Version <= r.version {
		w.breaks("I9: %s goes from version %d to %d", r, r.version, e.Version)
	}
	if e.Slot.String() != r.slotKey || e.TermsHash != r.hash || e.Cost != r.cost || !e.ValidBefore.Equal(r.validBefore) || e.ChallengeID != r.challenge {
		w.breaks("I9: %s is another payment than was authorized", r)
	}
	if r.delivered && !e.Delivered {
		w.breaks("I9: %s is no longer delivered", r)
	}
	if r.outcome == 0 && !e.OutcomeAt.IsZero() {
		r.outcome, r.outcomeAt, r.outcomeGen = w.step, e.OutcomeAt, w.clockGen
	}
	r.state, r.version, r.delivered, r.spent, r.counts = e.State, e.Version, e.Delivered, e.SpentAt, e.Spent
	r.txHash = e.Receipt.TxHash
	final := r.chain.isFinal(r.tx)
	ours := final && r.tx.r == r
	use := r.chain.use(r) // a lane may have been used before r was in it
	stolen := r.chain.isFinal(use) && use.stolen
	o.spent(t, r, ours)
	switch {
	case e.State == ledger.Cancelled && !(final && (r.tx.canceled || ours && r.tx.failed)):
		w.breaks("I8: %s is cancelled, and no final block shows it", r)
	case e.State == ledger.NeedsOperator && !stolen:
		w.breaks("I8: %s is put before an operator, and no final block shows why", r)
	case e.State == ledger.Cancelled:
		r.released = true
	case e.State.Freed():
		r.released = true
		if !r.chain.dead(r) {
			w.breaks("I8: %s is %s, and can still move: final is %s, it ends at %s", r, e.State,
				r.chain.finalTime().Format("15:04:05"), r.validBefore.Format("15:04:05"))
		}
	case r.slot.Kind == payment.SlotProof && e.State == ledger.Settled:
		if !paidFor(e) && w.now.Add(90*time.Second).Before(r.validBefore) {
			w.breaks("I8: %s ends at %s, is not answered, and is %s", r, r.validBefore.Format("15:04:05"), e.State)
		}
	case e.State == ledger.Settled:
		if !ours || r.tx.failed && (t == nil || !r.chain.liedSince(t.began)) {
			w.breaks("I8: %s is settled, and no final block shows it", r)
		} else if moved := latest(r.chain.blocks[r.tx.block].time, r.authorized); !e.SpentAt.IsZero() && e.SpentAt.Before(moved) {
			w.breaks("I8: %s counts until %s, and moved at %s", r, e.SpentAt, moved)
		}
	}
}

// paidFor reports whether a receipt is recorded of e that says so.
func paidFor(e ledger.Entry) bool {
	return e.Receipt.Claim == payment.ClaimPaid || e.Receipt.Claim == payment.ClaimUsed
}

// spent is I1 of one payment: what counts of it is all that it may cost while it
// can move, and afterwards the value that moved and the fee that was paid. A node
// that tells of a higher fee makes it more, and so does an operator, who tells of
// none.
func (o *oracle) spent(t *task, r *record, ours bool) {
	want := r.cost
	switch {
	case r.state == ledger.Settled && ours, r.state == ledger.Cancelled && ours:
		want = r.paid()
	case r.state.Freed():
		want = 0
	}
	lied := ours && (t == nil || r.chain.liedSince(t.began))
	if r.counts < want || r.counts > want && !(lied && r.counts <= r.cost) {
		o.w.breaks("I1: %s of %s is %s and counts for %s, not %s", r, r.cost, r.state, r.counts, want)
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// moved sees a use of the key in a block.
func (o *oracle) moved(tx *chainTx) {
	w := o.w
	r := tx.r
	if tx.outside() {
		r = o.bySlot[tx.slot.String()]
		w.note("block %d has a use of the key from elsewhere: %s, cancelled: %v", tx.block, o.nameOf(r), tx.canceled)
		if r != nil {
			r.tx = tx
		}
		return
	}
	o.moves++
	how := ""
	if tx.failed {
		how = " and fails"
	}
	w.note("%s moves%s in block %d for a fee of %s", r, how, tx.block, tx.fee)
	what := tx.spend.differs(r)
	switch {
	case r.tx != nil:
		w.breaks("I5: %s moves a second time", r)
	case r.released:
		w.breaks("I8: %s moves after it was %s", r, r.state)
	case what != "":
		w.breaks("I6: %s moves other money than its terms: %s", r, what)
	}
	r.tx = tx
	for _, key := range r.keys {
		for _, other := range o.keys[keyOf{r.agent, key}] {
			if !tx.failed && other != r && other.tx != nil && !other.tx.outside() && !other.tx.failed && other.print == r.print {
				w.breaks("I5: %s and %s moved for one key", other, r)
			}
		}
	}
}

// undone sees a use taken back by a reorganisation.
func (o *oracle) undone(tx *chainTx) {
	r := tx.r
	if tx.outside() {
		r = o.bySlot[tx.slot.String()]
	} else {
		o.moves--
	}
	if r != nil && r.tx == tx {
		r.tx = nil
	}
}
