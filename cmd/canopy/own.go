package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/canopy-go/canopy/config"
)

// own are the files that the program lives by. Who chooses the arguments may be
// an agent, and a seller may choose what it does: neither overwrites the policy
// or the ledger, nor sends off what holds the key. Files are looked at and never
// opened here: closing one would give up the locks that SQLite holds on it.
type own struct{ file *config.File }

// What a path may lead to.
const (
	ownConfig   = "the configuration"
	ownKeystore = "the keystore"
	ownLedger   = "the ledger, or a file of it"
	ownState    = "the directory that remembers the ledger"
	environ     = "the environment of a process, which may hold the key"
)

// writable returns an error where a write to path would change one of them.
func (o own) writable(path string) error {
	if what := o.at(path); what != "" {
		return fmt.Errorf("%s is %s: no answer is written there", show(path, 300), what)
	}
	return nil
}

// sendable returns an error where path leads to what is not sent to a seller.
// The configuration has no secrets and may be.
func (o own) sendable(path string) error {
	what := o.at(path)
	if isEnviron(path) {
		what = environ
	}
	if what != "" && what != ownConfig {
		return fmt.Errorf("this is %s, and is not sent", what)
	}
	return nil
}

// at tells what path leads to, through links of both kinds; "" for nothing of
// the program's own.
func (o own) at(path string) string {
	there, _ := os.Stat(path)
	place, err := reach(path)
	if err != nil && there == nil {
		return "" // nothing can be made there either
	}
	for _, f := range []struct{ path, what string }{{o.file.Path, ownConfig}, {o.file.Treasury.Keystore, ownKeystore}} {
		if f.path != "" && (same(there, f.path) || samePlace(place, f.path)) {
			return f.what
		}
	}
	if o.isLedger(place, there) {
		return ownLedger
	}
	if o.isState(place, there) {
		return ownState
	}
	return ""
}

// isLedger reports whether place is the ledger or begins with its name and a
// dash, as all files of it do, or there is one of them.
func (o own) isLedger(place string, there os.FileInfo) bool {
	dir, base := filepath.Split(o.file.Ledger.Path)
	dir = orHere(dir)
	if inLedger(filepath.Base(place), base) && sameFile(filepath.Dir(place), dir) {
		return true
	}
	return anySame(there, dir, func(name string) bool { return inLedger(name, base) })
}

// inLedger compares as a file system that ignores case would.
func inLedger(name, base string) bool {
	return len(name) >= len(base) && strings.EqualFold(name[:len(base)], base) && (len(name) == len(base) || name[len(base)] == '-')
}

// isState reports whether place is below the state directory, or there is one
// of its files.
func (o own) isState(place string, there os.FileInfo) bool {
	state := o.file.Ledger.StateDir
	if state == "" {
		return false
	}
	for at := place; ; at = filepath.Dir(at) {
		if sameFile(at, state) {
			return true
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return anySame(there, state, func(string) bool { return true })
}

// anySame reports whether there is a file in dir that is named so.
func anySame(there os.FileInfo, dir string, named func(string) bool) bool {
	if there == nil {
		return false
	}
	list, _ := os.ReadDir(dir)
	for _, d := range list {
		if named(d.Name()) && same(there, filepath.Join(dir, d.Name())) {
			return true
		}
	}
	return false
}

func same(there os.FileInfo, path string) bool {
	info, err := os.Stat(path)
	return err == nil && there != nil && os.SameFile(there, info)
}

func sameFile(a, b string) bool {
	info, err := os.Stat(a)
	return err == nil && same(info, b)
}

func samePlace(place, path string) bool {
	other, err := reach(path)
	return err == nil && strings.EqualFold(place, other)
}

// reach is where the file at path is, or would be made, as an absolute path
// without links. The path is not cleaned first: behind a link, .. is the parent
// of where it leads.
func reach(path string) (string, error) {
	for range 40 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Abs(real)
		}
		dir, base := filepath.Split(path)
		target, err := os.Readlink(path)
		if err != nil { // nothing is there
			real, err := filepath.EvalSymlinks(orHere(dir))
			if err != nil {
				return "", err
			}
			return filepath.Abs(filepath.Join(real, base))
		}
		if !filepath.IsAbs(target) {
			target = dir + target
		}
		path = target
	}
	return "", errors.New("too many symbolic links")
}

// isEnviron reports whether path is a process's environment as Linux shows it.
func isEnviron(path string) bool {
	place, err := reach(path)
	return err == nil && runtime.GOOS == "linux" && strings.HasPrefix(place, "/proc/") && filepath.Base(place) == "environ"
}

func orHere(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}
