//go:build unix

package signer

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openKeystore opens the file itself, never what a symbolic link points to,
// and judges what it opened. A FIFO does not block it.
func openKeystore(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		return nil, fmt.Errorf("%w: %s is a symbolic link", ErrFile, path)
	}
	if err != nil {
		return nil, fmt.Errorf("signer: open the keystore: %w", err)
	}
	if err := judge(f, path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func judge(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("signer: open the keystore: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file", ErrFile, path)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 {
		return fmt.Errorf("%w: %s has mode %04o; others must not reach it (chmod 600)", ErrFile, path, info.Mode().Perm())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to another user", ErrFile, path)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
