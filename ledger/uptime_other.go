//go:build !linux && !darwin

package ledger

import "time"

// sinceBoot is not known here: the process's own monotonic clock has to do.
func sinceBoot() (time.Duration, bool) { return 0, false }

func bootID() string { return "" }
