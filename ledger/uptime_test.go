package ledger

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestUptime counts from the boot on where that is known, and takes in what
// the machine slept only where the wall clock seems to have jumped.
func TestUptime(t *testing.T) {
	t.Parallel()
	u := &uptime{}
	low := u.elapsed()
	boot, known := sinceBoot()
	if known && (low > boot || boot-low > time.Minute) {
		t.Errorf("up for %v, and since the boot it is %v", low, boot)
	}
	u.base -= time.Hour // asleep since
	if got := u.elapsed(); got >= low {
		t.Errorf("up for %v after %v", got, low)
	}
	if got := u.exact(); known && got < boot {
		t.Errorf("woken, up for %v, and since the boot it is %v at least", got, boot)
	}

	slept := &uptime{}
	c := &Clock{now: time.Now, elapsed: slept.elapsed, exact: slept.exact, boot: bootID}
	c.read(&Seen{})
	c.own.Wall, c.own.Elapsed = c.own.Wall.Add(-time.Hour), c.own.Elapsed-time.Hour
	slept.base -= time.Hour
	if _, jump := c.read(&Seen{}); known && jump != 0 {
		t.Errorf("an hour of sleep is a jump by %v", jump)
	}
}

// TestClockInBubble: time that a bubble lets pass is no jump.
func TestClockInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(Options{})
		seen := &Seen{}
		for range 3 {
			if _, _, err := (Env{Clock: c}).strict(seen, time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(48 * time.Hour)
		}
	})
}

// TestAnchorOfAnotherBoot: a clock is not held against an anchor of a boot that
// it does not know, and replaces it.
func TestAnchorOfAnotherBoot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := Options{Now: func() time.Time { return now }, Elapsed: func() time.Duration { return time.Minute }, Boot: "second"}
	was := Anchor{Boot: "first", Elapsed: time.Hour, Wall: now.Add(-24 * time.Hour)}
	for name, tt := range map[string]struct{ boot, want string }{
		"another boot": {"second", "second"},
		"no boot":      {"", "first"},
	} {
		o.Boot = tt.boot
		seen := &Seen{Anchor: was}
		if _, _, err := (Env{Clock: NewClock(o)}).strict(seen, now); err != nil || seen.Anchor.Boot != tt.want {
			t.Errorf("%s: the anchor is of %q, %v; want %q", name, seen.Anchor.Boot, err, tt.want)
		}
	}
	o.Boot = "first"
	if _, _, err := (Env{Clock: NewClock(o)}).strict(&Seen{Anchor: was}, now); err == nil {
		t.Errorf("a jump since the anchor of this boot is not seen")
	}
}
