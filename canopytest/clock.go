package canopytest

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that tests move. It is safe for concurrent use, and its Now
// serves as the Now of a client.
type Clock struct {
	still bool

	mu     sync.Mutex
	base   time.Time     // of a still clock
	offset time.Duration // of a running clock, from the system clock
	moved  chan struct{} // closed and replaced at each move
}

// NewClock returns a clock that follows the system clock and can be moved from
// it. Inside a bubble of testing/synctest it follows the bubble's clock.
func NewClock() *Clock { return &Clock{moved: make(chan struct{})} }

// NewStillClock returns a clock that stands at start until it is moved.
func NewStillClock(start time.Time) *Clock {
	return &Clock{still: true, base: start, moved: make(chan struct{})}
}

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.still {
		return c.base
	}
	// Round drops the monotonic reading, which would not move with the offset.
	return time.Now().Round(0).Add(c.offset)
}

// Advance moves the clock by d and wakes whoever waits for a time now past. A
// negative d moves it back, as clocks of hosts may be.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move(d)
}

// Set moves the clock to t, forward or back.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move(t.Sub(c.now()))
}

func (c *Clock) move(d time.Duration) {
	c.base = c.base.Add(d)
	c.offset += d
	close(c.moved)
	c.moved = make(chan struct{})
}

// Sleep waits until the clock is at least d further, or ctx ends.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	until := c.Now().Add(d)
	for c.Now().Before(until) {
		if err := c.wait(ctx, until, nil); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// wait returns when the clock may have reached until, when it was moved, when
// wake is closed, or with an error when ctx ends. A zero until is never reached.
func (c *Clock) wait(ctx context.Context, until time.Time, wake <-chan struct{}) error {
	c.mu.Lock()
	moved, now := c.moved, c.now()
	c.mu.Unlock()
	var due <-chan time.Time
	if !until.IsZero() {
		if !now.Before(until) {
			return ctx.Err()
		}
		if !c.still {
			timer := time.NewTimer(until.Sub(now))
			defer timer.Stop()
			due = timer.C
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-moved:
	case <-wake:
	case <-due:
	}
	return nil
}
