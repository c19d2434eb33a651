package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Options are how a ledger is opened. The zero value is safe.
type Options struct {
	// Now is the store's own clock; nil is time.Now.
	Now func() time.Time

	// Elapsed and Boot are those of ledger.Options: time that passed, by which
	// a jump of Now is seen, and what it counts from.
	Elapsed func() time.Duration
	Boot    string

	// StateDir is where the account's ledger is remembered, so that one which
	// is missing, new or set back is noticed: Reserve is then refused with
	// ledger.ErrMissing until Ack. It is made 0700 if it is not there, and
	// belongs on another volume than the ledger if that one can be lost. Empty
	// remembers nothing.
	StateDir string

	// Account is the paying account that StateDir remembers the ledger of.
	// Zero remembers nothing.
	Account payment.Address

	synchronous string            // "" is FULL; for tests of the refusal
	point       func(point) error // called at named points, for tests of faults
}

// Store is a ledger in a file. Its methods are safe for concurrent use.
type Store struct {
	path   string
	opt    Options
	clock  *ledger.Clock
	owner  *owner
	lock   *lock
	marker *marker
	ledger string // its ULID

	// The committer's own, between take and release of lock.
	w      *conn
	mem    *memory
	seen   int64 // data_version that mem is of
	raised bool  // the mark, in this process
	events int64 // as of the last commit

	queue chan *job
	done  chan struct{} // closed when the committer has ended
	idle  chan *conn    // connections for reading

	missing atomic.Pointer[string] // why Reserve is refused, from StateDir
	broken  atomic.Pointer[error]  // why Reserve is refused, from a failed write

	mu     sync.RWMutex
	closed bool
}

var (
	_ ledger.Store    = (*Store)(nil)
	_ ledger.Freezer  = (*Store)(nil)
	_ ledger.Acker    = (*Store)(nil)
	_ ledger.Verifier = (*Store)(nil)
)

const (
	openWithin  = 30 * time.Second // how long Open waits for a process that holds the ledger
	cachePages  = "-65536"         // of the committer: KiB
	bigFile     = 64 << 20         // above, the structure is checked once a day
	checkEvery  = 24 * time.Hour
	walPages    = 4000 // after so many pages the log is copied into the file
	pageSize    = 4096
	synchronous = "FULL"
)

// Open opens the ledger at path, and makes it and its directory if there is
// none. It refuses a file that is not a ledger, that others can reach, that is
// damaged, or on a network file system, with a *FileError that tells the way
// out. Payments of processes that are gone are in doubt when it returns.
func Open(path string, o Options) (*Store, error) {
	if name := filepath.Base(path); path == "" || name == "." || name == ".." || strings.HasSuffix(path, string(filepath.Separator)) {
		return nil, fmt.Errorf("sqlite: %q is not the path of a file", path)
	}
	dir, err := ownDir(path)
	if err != nil {
		return nil, err
	}
	if err := localDir(dir); err != nil {
		return nil, err
	}
	s := &Store{
		path:  filepath.Join(dir, filepath.Base(path)),
		opt:   o,
		clock: ledger.NewClock(ledger.Options{Now: o.Now, Elapsed: o.Elapsed, Boot: o.Boot}),
		mem:   newMemory(),
		queue: make(chan *job, maxBatch),
		done:  make(chan struct{}),
		idle:  make(chan *conn, 4),
	}
	if s.marker, err = newMarker(o.StateDir, o.Account); err != nil {
		return nil, err
	}
	if s.lock, err = openLock(s.path + "-lock"); err != nil {
		return nil, err
	}
	if err := s.lock.takeWithin(openWithin); err != nil {
		return nil, errors.Join(err, s.lock.close())
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(s.opening(err), s.abandon())
	}
	if err := s.lock.release(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	go s.run()
	return s, nil
}

// open does what must be done while the lock is held.
func (s *Store) open() error {
	before, err := s.guard()
	if err != nil {
		return err
	}
	if s.w, err = connect(s.path); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	// The file was opened by its name: it must be the one that was looked at.
	after, err := guardFile(s.path)
	if err != nil {
		return err
	}
	if after.dev != before.dev || after.ino != before.ino {
		return &FileError{s.path, "was replaced while it was opened", "look for another program that writes there", ErrUnsafe}
	}
	if err := guardSides(s.path); err != nil {
		return err
	}
	if s.owner, err = newOwner(s.path, s.clock.Now()); err != nil {
		return err
	}
	if err := s.owner.sweep(); err != nil {
		return fmt.Errorf("sqlite: removing the files of processes that are gone: %w", err)
	}
	return s.begin()
}

// guard looks at the file, and makes an empty one where there is none.
func (s *Store) guard() (identity, error) {
	if err := guardSides(s.path); err != nil {
		return identity{}, err
	}
	id, err := guardFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, suffix := range suffixes {
			if _, err := guardFile(s.path + suffix); err == nil {
				return id, &FileError{s.path, "is missing, and " + filepath.Base(s.path) + suffix + " of it is still there",
					"bring the file back, or move that one away and run canopy ledger ack", ErrDamaged}
			}
		}
		if _, err := create(s.path); err != nil {
			return id, err
		}
		return guardFile(s.path)
	}
	if err != nil {
		return id, err
	}
	log, err := guardFile(s.path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if id.size == 0 && log.size > 0 {
		// SQLite would take it for a new file, and remove the log.
		return id, &FileError{s.path, "is empty, and " + filepath.Base(s.path) + "-wal of it is not",
			"bring the file back, or move that one away and run canopy ledger ack", ErrDamaged}
	}
	if id.size%pageSize != 0 && (log.size == 0 || id.size < 512) {
		return id, damaged(s.path, fmt.Sprintf("it ends within a page, after %d bytes", id.size))
	}
	return id, nil
}

// settle brings the connection and the schema to where they must be, and
// refuses what is not so.
func (s *Store) settle() error {
	version, err := identify(s.w, s.path)
	if err != nil {
		return err
	}
	if version > 0 {
		if err := checkSchema(s.w, s.path, version); err != nil {
			return err
		}
	}
	var mode string
	if _, err := s.w.first("PRAGMA journal_mode = WAL", nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return &FileError{s.path, "cannot keep a write-ahead log (journal_mode is " + mode + ")", "keep the ledger on a local disk", ErrUnsafe}
	}
	want := synchronous
	if s.opt.synchronous != "" {
		want = s.opt.synchronous
	}
	for _, p := range []string{"synchronous = " + want, "fullfsync = ON", "checkpoint_fullfsync = ON", "cache_size = " + cachePages,
		"wal_autocheckpoint = 0", "journal_size_limit = 67108864"} {
		if err := s.w.script("PRAGMA " + p); err != nil {
			return err
		}
	}
	if level, err := s.w.pragma("synchronous"); err != nil || level != 2 {
		return &FileError{s.path, fmt.Sprintf("does not sync every commit to the disk (synchronous is %d, not 2)", level),
			"this build of SQLite cannot keep a ledger", errors.Join(ErrUnsafe, err)}
	}
	return migrate(s.w, version, s.clock.Now())
}

// begin is the first step: it checks the structure where that is due, compares
// the ledger with the mark, and puts payments of processes that are gone in
// doubt.
func (s *Store) begin() error {
	t := &tx{s.w, s.mem}
	m, err := t.readMeta()
	if err != nil {
		return err
	}
	s.ledger = m.ledger
	now := s.clock.Now()
	pages, err := s.w.pragma("page_count")
	if err != nil {
		return err
	}
	due := pages*pageSize <= bigFile || now.Sub(fromMicro(m.checked)).Abs() > checkEvery
	if due {
		if err := quickCheck(s.w, s.path); err != nil {
			return err
		}
	}
	if err := s.compare(m); err != nil {
		return err
	}
	if err := s.w.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if due && pages*pageSize > bigFile {
		if _, _, err := s.w.exec(`UPDATE meta SET checked = ?`, now.UnixMicro()); err != nil {
			return err
		}
	}
	if _, err := ledger.RecoverTx(t, s.env()); err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	s.events = m.events
	return s.w.script("COMMIT")
}

// compare holds the ledger against the mark of the account.
func (s *Store) compare(m *meta) error {
	if s.marker == nil {
		return nil
	}
	v, ok, err := s.marker.read()
	if err != nil {
		return err
	}
	if !ok {
		return s.marker.write(s.mark(m))
	}
	if why := v.missing(m.ledger, m.serial, m.events); why != "" {
		s.missing.Store(&why)
	} else {
		s.missing.Store(nil)
	}
	return nil
}

func (s *Store) mark(m *meta) mark {
	return mark{Ledger: m.ledger, Path: s.path, Serial: m.serial, Events: m.events}
}

func (s *Store) env() ledger.Env {
	return ledger.Env{Clock: s.clock, Owner: s.owner.id, Alive: s.owner.alive}
}

// opening tells what an error of SQLite means for the file.
func (s *Store) opening(err error) error {
	switch code(err) {
	case codeNotADB:
		return &FileError{s.path, "is not a ledger, or its beginning is overwritten", "give the path of a ledger, or restore it from a backup and run canopy ledger ack", errors.Join(ErrForeign, err)}
	case codeCorrupt:
		return damaged(s.path, err.Error())
	case codeBusy:
		return &FileError{s.path, "is locked by another program", "end the program that has it open", errors.Join(ErrBusy, err)}
	case 0:
		return err
	}
	return fmt.Errorf("sqlite: opening %s: %w", s.path, err)
}

// abandon gives up what a failed Open holds.
func (s *Store) abandon() error {
	var err error
	if s.w != nil {
		err = s.w.close()
	}
	if s.owner != nil {
		err = errors.Join(err, s.owner.close())
	}
	return errors.Join(err, s.lock.close())
}

// Close waits for the steps that were asked for and gives up the file. Calls
// after it fail with ledger.ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	<-s.done

	var err error
	for {
		select {
		case c := <-s.idle:
			err = errors.Join(err, c.close())
			continue
		default:
		}
		break
	}
	if e := s.lock.take(); e != nil {
		return errors.Join(err, e, s.abandon())
	}
	if s.raised && s.broken.Load() == nil {
		m, e := (&tx{s.w, newMemory()}).readMeta()
		if e == nil {
			_, e = s.marker.raise(s.mark(m))
		}
		err = errors.Join(err, e)
	}
	return errors.Join(err, s.abandon())
}
