package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/internal/jsonscan"
)

// tree reads v whole into what encoding/json would make of it.
func tree(v jsonscan.Value) (any, error) {
	switch v.Kind() {
	case jsonscan.Null:
		return nil, nil
	case jsonscan.Bool:
		return v.Bool()
	case jsonscan.Number:
		s, err := v.Number()
		return json.Number(s), err
	case jsonscan.String:
		return v.String()
	case jsonscan.Array:
		a := []any{}
		err := v.Array(func(i int, val jsonscan.Value) error {
			if i != len(a) {
				return fmt.Errorf("index %d, want %d", i, len(a))
			}
			x, err := tree(val)
			a = append(a, x)
			return err
		})
		return a, err
	case jsonscan.Object:
		m := map[string]any{}
		err := v.Object(func(key string, val jsonscan.Value) error {
			x, err := tree(val)
			m[key] = x
			return err
		})
		return m, err
	}
	return nil, fmt.Errorf("kind %v", v.Kind())
}

func decode(t *testing.T, doc string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`null`, `true`, `false`, `0`, `-0`, `1.50`, `-1e+30`, `1E-7`, `123456789012345678901234567890`, `""`, `"a"`, `{}`, `[]`, ` [ ] `, "\t{\r\n}\n",
		`{"a":1,"b":[true,false,null],"c":{"a":"x"}}`, `[[],[[]],{}]`, ` { "a" : 1 , "b" : [ 1 , 2 ] } `,
		`"\"\\\/\b\f\n\r\t\u00e9\u20AC\ud83d\ude00"`, `"USD₮0 é 😀"`, `{"\u0061":1,"b":2}`, `"\u0000"`, `"\ufffd"`, `"�"`, `"\u2028` + "\u2028" + `"`,
		`{"":1}`, `{"a":{"a":{"a":1}}}`, `[{"a":1},{"a":2}]`, `{"a}":"]","b[":"{"}`, `{"q\"":"\\"}`, `["\\\\","\\\""]`,
		`{"k":1,"l":2,"m":3,"n":4,"o":5,"p":6,"q":7,"r":8,"s":9,"t":10}`,
	} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			v, err := jsonscan.Parse([]byte(doc), jsonscan.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Raw(); got != strings.Trim(doc, " \t\r\n") {
				t.Errorf("Raw = %q", got)
			}
			got, err := tree(v)
			if want := decode(t, doc); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("read %#v, %v, want %#v", got, err, want)
			}
			if err := jsonscan.Validate([]byte(doc), 0); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	many := func(last string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"key%d":%d,`, i, i)
		}
		return "{" + b.String() + last + ":0}"
	}
	for _, tc := range []struct {
		name, doc string
		want      error
	}{
		{"nothing", "", jsonscan.ErrSyntax},
		{"white space", " \n", jsonscan.ErrSyntax},
		{"byte order mark", "\ufeff{}", jsonscan.ErrSyntax},
		{"NUL", "\x00", jsonscan.ErrSyntax},
		{"NUL after", "{}\x00", jsonscan.ErrSyntax},
		{"two values", `{}{}`, jsonscan.ErrSyntax},
		{"trailing text", `{} x`, jsonscan.ErrSyntax},
		{"trailing comma", `{"a":1},`, jsonscan.ErrSyntax},
		{"comma before brace", `{"a":1,}`, jsonscan.ErrSyntax},
		{"comma before bracket", `[1,]`, jsonscan.ErrSyntax},
		{"comma first", `[,1]`, jsonscan.ErrSyntax},
		{"two commas", `[1,,2]`, jsonscan.ErrSyntax},
		{"no comma", `[1 2]`, jsonscan.ErrSyntax},
		{"no colon", `{"a" 1}`, jsonscan.ErrSyntax},
		{"no key", `{1:1}`, jsonscan.ErrSyntax},
		{"bare key", `{a:1}`, jsonscan.ErrSyntax},
		{"key only", `{"a"}`, jsonscan.ErrSyntax},
		{"no value", `{"a":}`, jsonscan.ErrSyntax},
		{"open object", `{"a":1`, jsonscan.ErrSyntax},
		{"open array", `[1`, jsonscan.ErrSyntax},
		{"wrong bracket", `[1}`, jsonscan.ErrSyntax},
		{"open string", `"a`, jsonscan.ErrSyntax},
		{"string ends in backslash", `"a\`, jsonscan.ErrSyntax},
		{"single quotes", `'a'`, jsonscan.ErrSyntax},
		{"comment", `{}//`, jsonscan.ErrSyntax},
		{"word", `nul`, jsonscan.ErrSyntax},
		{"longer word", `nulls`, jsonscan.ErrSyntax},
		{"upper-case word", `True`, jsonscan.ErrSyntax},
		{"NaN", `NaN`, jsonscan.ErrSyntax},
		{"infinity", `-Infinity`, jsonscan.ErrSyntax},
		{"leading zero", `01`, jsonscan.ErrSyntax},
		{"negative leading zero", `-01`, jsonscan.ErrSyntax},
		{"plus", `+1`, jsonscan.ErrSyntax},
		{"minus alone", `-`, jsonscan.ErrSyntax},
		{"point first", `.5`, jsonscan.ErrSyntax},
		{"point last", `5.`, jsonscan.ErrSyntax},
		{"exponent alone", `1e`, jsonscan.ErrSyntax},
		{"exponent sign alone", `1e+`, jsonscan.ErrSyntax},
		{"hexadecimal", `0x10`, jsonscan.ErrSyntax},
		{"underscore", `1_000`, jsonscan.ErrSyntax},
		{"full-width digit", `５`, jsonscan.ErrSyntax},
		{"tab in a string", "\"\t\"", jsonscan.ErrSyntax},
		{"line break in a string", "\"\n\"", jsonscan.ErrSyntax},
		{"NUL in a string", "\"\x00\"", jsonscan.ErrSyntax},
		{"unknown escape", `"\x41"`, jsonscan.ErrSyntax},
		{"escaped line break", "\"\\\n\"", jsonscan.ErrSyntax},
		{"short escape", `"\u12"`, jsonscan.ErrSyntax},
		{"escape not hexadecimal", `"\u12g4"`, jsonscan.ErrSyntax},
		{"high surrogate alone", `"\ud83d"`, jsonscan.ErrSyntax},
		{"high surrogate and text", `"\ud83dxxxxxx"`, jsonscan.ErrSyntax},
		{"high surrogate and another", `"\ud83d\ud83d"`, jsonscan.ErrSyntax},
		{"low surrogate alone", `"\ude00"`, jsonscan.ErrSyntax},
		{"surrogates reversed", `"\ude00\ud83d"`, jsonscan.ErrSyntax},
		{"lone surrogate in a key", `{"\ud800":1}`, jsonscan.ErrSyntax},
		{"invalid UTF-8", "\"\xff\"", jsonscan.ErrSyntax},
		{"overlong UTF-8", "\"\xc0\x80\"", jsonscan.ErrSyntax},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", jsonscan.ErrSyntax},
		{"cut UTF-8", "\"\xe2\x82\"", jsonscan.ErrSyntax},
		{"duplicate key", `{"a":1,"a":2}`, jsonscan.ErrDuplicateKey},
		{"duplicate empty key", `{"":1,"":2}`, jsonscan.ErrDuplicateKey},
		{"case variant", `{"payTo":"A","PAYTO":"B","amount":"1","Amount":"999"}`, jsonscan.ErrDuplicateKey},
		{"escaped duplicate", `{"amount":1,"\u0061mount":2}`, jsonscan.ErrDuplicateKey},
		{"long s", `{"scheme":1,"ſcheme":2}`, jsonscan.ErrDuplicateKey},
		{"Kelvin sign", `{"network":1,"networ` + "\u212a" + `":2}`, jsonscan.ErrDuplicateKey},
		{"escaped Kelvin sign", `{"network":1,"networ\u212a":2}`, jsonscan.ErrDuplicateKey},
		{"Greek sigmas", `{"σ":1,"ς":2}`, jsonscan.ErrDuplicateKey},
		{"nested in an array", `{"x":[{"y":{"a":1,"A":2}}]}`, jsonscan.ErrDuplicateKey},
		{"duplicate around a nested object", `{"a":{"b":1,"c":2},"A":1}`, jsonscan.ErrDuplicateKey},
		{"among many", many(`"KEY57"`), jsonscan.ErrDuplicateKey},
		{"last of many", many(`"key99"`), jsonscan.ErrDuplicateKey},
		{"too deep, arrays", strings.Repeat("[", 17) + strings.Repeat("]", 17), jsonscan.ErrTooDeep},
		{"too deep, objects", strings.Repeat(`{"a":`, 17) + "1" + strings.Repeat("}", 17), jsonscan.ErrTooDeep},
		{"bomb", strings.Repeat("[", 60000), jsonscan.ErrTooDeep},
		{"too large", `"` + strings.Repeat("a", jsonscan.DefaultSize) + `"`, jsonscan.ErrTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			v, err := jsonscan.Parse([]byte(tc.doc), jsonscan.Limits{})
			if !errors.Is(err, tc.want) {
				t.Fatalf("Parse = %v, %v, want %v", v.Kind(), err, tc.want)
			}
			if v != (jsonscan.Value{}) {
				t.Errorf("Parse gave a value with its error: %q", v.Raw())
			}
			if len(err.Error()) > 400 || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("error is not short printable ASCII: %q", err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	for _, tc := range []struct {
		name   string
		doc    []byte
		limits jsonscan.Limits
		want   error
	}{
		{"default depth reached", nest(16), jsonscan.Limits{}, nil},
		{"depth counts what is open", []byte("[" + strings.Repeat("[],", 50) + "[]]"), jsonscan.Limits{Depth: 2}, nil},
		{"own depth reached", nest(3), jsonscan.Limits{Depth: 3}, nil},
		{"own depth passed", nest(4), jsonscan.Limits{Depth: 3}, jsonscan.ErrTooDeep},
		{"own size reached", []byte("[1]"), jsonscan.Limits{Size: 3}, nil},
		{"own size passed", []byte("[1] "), jsonscan.Limits{Size: 3}, jsonscan.ErrTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := jsonscan.Parse(tc.doc, tc.limits); !errors.Is(err, tc.want) {
				t.Errorf("Parse: %v, want %v", err, tc.want)
			}
		})
	}
}

func TestWrongKind(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"", `null`, `true`, `1`, `"a"`, `[]`, `{}`} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			var v jsonscan.Value
			if doc != "" {
				var err error
				if v, err = jsonscan.Parse([]byte(doc), jsonscan.Limits{}); err != nil {
					t.Fatal(err)
				}
			}
			_, errString := v.String()
			_, errNumber := v.Number()
			_, errBool := v.Bool()
			for kind, err := range map[jsonscan.Kind]error{
				jsonscan.String: errString,
				jsonscan.Number: errNumber,
				jsonscan.Bool:   errBool,
				jsonscan.Array:  v.Array(func(int, jsonscan.Value) error { return nil }),
				jsonscan.Object: v.Object(func(string, jsonscan.Value) error { return nil }),
			} {
				if (err == nil) != (kind == v.Kind()) || err != nil && !errors.Is(err, jsonscan.ErrKind) {
					t.Errorf("%v read as %v: %v", v.Kind(), kind, err)
				}
			}
			if v.IsNull() != (doc == "null") {
				t.Errorf("IsNull = %v", v.IsNull())
			}
		})
	}
}

func TestCallbackError(t *testing.T) {
	t.Parallel()
	v, err := jsonscan.Parse([]byte(`[{"a":1,"b":2},3]`), jsonscan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	calls := 0
	err = v.Array(func(_ int, val jsonscan.Value) error {
		return val.Object(func(string, jsonscan.Value) error {
			calls++
			return stop
		})
	})
	if err != stop || calls != 1 {
		t.Errorf("Array = %v after %d calls, want %v after 1", err, calls, stop)
	}
}

// The document given may be reused: a Value does not look at it again.
func TestParseCopies(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"amount":"1"}`)
	v, err := jsonscan.Parse(doc, jsonscan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	copy(doc, `{"amount":"9"}`)
	if v.Raw() != `{"amount":"1"}` {
		t.Errorf("Raw = %s", v.Raw())
	}
}

// Documents made to be slow take time in proportion to their size.
func TestLinear(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	long := strings.Repeat("k", 4000)
	var prefixes, keys strings.Builder
	for i := 0; prefixes.Len() < size; i++ {
		fmt.Fprintf(&prefixes, `"%s%d":0,`, long, i)
	}
	for i := 0; keys.Len() < size; i++ {
		fmt.Fprintf(&keys, `"%d":0,`, i)
	}
	for _, tc := range []struct{ name, doc string }{
		{"long common prefixes", "{" + prefixes.String() + `"x":0}`},
		{"many keys", "{" + keys.String() + `"x":0}`},
		{"backslashes", `"` + strings.Repeat(`\\`, size/2) + `"`},
		{"many empty arrays", "[" + strings.Repeat("[],", size/3) + "[]]"},
		{"white space", strings.Repeat(" ", size) + "1"},
		{"digits", strings.Repeat("9", size)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			v, err := jsonscan.Parse([]byte(tc.doc), jsonscan.Limits{Size: 2 * size})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tree(v); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("%d bytes took %v", len(tc.doc), d)
			}
		})
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"", `""`},
		{"a<b>&c", `"a<b>&c"`},
		{`"\/`, `"\"\\/"`},
		{"\b\f\n\r\t\x00\x1f\x7f", `"\b\f\n\r\t\u0000\u001f` + "\x7f" + `"`},
		{"USD₮0 😀\u2028", "\"USD₮0 😀\u2028\""},
		{"a\xffb\xc0", "\"a\ufffdb\ufffd\""},
		{"\ufffd", "\"\ufffd\""},
	} {
		t.Run(tc.in, func(t *testing.T) {
			t.Parallel()
			if got := string(jsonscan.AppendString([]byte("x"), tc.in)); got != "x"+tc.want {
				t.Errorf("AppendString = %s, want x%s", got, tc.want)
			}
		})
	}
}

func TestKindString(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(jsonscan.Missing, jsonscan.Object, jsonscan.Kind(99)); !bytes.Contains([]byte(got), []byte("an object")) {
		t.Errorf("kinds print as %q", got)
	}
}
