//go:build !linux && !darwin

package sqlite

import (
	"errors"
	"os"
	"time"
)

// errSystem refuses: who can reach a file, and who holds it, is told here by
// the owner, mode and flock of Unix.
var errSystem = errors.New("sqlite: the embedded ledger is made safe on Linux and macOS only: use Postgres, or run under WSL")

var suffixes = [...]string{"-wal", "-shm", "-journal"}

type identity struct {
	dev, ino uint64
	size     int64
}

func ownDir(string) (string, error)         { return "", errSystem }
func localDir(string) error                 { return errSystem }
func guardFile(string) (identity, error)    { return identity{}, errSystem }
func guardSides(string) error               { return errSystem }
func openOwn(string, int) (*os.File, error) { return nil, errSystem }
func create(string) (bool, error)           { return false, errSystem }
func syncDir(string) error                  { return errSystem }
func tryLock(*os.File) error                { return errSystem }
func held(string) (bool, error)             { return false, errSystem }

type lock struct{}

func openLock(string) (*lock, error)         { return nil, errSystem }
func (*lock) take() error                    { return errSystem }
func (*lock) takeWithin(time.Duration) error { return errSystem }
func (*lock) release() error                 { return errSystem }
func (*lock) close() error                   { return errSystem }
