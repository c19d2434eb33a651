//go:build linux || darwin

package sqlite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// closed makes a ledger with one payment and closes it.
func closedLedger(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	s := open(t, path, Options{})
	claim(t, s, pay(t, s, request(time.Now(), 1, plain...)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// refused demands that Open refuses path, as kind, with a text that names the
// file and a way out.
func refused(t *testing.T, path string, kind error, words ...string) {
	t.Helper()
	s, err := Open(path, Options{})
	if err == nil {
		s.Close()
		t.Fatal("Open took it")
	}
	file, ok := errors.AsType[*FileError](err)
	if !ok || !errors.Is(err, kind) {
		t.Fatalf("Open: %v (%T), want a *FileError that is %q", err, err, kind)
	}
	if file.Fix == "" || !strings.Contains(err.Error(), filepath.Base(file.Path)) {
		t.Errorf("the error %q names no file or no fix", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q does not say %q", err, w)
		}
	}
}

// TestAttack79Modes: every file is 0600 and the directory 0700, whatever the
// umask, and others are refused.
func TestAttack79Modes(t *testing.T) {
	for _, mask := range []int{0, 0o077, 0o777} {
		old := unix.Umask(mask)
		dir := filepath.Join(t.TempDir(), "made")
		if mask == 0o777 {
			// A directory that its owner cannot enter is of no use to anybody.
			unix.Umask(0o077)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			unix.Umask(mask)
		}
		s, err := Open(filepath.Join(dir, "canopy.db"), Options{StateDir: dir, Account: account})
		if err != nil {
			unix.Umask(old)
			t.Fatalf("umask %04o: %v", mask, err)
		}
		_, _, err = s.Reserve(t.Context(), request(time.Now(), 1))
		unix.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) < 6 {
			t.Errorf("only %v", names)
		}
		for _, n := range names {
			info, err := n.Info()
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != 0o600 {
				t.Errorf("umask %04o: %s is %v", mask, n.Name(), info.Mode())
			}
		}
		if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
			t.Errorf("umask %04o: the directory is %v", mask, info.Mode())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-lock"} {
		t.Run("others"+suffix, func(t *testing.T) {
			path := closedLedger(t)
			f, err := os.OpenFile(path+suffix, os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			if err := os.Chmod(path+suffix, 0o640); err != nil {
				t.Fatal(err)
			}
			refused(t, path, ErrUnsafe, "can be reached by others", "0640", "chmod 600")
		})
	}
	t.Run("directory", func(t *testing.T) {
		path := closedLedger(t)
		if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		refused(t, path, ErrUnsafe, "others may replace files", "chmod go-w")
	})
}

// TestAttack80Kinds: links, pipes, directories and second names are refused,
// for the ledger and for each file beside it.
func TestAttack80Kinds(t *testing.T) {
	plants := map[string]func(at string) error{
		"symbolic link": func(at string) error {
			target := at + ".target"
			if err := os.WriteFile(target, nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(target, at)
		},
		"dangling link": func(at string) error { return os.Symlink(at+".nowhere", at) },
		"fifo":          func(at string) error { return unix.Mkfifo(at, 0o600) },
		"directory":     func(at string) error { return os.Mkdir(at, 0o700) },
		"hard link": func(at string) error {
			if err := os.WriteFile(at+".other", nil, 0o600); err != nil {
				return err
			}
			return os.Link(at+".other", at)
		},
	}
	for name, plant := range plants {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-lock"} {
			t.Run(name+suffix, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "canopy.db")
				if suffix != "" {
					path = closedLedger(t)
				}
				_ = os.Remove(path + suffix)
				if err := plant(path + suffix); err != nil {
					t.Fatal(err)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					if s, err := Open(path, Options{}); err == nil {
						s.Close()
						t.Error("Open took it")
					} else if !errors.Is(err, ErrUnsafe) && !errors.Is(err, unix.EISDIR) {
						t.Errorf("Open: %v", err)
					}
				}()
				select {
				case <-done:
				case <-time.After(20 * time.Second):
					t.Fatal("Open hangs")
				}
				if _, err := os.Lstat(path + suffix + ".nowhere"); !errors.Is(err, fs.ErrNotExist) {
					t.Error("a file was made at the end of a link")
				}
			})
		}
	}
}

// TestAttack81Planted: a file with a trigger, a view or a table of somebody
// else, and files that are no ledger at all.
func TestAttack81Planted(t *testing.T) {
	change := func(t *testing.T, path, sql string) {
		t.Helper()
		c, err := connect(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if err := c.script(sql); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		sql  string
		kind error
		word string
	}{
		"trigger":       {`CREATE TRIGGER free AFTER UPDATE ON counters BEGIN UPDATE counters SET usd = 0; END`, ErrForeign, "trigger free"},
		"view":          {`CREATE VIEW v AS SELECT 1`, ErrForeign, "view v"},
		"table":         {`CREATE TABLE extra (a)`, ErrForeign, "table extra"},
		"index":         {`CREATE INDEX more ON payments (cost)`, ErrForeign, "index more"},
		"lost index":    {`DROP INDEX payments_slot`, ErrForeign, "lacks the index payments_slot"},
		"weaker index":  {`DROP INDEX payments_held; CREATE INDEX payments_held ON payments (agent, held) WHERE held IS NOT NULL`, ErrForeign, "payments_held"},
		"newer":         {`PRAGMA user_version = 99`, ErrNewer, "made by a newer canopy"},
		"other program": {`PRAGMA application_id = 7`, ErrForeign, "another program"},
		"no version":    {`PRAGMA user_version = 0`, ErrForeign, "another program"},
	} {
		t.Run(name, func(t *testing.T) {
			path := closedLedger(t)
			change(t, path, tt.sql)
			refused(t, path, tt.kind, tt.word)
		})
	}
	t.Run("another database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "canopy.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		change(t, path, `CREATE TABLE notes (a)`)
		refused(t, path, ErrForeign, "another program")
	})
	for name, b := range map[string][]byte{
		"text":    []byte(strings.Repeat("not a database\n", 1000)),
		"short":   []byte("SQLite format 3\x00"),
		"one":     {0},
		"garbage": bytes.Repeat([]byte{0xa5}, 8192),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "canopy.db")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{})
			if err == nil {
				s.Close()
				t.Fatal("Open took it")
			}
			if !errors.Is(err, ErrForeign) && !errors.Is(err, ErrDamaged) {
				t.Fatalf("Open: %v", err)
			}
			if left, _ := os.ReadFile(path); !bytes.Equal(left, b) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestTruncated cuts a ledger at many lengths: Open refuses it or, where the
// cut is all that is missing, finds nothing wrong.
func TestTruncated(t *testing.T) {
	path := closedLedger(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 99, 512, 4095, 4096, 5000, 8192, len(whole) / 2, len(whole) - 4096, len(whole) - 1} {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{})
		if err == nil {
			s.Close()
			t.Errorf("cut to %d of %d bytes: Open took it", n, len(whole))
		} else if !errors.Is(err, ErrForeign) && !errors.Is(err, ErrDamaged) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// TestAttack82Flips changes bytes of a closed ledger, one place at a time:
// Open refuses the file or Verify finds it.
func TestAttack82Flips(t *testing.T) {
	path := newPath(t)
	s := open(t, path, Options{})
	for i := range uint64(20) {
		e := pay(t, s, request(time.Now(), i, plain...))
		if i%2 == 0 {
			claim(t, s, e)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.script("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"); err != nil { // no free space within pages
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := usedBytes(t, path, len(whole))
	step := 97
	if testing.Short() {
		step = 997
	}
	found, tried := 0, 0
	for at := 100; at < len(whole); at += step {
		if !used[at] {
			continue
		}
		tried++
		b := bytes.Clone(whole)
		b[at] ^= 0x81
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{})
		if err != nil {
			found++
			continue
		}
		r, err := s.Verify(t.Context())
		if err != nil || len(r.Problems) > 0 {
			found++
		} else {
			t.Errorf("byte %d (page %d, %#x %q): not found", at, at/pageSize+1, whole[at], whole[max(0, at-20):min(len(whole), at+20)])
		}
		s.Close()
	}
	t.Logf("%d of %d flips found", found, tried)
}

// TestEdits are what somebody would change by hand to lift a cap.
func TestEdits(t *testing.T) {
	for name, sql := range map[string]string{
		"cost":         `UPDATE payments SET cost = 1`,
		"state":        `UPDATE payments SET state = 10, slot = NULL, owner = NULL, counts = NULL`,
		"counter":      `UPDATE counters SET usd = 0`,
		"count":        `UPDATE counters SET count = count - 1`,
		"until":        `UPDATE payments SET counts = 1`,
		"event":        `UPDATE events SET at = at - 1`,
		"event data":   `UPDATE events SET data = CAST(replace(data, '1000000', '1') AS BLOB)`,
		"lost event":   `DELETE FROM events WHERE seq = 2`,
		"lost payment": `DELETE FROM events; DELETE FROM places; DELETE FROM payments`,
		"mark":         `UPDATE marks SET until = until + 400000000000, next = next + 400000000000`,
		"agent":        `UPDATE payments SET agent = 'other'`,
		"payee":        `UPDATE payments SET payee = zeroblob(20)`,
		"key":          `UPDATE payments SET held = 'k'`,
		"body":         `UPDATE payments SET body = substr(body, 1, length(body) - 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			path := closedLedger(t)
			c, err := connect(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.script(sql); err != nil {
				t.Fatal(err)
			}
			if err := c.close(); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{})
			if err != nil {
				t.Logf("Open: %v", err)
				return
			}
			defer s.Close()
			r, err := s.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Problems) == 0 {
				t.Error("Verify finds nothing")
			}
			t.Log(r.Problems)
		})
	}
}

// usedBytes tells which bytes of a compact file are in the cells of its trees.
func usedBytes(t *testing.T, path string, size int) []bool {
	t.Helper()
	used := make([]bool, size)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for page := 0; page*pageSize < size; page++ {
		head := page * pageSize
		if page == 0 {
			head = 100
		}
		kind := whole[head]
		if kind != 2 && kind != 5 && kind != 10 && kind != 13 {
			continue // an overflow or free page
		}
		content := int(whole[head+5])<<8 | int(whole[head+6])
		for i := page*pageSize + content; content > 0 && i < (page+1)*pageSize; i++ {
			used[i] = true
		}
		word := func(at int) int { return int(whole[page*pageSize+at])<<8 | int(whole[page*pageSize+at+1]) }
		for free := word(head - page*pageSize + 1); free > 0; free = word(free) { // blocks of cells that were moved
			for i := range word(free + 2) {
				used[page*pageSize+free+i] = i < 4
			}
		}
	}
	return used
}
