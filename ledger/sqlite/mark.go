package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/canopy-go/canopy/internal/ulid"
	"github.com/canopy-go/canopy/payment"
)

// markStep is after how many events the mark is raised again.
const markStep = 1024

// mark is what the state directory remembers of an account's ledger, so that
// one that is missing, new or set back is noticed. The ledger holds the same
// Serial; it is raised when a process first reserves, again every markStep
// events, and Events is brought up to date when the process ends.
type mark struct {
	Ledger string `json:"ledger"` // its ULID
	Path   string `json:"path"`   // where it was, for people
	Serial int64  `json:"serial"` // how often the mark was raised
	Events int64  `json:"events"` // how many events the ledger had at least
	Sum    string `json:"sum"`    // SHA-256 over the others
}

func (m mark) sum() string {
	m.Sum = ""
	b, _ := json.Marshal(m) // strings and integers: it cannot fail
	h := sha256.Sum256(append([]byte("canopy.mark.v1\x00"), b...))
	return hex.EncodeToString(h[:])
}

// marker keeps one account's mark. A nil marker remembers nothing.
type marker struct{ path string }

// newMarker returns the marker for an account, and nil where there is no state
// directory or no account to remember.
func newMarker(dir string, account payment.Address) (*marker, error) {
	if dir == "" || account.IsZero() {
		return nil, nil
	}
	path := filepath.Join(dir, "ledger-"+account.Lower()+".json")
	dir, err := ownDir(path)
	if err != nil {
		return nil, err
	}
	return &marker{filepath.Join(dir, filepath.Base(path))}, nil
}

// read returns the mark, and false where there is none yet.
func (m *marker) read() (mark, bool, error) {
	f, err := openOwn(m.path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, false, nil
	}
	if err != nil {
		return mark{}, false, fmt.Errorf("sqlite: the ledger's mark: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return mark{}, false, fmt.Errorf("sqlite: the ledger's mark: %w", err)
	}
	var v mark
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || v.Sum != v.sum() || !ulid.Valid(v.Ledger) {
		return mark{}, false, &FileError{m.path, "the mark that remembers this account's ledger cannot be read",
			"find the account's ledger, then remove this file and run canopy ledger verify", ErrDamaged}
	}
	return v, true, nil
}

// write replaces the mark, whole or not at all.
func (m *marker) write(v mark) error {
	v.Sum = v.sum()
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	temp := m.path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sqlite: the ledger's mark: %w", err)
	}
	f, err := openOwn(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return fmt.Errorf("sqlite: the ledger's mark: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, m.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(m.path))
	}
	if err != nil {
		return fmt.Errorf("sqlite: the ledger's mark: %w", err)
	}
	return nil
}

// raise brings the mark up to v, which is of the ledger that this process has
// open. It is false where the mark has gone to another ledger meanwhile.
func (m *marker) raise(v mark) (bool, error) {
	was, ok, err := m.read()
	switch {
	case err != nil:
		return false, err
	case ok && was.Ledger != v.Ledger:
		return false, nil
	}
	v.Serial, v.Events = max(v.Serial, was.Serial), max(v.Events, was.Events)
	return true, m.write(v)
}

// missing tells in what way a ledger is not the one that the mark remembers,
// and is empty where it is.
func (v mark) missing(id string, serial, events int64) string {
	switch {
	case v.Ledger != id:
		return fmt.Sprintf("the account's ledger %s was at %s", v.Ledger, v.Path)
	case serial < v.Serial, events < v.Events:
		return fmt.Sprintf("the ledger was set back: it has %d events and had %d", events, v.Events)
	}
	return ""
}
