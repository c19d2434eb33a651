//go:build linux || darwin

package sqlite

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	ledgercheck "github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
)

// crashed is what the disk has of a ledger that is in use, whose log was never
// copied into the file: the file, the log, and how long the log was after each
// of so many payments, the first of which is claimed.
func crashed(t *testing.T, n int) (file, log []byte, ends []int, ids []payment.ID) {
	t.Helper()
	path := newPath(t)
	s := open(t, path, Options{})
	note := func() {
		st, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(st.Size()))
	}
	note()
	for i := range uint64(n) {
		e := pay(t, s, request(time.Now(), i, plain...))
		if i == 0 {
			claim(t, s, e)
		}
		ids = append(ids, e.ID)
		note()
	}
	file, err := os.ReadFile(path)
	if err == nil {
		log, err = os.ReadFile(path + "-wal")
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, log, ends, ids
}

// left writes a ledger's files as a crash left them.
func left(t *testing.T, file, log []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "canopy.db")
	for suffix, b := range map[string][]byte{"": file, "-wal": log} {
		if b == nil {
			continue
		}
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// whole opens a ledger, and demands that Verify and ledger/check find nothing,
// and that it holds the first of ids and no other, and pays.
func whole(t *testing.T, path string, ids []payment.ID, least int) int {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer s.Close()
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Fatalf("Verify: %q", r.Problems)
	}
	if r, err := ledgercheck.Run(t.Context(), s, ledgercheck.Options{}); err != nil || len(r.Problems) > 0 {
		t.Fatalf("ledger/check: %q, %v", r.Problems, err)
	}
	n := 0
	for e, err := range s.Entries(t.Context(), ledger.Query{Oldest: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if n >= len(ids) || e.ID != ids[n] {
			t.Fatalf("payment %d is %s", n, e.ID)
		}
		if e.State == ledger.Authorized {
			t.Errorf("payment %d is %s, and its process is gone", n, e.State)
		}
		n++
	}
	if n < least {
		t.Fatalf("%d payments are left, want %d: one that was answered is lost", n, least)
	}
	pay(t, s, request(time.Now(), 1000, plain...))
	return n
}

// TestHalfWrittenLog cuts the log of a ledger in use at the end of each commit,
// within its last frames, and everywhere else: what was committed up to there is
// there, and nothing of what was not.
func TestHalfWrittenLog(t *testing.T) {
	t.Parallel()
	const payments = 6
	file, log, ends, ids := crashed(t, payments)
	cuts := []int{0, 1, 31, 32, 33, len(log) - 1, len(log)}
	for _, end := range ends {
		cuts = append(cuts, end-pageSize, end-24, end-1, end, end+1, end+24)
	}
	for at := 997; at < len(log); at += 9973 {
		cuts = append(cuts, at)
	}
	slices.Sort(cuts)
	last := 0
	for _, at := range slices.Compact(cuts) {
		if at < 0 || at > len(log) {
			continue
		}
		least := 0
		for i, end := range ends {
			if at >= end {
				least = i
			}
		}
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			if at < ends[0] {
				// Not even the schema is whole: it is made anew, or was in the file.
				s, err := Open(left(t, file, log[:at]), Options{})
				if err != nil {
					if _, ok := errors.AsType[*FileError](err); !ok {
						t.Fatal(err)
					}
					return
				}
				defer s.Close()
				if r := verify(t, s); len(r.Problems) > 0 || r.Payments > 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			n := whole(t, left(t, file, log[:at]), ids, least)
			if n < last {
				t.Errorf("%d payments are left, and %d of a shorter log", n, last)
			}
			last = n
		})
	}
	if last != payments {
		t.Errorf("%d payments are in the whole log, want %d", last, payments)
	}
}

// TestDamagedLog turns bits of the log: what follows is as if it was not
// written, and nothing that was not committed appears.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	file, log, ends, ids := crashed(t, 4)
	for at := ends[0] + 7; at < len(log); at += 8191 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			bad := bytes.Clone(log)
			bad[at] ^= 0x10
			least := 0
			for i, end := range ends {
				if at >= end {
					least = i
				}
			}
			whole(t, left(t, file, bad), ids, least)
		})
	}
}

// TestHalfWrittenFile cuts the file of a ledger whose log is whole: it is
// refused, or everything is there.
func TestHalfWrittenFile(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, Options{})
	e := pay(t, s, request(time.Now(), 1, plain...))
	closing(t, s) // into the file
	s = open(t, path, Options{})
	e, err := s.Entry(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	claim(t, s, e)
	second := pay(t, s, request(time.Now(), 2, plain...))
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	ids := []payment.ID{e.ID, second.ID}
	whole(t, left(t, file, log), ids, 2)
	refusals := 0
	for at := 0; at < len(file); at += 1021 {
		path := left(t, file[:at], log)
		s, err := Open(path, Options{})
		if err != nil {
			f, ok := errors.AsType[*FileError](err)
			if !ok || f.Fix == "" || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
				t.Errorf("cut to %d bytes: %v", at, err)
			}
			if b, err := os.ReadFile(path + "-wal"); at == 0 && (err != nil || !bytes.Equal(b, log)) {
				t.Errorf("the file is empty, and the log was changed: %v", err)
			}
			refusals++
			continue
		}
		r, err := s.Verify(t.Context())
		s.Close()
		if err != nil || len(r.Problems) > 0 || r.Payments != 2 {
			t.Errorf("cut to %d bytes, and taken: %+v, %v", at, r, err)
		}
	}
	if refusals < 3 {
		t.Errorf("%d cuts were refused", refusals)
	}
}

// TestForeignLog puts the log of another ledger beside one: it is refused, found
// by Verify, or has no part in it; and where the account's ledger is remembered,
// nothing is paid by what it makes of it.
func TestForeignLog(t *testing.T) {
	t.Parallel()
	_, log, _, others := crashed(t, 3)
	o := Options{StateDir: t.TempDir(), Account: account}
	path := newPath(t)
	s := open(t, path, o)
	e := claim(t, s, pay(t, s, request(time.Now(), 1, plain...)))
	closing(t, s)
	if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, o)
	if err != nil {
		if _, ok := errors.AsType[*FileError](err); !ok {
			t.Errorf("Open: %v", err)
		}
		return
	}
	defer s.Close()
	r := verify(t, s)
	_, err = s.Entry(t.Context(), e.ID)
	if len(r.Problems) == 0 && err == nil {
		if _, err := s.Entry(t.Context(), others[0]); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("the ledger has payments of two: %v", err)
		}
		return
	}
	if _, _, err := s.Reserve(t.Context(), request(time.Now(), 9)); !errors.Is(err, ledger.ErrMissing) {
		t.Errorf("Reserve on another ledger: %v", err)
	}
}

// TestOlder opens ledgers of every schema that there ever was: they are brought
// up to date, and nothing is lost.
func TestOlder(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	o := Options{Now: func() time.Time { return now }}
	path := newPath(t)
	s := open(t, path, o)
	limit := plain[0]
	var ids []payment.ID
	for i := range uint64(10) {
		e, _, err := s.Reserve(t.Context(), request(now, i, limit))
		if err != nil || e.State != ledger.Authorized {
			t.Fatal(e.State, err)
		}
		ids = append(ids, e.ID)
		if i%2 == 0 {
			for _, to := range []ledger.State{ledger.InDoubt, ledger.Settled} {
				if e, err = s.Advance(t.Context(), ledger.Change{ID: e.ID, Version: e.Version, To: to, By: actor(to), Now: now}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	closing(t, s)
	for version := 1; version < len(migrations()); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			old := older(t, path, version)
			s := open(t, old, o)
			if r := verify(t, s); len(r.Problems) > 0 || r.Payments != 10 {
				t.Fatalf("%+v", r)
			}
			if r, err := ledgercheck.Run(t.Context(), s, ledgercheck.Options{}); err != nil || len(r.Problems) > 0 {
				t.Fatalf("ledger/check: %q, %v", r.Problems, err)
			}
			u, err := s.Use(t.Context(), plain[:1], now)
			if err != nil || u[0].USD != 10*payment.Dollar {
				t.Errorf("%v are counted, %v", u, err)
			}
			for _, id := range ids {
				if e, err := s.Entry(t.Context(), id); err != nil || e.State != ledger.Settled && e.State != ledger.InDoubt {
					t.Errorf("%s: %s, %v", id, e.State, err)
				}
			}
			e, _, err := s.Reserve(t.Context(), request(now, 99, limit))
			if err != nil || e.State != ledger.Authorized {
				t.Errorf("a new payment: %s, %v", e.State, err)
			}
			closing(t, s)
			open(t, old, o)
		})
	}
}

// older copies the ledger at path into a file of an earlier schema.
func older(t *testing.T, path string, version int) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "canopy.db")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := connect(out)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	run := func(sql string) {
		t.Helper()
		if err := c.script(sql); err != nil {
			t.Fatal(err)
		}
	}
	run(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; PRAGMA foreign_keys = OFF", applicationID, version))
	for _, m := range migrations()[:version] {
		run(m)
	}
	run("ATTACH '" + path + "' AS now")
	objects, err := readSchema(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.kind != "table" {
			continue
		}
		var columns []string
		err := c.query(`SELECT name FROM pragma_table_info(?)`, []driver.Value{o.name}, func(row []driver.Value) error {
			columns = append(columns, row[0].(string))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		list := strings.Join(columns, ", ")
		run(fmt.Sprintf("INSERT INTO main.%s (%s) SELECT %s FROM now.%s", o.name, list, list, o.name))
	}
	return out
}

// TestNewer refuses a ledger of a schema that is not known yet, whichever, and
// leaves every byte of it as it is.
func TestNewer(t *testing.T) {
	t.Parallel()
	for _, version := range []int{len(migrations()) + 1, 1000, 1<<31 - 1} {
		path := closedLedger(t)
		c, err := connect(path)
		if err != nil {
			t.Fatal(err)
		}
		err = c.script(fmt.Sprintf("PRAGMA user_version = %d; PRAGMA wal_checkpoint(TRUNCATE)", version))
		if err := errors.Join(err, c.close()); err != nil {
			t.Fatal(err)
		}
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, path, ErrNewer, "made by a newer canopy", fmt.Sprint(version))
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(was, is) {
			t.Errorf("schema %d: the file was changed: %v", version, err)
		}
	}
}
