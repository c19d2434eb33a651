package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// Why a file is not used as a ledger. A *FileError wraps one of them.
var (
	ErrUnsafe  = errors.New("others could read or change it")
	ErrForeign = errors.New("it is not a Canopy ledger")
	ErrNewer   = errors.New("it was made by a newer canopy")
	ErrDamaged = errors.New("it is damaged")
	ErrBusy    = errors.New("another process holds it")
)

// FileError says which file is not used, what is wrong with it and how to mend
// that.
type FileError struct {
	Path string
	What string // the problem
	Fix  string // what to do; never empty
	Err  error  // one of this package's errors, or the system's
}

// Error is the whole of it in one line.
func (e *FileError) Error() string {
	return fmt.Sprintf("sqlite: %s: %s: %s", e.Path, e.What, e.Fix)
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// WriteError says that a commit failed. Nothing of it was stored, as far as the
// disk can be believed: opening the ledger again tells.
type WriteError struct {
	Path string
	Full bool // there was no space left
	Err  error
}

// Error names the file and what the disk said.
func (e *WriteError) Error() string {
	if e.Full {
		return fmt.Sprintf("sqlite: %s: no space left to record a payment: free some and open the ledger again: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("sqlite: %s: the ledger was not written: %v", e.Path, e.Err)
}

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// Primary result codes of SQLite that are told apart.
const (
	codeBusy       = 5
	codeReadOnly   = 8
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeConstraint = 19
	codeNotADB     = 26
)

// code is the primary result code in err, or 0 where it is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
