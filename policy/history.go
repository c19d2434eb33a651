package policy

import (
	"slices"

	"github.com/canopy-go/canopy/payment"
)

// History is what the ledger knows that rules ask for.
type History struct {
	// Uses are the ledger's figures for the limits of this payment, as
	// ledger.Store.Use returns them. A limit without one is left to the
	// ledger, which checks every limit in the step that reserves.
	Uses []Use

	// Past is what was paid before where this payment goes, in the scope that
	// Policy.AsksPast names. Nil says that nobody was asked: a table that needs
	// it denies then.
	Past *Past
}

// Past is what the ledger holds of earlier payments like one. A payment is held
// from its authorization on, unless it was released; a zero-amount proof never.
type Past struct {
	// Payees are the recipients of the payment that were paid on its origin
	// before; of a direct transfer, those that were paid directly.
	Payees []payment.Address

	// Price is what the last payment to the same method, origin and path cost,
	// where Priced says that there was one.
	Price  payment.USD
	Priced bool
}

// AsksPast names whose earlier payments the table that judges agent asks for,
// and false where it asks for none.
func (p *Policy) AsksPast(agent string) (Scope, bool) {
	t := p.find(agent)
	if t == nil || !t.payee.set && !t.jumpSet {
		return Scope{}, false
	}
	return Scope{Kind: ScopeAgent, Agent: t.name, Shared: t.shared}, true
}

// past judges pay by what was paid before. What it denies goes to v, what asks
// is returned.
func (t *table) past(v *Verdict, pay *payment.Payment, h *Past) (asked []Reason) {
	priced := t.jumpSet && !pay.Terms.IsTransfer()
	switch {
	case !t.payee.set && !priced || pay.Terms.IsProof():
		return nil
	case h == nil:
		t.say(v, deny(CodeNoHistory, "What was paid before is not known, and the policy asks for it"))
		return nil
	}
	if t.payee.set {
		for i := range pay.Terms.Recipients {
			to := pay.Terms.Recipients[i].Address
			if slices.Contains(h.Payees, to) || named(pay.Terms.Recipients[:i], to) {
				continue
			}
			r := newPayee(pay, to)
			if t.payee.text == askNew {
				asked = append(asked, r)
				continue
			}
			r.Status, r.Text = payment.Denied, r.Text+", and new payees are denied"
			t.say(v, r)
		}
	}
	if priced && h.Priced && t.jump.exceeded(v.Cost, h.Price) {
		asked = append(asked, t.jump.reason(v.Cost, h.Price))
	}
	return asked
}

func newPayee(pay *payment.Payment, to payment.Address) Reason {
	r := Reason{Status: payment.PendingApproval, Code: CodeNewPayee, Cost: pay.Terms.Cost(), Scope: to.String()}
	if pay.Terms.IsTransfer() {
		r.Text = "Payee " + to.String() + " was never paid directly before"
	} else {
		r.Text = "Payee " + to.String() + " of " + pay.Terms.Origin + " was never paid before"
	}
	return r
}
