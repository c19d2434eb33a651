package ledgertest

import (
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// testKeyBack has the seller go back to the terms that were allowed first. A
// key has one decision, the last: what was approved before has ended, and the
// first terms are asked for anew.
func testKeyBack(w *world) {
	call := func(u payment.USD, opts ...with) ledger.Request {
		return w.fetch(append([]with{path("/back"), usd(u), asks()}, opts...)...)
	}
	first := w.ask(call(payment.Dollar, key("k")))
	w.decide(first, true)
	// A denial takes nothing's place.
	w.deny(call(2*payment.Dollar, key("k"), func(r *ledger.Request) { r.Verdict = denied(r.Verdict) }), "host_denied")
	w.want(w.entry(first.ID), ledger.Approved)
	second := w.ask(call(2*payment.Dollar, key("k")))
	w.replaced(first)
	w.join(call(payment.Dollar, key("k")), second.ID, ledger.JoinKey)
	w.decide(second, true)
	third := w.ask(call(payment.Dollar, key("k")))
	w.replaced(second)
	w.decide(third, true)
	if e := w.allow(call(payment.Dollar, key("k"))); e.ID != third.ID || e.Key != "k" {
		w.Errorf("carried out %s with the key %q, want %s", e.ID, e.Key, third.ID)
	}
	w.join(call(2*payment.Dollar, key("k")), third.ID, ledger.JoinKey)

	// Another key's approval, and one without a key, are other purchases.
	other, plain := w.ask(call(3*payment.Dollar, key("other"))), w.fetch(path("/plain"), usd(3*payment.Dollar), asks())
	w.decide(other, true)
	kept := w.ask(plain)
	w.decide(kept, true)
	w.allow(w.fetch(path("/plain"), usd(payment.Dollar), key("p")))
	w.want(w.entry(kept.ID), ledger.Approved)
	w.want(w.entry(other.ID), ledger.Approved)
	w.verify()
}

// replaced demands that the approved e has ended, its approval with it, and
// that nothing carries it out.
func (w *world) replaced(e ledger.Entry) {
	w.Helper()
	w.want(w.entry(e.ID), ledger.ApprovalExpired)
	if a := w.approval(e.ApprovalID); a.Status != ledger.ApprovalLapsed || !a.UsedAt.IsZero() {
		w.Errorf("the approval of %s is %s, want it expired and unused", e.ID, a.Status)
	}
	r := w.fetch(func(r *ledger.Request) { r.Payment.Terms, r.Fingerprint, r.Only = e.Terms, e.Fingerprint, e.ID })
	w.join(r, e.ID, ledger.JoinItself)
}

// testTransferReplaced pays a transfer on terms that changed since an equal one
// was approved: that one is not paid as well.
func testTransferReplaced(w *world) {
	longer := func(r *ledger.Request) { r.Payment.Terms.Validity = 2 * time.Minute }
	dear := func(n payment.USD, opts ...with) ledger.Request {
		return w.pay(append([]with{usd(n * payment.Dollar)}, opts...)...)
	}
	approved := func(n payment.USD, opts ...with) ledger.Entry {
		e := w.ask(dear(n, append(opts, asks())...))
		w.decide(e, true)
		return e
	}
	for i, tt := range []struct {
		first, second string
		ends          bool
	}{
		{"", "", true}, {"", "b", true}, {"c", "", true}, {"d", "d", true}, {"e", "f", false},
	} {
		n := payment.USD(10 + i)
		e := approved(n, key(tt.first))
		again := w.allow(dear(n, longer, key(tt.second)))
		if again.ID == e.ID {
			w.Errorf("%v: other terms took the approved payment", tt)
		}
		if tt.ends {
			w.replaced(e)
		} else if got := w.allow(dear(n, key(tt.first))); got.ID != e.ID {
			w.Errorf("%v: carried out %s, want %s", tt, got.ID, e.ID)
		}
	}

	// Asking anew takes its place too.
	e := approved(20)
	second := w.ask(dear(20, longer, asks()))
	w.replaced(e)
	w.decide(second, true)
	if got := w.allow(dear(20, longer)); got.ID != second.ID {
		w.Errorf("carried out %s, want %s", got.ID, second.ID)
	}

	// A call that names an approved transfer is denied where an equal one was
	// made a moment ago, and nothing but a key would tell them apart.
	paid := w.allow(dear(30, key("m")))
	e = approved(30, func(r *ledger.Request) { r.Verdict.DuplicateWindow = 0 })
	only := func(r *ledger.Request) { r.Only = e.ID }
	if r := w.reason(w.want(w.reserve(dear(30, only)), ledger.Approved), ledger.CodeDuplicate); !contains(r.Text, string(paid.ID)) {
		w.Errorf("the reason is %q, want the ID %s", r.Text, paid.ID)
	}
	w.until(paid.AuthorizedAt.Add(10*time.Minute + time.Microsecond))
	if got := w.allow(dear(30, only)); got.ID != e.ID {
		w.Errorf("carried out %s, want %s", got.ID, e.ID)
	}
	w.verify()
}
