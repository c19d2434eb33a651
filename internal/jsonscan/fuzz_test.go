package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/canopy-go/canopy/internal/jsonscan"
)

var surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// What Parse accepts, encoding/json accepts and reads alike; what it refuses as
// syntax, encoding/json refuses too, unless the text is not Unicode; what it
// calls a duplicate key, a slow reading finds as well.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		paymentRequired, `{"payTo":"A","PAYTO":"B"}`, `["\ud83d\ude00","\ud83d"]`, `{"a":{"b":[1.5e-3,-0,true,null]}}`,
		`{"ſ":1,"s":2}`, "\"\xff\"", `[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]`, `{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"1":0}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := jsonscan.Parse(doc, jsonscan.Limits{})
		valid := json.Valid(doc)
		switch {
		case err == nil:
			if !valid {
				t.Fatalf("Parse accepts %q", doc)
			}
			got, err := tree(v)
			if err != nil {
				t.Fatalf("reading %q: %v", doc, err)
			}
			if want := decode(t, string(doc)); !reflect.DeepEqual(got, want) {
				t.Errorf("%q read as %#v, want %#v", doc, got, want)
			}
			if duplicates(t, doc) {
				t.Errorf("Parse accepts the duplicate keys of %q", doc)
			}
			if v.Raw() != string(bytes.Trim(doc, " \t\r\n")) {
				t.Errorf("Raw of %q = %q", doc, v.Raw())
			}
		case errors.Is(err, jsonscan.ErrSyntax):
			if valid && utf8.Valid(doc) && !surrogate.Match(doc) {
				t.Errorf("Parse refuses %q: %v", doc, err)
			}
		case errors.Is(err, jsonscan.ErrDuplicateKey):
			if valid && !duplicates(t, doc) {
				t.Errorf("%q: %v", doc, err)
			}
		}
	})
}

// duplicates compares every key with every other of its object, by the rule of
// encoding/json.
func duplicates(t *testing.T, doc []byte) bool {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	found := false
	var read func()
	read = func() {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		open, ok := tok.(json.Delim)
		if !ok {
			return
		}
		var keys []string
		for d.More() {
			if open == '{' {
				tok, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range keys {
					found = found || strings.EqualFold(k, tok.(string))
				}
				keys = append(keys, tok.(string))
			}
			read()
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
	}
	read()
	return found
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n<>&\u2028\x00😀\xff")
	f.Fuzz(func(t *testing.T, s string) {
		b := jsonscan.AppendString(nil, s)
		var want string
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("AppendString(%q) = %q: %v", s, b, err)
		}
		v, err := jsonscan.Parse(b, jsonscan.Limits{Size: len(b)})
		if err != nil {
			t.Fatalf("AppendString(%q) = %q: %v", s, b, err)
		}
		got, err := v.String()
		if err != nil || got != want || utf8.ValidString(s) && got != s {
			t.Errorf("%q comes back as %q, %v", s, got, err)
		}
	})
}
