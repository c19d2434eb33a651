package shape

import (
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Bounds of what strangers say, in bytes.
const (
	maxText = 2000
	maxURL  = 2048
)

// Time is an instant as the tools write it, or null.
type Time struct{ time.Time }

// at is t, or null where it is zero.
func at(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

// after is the first whole second that is not before t.
func after(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	if c := t.Truncate(time.Second); c.Before(t) {
		t = c.Add(time.Second)
	}
	return &Time{t}
}

// MarshalJSON writes whole seconds in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"` + time.RFC3339 + `"`)), nil
}

// orNull is nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// said is what a stranger said, fit to be shown, or null.
func said(s string, max int) *string { return orNull(plaintext.Clean(s, max)) }

// money is what r comes to: amount, fee bound and cost, each null where no
// terms were judged.
func money(r canopy.Result) (amount, fee, cost *payment.USD) {
	if len(r.Recipients) == 0 && r.Amount == 0 {
		return nil, nil, nil
	}
	return counted(r.Amount), &r.Fee, counted(r.Cost())
}

// counted is u, or null where it is more than can be counted.
func counted(u payment.USD) *payment.USD {
	if u == payment.MaxUSD {
		return nil
	}
	return &u
}
