package canopytest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canopy-go/canopy/canopytest"
)

func TestStillClock(t *testing.T) {
	t.Parallel()
	c := canopytest.NewStillClock(start)
	if !c.Now().Equal(start) {
		t.Errorf("now %v", c.Now())
	}
	c.Advance(time.Minute)
	if got := c.Now().Sub(start); got != time.Minute {
		t.Errorf("advanced by %v", got)
	}
	c.Advance(-2 * time.Minute)
	if got := c.Now().Sub(start); got != -time.Minute {
		t.Errorf("moved back to %v", got)
	}
	c.Set(start.Add(time.Hour))
	if got := c.Now().Sub(start); got != time.Hour {
		t.Errorf("set to %v", got)
	}
}

func TestSleepEndsWhenTheClockIsMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []*canopytest.Clock{canopytest.NewStillClock(start), canopytest.NewClock()} {
			done := make(chan error, 1)
			go func() { done <- c.Sleep(t.Context(), time.Hour) }()
			synctest.Wait()
			c.Advance(59 * time.Minute)
			synctest.Wait()
			if len(done) != 0 {
				t.Error("woken early")
			}
			c.Advance(time.Minute)
			if err := <-done; err != nil {
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { done <- c.Sleep(ctx, time.Hour) }()
			synctest.Wait()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		}
	})
}

// A running clock follows the bubble's, and waits end by it.
func TestClockInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := canopytest.NewClock()
		c.Advance(24 * time.Hour)
		before := c.Now()
		if got := time.Until(before); got != 24*time.Hour {
			t.Errorf("ahead by %v", got)
		}
		if err := c.Sleep(t.Context(), 90*time.Second); err != nil {
			t.Error(err)
		}
		if got := c.Now().Sub(before); got != 90*time.Second {
			t.Errorf("slept %v", got)
		}
		chain := canopytest.NewChain(canopytest.ChainConfig{Clock: c})
		time.Sleep(20 * time.Second)
		if got := chain.Head().Number; got != 10 {
			t.Errorf("%d blocks in 20 s", got)
		}
	})
}
