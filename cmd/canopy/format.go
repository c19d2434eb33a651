package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/payment"
)

// moment is an instant for people, with how far away it is.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	s := t.Local().Format("2006-01-02 15:04:05")
	d := time.Until(t).Round(time.Second)
	switch {
	case d > 0 && d < 48*time.Hour:
		return s + " (in " + short(d) + ")"
	case d <= 0 && d > -48*time.Hour:
		return s + " (" + short(-d) + " ago)"
	}
	return s
}

// short is a length of time in one or two units.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// what names what is paid for: the request, or the transfer.
func what(t payment.Terms) string {
	if t.IsTransfer() {
		if t.Target != "" {
			return fmt.Sprintf("transfer to %s with the memo %q", t.Payee(), show(t.Target, 100))
		}
		return "transfer to " + t.Payee().String()
	}
	return t.Method + " " + t.Origin + t.Target
}

// amount is what t's payees get, with the token.
func amount(t payment.Terms) string {
	usd, ok := t.Asset.Value(t.Amount)
	if !ok {
		return t.Amount.String() + " base units of " + t.Asset.String()
	}
	return fmt.Sprintf("%s (%s)", usd, t.Asset)
}

// payees lists t's recipients, with what each gets where there are several.
func payees(t payment.Terms) string {
	to := make([]canopy.Payee, len(t.Recipients))
	for i, r := range t.Recipients {
		to[i].Address = r.Address
		to[i].Amount, _ = t.Asset.Value(r.Amount)
	}
	return recipients(to)
}

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
