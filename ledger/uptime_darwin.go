package ledger

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot goes on while the system sleeps, as mach_continuous_time does.
func sinceBoot() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t)
	return time.Duration(t.Nano()), err == nil
}

// bootID names what sinceBoot counts from. It is empty where that cannot be
// told.
var bootID = sync.OnceValue(func() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
})
