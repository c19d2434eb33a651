package ledger

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func sinceBoot() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano()), err == nil
}

// bootID names what sinceBoot counts from: the boot, and the time namespace,
// which can put it elsewhere. It is empty where that cannot be told.
var bootID = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, _ := os.Readlink("/proc/self/ns/time") // a kernel without them has one
	return strings.TrimSpace(string(boot)) + " " + space
})
