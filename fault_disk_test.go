//go:build linux

package canopy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
)

// disk is one that can be full.
type disk struct {
	t    testing.TB
	dir  string
	fill func()
	free func()
}

const diskEnv = "CANOPY_TEST_DISK"

// onFullDisk runs the test that calls it once more, in a process of its own, on
// a file system of two megabytes; where this machine mounts none for us, under
// a limit on the size of files, which is refused as a failing disk refuses.
// Another run has that limit in any case.
func onFullDisk(t *testing.T, f func(t *testing.T, d *disk)) {
	t.Helper()
	switch os.Getenv(diskEnv) {
	case "small":
		f(t, smallDisk(t))
		return
	case "limit":
		f(t, limitedFiles(t))
		return
	}
	t.Parallel()
	for _, kind := range []string{"small", "limit"} {
		t.Run(kind, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.v")
			cmd.Env = append(os.Environ(), diskEnv+"="+kind)
			if kind == "small" {
				cmd.SysProcAttr = &syscall.SysProcAttr{
					Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
					UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
				}
			}
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) || strings.Contains(string(out), cannotMount) {
				t.Logf("no file system of our own here (%v): files are limited instead", err)
				cmd = exec.Command(os.Args[0], cmd.Args[1:]...)
				cmd.Env = append(os.Environ(), diskEnv+"=limit")
				out, err = cmd.CombinedOutput()
			}
			if err != nil || !strings.Contains(string(out), "--- PASS: "+strings.Split(t.Name(), "/")[0]) {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

const cannotMount = "cannot mount"

// smallDisk mounts a file system that one file fills.
func smallDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir()}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		t.Fatal(cannotMount, err)
	}
	t.Cleanup(func() { syscall.Unmount(d.dir, syscall.MNT_DETACH) })
	filler := filepath.Join(d.dir, "filler")
	d.fill = func() {
		f, err := os.Create(filler)
		must(t, err)
		defer f.Close()
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	d.free = func() { must(t, os.Remove(filler)) }
	return d
}

// limitedFiles lets no file grow beyond what the ledger's have.
func limitedFiles(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir()}
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	d.fill = func() {
		limit := was
		if st, err := os.Stat(filepath.Join(d.dir, "canopy.db-wal")); err == nil {
			limit.Cur = uint64(st.Size())
		}
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	}
	d.free = func() { must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)) }
	return d
}

// playDisk plays a fault on a ledger on a disk that can be full.
func playDisk(t *testing.T, s setup, f func(t *testing.T, w *world, d *disk)) {
	t.Helper()
	onFullDisk(t, func(t *testing.T, d *disk) {
		s.begin = func(w *world) { w.disk = d.dir }
		playFile(t, s, func(t *testing.T, w *world) { f(t, w, d) })
	})
}

// F7: a disk that is full at the first commit: nothing is signed, the error says
// what it is, and the next payment after there is room is made.
func TestF7_DiskFullAtTheFirstCommit(t *testing.T) {
	playDisk(t, setup{config: watching}, func(t *testing.T, w *world, d *disk) {
		s, url := w.sells(dime)
		w.bought(w.get(url))
		d.fill()
		for i := range 3 {
			w.refused("the disk is full", func() {
				g := w.get(fmt.Sprint(url, 2+i))
				e := as[*sqlite.WriteError](t, g.err)
				if full := os.Getenv(diskEnv) == "small"; e.Full != full || full && !strings.Contains(g.err.Error(), "no space left") || !strings.Contains(e.Path, "canopy.db") {
					t.Errorf("the error is %q (full: %v)", g.err, e.Full)
				}
			})
		}
		w.handed(s, 1)
		d.free()
		w.only()
		if os.Getenv(diskEnv) == "limit" { // a disk that failed otherwise is not trusted again
			w.refused("the disk failed", func() {
				if g := w.get(url + "2"); !errors.Is(g.err, ledger.ErrReadOnly) {
					t.Errorf("got %+v, want ErrReadOnly", g)
				}
			})
			w.restartFrom(w.path)
		}
		w.bought(w.get(url + "2"))
		w.over()
		w.spent(2 * dime)
		w.counted(2 * dime)
	})
}

// F8: a disk that fills while the seller answers: the answer is delivered with a
// warning, nothing new is paid, and after there is room and the ledger was opened
// again the payment is where the chain says.
func TestF8_DiskFullAtTheOutcome(t *testing.T) {
	playDisk(t, setup{config: watching}, func(t *testing.T, w *world, d *disk) {
		s, url := w.sells(dime)
		w.bought(w.get(url))
		w.spy.Before(func(context.Context, canopytest.Signed) { d.fill() })
		g := w.get(url + "2")
		if g.err != nil || g.StatusCode != 200 || g.body == "" || g.paid.Warning == "" {
			t.Fatalf("got %+v, want the answer with a warning", g)
		}
		w.spy.Before(nil)
		for _, room := range []bool{false, true} {
			if room {
				d.free()
			}
			w.refused("an outcome is not on record", func() {
				if g := w.get(url + "3"); !errors.Is(g.err, ledger.ErrReadOnly) {
					t.Errorf("got %+v, want ErrReadOnly", g)
				}
			})
		}
		w.counted(2 * dime)
		w.restartFrom(w.path)
		all := w.entries()
		if len(all) != 2 || all[0].State != ledger.Claimed || all[1].State != ledger.InDoubt || all[1].ID != g.paid.PaymentID {
			t.Fatalf("after it was opened again: %+v", all)
		}
		w.counted(2 * dime)
		w.bought(w.get(url + "3"))
		w.handed(s, 3)
		w.over()
		w.state(g.paid.PaymentID, ledger.Settled)
		w.spent(3 * dime)
		w.counted(3 * dime)
	})
}
