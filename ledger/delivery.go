package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Delivery is what a channel has told people of one approval: that it was asked
// for, and how that ended. It is the outbox of channels that deliver over a
// network: what is due stands in the ledger, by the commit that asked or ruled,
// and outlives the process.
type Delivery struct {
	Channel  string
	Approval Approval // as it stands
	Told     Told     // what arrived
	Attempts int      // of what is due, before this one
}

// Told is how much of an approval's story a channel has delivered.
type Told uint8

// What was delivered.
const (
	ToldNothing Told = iota
	ToldAsked        // that the approval was asked for
	ToldOutcome      // and how it ended: nothing more is due
)

// Deliveries is an optional power of a Store: it hands out what channels have
// yet to tell. Memory and the stores of this module have it.
type Deliveries interface {
	// ClaimDeliveries hands out what is due on channel at now, oldest approval
	// first, n at most, and keeps it from others until lease has passed or
	// EndDelivery. Due is each pending approval that was not told, and the
	// outcome of each that was. Two callers never hold one delivery at once
	// while their leases run; one that died is handed out again.
	ClaimDeliveries(ctx context.Context, channel string, now time.Time, lease time.Duration, n int) ([]Delivery, error)

	// EndDelivery records that channel has told as much of the approval as told
	// says, or where told is no more than it was, that an attempt failed and
	// the next is due at next. It is ErrNotFound where nothing was claimed.
	EndDelivery(ctx context.Context, channel string, id payment.ApprovalID, told Told, next time.Time, failure string) error

	// Undelivered lists what is due on channel or was claimed, with the failure
	// of the last attempt, for people to look at.
	Undelivered(ctx context.Context, channel string, now time.Time) ([]Undelivered, error)
}

// Undelivered is a delivery that waits for its next attempt.
type Undelivered struct {
	Approval payment.ApprovalID
	Attempts int
	NextAt   time.Time // zero where it was never tried
	Failure  string    // of the last attempt
}

// CutFailure is as much of a failure's text as is kept: 300 bytes of it.
func CutFailure(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// CheckChannel refuses what is no name of a channel: 1 to 64 letters, digits,
// dots, hyphens and underscores.
func CheckChannel(name string) error {
	ok := len(name) >= 1 && len(name) <= 64
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
	}
	if !ok {
		return fmt.Errorf("ledger: %q is no name of a channel: 1 to 64 letters, digits, dots, hyphens and underscores", clip(name))
	}
	return nil
}
