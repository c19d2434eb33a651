package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// transferWant is a direct transfer that a program asks for.
func (w *world) transferWant() want {
	q := want{
		to:     canopytest.Address(fmt.Sprintf("friend %d", w.rng.IntN(4))),
		amount: []payment.USD{3, 8, 15, 28}[w.rng.IntN(4)] * payment.Cent,
	}
	if w.chance(2) {
		q.key = fmt.Sprintf("pay-%s-%d-%d", q.to, q.amount, w.rng.IntN(3))
	}
	return q
}

func (q want) isTransfer() bool { return q.amount > 0 }

// pay is what a program does that pays somebody.
func (w *world) pay(t *task, q want) {
	t.want = q
	w.note("%s: %s pays %s key %q", t, t.p.agent, q.amount, q.key)
	r, err := t.p.client.Pay(t.ctx, canopy.Transfer{To: q.to, Amount: q.amount, Key: q.key})
	t.enter()
	w.transferred(t, r, err)
}

// resume is what a program does that looks after a transfer.
func (w *world) resume(t *task, id payment.ID) {
	w.note("%s: %s resumes %s", t, t.p.agent, w.oracle.name(id))
	r, err := t.p.client.Resume(t.ctx, id)
	t.enter()
	w.transferred(t, r, err)
}

func (w *world) transferred(t *task, r canopy.Result, err error) {
	if err != nil {
		w.note("%s: %s", t, w.oracle.refused(t, err))
		return
	}
	if r.Status != canopy.Allowed && len(t.signed) > 0 {
		w.breaks("I11: %s is told %s, and something was signed", t, r.Status)
	}
	w.note("%s: %s: %s is %s", t, r.Status, w.oracle.name(r.PaymentID), r.State)
}

// someTransfer is one of the agent's transfers, authorized or put to a person.
func (w *world) someTransfer(agent string) payment.ID {
	o := w.oracle
	if n := len(o.grants); n > 0 && w.chance(2) {
		if a := o.grants[n-1-w.rng.IntN(min(n, 8))]; a.agent == agent && a.want.isTransfer() {
			return a.payment
		}
	}
	if r := o.recent(w.rng); r != nil && r.agent == agent && r.terms.IsTransfer() {
		return r.id
	}
	return ""
}

// Submits is nil: the world has a facilitator.
func (r bentRail) Submits(payment.ChainID) error { return nil }

// Submit hands an authorization to the facilitator, who is no better than the
// sellers.
func (r bentRail) Submit(ctx context.Context, a payment.Authorization) (payment.Receipt, error) {
	w, t := r.p.w, taskOf(ctx)
	w.yield(t, "submit")
	if err := ctx.Err(); err != nil {
		return payment.Receipt{}, err
	}
	if w.chance(w.setup.rate(100)) {
		w.note("%s: what was submitted is lost", t)
		return payment.Receipt{}, errReset
	}
	h := http.Header{}
	h.Set(a.Header, a.Value)
	auth, ok := w.protocol.Read(h)
	if !ok {
		w.breaks("I6: %s submits what nobody can read", t)
		return payment.Receipt{}, errReset
	}
	w.oracle.handed(t, auth, true)
	out, lost := w.facilitate(t, auth)
	w.yield(t, "submitted")
	if err := ctx.Err(); err != nil {
		return payment.Receipt{}, err
	}
	if lost {
		return payment.Receipt{}, errReset
	}
	return out, nil
}

// facilitate answers a payment as the facilitator does.
func (w *world) facilitate(t *task, a canopytest.Authorization) (out payment.Receipt, lost bool) {
	f := w.facilitator
	m := f.manners[w.rng.IntN(len(f.manners))]
	w.note("%s: the facilitator: %s", t, m)
	switch m {
	case honest, settleSayFailed, dropAfter:
		w.chain.broadcast(a, nextBlock)
	case pending:
		w.chain.broadcast(a, sometime)
	default:
		f.keep(a)
	}
	switch m {
	case honest:
		if tx := w.chain.uses[a.Nonce]; tx != nil && !tx.outside() {
			return payment.Receipt{Claim: payment.ClaimPaid, TxHash: fmt.Sprintf("0x%x", tx.hash())}, false
		}
		return payment.Receipt{Claim: payment.ClaimPending}, false
	case pending:
		return payment.Receipt{Claim: payment.ClaimPending}, false
	case settleSayFailed, sayFailed:
		return payment.Receipt{Claim: payment.ClaimRefused, Code: "invalid_exact_evm_transaction_failed"}, false
	case sayUsed:
		return payment.Receipt{Claim: payment.ClaimUsed, Code: "invalid_exact_evm_nonce_already_used"}, false
	case forge:
		return payment.Receipt{Claim: payment.ClaimPaid, TxHash: "0x" + "abababababababababababababababababababababababababababababababab"}, false
	}
	return payment.Receipt{}, true
}
