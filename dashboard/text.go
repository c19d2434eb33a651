package dashboard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// clean is foreign text fit to be shown. It is text and nothing else: templates
// escape it too.
func clean(s string, max int) string { return plaintext.Clean(s, max) }

// span is a length of time in one or two units.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// moment is an instant as the page shows it.
type moment struct {
	At   time.Time // zero for none
	Text string
	Away string // in 5m, or 5m ago
}

func (p *Page) moment(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	t = t.In(p.cfg.Zone)
	m := moment{At: t, Text: t.Format("2006-01-02 15:04:05 MST")}
	if d := t.Sub(p.cfg.Now()); d > 0 {
		m.Away = "in " + span(d)
	} else {
		m.Away = span(d) + " ago"
	}
	return m
}

// Machine is the instant for programs.
func (m moment) Machine() string { return m.At.UTC().Format(time.RFC3339) }

// words is a snake-case word as people read it.
func words(s string) string { return strings.ReplaceAll(s, "_", " ") }

// number writes n things.
func number(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}

// what names what is paid for: the request, or the transfer.
func what(t payment.Terms) string {
	if t.IsTransfer() {
		return "transfer to " + t.Payee().String()
	}
	return clean(t.Method+" "+t.Origin+t.Target, 400)
}

// value is what u of an asset is worth, or the count of it where that is more
// than dollars count.
func value(a payment.Asset, u payment.Units) string {
	if usd, ok := a.Value(u); ok {
		return usd.String()
	}
	return u.String() + " base units"
}

// mood is how a state is to be taken: the word itself is always beside it.
func mood(s ledger.State) string {
	switch s {
	case ledger.Settled, ledger.Claimed, ledger.Approved:
		return "good"
	case ledger.PendingApproval, ledger.Authorized, ledger.InDoubt:
		return "wait"
	case ledger.NeedsOperator:
		return "alarm"
	case ledger.Denied, ledger.Rejected:
		return "no"
	}
	return "over"
}
