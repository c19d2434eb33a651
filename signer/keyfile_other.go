//go:build !unix

package signer

import (
	"fmt"
	"os"
)

// openKeystore refuses what is not a regular file. Modes and owners mean
// nothing here that it could judge.
func openKeystore(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("signer: open the keystore: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrFile, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("signer: open the keystore: %w", err)
	}
	return f, nil
}

func syncDir(string) error { return nil }
