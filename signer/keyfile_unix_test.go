//go:build unix

package signer_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/canopy-go/canopy/signer"
)

// A FIFO without a writer must not hang the program.
func TestKeystoreFIFO(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := signer.FromKeystore(path, password)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, signer.ErrFile) {
			t.Errorf("a FIFO: %v, want ErrFile", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("a FIFO blocks")
	}
}
