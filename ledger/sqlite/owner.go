package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/canopy-go/canopy/internal/ulid"
)

const ownerSuffix = "-owner-"

// owner is this process as the ledger knows it: the holder of the flock of a
// file beside the ledger. The system gives the lock up when the process ends,
// however it ends. Owner files are made, judged and removed only while the
// ledger's lock is held.
type owner struct {
	id   string // a ULID
	base string // path of the ledger
	file *os.File

	gone  map[string]bool // owners that were found dead; an id never lives again
	lives map[string]bool // owners that were found alive in this turn
}

// newOwner makes and locks this process's file.
func newOwner(base string, now time.Time) (*owner, error) {
	id := ulid.New(now)
	f, err := openOwn(base+ownerSuffix+id, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, fmt.Errorf("sqlite: the owner file: %w", err)
	}
	if err := tryLock(f); err != nil {
		os.Remove(f.Name())
		f.Close()
		return nil, fmt.Errorf("sqlite: the owner file: %w", err)
	}
	return &owner{id: id, base: base, file: f, gone: map[string]bool{}, lives: map[string]bool{}}, nil
}

// alive reports whether the process that goes by id still runs. An owner that
// cannot be judged counts as alive: its payments keep their holds either way.
func (o *owner) alive(id string) bool {
	switch {
	case id == o.id || o.lives[id]:
		return true
	case !ulid.Valid(id) || o.gone[id]:
		return false
	}
	is, err := held(o.base + ownerSuffix + id)
	if err == nil && !is {
		o.gone[id] = true
		return false
	}
	o.lives[id] = true
	return true
}

// turn begins a new turn with the lock: who was alive in the last is looked at
// again.
func (o *owner) turn() { clear(o.lives) }

// sweep removes the files of processes that are gone.
func (o *owner) sweep() error {
	names, err := os.ReadDir(filepath.Dir(o.base))
	if err != nil {
		return err
	}
	prefix := filepath.Base(o.base) + ownerSuffix
	for _, n := range names {
		id, ok := strings.CutPrefix(n.Name(), prefix)
		if !ok || !ulid.Valid(id) || o.alive(id) {
			continue
		}
		if err := os.Remove(o.base + ownerSuffix + id); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// close gives this process's place up.
func (o *owner) close() error {
	return errors.Join(os.Remove(o.file.Name()), o.file.Close())
}
