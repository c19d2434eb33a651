package ledger

import (
	"fmt"
	"sync"
	"time"
)

// How far clocks may be apart.
const (
	MaxSkew = 30 * time.Second // the caller's, the store's, and the ledger's last instant
	MaxJump = 60 * time.Second // of the wall clock ahead of the elapsed time, besides drift

	// maxDrift is what a wall clock may gain on the elapsed time: 60 s a day,
	// more than any slewing does.
	maxDrift = 24 * 60 // of the elapsed time, one part in so many

	// anchorAge is how long an anchor holds. What it allows grows with it; a
	// sound clock is anchored anew, so that all steps together gain at most
	// MaxJump and the drift of a day on each day.
	anchorAge = 24 * time.Hour
)

// Anchor is an instant at which a clock was found sound, as its wall and its
// elapsed time told it. The wall clock is held against the elapsed time from
// there on, and not from each payment to the next, so that small steps add up.
type Anchor struct {
	Boot    string        // what Elapsed counts from; empty for no anchor
	Elapsed time.Duration // since then
	Wall    time.Time
}

// jump is how far the wall clock ran ahead of the elapsed time since a, and 0
// where that is no more than clocks do.
func (a *Anchor) jump(now time.Time, elapsed time.Duration) time.Duration {
	passed := elapsed - a.Elapsed
	if ahead := now.Sub(a.Wall) - passed; ahead > MaxJump+max(passed, 0)/maxDrift {
		return ahead
	}
	return 0
}

// Clock is a store's own clock, with what it takes to see a jump. It is safe
// for concurrent use.
type Clock struct {
	now     func() time.Time
	elapsed func() time.Duration // perhaps too little; nil where no jump is seen
	exact   func() time.Duration
	boot    func() string // what they count from; empty where that is not known

	mu    sync.Mutex
	own   Anchor // at the first reading, or the first after an acknowledgement
	last  Anchor // at the last sound reading: a step that drift over long would hide is seen from here
	acks  int64
	armed bool
}

// NewClock returns a clock that reads the wall from o.Now and the elapsed time
// from o.Elapsed, which are as Options says.
func NewClock(o Options) *Clock {
	c := &Clock{now: o.Now, elapsed: o.Elapsed, exact: o.Elapsed, boot: func() string { return o.Boot }}
	if o.Now == nil {
		c.now = time.Now
	}
	switch {
	case o.Elapsed != nil:
	case o.Now == nil:
		u := &uptime{}
		c.elapsed, c.exact, c.boot = u.elapsed, u.exact, bootID
	default:
		c.boot = func() string { return "" }
	}
	return c
}

// Now is the store's own clock, cut as the ledger cuts instants.
func (c *Clock) Now() time.Time { return instant(c.now()) }

// read returns the own clock and, where that is more than clocks do, how far it
// ran ahead of the elapsed time: since this process first read it, and since
// the ledger's anchor, if that is of this boot. An acknowledgement that it has
// not met yet clears that.
func (c *Clock) read(seen *Seen) (now time.Time, jump time.Duration) {
	now = c.Now()
	if c.elapsed == nil {
		return now, 0
	}
	if jump = c.since(seen, now, c.elapsed); jump > 0 {
		// The machine may have slept.
		jump = c.since(seen, now, c.exact)
	}
	return now, jump
}

func (c *Clock) since(seen *Seen, now time.Time, elapsed func() time.Duration) time.Duration {
	passed := elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed || c.acks != seen.Acks {
		c.armed, c.acks, c.own = true, seen.Acks, Anchor{Elapsed: passed, Wall: now}
		c.last = c.own
	}
	jump := max(c.own.jump(now, passed), c.last.jump(now, passed))
	if boot := seen.Anchor.Boot; boot != "" && boot == c.boot() {
		jump = max(jump, seen.Anchor.jump(now, passed))
	}
	return jump
}

// pass takes note that the clock was found sound at now, and returns the anchor
// for the ledger to keep: a itself, or a new one where that is not of this boot
// or has held for long enough.
func (c *Clock) pass(now time.Time, a Anchor) Anchor {
	if c.elapsed == nil {
		return a
	}
	here := Anchor{Boot: c.boot(), Elapsed: c.elapsed(), Wall: now}
	c.mu.Lock()
	c.last = here
	if here.Elapsed-c.own.Elapsed >= anchorAge {
		c.own = here
	}
	c.mu.Unlock()
	switch {
	case here.Boot == "":
		return a
	case here.Boot != a.Boot:
		here.Elapsed = c.exact()
		return here
	case here.Elapsed-a.Elapsed >= anchorAge:
		return here
	}
	return a
}

// strict is the ledger's time for a decision: the latest of the own clock, the
// last instant seen and the caller's. It is ErrClockSkew where they cannot all
// be right; else seen has an anchor of this boot, if there can be one.
func (e Env) strict(seen *Seen, caller time.Time) (now, own time.Time, err error) {
	own, jump := e.Clock.read(seen)
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
	case jump > 0:
		return now, own, skew("the wall clock jumped ahead", jump)
	}
	seen.Anchor = e.Clock.pass(own, seen.Anchor)
	return latest(own, seen.At, caller), own, nil
}

// lenient is the ledger's time for a record that must not be lost. It leaves
// out a clock that cannot be right.
func (e Env) lenient(seen Seen, caller time.Time) (now, own time.Time) {
	own, jump := e.Clock.read(&seen)
	now = seen.At
	if jump == 0 || now.IsZero() {
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
	return tx.SetSeen(Seen{At: now, Acks: seen.Acks + 1, Anchor: env.Clock.pass(now, Anchor{})})
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
