package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Moment is an instant for people, in its own zone, with how far away it is.
func Moment(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	s := t.Format("2006-01-02 15:04:05")
	d := t.Sub(now).Round(time.Second)
	switch {
	case d > 0 && d < 48*time.Hour:
		return s + " (in " + Short(d) + ")"
	case d <= 0 && d > -48*time.Hour:
		return s + " (" + Short(-d) + " ago)"
	}
	return s
}

// Short is a length of time in one or two units.
func Short(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// What names what is paid for: the request, or the transfer.
func What(t payment.Terms) string {
	if t.IsTransfer() {
		if t.Target != "" {
			return fmt.Sprintf("transfer to %s with the memo %q", t.Payee(), plaintext.Clean(t.Target, 100))
		}
		return "transfer to " + t.Payee().String()
	}
	return t.Method + " " + t.Origin + t.Target
}

// Amount is what t's payees get, with the token.
func Amount(t payment.Terms) string {
	usd, ok := t.Asset.Value(t.Amount)
	if !ok {
		return t.Amount.String() + " base units of " + t.Asset.String()
	}
	return fmt.Sprintf("%s (%s)", usd, t.Asset)
}

// Payees lists t's recipients, with what each gets where there are several.
func Payees(t payment.Terms) string {
	all := make([]string, len(t.Recipients))
	for i, r := range t.Recipients {
		all[i] = r.Address.String()
		if len(all) > 1 {
			gets, _ := t.Asset.Value(r.Amount)
			all[i] += " gets " + gets.String()
		}
	}
	return strings.Join(all, ", ")
}
