package ledger

import (
	"sync"
	"time"
)

// uptime is how long this machine has run, asleep or not. It goes by the
// process's monotonic clock, which may stand still while the machine sleeps, and
// takes in what was slept when it is asked to: until then it is too low, and a
// jump is seen sooner. It is safe for concurrent use.
type uptime struct {
	mu    sync.Mutex
	start time.Time     // with its monotonic reading
	base  time.Duration // at start
}

// elapsed is a lower bound that costs little.
func (u *uptime) elapsed() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.start.IsZero() {
		u.wake()
	}
	return u.base + time.Since(u.start)
}

// exact takes in what was slept.
func (u *uptime) exact() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wake()
	return u.base + time.Since(u.start)
}

func (u *uptime) wake() {
	d, ok := sinceBoot()
	switch now := time.Now(); {
	case ok:
		u.base, u.start = d, now
	case u.start.IsZero():
		u.start = now
	}
}
