// Package clock is the one way to read the time and to wait for it, so that a
// test or a simulator can be the clock.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and wakes those who wait. It is safe for concurrent use.
type Clock interface {
	Now() time.Time

	// After returns a channel that gets one value once d has passed. Stop
	// gives it up; it need not be called after the value came.
	After(d time.Duration) (c <-chan time.Time, stop func())
}

// System is the system's clock.
type System struct{}

// Now is time.Now.
func (System) Now() time.Time { return time.Now() }

// After is a timer of package time.
func (System) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Func is the system's clock with another Now.
type Func func() time.Time

// Now calls f.
func (f Func) Now() time.Time { return f() }

// After is that of System.
func (f Func) After(d time.Duration) (<-chan time.Time, func()) { return System{}.After(d) }

// Sleep waits for d by c, or until ctx ends, whose error it returns then.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	woken, stop := c.After(d)
	defer stop()
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
