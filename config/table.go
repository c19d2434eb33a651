package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table reads one table of the file. Each reader takes a key, so that done can
// tell which keys nobody knows.
type table struct {
	doc    *document
	path   string
	values map[string]any
	known  []string
}

// table is the table at key, empty where there is none.
func (d *document) table(key string) *table {
	t := &table{doc: d, path: key}
	switch v := d.values[key].(type) {
	case nil:
	case map[string]any:
		t.values = v
	case []any:
		t.problem("", "is one table, not a list: write [%s]", key)
	default:
		t.problem("", "is a table: write [%s] and its keys below", key)
	}
	return t
}

// tables are the tables of [[key]].
func (d *document) tables(key string) []*table {
	list, ok := d.values[key].([]any)
	if !ok {
		if d.values[key] != nil {
			d.problems.add(d.lines[key], key, "is a list of tables: write [[%s]]", key)
		}
		return nil
	}
	out := make([]*table, 0, len(list))
	for i, v := range list {
		path := fmt.Sprintf("%s[%d]", key, i)
		m, ok := v.(map[string]any)
		if !ok {
			d.problems.add(d.lines[path], path, "is a table: write [[%s]]", key)
			continue
		}
		out = append(out, &table{doc: d, path: path, values: m})
	}
	return out
}

// problem records what is wrong with key, or with the table itself.
func (t *table) problem(key, format string, args ...any) {
	path := t.path
	if key != "" {
		path = join(t.path, key)
	}
	line := t.doc.lines[path]
	if line == 0 {
		line = t.doc.lines[t.path]
	}
	t.doc.problems.add(line, path, format, args...)
}

func (t *table) has(key string) bool { return t.values[key] != nil }

// text is a text that is not empty, or "" where the key is absent.
func (t *table) text(key string) string {
	t.known = append(t.known, key)
	switch v := t.values[key].(type) {
	case nil:
		return ""
	case string:
		if v == "" {
			t.problem(key, "is empty: leave the key out, or give it a value")
		}
		return v
	default:
		t.problem(key, "is text: write it in quotes, not %s", what(v))
		return ""
	}
}

// texts is a list of texts.
func (t *table) texts(key string) []string {
	t.known = append(t.known, key)
	switch v := t.values[key].(type) {
	case nil:
		return nil
	case string:
		t.problem(key, `is a list: write ["…"]`)
	case []any:
		out := make([]string, 0, len(v))
		for i, item := range v {
			s, ok := item.(string)
			if ok && s == "" {
				t.problem(fmt.Sprintf("%s[%d]", key, i), "is empty: leave it out, or give it a value")
				continue
			}
			if !ok {
				t.problem(fmt.Sprintf("%s[%d]", key, i), "is text: write it in quotes, not %s", what(item))
				continue
			}
			out = append(out, s)
		}
		return out
	default:
		t.problem(key, "is a list of texts, not %s", what(v))
	}
	return nil
}

// number is a whole number, and false where the key is absent or wrong.
func (t *table) number(key string) (int64, bool) {
	t.known = append(t.known, key)
	switch v := t.values[key].(type) {
	case nil:
	case int64:
		return v, true
	case float64:
		t.problem(key, "is a whole number, written in digits alone")
	default:
		t.problem(key, "is a whole number, not %s", what(v))
	}
	return 0, false
}

// flag is true or false, and false, false where the key is absent or wrong.
func (t *table) flag(key string) (value, ok bool) {
	t.known = append(t.known, key)
	switch v := t.values[key].(type) {
	case nil:
	case bool:
		return v, true
	default:
		t.problem(key, "is true or false, not %s", what(v))
	}
	return false, false
}

// env is the name of an environment variable.
func (t *table) env(key string) string {
	name := t.text(key)
	if name != "" && !envName(name) {
		t.problem(key, "names an environment variable, such as CANOPY_KEY: letters, digits and _ only, and never the secret itself")
		return ""
	}
	return name
}

func envName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(s) <= 64 && (len(s) < 40 || strings.Contains(s, "_")) // no bare secret is a name
}

// what names the type of a value, and never the value.
func what(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case int64, float64:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// inPlace says where a secret belongs that somebody wrote into the file.
var inPlace = map[string]string{
	"key": "key_env", "private_key": "key_env", "secret": "key_env", "secret_key": "key_env", "hex": "key_env",
	"mnemonic": "key_env", "seed": "key_env", "password": "password_env", "passphrase": "password_env",
	"url": "url_env", "dsn": "url_env", "facilitator_headers": "facilitator_headers_env", "headers": "facilitator_headers_env",
}

// done reports the keys that no reader took.
func (t *table) done() {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if slices.Contains(t.known, key) {
			continue
		}
		if right, ok := inPlace[key]; ok && slices.Contains(t.known, right) {
			t.problem(key, "a secret does not stand in the file: name the environment variable that holds it, as %s", right)
			continue
		}
		t.problem(key, "unknown key%s", nearest(key, t.known))
	}
}

// nearest suggests the key that was meant, or lists what there is.
func nearest(key string, known []string) string {
	best, least := "", max(2, len(key)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(key), k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf(": did you mean %s?", best)
	}
	return ": there are " + strings.Join(known, ", ")
}

// distance is the Levenshtein distance of two short texts.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
