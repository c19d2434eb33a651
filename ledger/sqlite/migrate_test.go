//go:build linux || darwin

package sqlite

import (
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// TestMigrate brings a ledger of the first schema up: nothing is lost, and the
// slots of payments that had ended are found.
func TestMigrate(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	o := Options{Now: func() time.Time { return now }}
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	var slots []payment.Slot
	var ids []payment.ID
	for i := range uint64(600) {
		e, _, err := s.Reserve(t.Context(), request(now, i, plain...))
		if err != nil || e.State != ledger.Authorized {
			t.Fatal(e.State, err)
		}
		slots, ids = append(slots, e.Slot), append(ids, e.ID)
		if i%3 == 0 {
			continue
		}
		to := []ledger.State{ledger.InDoubt, ledger.Settled, ledger.ExpiredUnused}
		for _, st := range []ledger.State{to[0], to[i%3]} {
			if e, err = s.Advance(t.Context(), ledger.Change{ID: e.ID, Version: e.Version, To: st, By: actor(st), Now: now}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// Back to what the first schema was.
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`DROP TABLE lanes`, `DROP TABLE slots`, `DROP TABLE cursors`, `DROP TABLE shared_keys`, `ALTER TABLE meta DROP COLUMN anchor`, `PRAGMA user_version = 1`} {
		if err := c.script(sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}

	s, err = Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.FindSlots(t.Context(), slots)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if got[i] != ids[i] {
			t.Errorf("slot %d is of payment %q, want %q", i, got[i], ids[i])
		}
	}
	r, err := s.Verify(t.Context())
	if err != nil || len(r.Problems) > 0 || r.Payments != 600 {
		t.Errorf("%d payments, %v, %v", r.Payments, r.Problems, err)
	}
	if err := s.MoveCursor(t.Context(), "c", 5); err != nil {
		t.Error(err)
	}
}

func actor(s ledger.State) ledger.Actor {
	if s == ledger.InDoubt {
		return ledger.ByClient
	}
	return ledger.ByChain
}
