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
		chain:  w.chains[w.rng.IntN(len(w.chains))],
	}
	if q.chain.tempo && w.chance(2) {
		q.memo = fmt.Sprintf("invoice %d", w.rng.IntN(4))
	}
	if w.chance(2) {
		q.key = q.newKey(w.rng.IntN(3))
	}
	return q
}

// newKey is one of the keys of a transfer.
func (q want) newKey(n int) string {
	return fmt.Sprintf("pay-%s-%s-%d-%s-%d", q.chain, q.to, q.amount, q.memo, n)
}

func (q want) isTransfer() bool { return q.amount > 0 }

// pay is what a program does that pays somebody.
func (w *world) pay(t *task, q want, b *purse) {
	t.want = q
	w.note("%s: %s pays %s on %s key %q", t, t.p.agent, q.amount, q.chain, q.key)
	ctx := w.under(t, b)
	if ctx == nil {
		return
	}
	r, err := t.p.client.Pay(ctx, canopy.Transfer{To: q.to, Amount: q.amount, Chain: q.chain.asset.Chain, Key: q.key, Memo: q.memo})
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
	for i := len(o.grants) - 1; i >= 0 && i >= len(o.grants)-12; i-- {
		if a := o.grants[i]; a.agent == agent && a.want.isTransfer() && !w.chance(3) {
			return a.payment
		}
	}
	if r := o.recent(w.rng); r != nil && r.agent == agent && r.terms.IsTransfer() {
		return r.id
	}
	return ""
}

// Submits is nil on an EVM chain: the world has a facilitator. On Tempo the real
// rail has a node, or none.
func (r bentRail) Submits(id payment.ChainID) error {
	if !r.speak.Chain().tempo {
		return nil
	}
	return r.Rail.(canopy.Transferer).Submits(id)
}

// Submit hands an authorization to the facilitator, who is no better than the
// sellers, or broadcasts a transaction.
func (r bentRail) Submit(ctx context.Context, a payment.Authorization) (payment.Receipt, error) {
	if r.speak.Chain().tempo {
		return r.Rail.(canopy.Transferer).Submit(ctx, a)
	}
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
	spend, ok := r.speak.Read(h)
	if !ok {
		w.breaks("I6: %s submits what nobody can read", t)
		return payment.Receipt{}, errReset
	}
	w.oracle.handed(t, spend, true)
	out, lost := w.facilitate(t, spend)
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
func (w *world) facilitate(t *task, a *spend) (out payment.Receipt, lost bool) {
	f := w.facilitator
	m := f.manners[w.rng.IntN(len(f.manners))]
	w.note("%s: the facilitator: %s", t, m)
	switch m {
	case honest, settleSayFailed, dropAfter:
		a.chain.broadcast(a, nextBlock)
	case pending:
		a.chain.broadcast(a, sometime)
	default:
		f.keep(a)
	}
	switch m {
	case honest:
		if hash, is := w.settled(a); is {
			return payment.Receipt{Claim: payment.ClaimPaid, TxHash: hash}, false
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
