//go:build !linux && !darwin

package approvals

import "os"

// isTTY reports whether f is a device that characters are read from, as far as
// can be told here.
func isTTY(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
