package canopy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Alternative is an offer of the seller's that was not chosen.
type Alternative struct {
	Rail   string
	Chain  ChainID
	Amount USD // what the recipients get together
	Fee    USD // the fee bound
	Status Status
	Reason string // why it was not chosen

	Asset      Asset
	Recipients []Payee // all of them, the primary one first
}

// Cost is the amount and the fee bound together: what the choice is made by.
func (a Alternative) Cost() USD { return costOf(a.Amount, a.Fee) }

// alternative is o, which was not chosen for that reason.
func (o *offered) alternative(status Status, why string) Alternative {
	a := Alternative{
		Rail: o.offer.Rail, Chain: o.offer.Asset.Chain, Fee: o.offer.FeeBound,
		Status: status, Reason: why, Asset: o.offer.Asset, Recipients: payees(o.offer.Asset, o.offer.Recipients),
	}
	a.Amount, _ = o.offer.Asset.Value(o.offer.Amount)
	return a
}

// whyNot tells why o was not taken and best was, whose status is so with what
// the caps leave; approved says that a person has approved best.
func (o *offered) whyNot(best offered, status Status, approved bool) string {
	refused := o.verdict.Status < status || o.verdict.Status == Denied
	dearer := ""
	if o.verdict.Cost > best.verdict.Cost {
		dearer = fmt.Sprintf("it costs more: %s against %s, with fees", o.verdict.Cost, best.verdict.Cost)
	}
	switch {
	case refused && o.verdict.Reason() != "":
		return o.refusal()
	case approved:
		return "a person approved the other offer"
	case o.unread != "" && best.unread == "" && dearer != "":
		return o.unread + "; and " + dearer
	case o.unread != "" && best.unread == "":
		return o.unread
	case dearer != "":
		return dearer
	}
	return fmt.Sprintf("it costs the same, %s with fees, and the other one comes first", o.verdict.Cost)
}

// refusal is every reason for the verdict on o, in one line.
func (o *offered) refusal() string {
	var texts []string
	for _, r := range o.verdict.Reasons {
		if r.Status == o.verdict.Status {
			texts = append(texts, r.Text)
		}
	}
	return strings.Join(texts, "; ")
}

// denialText is why an offer is denied, without the words around it.
func denialText(err error) string {
	var denied *DeniedError
	switch {
	case !errors.As(err, &denied):
		return err.Error()
	case denied.Err != nil:
		return denied.Result.Reason + ": " + denied.Err.Error()
	}
	return denied.Result.Reason
}

// CodeChosen is the code of the reason that tells why one of several offers was
// chosen. It decides nothing.
const CodeChosen = "offer_chosen"

// What the reason names of the other offers.
const (
	maxNamed = 4   // of them
	maxWhy   = 320 // bytes of the reason against each
)

// chosen is o with a reason that tells what it was chosen from.
func (o offered) chosen(others []Alternative) offered {
	var b strings.Builder
	amount, _ := o.offer.Asset.Value(o.offer.Amount)
	fmt.Fprintf(&b, "%s on %s was chosen, at a cost of %s", o.offer.Rail, o.offer.Asset.Chain.Name(), costText(amount, o.offer.FeeBound))
	for i, a := range others {
		if i == maxNamed {
			fmt.Fprintf(&b, "; and not %d more", len(others)-i)
			break
		}
		fmt.Fprintf(&b, "; not %s on %s, at a cost of %s: %s", a.Rail, a.Chain.Name(), costText(a.Amount, a.Fee), plaintext.Words(a.Reason, maxWhy))
	}
	v := o.verdict
	v.Reasons = append(v.Reasons[:len(v.Reasons):len(v.Reasons)], Reason{Status: payment.Allowed, Code: CodeChosen, Text: b.String(), Cost: v.Cost})
	o.verdict = v
	return o
}
