package mppserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
)

// maxSafe is the largest whole number that every reader of JSON keeps exactly.
const maxSafe = 1<<53 - 1

// Canonical is v, which encoding/json can write, in the canonical form of RFC
// 8785. Numbers that are not whole, or above 2^53-1, are an error: amounts are
// text.
func Canonical(v any) ([]byte, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(&raw)
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("mppserver: more than one value")
	}
	return appendCanonical(nil, tree)
}

func appendCanonical(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case json.Number:
		n, err := v.Int64()
		if err != nil || n > maxSafe || n < -maxSafe {
			return nil, fmt.Errorf("mppserver: %s has no canonical form here", v)
		}
		return strconv.AppendInt(b, n, 10), nil
	case string:
		return appendText(b, v), nil
	case []any:
		return appendList(b, v)
	case map[string]any:
		return appendObject(b, v)
	}
	return nil, fmt.Errorf("mppserver: %T", v)
}

func appendList(b []byte, list []any) (_ []byte, err error) {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendCanonical(b, v); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendObject sorts keys by their UTF-16 code units.
func appendObject(b []byte, object map[string]any) (_ []byte, err error) {
	keys := make([]string, 0, len(object))
	for k := range object {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, k), ':')
		if b, err = appendCanonical(b, object[k]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendText escapes what JSON requires and no more.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
