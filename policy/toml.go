package policy

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// MaxDocument is the size in bytes of the largest document that Parse reads.
const MaxDocument = 1 << 20

// Bounds of what the TOML decoder is given: its check for duplicates takes the
// square of their number.
const (
	maxKeys  = 4096 // keys and tables in a document
	maxParts = 16   // parts of a dotted key
)

// node is one value of a document, and the line on which it stands.
type node struct {
	line int
	kind unstable.Kind // Table, Array, String, Bool, Integer or another scalar
	text string        // of a scalar

	keys  []string // of a table, in the order of the document
	table map[string]*node
	items []*node // of an array
}

func newTable(line int) *node {
	return &node{line: line, kind: unstable.Table, table: map[string]*node{}}
}

// what names the kind of n for an error.
func (n *node) what() string {
	switch n.kind {
	case unstable.Table:
		return "a table"
	case unstable.Array:
		return "a list"
	case unstable.String:
		return "text"
	case unstable.Bool:
		return "true or false"
	case unstable.Integer, unstable.Float:
		return "the number " + clip(n.text)
	}
	return "a date or time"
}

// reader builds the nodes of the tables that are ours.
type reader struct {
	file   string
	doc    []byte
	starts []int // offsets at which lines start
	parser unstable.Parser
	root   *node
	keys   int
	others []string // top-level keys that are somebody else's
	errs   *errorList
}

// read checks that doc is TOML, duplicates included, and returns its own
// top-level tables as one node. Faults of other kinds go to errs.
func read(file string, doc []byte, others []string, errs *errorList) (*node, error) {
	r := &reader{file: file, doc: doc, root: newTable(1), others: others, errs: errs}
	if len(doc) > MaxDocument {
		return nil, &Error{File: file, Text: "the document is larger than " + strconv.Itoa(MaxDocument) + " bytes"}
	}
	r.doc = slices.Clip(r.doc) // the parser goes by capacities
	r.starts = append(r.starts, 0)
	for i, c := range r.doc {
		if c == '\n' {
			r.starts = append(r.starts, i+1)
		}
	}
	r.parser.Reset(r.doc)
	at, skip := r.root, false // the table whose header came last
	for r.parser.NextExpression() {
		e := r.parser.Expression()
		if err := r.count(e); err != nil {
			return nil, err
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			at, skip = r.header(e)
		case unstable.KeyValue:
			if !skip {
				r.keyValue(at, e)
			}
		}
	}
	var all map[string]any
	if err := toml.Unmarshal(r.doc, &all); err != nil {
		return nil, r.syntax(err)
	}
	if err := r.parser.Error(); err != nil { // Unmarshal read the same bytes
		return nil, r.syntax(err)
	}
	return r.root, nil
}

// count bounds the keys of a document, those of inline tables included.
func (r *reader) count(e *unstable.Node) error {
	parts := 0
	for keys := e.Key(); keys.Next(); parts++ {
		if r.keys++; r.keys > maxKeys || parts >= maxParts {
			return &Error{
				File: r.file, Line: r.line(keys.Node().Raw),
				Text: fmt.Sprintf("more than %d keys and tables, or one of more than %d parts", maxKeys, maxParts),
			}
		}
	}
	if e.Kind != unstable.KeyValue {
		return nil
	}
	return r.countIn(e.Value())
}

func (r *reader) countIn(v *unstable.Node) error {
	if v.Kind != unstable.Array && v.Kind != unstable.InlineTable {
		return nil
	}
	for it := v.Children(); it.Next(); {
		child := it.Node()
		inside := r.countIn
		if v.Kind == unstable.InlineTable {
			inside = r.count
		}
		if err := inside(child); err != nil {
			return err
		}
	}
	return nil
}

// syntax is an error of the TOML parser with its place.
func (r *reader) syntax(err error) error {
	e := &Error{File: r.file, Text: strings.TrimPrefix(err.Error(), "toml: ")}
	var d *toml.DecodeError
	if errors.As(err, &d) {
		e.Line, _ = d.Position()
		e.Key = strings.Join(d.Key(), ".")
		if strings.HasSuffix(e.Text, "is already defined") || strings.Contains(e.Text, "already exists") {
			e.Text += ": each key and table stands once"
		}
	}
	return e
}

// header opens the table of a [header]; skip says that it is not ours.
func (r *reader) header(e *unstable.Node) (at *node, skip bool) {
	keys := e.Key()
	at = r.root
	var path []string
	for keys.Next() {
		k := keys.Node()
		line := r.line(k.Raw)
		if at == r.root && !r.ours(string(k.Data), line) {
			return at, true
		}
		path = append(path, keyText(string(k.Data)))
		if e.Kind == unstable.ArrayTable && keys.IsLast() {
			name := strings.Join(path, ".")
			r.errs.add(line, name, "is a table, not a list of tables: write ["+name+"]")
			return at, true
		}
		if at = at.child(string(k.Data), line); at == nil {
			return r.root, true
		}
	}
	return at, false
}

// keyValue puts key = value under at.
func (r *reader) keyValue(at *node, e *unstable.Node) {
	keys := e.Key()
	for keys.Next() {
		k := keys.Node()
		name, line := string(k.Data), r.line(k.Raw)
		if at == r.root && !r.ours(name, line) {
			return
		}
		if keys.IsLast() {
			at.put(name, r.value(e.Value(), line))
			return
		}
		if at = at.child(name, line); at == nil {
			return
		}
	}
}

// ours reports whether a top-level key is of the policy; one that nobody owns
// is an error.
func (r *reader) ours(name string, line int) bool {
	switch {
	case name == "org" || name == "policy":
		return true
	case slices.Contains(r.others, name):
		return false
	}
	text := "unknown key" + didYouMean(name, append([]string{"org", "policy"}, r.others...)...)
	if slices.Contains(tableKeys, name) {
		text = "stands outside of a table: write it below [policy.default] or another [policy.NAME]"
	}
	r.errs.add(line, keyText(name), text)
	return false
}

func (r *reader) value(v *unstable.Node, line int) *node {
	if v.Raw.Length > 0 {
		line = r.line(v.Raw)
	}
	n := &node{line: line, kind: v.Kind}
	switch v.Kind {
	case unstable.Array:
		for it := v.Children(); it.Next(); {
			n.items = append(n.items, r.value(it.Node(), line))
		}
	case unstable.InlineTable:
		n = newTable(line)
		for it := v.Children(); it.Next(); {
			r.keyValue(n, it.Node())
		}
	default:
		n.text = string(v.Data)
	}
	return n
}

// line is the line on which a range starts, from 1.
func (r *reader) line(at unstable.Range) int {
	return sort.SearchInts(r.starts, int(at.Offset)+1)
}

// child is the table under name, made where there is none; nil where name is
// no table.
func (n *node) child(name string, line int) *node {
	if c, ok := n.table[name]; ok {
		if c.kind != unstable.Table {
			return nil
		}
		return c
	}
	c := newTable(line)
	n.put(name, c)
	return c
}

func (n *node) put(name string, c *node) {
	if _, ok := n.table[name]; !ok {
		n.keys = append(n.keys, name)
	}
	n.table[name] = c
}
