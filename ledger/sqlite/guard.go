//go:build linux || darwin

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// suffixes are of the files that SQLite keeps beside a ledger.
var suffixes = [...]string{"-wal", "-shm", "-journal"}

// identity tells one file from another that takes its name.
type identity struct {
	dev, ino uint64
	size     int64
}

// ownDir returns the directory that the file at path is in, made if it was not
// there, as an absolute path without links. It refuses one in which others can
// replace files.
func ownDir(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlite: %s: %w", path, err)
	}
	dir := filepath.Dir(abs)
	if err := makeDir(dir); err != nil {
		return "", fmt.Errorf("sqlite: %s: making its directory: %w", path, err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("sqlite: %s: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", &FileError{dir, "cannot be looked at: " + err.Error(), "check the path", err}
	}
	// A group of the user's own, as many systems make it, is nobody else.
	private := int(st.Gid) == os.Getegid() && os.Getegid() == os.Geteuid()
	if open := st.Mode & 0o022; open != 0 && st.Mode&unix.S_ISVTX == 0 && !(private && open == 0o020) {
		return "", &FileError{dir, "others may replace files in this directory", "chmod go-w it, or keep the ledger in a directory of its own", ErrUnsafe}
	}
	if owner := int(st.Uid); owner != os.Geteuid() && owner != 0 {
		return "", &FileError{dir, fmt.Sprintf("the directory belongs to user %d", owner), "keep the ledger in a directory of your own", ErrUnsafe}
	}
	return dir, nil
}

// localDir refuses a directory on a network file system.
func localDir(dir string) error {
	name, network, err := fileSystem(dir)
	if err != nil {
		return &FileError{dir, "the kind of file system cannot be told: " + err.Error(), "keep the ledger on a local disk", err}
	}
	if network {
		return &FileError{dir, "is on a network file system (" + name + "), where neither locks nor writes can be relied on", "keep the ledger on a local disk, or share one through Postgres", ErrUnsafe}
	}
	return nil
}

// guardFile looks at a file without opening it and without following a link:
// opening and closing it would give up the locks that SQLite holds on it in
// this process. An error that is fs.ErrNotExist says that there is none.
func guardFile(path string) (identity, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return identity{}, fs.ErrNotExist
		}
		return identity{}, &FileError{path, "cannot be looked at: " + err.Error(), "check the path and its permissions", err}
	}
	return check(path, &st)
}

// check refuses everything but a plain file of ours that nobody else can reach.
func check(path string, st *unix.Stat_t) (identity, error) {
	refuse := func(what, fix string) (identity, error) {
		return identity{}, &FileError{path, what, fix, ErrUnsafe}
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return refuse("is a symbolic link", "give the path of the file itself")
	case kind != unix.S_IFREG:
		return refuse("is not a regular file", "give the path of a file")
	case int(st.Uid) != os.Geteuid():
		return refuse(fmt.Sprintf("belongs to user %d, not to %d who runs this", st.Uid, os.Geteuid()), "run as its owner, or chown it")
	case st.Mode&0o077 != 0:
		return refuse(fmt.Sprintf("can be reached by others (mode %04o)", st.Mode&0o7777), "chmod 600 it")
	case st.Nlink > 1:
		return refuse(fmt.Sprintf("has %d names (hard links)", st.Nlink), "remove the other names")
	}
	return identity{uint64(st.Dev), uint64(st.Ino), st.Size}, nil //nolint:unconvert // the widths differ by system
}

// guardSides checks the files beside the ledger, as far as they are there.
func guardSides(path string) error {
	for _, s := range suffixes {
		if _, err := guardFile(path + s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// openOwn opens a file of ours for reading and writing, made 0600 where flags
// has O_CREATE, whatever the umask. It never follows a link and never waits on
// a FIFO.
func openOwn(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, &FileError{path, "is a symbolic link", "give the path of the file itself", ErrUnsafe}
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if _, err := check(path, &st); err != nil {
		f.Close()
		return nil, err
	}
	if flags&unix.O_CREAT != 0 && st.Mode&0o777 != 0o600 {
		// A umask can only have taken from it.
		if err := f.Chmod(0o600); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// create makes an empty file that only we can reach, and says whether it did.
func create(path string) (bool, error) {
	f, err := openOwn(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sqlite: making the ledger: %w", err)
	}
	defer f.Close()
	return true, syncDir(filepath.Dir(path))
}

// makeDir makes a directory, and those above it that are missing, durably.
func makeDir(dir string) error {
	var above []string // directories that get a new name
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		above = append(above, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range above {
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes a new or renamed file's name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
