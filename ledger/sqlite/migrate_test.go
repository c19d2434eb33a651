//go:build linux || darwin

package sqlite

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	downTo(t, c, 1, `ALTER TABLE meta DROP COLUMN anchor`, `ALTER TABLE payments DROP COLUMN run`)
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

// A ledger that a newer canopy brought up while this one had it open is not
// written any more.
func TestMigratedBehind(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s := open(t, path, Options{Now: func() time.Time { return now }})
	if _, _, err := s.Reserve(t.Context(), request(now, 1, plain...)); err != nil {
		t.Fatal(err)
	}
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.script("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if e, _, err := s.Reserve(t.Context(), request(now, 2, plain...)); !errors.Is(err, ErrNewer) {
		t.Errorf("%s, %v", e.State, err)
	}
}

// downTo takes out of c what a schema did not have yet: the tables and indexes
// that came later, and by the statements what changed in those it had.
func downTo(t *testing.T, c *conn, version int, statements ...string) {
	t.Helper()
	want, err := wantSchema(version)
	if err != nil {
		t.Fatal(err)
	}
	have, err := readSchema(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"index", "table"} {
		for _, o := range have {
			known := slices.ContainsFunc(want, func(w object) bool { return w.kind == o.kind && w.name == o.name })
			if o.kind == kind && o.sql != "" && !known {
				statements = append(statements, "DROP "+kind+" "+o.name)
			}
		}
	}
	for _, sql := range append(statements, "PRAGMA user_version = "+strconv.Itoa(version)) {
		if err := c.script(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func actor(s ledger.State) ledger.Actor {
	if s == ledger.InDoubt {
		return ledger.ByClient
	}
	return ledger.ByChain
}

// schema4 is a ledger that schema 4 was the latest of, written by the code of
// then: payments of EVM, with a fee bound, on a lane, on a memo and without a
// chain, seven states of each, three that a person was asked about and one that
// was denied.
func schema4(t *testing.T) string {
	t.Helper()
	return fixture(t, "schema4")
}

// fixture is a ledger that was packed under testdata.
func fixture(t *testing.T, name string) string {
	t.Helper()
	in, err := os.Open(filepath.Join("testdata", name+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "canopy.db")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, z); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMigrateEntries: what was written before fees and variants were known
// counts and is found as it did then, and goes on as it would today.
func TestMigrateEntries(t *testing.T) {
	t.Parallel()
	path := schema4(t)
	now := time.Date(2026, 3, 4, 12, 0, 1, 0, time.UTC)
	o := Options{Now: func() time.Time { return now }}
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.pragma("user_version"); v != 4 || err != nil {
		t.Fatalf("the fixture is of schema %d, %v", v, err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, o)
	var sum payment.USD
	byState := map[ledger.State][]ledger.Entry{}
	for e, err := range s.Entries(t.Context(), ledger.Query{Oldest: true}) {
		if err != nil {
			t.Fatal(err)
		}
		want := e.Cost
		if e.AuthorizedAt.IsZero() || e.State.Freed() {
			want = 0
		}
		if e.Cost != e.Terms.Cost() || e.Spent != want || !e.SignBefore.Equal(e.ValidBefore) || e.Variants != 0 {
			t.Errorf("%s: it costs %v and counts for %v, valid before %v and signed before %v", e.State, e.Cost, e.Spent, e.ValidBefore, e.SignBefore)
		}
		if g := e.Grant(); e.Permit.Slot() != "" && (!g.ValidBefore.Equal(e.ValidBefore) || !e.Permit.Deadline().Equal(e.ValidBefore)) {
			t.Errorf("%s: a grant until %v, a permit until %v, valid before %v", e.State, g.ValidBefore, e.Permit.Deadline(), e.ValidBefore)
		}
		sum += e.Spent
		byState[e.State] = append(byState[e.State], e)
	}
	if n := len(byState[ledger.InDoubt]); n != 10 || len(byState[ledger.Authorized]) != 0 { // their process is gone
		t.Errorf("%d are in doubt and %d in flight, want 10 and 0", n, len(byState[ledger.Authorized]))
	}
	u, err := s.Use(t.Context(), plain[:2], now)
	if err != nil || u[0].USD != sum || u[1].USD != sum || u[0].Count != 25 {
		t.Errorf("Use: %+v, %v; want %v in 25", u, err, sum)
	}
	if r := verify(t, s); len(r.Problems) > 0 || r.Payments != 39 {
		t.Errorf("%d payments, %v", r.Payments, r.Problems)
	}

	// A memo of then is taken, whatever became of its payment.
	taken := 0
	for _, list := range byState {
		for _, e := range list {
			if e.Slot.Kind != payment.SlotExpiring {
				continue
			}
			taken++
			r := request(now, 1000+uint64(taken))
			r.Slot = e.Slot
			if _, _, err := s.Reserve(t.Context(), r); !errors.Is(err, ledger.ErrTaken) {
				t.Errorf("the memo of a payment that is %s: %v, want ErrTaken", e.State, err)
			}
		}
	}
	if taken != 7 {
		t.Errorf("%d memos, want 7", taken)
	}
	for _, e := range byState[ledger.InDoubt] {
		fee := e.Terms.FeeBound / 3
		got, err := s.Advance(t.Context(), ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Settled, By: ledger.ByChain, Now: now, Fee: &fee})
		if err != nil || got.Spent != e.Cost-e.Terms.FeeBound+fee || got.Cost != e.Cost {
			t.Errorf("settled with a fee of %v it counts for %v of %v, %v", fee, got.Spent, e.Cost, err)
		}
		sum += got.Spent - e.Spent
	}
	pay(t, s, onLane(now, 2000, 2, plain...))
	sum += payment.Dollar
	closing(t, s)
	s = open(t, path, o)
	if u, err = s.Use(t.Context(), plain[:1], now); err != nil || u[0].USD != sum {
		t.Errorf("Use: %+v, %v; want %v", u, err, sum)
	}
	if r := verify(t, s); len(r.Problems) > 0 || r.Payments != 40 {
		t.Errorf("%d payments, %v", r.Payments, r.Problems)
	}
}
