package ledger

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/payment"
)

// TestQueue compares the queue with a sorted slice, over more points than a
// chunk holds.
func TestQueue(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []Point
		compare := func(a, b Point) int {
			if a.After(b) {
				return 1
			}
			return -1
		}
		point := func(n int) Point {
			return Point{base.Add(time.Duration(n%97) * time.Second), payment.ID(rune('a'+n%26)) + payment.ID(rune('a'+n/26%26))}
		}
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			start, step := rapid.IntRange(0, 5000).Draw(t, "start"), rapid.IntRange(1, 50).Draw(t, "step")
			for i := range rapid.IntRange(0, 900).Draw(t, "points") {
				p := point(start + i*step)
				if at := slices.Index(want, p); at >= 0 {
					q.remove(p)
					want = slices.Delete(want, at, at+1)
					continue
				}
				q.add(p, &row{})
				want = append(want, p)
			}
			slices.SortFunc(want, compare)
			after := point(rapid.IntRange(0, 5000).Draw(t, "after"))
			var got []Point
			for p := range q.after(after) {
				got = append(got, p)
			}
			rest := want
			for len(rest) > 0 && !rest[0].After(after) {
				rest = rest[1:]
			}
			if !slices.Equal(got, rest) {
				t.Fatalf("%d points after %v, want %d", len(got), after, len(rest))
			}
		}
	})
}

// TestClock sees only what runs ahead of the monotonic clock.
func TestClock(t *testing.T) {
	t.Parallel()
	wall, mono := time.Date(2026, 1, 1, 0, 0, 0, 123, time.UTC), time.Hour
	now := func() time.Time { return wall }
	c := NewClock(Options{Now: now, Elapsed: func() time.Duration { return mono }})
	jump := func(acks int64) time.Duration {
		_, d := c.read(&Seen{Acks: acks})
		return d
	}
	if got := c.Now(); got.Nanosecond() != 0 {
		t.Errorf("Now is %v, not cut to microseconds", got)
	}
	if got := jump(0); got != 0 {
		t.Errorf("a new clock jumped by %v", got)
	}
	wall, mono = wall.Add(90*time.Minute), mono+time.Hour
	if got := jump(0); got != 30*time.Minute {
		t.Errorf("jumped by %v, want 30m", got)
	}
	if got := jump(1); got != 0 {
		t.Errorf("after an acknowledgement jumped by %v", got)
	}
	wall = wall.Add(time.Minute)
	if got := jump(1); got != 0 {
		t.Errorf("a minute ahead is a jump by %v", got)
	}
	wall = wall.Add(time.Microsecond)
	if got, want := jump(1), time.Minute+time.Microsecond; got != want {
		t.Errorf("jumped by %v, want %v", got, want)
	}
	wall, mono = wall.Add(24*time.Hour), mono+24*time.Hour
	wall = wall.Add(time.Minute - time.Microsecond)
	if got := jump(1); got != 0 {
		t.Errorf("a day's drift is a jump by %v", got)
	}
	if blind := NewClock(Options{Now: now}); blind.elapsed != nil {
		t.Errorf("a clock without elapsed time has one")
	}
}
