package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/story"
	"github.com/canopy-go/canopy/payment"
)

// moment is an instant for people, with how far away it is.
func moment(t time.Time) string { return story.Moment(t.Local(), time.Now()) }

// short is a length of time in one or two units.
func short(d time.Duration) string { return story.Short(d) }

// what names what is paid for: the request, or the transfer.
func what(t payment.Terms) string { return story.What(t) }

// amount is what t's payees get, with the token.
func amount(t payment.Terms) string { return story.Amount(t) }

// payees lists t's recipients, with what each gets where there are several.
func payees(t payment.Terms) string { return story.Payees(t) }

// recipients lists to, with what each gets where there are several.
func recipients(to []canopy.Payee) string {
	all := make([]string, len(to))
	for i, p := range to {
		all[i] = p.Address.String()
		if len(to) > 1 {
			all[i] += " gets " + p.Amount.String()
		}
	}
	return strings.Join(all, ", ")
}

// withFee is a price, and the bound of the fee that comes to it.
func withFee(amount, fee canopy.USD) string {
	if fee == 0 {
		return amount.String()
	}
	return fmt.Sprintf("%s and a fee of at most %s", amount, fee)
}

// oneOf is the first that is not empty.
func oneOf(s ...string) string { return cmp.Or(s...) }

// count is n things.
func count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
