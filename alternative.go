package canopy

import (
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// Alternative is an offer of the seller's that was not chosen.
type Alternative struct {
	Rail   string
	Chain  ChainID
	Amount USD
	Fee    USD // the fee bound
	Status Status
	Reason string // why it was not chosen
}

// alternative is o, which was not chosen for that reason.
func (o *offered) alternative(status Status, why string) Alternative {
	a := Alternative{
		Rail: o.offer.Rail, Chain: o.offer.Asset.Chain, Fee: o.offer.FeeBound,
		Status: status, Reason: why,
	}
	a.Amount, _ = o.offer.Asset.Value(o.offer.Amount)
	return a
}

// CodeChosen is the code of the reason that tells why one of several offers was
// chosen. It decides nothing.
const CodeChosen = "offer_chosen"

// maxNamed is how many of the other offers the reason names.
const maxNamed = 4

// chosen is o with a reason that tells what it was chosen from.
func (o offered) chosen(others []Alternative) offered {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s was chosen, at %s", o.offer.Rail, o.offer.Asset.Chain.Name(), o.verdict.Cost)
	for i, a := range others {
		if i == maxNamed {
			fmt.Fprintf(&b, "; and not %d more", len(others)-i)
			break
		}
		cost, _ := a.Amount.Add(a.Fee)
		fmt.Fprintf(&b, "; not %s on %s, at %s: %s", a.Rail, a.Chain.Name(), cost, clip(a.Reason))
	}
	v := o.verdict
	v.Reasons = append(v.Reasons[:len(v.Reasons):len(v.Reasons)], Reason{Status: payment.Allowed, Code: CodeChosen, Text: b.String(), Cost: v.Cost})
	o.verdict = v
	return o
}
