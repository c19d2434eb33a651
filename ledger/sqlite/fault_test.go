//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

// fill makes the file's page limit what it has, or lifts it.
func limitPages(t *testing.T, s *Store, full bool) {
	t.Helper()
	_, err := s.do(t.Context(), &job{step: func(x *tx) error {
		if !full {
			return x.c.script("PRAGMA max_page_count = 1000000000")
		}
		return x.c.script("PRAGMA max_page_count = 1")
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFault7Full: a full disk at Reserve is a typed error, leaves nothing
// behind, and ends when there is space again.
func TestFault7Full(t *testing.T) {
	path := newPath(t)
	s := open(t, path, Options{})
	first := pay(t, s, request(time.Now(), 1, plain...))
	limitPages(t, s, true)
	failed, n := 0, uint64(2)
	for ; failed < 3 && n < 1000; n++ {
		e, uses, err := s.Reserve(t.Context(), request(time.Now(), n, plain...))
		if err == nil {
			continue
		}
		failed++
		w, ok := errors.AsType[*WriteError](err)
		if !ok || !w.Full || e.ID != "" || e.Permit.Slot() != "" || uses != nil {
			t.Fatalf("Reserve on a full disk: %+v, %v", e, err)
		}
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no space") {
			t.Errorf("the error is %q", err)
		}
	}
	if failed == 0 {
		t.Fatal("the disk never filled")
	}
	before := verify(t, s)
	if len(before.Problems) > 0 {
		t.Fatal(before.Problems)
	}
	limitPages(t, s, false)
	claim(t, s, first)
	pay(t, s, request(time.Now(), n, plain...))
	if r := verify(t, s); len(r.Problems) > 0 || r.Payments != before.Payments+1 {
		t.Errorf("%+v", r)
	}
}

// TestFault8Full: an outcome that a full disk does not take ends new payments
// until the ledger is opened again; the payment is then in doubt.
func TestFault8Full(t *testing.T) {
	path := newPath(t)
	s := open(t, path, Options{})
	e := pay(t, s, request(time.Now(), 1, plain...))
	limitPages(t, s, true)
	// An outcome that needs a further page: a long message fills it.
	c := claimed(e)
	c.Receipt.Message = strings.Repeat("x", 64<<10)
	_, err := s.Advance(t.Context(), c)
	if w, ok := errors.AsType[*WriteError](err); !ok || !w.Full {
		t.Fatalf("Advance on a full disk: %v", err)
	}
	limitPages(t, s, false)
	if _, _, err := s.Reserve(t.Context(), request(time.Now(), 2)); !errors.Is(err, ledger.ErrReadOnly) {
		t.Fatalf("Reserve after a lost outcome: %v", err)
	}
	// The outcome itself may still be recorded.
	if e, err = s.Advance(t.Context(), claimed(e)); err != nil || e.State != ledger.Claimed {
		t.Fatalf("Advance again: %s, %v", e.State, err)
	}
	if _, _, err := s.Reserve(t.Context(), request(time.Now(), 2)); !errors.Is(err, ledger.ErrReadOnly) {
		t.Fatalf("Reserve after that: %v", err)
	}
	closing(t, s)
	s = open(t, path, Options{})
	pay(t, s, request(time.Now(), 3, plain...))
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// TestFault9Sync: a ledger whose commits are not synced is refused.
func TestFault9Sync(t *testing.T) {
	for _, mode := range []string{"NORMAL", "OFF", "EXTRA"} {
		s, err := Open(newPath(t), Options{synchronous: mode})
		if err == nil {
			s.Close()
			t.Fatalf("synchronous=%s: Open took it", mode)
		}
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "sync") {
			t.Errorf("synchronous=%s: %v", mode, err)
		}
	}
}

// TestBatch: steps that fail by themselves or are at fault for the whole
// transaction neither lose nor undo those that share it.
func TestBatch(t *testing.T) {
	s := open(t, newPath(t), Options{})
	broken := errors.New("broken")
	for _, bad := range []func(*tx) error{
		func(*tx) error { return broken },
		func(x *tx) error { return x.c.script("SELECT nothing FROM nowhere") },
		func(x *tx) error {
			_, _, err := x.c.exec(`UPDATE meta SET events = -1, nonsense = 1`)
			return err
		},
		func(x *tx) error { // writes, then fails
			_, _, err := x.c.exec(`DELETE FROM events`)
			if err == nil {
				_, _, err = x.c.exec(`SELECT nothing FROM nowhere`)
			}
			return err
		},
	} {
		// The committer waits for the lock while steps gather.
		if err := s.lock.take(); err != nil {
			t.Fatal(err)
		}
		other, err := openLock(s.path + "-lock")
		if err != nil {
			t.Fatal(err)
		}
		_ = s.lock.release()
		if err := other.take(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range uint64(20) {
			wg.Go(func() {
				if i%5 == 0 {
					if _, err := s.do(context.Background(), &job{step: bad}); err == nil {
						t.Error("a bad step succeeded")
					}
					return
				}
				e := request(time.Now(), i)
				e.Fingerprint[31] = byte(i)
				pay(t, s, e)
			})
		}
		time.Sleep(20 * time.Millisecond)
		if err := other.release(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		_ = other.close()
	}
	if r := verify(t, s); len(r.Problems) > 0 || r.Payments != 64 || r.Events != 64 {
		t.Errorf("%+v, want 64 payments", r)
	}
}

// TestCancelled: a call that gives up while the ledger is held elsewhere
// returns at once, and its payment is never made.
func TestCancelled(t *testing.T) {
	s := open(t, newPath(t), Options{})
	other, err := openLock(s.path + "-lock")
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if err := other.take(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := request(time.Now(), 1)
	if _, _, err := s.Reserve(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Reserve: %v", err)
	}
	if err := other.release(); err != nil {
		t.Fatal(err)
	}
	pay(t, s, request(time.Now(), 2))
	if _, err := s.Entry(t.Context(), r.Payment.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Entry: %v", err)
	}
}
