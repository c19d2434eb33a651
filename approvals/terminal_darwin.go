package approvals

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTTY reports whether f is a terminal.
func isTTY(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA)
	return err == nil
}
