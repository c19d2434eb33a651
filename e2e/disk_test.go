//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// disk is a directory as a power loss can leave it: what was made durable, and the changes after it, of which
// any may be there. A file is durable as far as its own fsync goes, a name as far as its directory's.
type disk struct {
	root    *node
	names   map[string]*node // as the running program sees them
	base    string
	changes []*change // not durable, in the order in which they were begun
	skipped map[string]bool
}

// node is a file, or a directory where it has names.
type node struct {
	data  []byte
	names map[string]*node
}

// change is one write, cut or change of names.
type change struct {
	of   *node
	end  int // line of the record
	do   func(n *node)
	torn func(n *node, keep func(sector int) bool) // a write of which sectors are missing; nil for others
}

func newDisk(base string) *disk {
	root := &node{names: map[string]*node{}}
	return &disk{root: root, base: base, names: map[string]*node{base: root}, skipped: map[string]bool{}}
}

// passedOver are files that say nothing after the machine was off: the index of the log, which SQLite makes
// anew, and what processes lock.
func passedOver(path string) bool {
	name := filepath.Base(path)
	return strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, "-lock") || strings.Contains(name, "-owner-")
}

// under reports whether a path is one that the disk keeps.
func (d *disk) under(path string) bool {
	if path != d.base && !strings.HasPrefix(path, d.base+"/") {
		return false
	}
	if passedOver(path) {
		d.skipped[filepath.Base(path)] = true
		return false
	}
	return true
}

// take applies a call.
func (d *disk) take(c traced) error {
	if c.failed() {
		return nil
	}
	switch c.name {
	case "open", "openat":
		return d.open(c)
	case "write", "pwrite64":
		return d.write(c)
	case "ftruncate":
		path, err := c.path(c.args[0])
		size, err2 := c.number(c.args[1])
		if err != nil || err2 != nil || !d.under(path) {
			return first(err, err2)
		}
		return d.add(path, c, func(n *node) { n.data = sized(n.data, size) }, nil)
	case "fsync", "fdatasync":
		path, err := c.path(c.args[0])
		if err != nil || !d.under(path) {
			return err
		}
		return d.sync(path, c)
	case "mkdir", "mkdirat":
		path, err := d.named(c, c.name == "mkdirat", 0)
		if err != nil || !d.under(path) {
			return err
		}
		return d.enter(path, &node{names: map[string]*node{}}, c)
	case "unlink", "unlinkat", "rmdir":
		path, err := d.named(c, c.name == "unlinkat", 0)
		if err != nil || !d.under(path) {
			return err
		}
		return d.remove(path, c)
	case "rename", "renameat", "renameat2":
		return d.rename(c)
	case "mmap":
		if shared := strings.Contains(c.args[3], "MAP_SHARED") && strings.Contains(c.args[2], "PROT_WRITE"); !shared {
			return nil
		}
		path, err := c.path(c.args[4])
		if err != nil || !d.under(path) {
			return nil // of no file, or of one that does not count
		}
		return fmt.Errorf("%s is written through memory, which no record shows", path)
	}
	for _, arg := range c.args {
		if strings.Contains(arg, "<") {
			if path, err := c.path(arg); err == nil && d.under(path) {
				return fmt.Errorf("nobody knows what %s does to %s", c.name, path)
			}
		}
		if path, err := c.text(arg); err == nil && d.under(string(path)) {
			return fmt.Errorf("nobody knows what %s does to %s", c.name, path)
		}
	}
	if c.name == "io_uring_setup" || c.name == "sync" || c.name == "syncfs" {
		return fmt.Errorf("nobody knows what %s does", c.name)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// named is the path of a call that names it; after says that a directory's descriptor stands before it.
func (d *disk) named(c traced, after bool, i int) (string, error) {
	if after {
		i++
	}
	path, err := c.text(c.args[i])
	if err == nil && !filepath.IsAbs(string(path)) {
		err = fmt.Errorf("%s: %q is not absolute", c.name, path)
	}
	return string(path), err
}

func (d *disk) open(c traced) error {
	opened, err := c.path(c.result)
	if err != nil || !d.under(opened) {
		return err
	}
	flags := c.args[1]
	if c.name == "openat" {
		flags = c.args[2]
	}
	if strings.Contains(flags, "O_APPEND") || strings.Contains(flags, "O_TMPFILE") {
		return fmt.Errorf("nobody knows what %s does to %s", flags, opened)
	}
	if d.names[opened] == nil {
		if !strings.Contains(flags, "O_CREAT") {
			return fmt.Errorf("%s was opened and never made", opened)
		}
		return d.enter(opened, &node{}, c)
	}
	if strings.Contains(flags, "O_TRUNC") {
		return d.add(opened, c, func(n *node) { n.data = nil }, nil)
	}
	return nil
}

const sector = 512

func (d *disk) write(c traced) error {
	path, err := c.path(c.args[0])
	if err != nil || !d.under(path) {
		return err
	}
	data, err := c.text(c.args[1])
	if err != nil {
		return err
	}
	if fmt.Sprint(len(data)) != c.result {
		return fmt.Errorf("%s of %d bytes to %s: %s", c.name, len(data), path, c.result)
	}
	n := d.names[path]
	if n == nil {
		return fmt.Errorf("%s was written and never made", path)
	}
	off := int64(0) // write is only used for a file that is written once, from its beginning
	if c.name == "pwrite64" {
		if off, err = c.number(c.args[3]); err != nil {
			return err
		}
	} else if slices.ContainsFunc(d.changes, func(o *change) bool { return o.of == n && o.torn != nil }) || len(n.data) > 0 {
		return fmt.Errorf("%s was written twice without an offset", path)
	}
	put := func(n *node, from, to int64) {
		if end := off + to; int64(len(n.data)) < end {
			n.data = sized(n.data, end)
		}
		copy(n.data[off+from:], data[from:to])
	}
	whole := func(n *node) { put(n, 0, int64(len(data))) }
	return d.add(path, c, whole, func(n *node, keep func(int) bool) {
		for from, i := int64(0), 0; from < int64(len(data)); i++ {
			to := min((off+from)/sector*sector+sector-off, int64(len(data)))
			if keep(i) {
				put(n, from, to)
			}
			from = to
		}
	})
}

// sized is b cut, or filled up with zeros.
func sized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	if size <= int64(cap(b)) {
		grown := b[:size]
		clear(grown[len(b):])
		return grown
	}
	grown := make([]byte, size, size+size/2)
	copy(grown, b)
	return grown
}

func (d *disk) add(path string, c traced, do func(*node), torn func(*node, func(int) bool)) error {
	n := d.names[path]
	if n == nil {
		return fmt.Errorf("%s: %s is not there", c.name, path)
	}
	d.changes = append(d.changes, &change{n, c.end, do, torn})
	return nil
}

// enter gives n a name.
func (d *disk) enter(path string, n *node, c traced) error {
	name := filepath.Base(path)
	if err := d.add(filepath.Dir(path), c, func(dir *node) { dir.names[name] = n }, nil); err != nil {
		return err
	}
	d.names[path] = n
	return nil
}

func (d *disk) remove(path string, c traced) error {
	name := filepath.Base(path)
	delete(d.names, path)
	return d.add(filepath.Dir(path), c, func(dir *node) { delete(dir.names, name) }, nil)
}

func (d *disk) rename(c traced) error {
	at := c.name != "rename"
	from, err := d.named(c, at, 0)
	i := 1
	if at {
		i = 2
	}
	to, err2 := d.named(c, at, i)
	if err != nil || err2 != nil || !d.under(from) && !d.under(to) {
		return first(err, err2)
	}
	n := d.names[from]
	if n == nil || n.names != nil || filepath.Dir(from) != filepath.Dir(to) {
		return fmt.Errorf("nobody knows what renaming %s to %s does", from, to)
	}
	a, b := filepath.Base(from), filepath.Base(to)
	delete(d.names, from)
	d.names[to] = n
	return d.add(filepath.Dir(from), c, func(dir *node) { delete(dir.names, a); dir.names[b] = n }, nil)
}

// sync makes the changes of a file or directory durable that had ended before it began.
func (d *disk) sync(path string, c traced) error {
	n := d.names[path]
	if n == nil {
		return fmt.Errorf("%s: %s is not there", c.name, path)
	}
	d.changes = slices.DeleteFunc(d.changes, func(o *change) bool {
		if o.of != n || o.end >= c.begin {
			return false
		}
		o.do(n)
		return true
	})
	return nil
}

// left writes the directory as a power loss leaves it: with what is durable, and of the changes after it those
// that pick says, all of a change or, of a write, single sectors.
func (d *disk) left(dir string, pick func(i int, c *change) (whole bool, keep func(sector int) bool)) error {
	copies := map[*node]*node{}
	of := func(n *node) *node {
		c := copies[n]
		if c == nil {
			c = &node{data: slices.Clone(n.data), names: maps.Clone(n.names)}
			copies[n] = c
		}
		return c
	}
	for i, c := range d.changes {
		whole, keep := pick(i, c)
		switch {
		case whole:
			c.do(of(c.of))
		case keep != nil && c.torn != nil:
			c.torn(of(c.of), keep)
		}
	}
	var lay func(dir string, n *node) error
	lay = func(dir string, n *node) error {
		if c := copies[n]; c != nil {
			n = c
		}
		if n.names == nil {
			return os.WriteFile(dir, n.data, 0o600)
		}
		err := os.Mkdir(dir, 0o700)
		for name, child := range n.names {
			err = first(err, lay(filepath.Join(dir, name), child))
		}
		return err
	}
	return lay(dir, d.root)
}

// Ways in which changes after the last fsync can be there.
func none(int, *change) (bool, func(int) bool) { return false, nil }

// prefix is the first k.
func prefix(k int) func(int, *change) (bool, func(int) bool) {
	return func(i int, _ *change) (bool, func(int) bool) { return i < k, nil }
}

// some are any writes, and any sectors of some of them, in whatever order they reached the disk; names change
// in the order in which they were changed.
func (d *disk) some(r *rand.Rand) func(int, *change) (bool, func(int) bool) {
	odds := []int{10, 50, 90}[r.IntN(3)]
	renamed := map[*node]int{} // changes of a directory's names
	for _, c := range d.changes {
		if c.of.names != nil {
			renamed[c.of]++
		}
	}
	kept := map[*node]int{}
	for _, c := range d.changes {
		if n := renamed[c.of]; n > 0 {
			kept[c.of], renamed[c.of] = r.IntN(n+1), 0
		}
	}
	return func(_ int, c *change) (bool, func(int) bool) {
		switch {
		case c.of.names != nil:
			kept[c.of]--
			return kept[c.of] >= 0, nil
		case r.IntN(100) < odds:
			return true, nil
		case r.IntN(2) == 0:
			return false, nil
		}
		return false, func(int) bool { return r.IntN(2) == 0 }
	}
}
