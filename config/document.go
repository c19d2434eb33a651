package config

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is a TOML document, and the line of each of its keys.
type document struct {
	problems problems
	values   map[string]any
	lines    map[string]int // by path, such as treasury.key_env or chain[0].rpc
}

// readDocument parses b. Where it is not TOML the problems say so and the
// document is empty.
func readDocument(b []byte) *document {
	d := &document{lines: map[string]int{}}
	b = slices.Clip(b) // the parser goes by capacities
	d.refuseKeys(b)
	if err := toml.Unmarshal(b, &d.values); err != nil {
		d.syntax(err)
		d.values = nil
		return d
	}
	d.index(b)
	return d
}

// refuseKeys finds private keys, in comments too, before anything else can
// repeat them.
func (d *document) refuseKeys(b []byte) {
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		if rawKey.MatchString(line) {
			d.problems.add(n, "", "this line holds what looks like a private key: take it out, treat it as known to others, and name an environment variable (key_env) or a keystore file (keystore) in its place")
		}
	}
}

func (d *document) syntax(err error) {
	var e *toml.DecodeError
	if !errors.As(err, &e) {
		d.problems.add(0, "", "not TOML: %v", err)
		return
	}
	line, _ := e.Position()
	d.problems.add(line, strings.Join(e.Key(), "."), "not TOML: %s", strings.TrimPrefix(e.Error(), "toml: "))
}

// indexer walks the syntax tree for the places of keys.
type indexer struct {
	parser unstable.Parser
	starts []int // offsets at which lines start
	counts map[string]int
	lines  map[string]int
}

func (d *document) index(b []byte) {
	x := &indexer{starts: []int{0}, counts: map[string]int{}, lines: d.lines}
	for i, c := range b {
		if c == '\n' {
			x.starts = append(x.starts, i+1)
		}
	}
	x.parser.Reset(b)
	at := ""
	for x.parser.NextExpression() {
		switch e := x.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			at = x.header(e)
		case unstable.KeyValue:
			x.keyValue(at, e)
		}
	}
}

// header returns the path that a [header] or [[header]] opens.
func (x *indexer) header(e *unstable.Node) string {
	at := ""
	keys := e.Key()
	for keys.Next() {
		k := keys.Node()
		at = join(at, string(k.Data))
		x.mark(at, k)
		if e.Kind == unstable.ArrayTable && keys.IsLast() {
			x.counts[at]++
		}
		if n := x.counts[at]; n > 0 {
			at = fmt.Sprintf("%s[%d]", at, n-1)
			x.mark(at, k)
		}
	}
	return at
}

func (x *indexer) keyValue(at string, e *unstable.Node) {
	keys := e.Key()
	for keys.Next() {
		at = join(at, string(keys.Node().Data))
		x.mark(at, keys.Node())
	}
	x.value(at, e.Value())
}

func (x *indexer) value(at string, v *unstable.Node) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			x.keyValue(at, it.Node())
		}
	case unstable.Array:
		n := 0
		for it := v.Children(); it.Next(); n++ {
			item := fmt.Sprintf("%s[%d]", at, n)
			if it.Node().Raw.Length > 0 {
				x.mark(item, it.Node())
			} else if _, ok := x.lines[item]; !ok {
				x.lines[item] = x.lines[at]
			}
			x.value(item, it.Node())
		}
	}
}

func (x *indexer) mark(path string, n *unstable.Node) {
	if _, ok := x.lines[path]; !ok {
		x.lines[path] = sort.SearchInts(x.starts, int(n.Raw.Offset)+1)
	}
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
