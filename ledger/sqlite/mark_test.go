//go:build linux || darwin

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// lost demands that the ledger at path opens, tells what it has, and pays
// nothing.
func lost(t *testing.T, path string, o Options, word string) *Store {
	t.Helper()
	s := open(t, path, o)
	e, uses, err := s.Reserve(t.Context(), request(time.Now(), 9))
	if !errors.Is(err, ledger.ErrMissing) || e.ID != "" || uses != nil {
		t.Fatalf("Reserve: %s, %v; want ErrMissing", e.State, err)
	}
	if !strings.Contains(err.Error(), word) {
		t.Errorf("the error %q does not say %q", err, word)
	}
	if _, err := s.Use(t.Context(), plain, time.Now()); err != nil {
		t.Errorf("Use: %v", err)
	}
	return s
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func closing(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFault25Missing: a ledger that was deleted pays nothing until somebody
// acknowledges that.
func TestFault25Missing(t *testing.T) {
	path := newPath(t)
	o := Options{StateDir: filepath.Join(t.TempDir(), "state"), Account: account}
	s := open(t, path, o)
	pay(t, s, request(time.Now(), 1))
	was := s.ledger
	closing(t, s)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	s = lost(t, path, o, was)
	closing(t, s)
	s = lost(t, path, o, was) // not only the first time

	// Another account, or no state directory, knows nothing of it.
	other := open(t, path, Options{StateDir: o.StateDir, Account: payment.Address{1}})
	pay(t, other, request(time.Now(), 2))

	// As another process would.
	if err := open(t, path, o).Ack(t.Context(), "ana", "the disk died"); err != nil {
		t.Fatal(err)
	}
	pay(t, s, request(time.Now(), 3))
	closing(t, s)
	s = open(t, path, o)
	pay(t, s, request(time.Now(), 4))
}

// TestFault25Elsewhere: another path with the same account is another ledger.
func TestFault25Elsewhere(t *testing.T) {
	o := Options{StateDir: t.TempDir(), Account: account}
	first := newPath(t)
	s := open(t, first, o)
	pay(t, s, request(time.Now(), 1))
	second := lost(t, newPath(t), o, first)

	// Acknowledged there, the first one pays nothing more: at the latest when
	// its mark is due again.
	if err := second.Ack(t.Context(), "ana", "moved"); err != nil {
		t.Fatal(err)
	}
	pay(t, second, request(time.Now(), 2))
	var err error
	for i := range uint64(markStep + 1) {
		if _, _, err = s.Reserve(t.Context(), request(time.Now(), 10+i)); err != nil {
			break
		}
	}
	if !errors.Is(err, ledger.ErrMissing) {
		t.Errorf("the first ledger still pays: %v", err)
	}
	closing(t, s)
	lost(t, first, o, second.path)
}

// TestFault25SetBack: a copy from before is noticed, whether it is of an
// earlier run or of earlier in the same one.
func TestFault25SetBack(t *testing.T) {
	path := newPath(t)
	o := Options{StateDir: t.TempDir(), Account: account}
	s := open(t, path, o)
	pay(t, s, request(time.Now(), 1))
	closing(t, s)
	old := filepath.Join(t.TempDir(), "backup")
	copyFile(t, path, old)

	s = open(t, path, o)
	pay(t, s, request(time.Now(), 2))
	closing(t, s)
	newer := filepath.Join(t.TempDir(), "newer")
	copyFile(t, path, newer)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	copyFile(t, old, path)
	s = lost(t, path, o, "set back")
	closing(t, s)

	// The newer copy brought back is as good as ever.
	copyFile(t, newer, path)
	s = open(t, path, o)
	pay(t, s, request(time.Now(), 3))
	closing(t, s)
}

// TestFault25Mark: a mark that cannot be read or trusted refuses to open.
func TestFault25Mark(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(path string) error
		kind  error
	}{
		"cut":     {func(p string) error { return os.Truncate(p, 20) }, ErrDamaged},
		"empty":   {func(p string) error { return os.Truncate(p, 0) }, ErrDamaged},
		"changed": {func(p string) error { return replace(p, `"events":1`, `"events":0`) }, ErrDamaged},
		"reset":   {func(p string) error { return replace(p, `"serial":1`, `"serial":0`) }, ErrDamaged},
		"open":    {func(p string) error { return os.Chmod(p, 0o644) }, ErrUnsafe},
		"link": {func(p string) error {
			return errors.Join(os.Rename(p, p+".real"), os.Symlink(p+".real", p))
		}, ErrUnsafe},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			o := Options{StateDir: t.TempDir(), Account: account}
			s := open(t, path, o)
			pay(t, s, request(time.Now(), 1))
			closing(t, s)
			m := filepath.Join(o.StateDir, "ledger-"+account.Lower()+".json")
			if info, err := os.Stat(m); err != nil || info.Mode() != 0o600 {
				t.Fatalf("the mark: %v, %v", info, err)
			}
			if err := tt.spoil(m); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, o)
			if err == nil {
				s.Close()
				t.Fatal("Open took it")
			}
			if _, ok := errors.AsType[*FileError](err); !ok || !errors.Is(err, tt.kind) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

func replace(path, was, is string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(b), was) {
		return errors.New(was + " is not in " + string(b))
	}
	return os.WriteFile(path, []byte(strings.Replace(string(b), was, is, 1)), 0o600)
}

// TestMarkSteps: the mark is raised with the first payment and then once in
// many events, not with each commit.
func TestMarkSteps(t *testing.T) {
	o := Options{StateDir: t.TempDir(), Account: account}
	s := open(t, newPath(t), o)
	m, err := newMarker(o.StateDir, account)
	if err != nil {
		t.Fatal(err)
	}
	raised := 0
	var last mark
	for i := range uint64(markStep + 100) {
		pay(t, s, request(time.Now(), i))
		v, ok, err := m.read()
		if err != nil || !ok {
			t.Fatal(v, ok, err)
		}
		if v != last {
			raised++
			last = v
		}
	}
	if raised != 2 || last.Serial != 2 {
		t.Errorf("raised %d times, to %+v", raised, last)
	}
	closing(t, s)
	if v, _, _ := m.read(); v.Events != markStep+100 {
		t.Errorf("after closing: %+v", v)
	}
}

// TestMarkUnwritable: a state directory that cannot be written ends new
// payments rather than forget.
func TestMarkUnwritable(t *testing.T) {
	o := Options{StateDir: t.TempDir(), Account: account}
	s := open(t, newPath(t), o)
	if err := os.RemoveAll(o.StateDir); err != nil {
		t.Fatal(err)
	}
	if e, _, err := s.Reserve(t.Context(), request(time.Now(), 1)); err == nil || !e.Permit.Deadline().IsZero() {
		t.Errorf("Reserve: %s, %v", e.State, err)
	}
	if _, _, err := s.Reserve(t.Context(), request(time.Now(), 2)); !errors.Is(err, ledger.ErrReadOnly) {
		t.Errorf("Reserve: %v", err)
	}
}
