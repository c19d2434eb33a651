package check

import (
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// gas are the payments that transactions were permitted for, by account and
// chain.
type gas map[gasAccount][]burnt

type gasAccount struct {
	chain payment.ChainID
	from  payment.Address
}

// burnt is what one of them can cost, and when.
type burnt struct {
	id           payment.ID
	began, until time.Time
	bound        payment.Units
}

func (g *gas) payment(c *checking, e *ledger.Entry) {
	if _, ok := c.o.GasPerDay[e.Slot.Chain]; !ok || len(e.Carries) == 0 {
		return
	}
	if *g == nil {
		*g = gas{}
	}
	k := gasAccount{e.Slot.Chain, e.Slot.From}
	(*g)[k] = append((*g)[k], burnt{e.ID, e.AuthorizedAt, e.ValidBefore, e.Gas})
}

// finish counts, for each payment, what those before it could cost in the day
// that ends with its authorization.
func (g gas) finish(c *checking) {
	for k, all := range g {
		slices.SortFunc(all, func(a, b burnt) int { return a.began.Compare(b.began) })
		first := 0
		for i, b := range all {
			day := b.began.Add(-24 * time.Hour)
			// What is valid for ten minutes at most ended a day ago, if it began before.
			for ; all[first].began.Before(day.Add(-maxValidity)); first++ {
			}
			var sum payment.Units
			counted := true
			for _, o := range all[first : i+1] {
				if counted && o.until.After(day) {
					sum, counted = sum.Add(o.bound)
				}
			}
			if most := c.o.GasPerDay[k.chain]; !counted || sum.Cmp(most) > 0 {
				c.add(string(b.id) + ": I1: with it the gas of a day is " + sum.Coin() + ", over " + most.Coin())
			}
		}
	}
}
