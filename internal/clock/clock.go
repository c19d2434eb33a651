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

// Driver is a Clock that plays time itself: a simulator's.
type Driver interface {
	Clock

	// Sleep is that of the package.
	Sleep(ctx context.Context, d time.Duration) error

	// AfterFunc calls f once d has passed. stop gives it up, and tells whether
	// it was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Sleep waits for d by c, or until ctx ends, whose error it returns then.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	if s, ok := c.(Driver); ok {
		return s.Sleep(ctx, d)
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

// AfterFunc calls f once d has passed by c. stop gives it up, and tells whether
// it was in time.
func AfterFunc(c Clock, d time.Duration, f func()) (stop func() bool) {
	if s, ok := c.(Driver); ok {
		return s.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f).Stop
}

// Width is how many goroutines a caller that wants n may have at work at once:
// n, but one where a Driver plays, which runs one at a time.
func Width(c Clock, n int) int {
	if _, ok := c.(Driver); ok {
		return 1
	}
	return n
}

// WithTimeout is context.WithTimeout by c.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	s, ok := c.(Driver)
	if !ok {
		return context.WithTimeout(ctx, d)
	}
	inner, cancel := context.WithCancelCause(ctx)
	stop := s.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return timed{inner}, func() {
		stop()
		cancel(context.Canceled)
	}
}

// timed is a context that a Driver's timer ends.
type timed struct{ context.Context }

// Err is DeadlineExceeded where the timer ended it.
func (t timed) Err() error {
	err := t.Context.Err()
	if err != nil && context.Cause(t.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}
