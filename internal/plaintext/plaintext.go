// Package plaintext makes the words of strangers fit to be shown: in an error,
// a record, a terminal, a page or a model's context. What it returns is still
// data and never an input of a decision.
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns s without control characters, bidirectional and other
// invisible formatting, private-use characters and bytes that are not UTF-8,
// with every run of white space as one space, none at the ends, and at most max
// bytes long, cut between characters.
func Clean(s string, max int) string {
	if isClean(s, max) {
		return s
	}
	var b strings.Builder
	space := false
	for i, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if !visible(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			continue
		}
		n := utf8.RuneLen(r)
		if space {
			n++
		}
		if b.Len()+n > max {
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Words is Clean, cut between words where it has to be cut, and then with an
// ellipsis after the last one: a figure is shown whole or not at all. max is 10
// at least.
func Words(s string, max int) string {
	const dots = "…"
	out := Clean(s, max+1+utf8.UTFMax) // with whatever comes next, where something does
	if len(out) <= max {
		return out
	}
	i := strings.LastIndexByte(out[:max-len(dots)+1], ' ')
	if i < 0 {
		return Clean(s, max) // one word that is too long
	}
	return strings.TrimRight(out[:i], " ;:,") + dots
}

// isClean reports whether s is ASCII that Clean would leave alone.
func isClean(s string, max int) bool {
	if len(s) > max {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c > '~' || c < ' ' || c == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			return false
		}
	}
	return true
}

// visible reports whether r is seen. The formatting characters (Cf) reorder or
// hide text; so do the variation selectors and the other characters that fonts
// ignore, in which text can be smuggled.
func visible(r rune) bool {
	return !unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// maxCode bounds a code.
const maxCode = 80

// Code returns the code that s begins with, in snake case: the letters and
// digits up to a colon, a line break or 80 of them, in lower case, with every
// run of anything else as one underscore, and none at the ends.
func Code(s string) string {
	if i := strings.IndexAny(s, ":\r\n"); i >= 0 {
		s = s[:i]
	}
	if plainCode(s) {
		return s
	}
	var b strings.Builder
	gap := false
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			gap = b.Len() > 0
			continue
		}
		if b.Len() >= maxCode || gap && b.Len()+1 >= maxCode {
			break
		}
		if gap {
			b.WriteByte('_')
			gap = false
		}
		b.WriteByte(c)
	}
	return b.String()
}

func plainCode(s string) bool {
	if len(s) > maxCode {
		return false
	}
	for i := range len(s) {
		c := s[i]
		inner := i > 0 && i < len(s)-1 && s[i-1] != '_'
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '_' || !inner) {
			return false
		}
	}
	return true
}
