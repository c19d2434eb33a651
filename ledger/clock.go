package ledger

import (
	"fmt"
	"sync"
	"time"
)

// How far clocks may be apart.
const (
	MaxSkew = 30 * time.Second // the caller's, the store's, and the ledger's last instant
	MaxJump = 60 * time.Second // of the wall clock ahead of the monotonic one
)

// Clock is a store's own clock, with what it takes to see a jump. It is safe
// for concurrent use.
type Clock struct {
	now     func() time.Time
	elapsed func() time.Duration

	mu    sync.Mutex
	wall  time.Time     // at the last Reserve that passed
	mono  time.Duration // at the same instant
	acks  int64
	armed bool
}

// NewClock returns a clock that reads the wall from now and the monotonic time
// from elapsed. A nil now is time.Now; a nil elapsed is the process's monotonic
// clock where now is nil too, and else no jump is ever seen.
func NewClock(now func() time.Time, elapsed func() time.Duration) *Clock {
	c := &Clock{now: now, elapsed: elapsed}
	if now == nil {
		c.now = time.Now
		if elapsed == nil {
			start := time.Now()
			c.elapsed = func() time.Duration { return time.Since(start) }
		}
	}
	return c
}

// Now is the store's own clock, cut as the ledger cuts instants.
func (c *Clock) Now() time.Time { return instant(c.now()) }

// read returns the own clock and how far it ran ahead of the monotonic clock
// since the last pass. An acknowledgement that it has not met yet clears that.
func (c *Clock) read(acks int64) (now time.Time, mono, jump time.Duration) {
	now = c.Now()
	if c.elapsed == nil {
		return now, 0, 0
	}
	mono = c.elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed || c.acks != acks {
		c.armed, c.acks, c.wall, c.mono = true, acks, now, mono
	}
	return now, mono, now.Sub(c.wall) - (mono - c.mono)
}

// pass takes note that the clock was found sound at now.
func (c *Clock) pass(now time.Time, mono time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mono >= c.mono {
		c.wall, c.mono = now, mono
	}
}

// strict is the ledger's time for a decision: the latest of the own clock, the
// last instant seen and the caller's. It is ErrClockSkew where they cannot all
// be right.
func (e Env) strict(seen Seen, caller time.Time) (now, own time.Time, err error) {
	own, mono, jump := e.Clock.read(seen.Acks)
	caller = instant(caller)
	skew := func(what string, d time.Duration) error {
		return fmt.Errorf("%w: %s by %v: set the clock, or run canopy ledger ack", ErrClockSkew, what, d.Round(time.Millisecond))
	}
	switch {
	case caller.Sub(own).Abs() > MaxSkew:
		return now, own, skew("the caller's and the ledger's differ", caller.Sub(own).Abs())
	case seen.At.Sub(own) > MaxSkew:
		return now, own, skew("the ledger's is behind what it has seen", seen.At.Sub(own))
	case seen.At.Sub(caller) > MaxSkew:
		return now, own, skew("the caller's is behind what the ledger has seen", seen.At.Sub(caller))
	case jump > MaxJump:
		return now, own, skew("the wall clock jumped ahead", jump)
	}
	e.Clock.pass(own, mono)
	return latest(own, seen.At, caller), own, nil
}

// lenient is the ledger's time for a record that must not be lost. It leaves
// out a clock that cannot be right.
func (e Env) lenient(seen Seen, caller time.Time) (now, own time.Time) {
	own, _, jump := e.Clock.read(seen.Acks)
	now = seen.At
	if jump <= MaxJump || now.IsZero() {
		now = latest(now, own)
		if caller = instant(caller); caller.Sub(own) <= MaxSkew {
			now = latest(now, caller)
		}
	}
	return now, own
}

// AckTx takes note that an operator looked at a clock that jumped: the
// ledger's time starts again from the store's own clock. By and reason are
// recorded by the store.
func AckTx(tx Tx, env Env) error {
	seen, err := tx.Seen()
	if err != nil {
		return err
	}
	now := env.Clock.Now()
	if now.Before(seen.At) {
		// What had aged out by a time that is not yet counts again.
		marks, err := tx.Marks()
		if err != nil {
			return err
		}
		for _, m := range marks {
			if err := tx.DropMark(m.Window); err != nil {
				return err
			}
		}
	}
	return tx.SetSeen(Seen{At: now, Acks: seen.Acks + 1})
}

// instant is t as the ledger writes it.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

func latest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if o.After(t) {
			t = o
		}
	}
	return t
}

// Defaults for a verdict that leaves them out.
const (
	defaultTTL        = 24 * time.Hour // of an approval
	defaultMaxPending = 20
)
