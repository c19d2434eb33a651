package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/canopy-go/canopy/ledger"
)

// maxBatch bounds how many steps share a commit.
const maxBatch = 512

// kind is what a failed write means for a step.
type kind uint8

const (
	other   kind = iota
	reserve      // nothing was signed
	advance      // an outcome is not recorded: nothing new is paid
)

// job is one step on its way through the committer.
type job struct {
	kind  kind
	step  func(*tx) error
	after func() error // runs once the step is committed, before it is answered
	err   error

	committed bool // what step found is durable, whatever err says

	taken atomic.Bool // by the committer, or by a caller who gave up
	done  chan struct{}
}

// point names where a test can make a fault.
type point string

const (
	beforeCommit point = "before commit"
	afterCommit  point = "after commit"
)

// do runs a step in a commit of its own or with others, and is true with the
// step's error when that is durable; where it is false nothing happened. A step
// that was not begun when its caller's context ends never is; one that was is
// waited for, since its commit is under way and nobody else holds the ledger.
func (s *Store) do(ctx context.Context, j *job) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	j.done = make(chan struct{})
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return false, ledger.ErrClosed
	}
	select {
	case s.queue <- j:
		s.mu.RUnlock()
	case <-ctx.Done():
		s.mu.RUnlock()
		return false, ctx.Err()
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.taken.CompareAndSwap(false, true) {
			return false, ctx.Err()
		}
		<-j.done
	}
	return j.committed, j.err
}

// run is the committer: the one goroutine that writes.
func (s *Store) run() {
	defer close(s.done)
	batch := make([]*job, 0, maxBatch)
	for j := range s.queue {
		batch = s.commit(append(batch[:0], j))
		clear(batch)
	}
}

// commit takes the lock, adds what has arrived while it waited, runs all of it
// in one transaction and answers. It returns the batch for its storage.
func (s *Store) commit(batch []*job) []*job {
	if err := s.lock.take(); err != nil {
		return s.refuse(batch, fmt.Errorf("taking the lock: %w", err))
	}
	defer s.lock.release()
	if batch = s.gather(batch); len(batch) == 0 {
		return batch
	}
	s.owner.turn()
	switch err := s.attempt(batch); {
	case err == nil:
	case code(err) == codeIO:
		// A disk that failed is not asked again.
		return s.refuse(batch, err)
	default:
		// One of them is at fault, or all: each has a try of its own.
		for _, j := range batch {
			if err := s.attempt([]*job{j}); err != nil {
				j.err = s.failure(j, err)
			}
		}
	}
	for _, j := range batch {
		close(j.done)
	}
	s.checkpoint()
	return batch
}

// gather drops steps that were given up and adds those that wait.
func (s *Store) gather(batch []*job) []*job {
	out := batch[:0]
	keep := func(j *job) {
		if j.taken.CompareAndSwap(false, true) {
			out = append(out, j)
		}
	}
	keep(batch[0])
	for len(out) < maxBatch {
		select {
		case j, ok := <-s.queue:
			if !ok {
				return out
			}
			keep(j)
			continue
		default:
		}
		break
	}
	return out
}

// refuse answers steps that did not happen.
func (s *Store) refuse(batch []*job, err error) []*job {
	for _, j := range batch {
		j.err = s.failure(j, err)
		close(j.done)
	}
	return batch
}

// attempt runs steps in one transaction. An error means that none of them
// happened; else each has its own answer.
func (s *Store) attempt(batch []*job) (err error) {
	s.w.failed = nil
	defer func() {
		if err != nil {
			s.w.exec(`ROLLBACK`) // fails where SQLite has rolled back by itself
			s.mem = newMemory()
		}
	}()
	if _, _, err := s.w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := s.refresh(); err != nil {
		return err
	}
	t := &tx{s.w, s.mem}
	for _, j := range batch {
		if j.err = j.step(t); s.w.failed != nil {
			return s.w.failed
		}
	}
	raise, err := s.raising(t, batch)
	if err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := s.at(beforeCommit); err != nil {
		return err
	}
	if _, _, err := s.w.exec(`COMMIT`); err != nil {
		return err
	}
	if err := s.at(afterCommit); err != nil {
		panic(err) // only tests set points, and none fails here
	}
	s.conclude(batch, raise)
	return nil
}

// refresh forgets what is remembered of the file where another connection has
// committed since. One that brought it up to a schema of which this process
// knows nothing ends its writing: it would keep less than that schema says.
func (s *Store) refresh() error {
	v, err := s.w.pragma("data_version")
	if err != nil {
		return err
	}
	if v == s.seen {
		return nil
	}
	version, err := s.w.pragma("user_version")
	if err != nil {
		return err
	}
	if version != int64(len(migrations())) {
		return newer(s.path, version)
	}
	s.mem, s.seen = newMemory(), v
	return nil
}

// raising puts a raised mark into the commit, where that is due.
func (s *Store) raising(t *tx, batch []*job) (bool, error) {
	if s.marker == nil || s.missing.Load() != nil {
		return false, nil
	}
	m, err := t.readMeta()
	if err != nil {
		return false, err
	}
	if s.raised && m.events-m.marked < markStep || m.events == s.events {
		return false, nil
	}
	m.serial++
	m.marked = m.events
	t.mem.dirtyMeta = true
	return true, nil
}

// conclude does what follows a commit and comes before the answers.
func (s *Store) conclude(batch []*job, raise bool) {
	s.mem.trim()
	if s.mem.meta != nil {
		s.events = s.mem.meta.events
	}
	var failed error
	if raise {
		ours, err := s.marker.raise(s.mark(s.mem.meta))
		switch {
		case err != nil:
			failed = err
			s.latch(err)
		case !ours:
			why := "another ledger took the place of this one"
			s.missing.Store(&why)
			failed = fmt.Errorf("%w: %s", ledger.ErrMissing, why)
		}
		s.raised = err == nil && ours
	}
	for _, j := range batch {
		j.committed = true
		if j.err == nil && j.after != nil {
			j.err = j.after()
		}
		if j.kind == reserve && failed != nil {
			j.committed, j.err = false, failed
		}
	}
}

// failure tells the caller of a step what a failed transaction means, and ends
// new payments where it must.
func (s *Store) failure(j *job, err error) error {
	c := code(err)
	w := &WriteError{Path: s.path, Full: c == codeFull, Err: err}
	switch {
	case c == codeBusy:
		return &FileError{s.path, "is locked by another program", "end the program that has it open", errors.Join(ErrBusy, err)}
	case j.kind == advance, c == codeIO, c == codeCorrupt, errors.Is(err, ErrDamaged):
		s.latch(w)
	}
	return w
}

// latch makes every later Reserve fail until the ledger is opened again.
func (s *Store) latch(cause error) { s.broken.CompareAndSwap(nil, &cause) }

// usable is nil while a payment may be reserved.
func (s *Store) usable(t *tx) error {
	if err := s.broken.Load(); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrReadOnly, *err)
	}
	if s.missing.Load() == nil {
		return nil
	}
	// Another process may have acknowledged it.
	m, err := t.readMeta()
	if err != nil {
		return err
	}
	if err := s.compare(m); err != nil {
		return err
	}
	if why := s.missing.Load(); why != nil {
		return fmt.Errorf("%w: %s", ledger.ErrMissing, *why)
	}
	return nil
}

// at is where a test can make a fault.
func (s *Store) at(p point) error {
	if s.opt.point == nil {
		return nil
	}
	return s.opt.point(p)
}

// checkpoint copies the log into the file once it is long. It runs after the
// answers and while the lock is held, so that no answer waits for it and the
// next commit can begin the log anew. What fails here loses nothing and is
// tried again after the next commit.
func (s *Store) checkpoint() {
	st, err := os.Stat(s.path + "-wal")
	if err != nil || st.Size() < walPages*pageSize {
		return
	}
	// The file does not shrink when the log begins anew: SQLite knows how much
	// of it is in use.
	var busy, log, copied int64
	if _, err := s.w.first(`PRAGMA wal_checkpoint(NOOP)`, nil, &busy, &log, &copied); err != nil || log-copied < walPages {
		return
	}
	_, _ = s.w.first(`PRAGMA wal_checkpoint(PASSIVE)`, nil, &busy, &log, &copied)
}
