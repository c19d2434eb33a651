//go:build linux || darwin

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock is the side file whose flock a process holds around each transaction.
// The system hands it on in the order of asking, which SQLite's own waiting
// does not, and takes it back from a process that dies.
type lock struct{ f *os.File }

func openLock(path string) (*lock, error) {
	f, err := openOwn(path, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, fmt.Errorf("sqlite: the lock file: %w", err)
	}
	return &lock{f}, nil
}

// take waits for the lock.
func (l *lock) take() error {
	for {
		err := unix.Flock(int(l.f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// takeWithin waits for the lock at most d.
func (l *lock) takeWithin(d time.Duration) error {
	for end := time.Now().Add(d); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(l.f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return err
		case time.Now().After(end):
			return &FileError{l.f.Name(), fmt.Sprintf("another process has held the ledger for %s", d), "look for a process that hangs or is stopped", ErrBusy}
		}
	}
}

func (l *lock) release() error { return unix.Flock(int(l.f.Fd()), unix.LOCK_UN) }

func (l *lock) close() error { return l.f.Close() }

// tryLock takes the flock of f if nobody has it.
func tryLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// held reports whether some process, this one included, holds the flock of the
// file at path. A file that is not there is not held.
func held(path string) (bool, error) {
	f, err := openOwn(path, unix.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return true, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}
