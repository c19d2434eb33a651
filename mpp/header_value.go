package mpp

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The parameters that mean something.
const (
	fieldID = iota
	fieldRealm
	fieldMethod
	fieldIntent
	fieldRequest
	fieldExpires
	fieldDigest
	fieldOpaque
	fieldHeader
	fieldDescription
	fields
)

var fieldNames = [fields]string{"id", "realm", "method", "intent", "request", "expires", "digest", "opaque", "header", "description"}

// params are the parameters of one challenge as they stand on the line.
type params struct {
	known   [fields]value
	unknown [maxParameters]string
	others  int // of unknown
	count   int
	why     skip // the first thing wrong
}

// value is the text of a parameter, without its quotes.
type value struct {
	raw     string
	given   bool
	escaped bool // has backslashes
	foreign bool // has bytes outside printable ASCII
}

// set keeps a parameter. Names are compared without case; one that comes twice
// is refused, known or not.
func (p *params) set(name string, v value) skip {
	if p.count++; p.count > maxParameters {
		return skipped("too_many_parameters", "")
	}
	if f := field(name); f < fields {
		if p.known[f].given {
			return skipped("duplicate_parameter", fieldNames[f])
		}
		v.given = true
		p.known[f] = v
		return skip{}
	}
	for _, u := range p.unknown[:p.others] {
		if strings.EqualFold(u, name) {
			return skipped("duplicate_parameter", name)
		}
	}
	p.unknown[p.others] = name
	p.others++
	return skip{}
}

// field returns the parameter that name names, or fields.
func field(name string) int {
	for f, n := range fieldNames {
		if len(n) == len(name) && strings.EqualFold(n, name) {
			return f
		}
	}
	return fields
}

// text decodes a parameter: bytes are Latin-1, a backslash quotes the next
// character, and \uXXXX is a UTF-16 code unit. Control characters, and halves of
// surrogate pairs, are refused, for the text is echoed.
func (p *params) text(f int) (string, skip) {
	v := p.known[f]
	if len(v.raw) > maxValue {
		return "", skipped("too_large", fieldNames[f])
	}
	if !v.escaped && !v.foreign {
		return v.raw, skip{}
	}
	buf := make([]byte, 0, len(v.raw)+len(v.raw)/4)
	for i := 0; i < len(v.raw); i++ {
		r := rune(v.raw[i])
		if r == '\\' {
			i++
			if r = rune(v.raw[i]); r == 'u' {
				var n int
				r, n = codePoint(v.raw[i-1:])
				i += n - 2
			}
		}
		switch {
		case r < ' ' || r == 0x7f:
			return "", skipped("control_character", fieldNames[f])
		case utf16.IsSurrogate(r):
			return "", skipped("half_character", fieldNames[f])
		}
		buf = utf8.AppendRune(buf, r)
	}
	return string(buf), skip{}
}

// codePoint reads the \uXXXX that s begins with, and its second half where it
// has one. Without four digits it is a quoted u.
func codePoint(s string) (r rune, n int) {
	r, ok := codeUnit(s)
	if !ok {
		return 'u', 2
	}
	if utf16.IsSurrogate(r) {
		if low, ok := codeUnit(s[6:]); ok {
			if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
				return whole, 12
			}
		}
	}
	return r, 6
}

func codeUnit(s string) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(s[2:6]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
