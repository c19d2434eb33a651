// Package jsonscan reads JSON that a stranger wrote. It is stricter than
// encoding/json: depth and size are bounded, an object in which two keys are
// equal (or differ only by case, which encoding/json would take for one) is an
// error, so is text that is not UTF-8 or has half a surrogate pair, and numbers
// stay the characters they were. Every value gives its own text, for echoing
// it verbatim. The whole document is checked before any of it is handed out.
package jsonscan

import "fmt"

// Kind is what a Value is. The zero Kind is no value at all.
type Kind uint8

const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Value is one value of a document that Parse has checked. It is immutable and
// safe for concurrent use; it keeps the document's text alive. The zero Value is
// a field that is absent: its Kind is Missing and every read is an error.
type Value struct {
	raw  string
	kind Kind
}

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// Raw returns v exactly as it stands in the document, without the white space
// around it.
func (v Value) Raw() string { return v.raw }

// IsNull reports whether v is null. An absent value is not.
func (v Value) IsNull() bool { return v.kind == Null }

// String returns the text of a string, its escapes decoded.
func (v Value) String() (string, error) {
	if err := v.want(String); err != nil {
		return "", err
	}
	return unquote(v.raw), nil
}

// Number returns the characters of a number, unchanged.
func (v Value) Number() (string, error) {
	if err := v.want(Number); err != nil {
		return "", err
	}
	return v.raw, nil
}

// Bool returns the value of a boolean.
func (v Value) Bool() (bool, error) {
	if err := v.want(Bool); err != nil {
		return false, err
	}
	return v.raw == "true", nil
}

// Object calls f for each member of an object, in the document's order, with
// the key's escapes decoded. It stops at f's first error and returns it as it
// is.
func (v Value) Object(f func(key string, val Value) error) error {
	if err := v.want(Object); err != nil {
		return err
	}
	for i := skipSpace(v.raw, 1); v.raw[i] != '}'; {
		end := stringEnd(v.raw, i)
		key := unquote(v.raw[i:end])
		i = skipSpace(v.raw, end) + 1 // the colon
		i = skipSpace(v.raw, i)
		end = valueEnd(v.raw, i)
		if err := f(key, Value{v.raw[i:end], kindOf(v.raw[i])}); err != nil {
			return err
		}
		i = nextItem(v.raw, end)
	}
	return nil
}

// Array calls f for each item of an array with its index. It stops at f's first
// error and returns it as it is.
func (v Value) Array(f func(i int, val Value) error) error {
	if err := v.want(Array); err != nil {
		return err
	}
	n := 0
	for i := skipSpace(v.raw, 1); v.raw[i] != ']'; n++ {
		end := valueEnd(v.raw, i)
		if err := f(n, Value{v.raw[i:end], kindOf(v.raw[i])}); err != nil {
			return err
		}
		i = nextItem(v.raw, end)
	}
	return nil
}

func (v Value) want(k Kind) error {
	if v.kind != k {
		return fmt.Errorf("%w: %v where %v is due", ErrKind, v.kind, k)
	}
	return nil
}
