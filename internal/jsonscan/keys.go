package jsonscan

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// remember keeps the fold of a key's text.
func (c *checker) remember(text string, escaped bool) {
	start := len(c.folded)
	if escaped {
		plain := appendUnescaped(make([]byte, 0, len(text)), text)
		c.folded = appendFold(c.folded, string(plain))
	} else {
		c.folded = appendFold(c.folded, text)
	}
	c.keys = append(c.keys, span{start, len(c.folded)})
}

// appendFold appends s such that two keys have one fold exactly when
// encoding/json takes them for one.
func appendFold(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b >= utf8.RuneSelf {
			for _, r := range s[i:] {
				dst = utf8.AppendRune(dst, fold(r))
			}
			return dst
		}
		if b >= 'a' && b <= 'z' {
			b -= 'a' - 'A'
		}
		dst = append(dst, b)
	}
	return dst
}

// fold returns the smallest of the runes that differ from r only by case.
func fold(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// few is how many keys are compared each with each; more are sorted.
const few = 8

// distinct reports two keys of one object that are the same.
func (c *checker) distinct(keys []span) error {
	if len(keys) > few {
		slices.SortFunc(keys, func(a, b span) int { return bytes.Compare(c.folding(a), c.folding(b)) })
		for i := 1; i < len(keys); i++ {
			if bytes.Equal(c.folding(keys[i-1]), c.folding(keys[i])) {
				return c.duplicate(keys[i])
			}
		}
		return nil
	}
	for i, a := range keys {
		for _, b := range keys[:i] {
			if bytes.Equal(c.folding(a), c.folding(b)) {
				return c.duplicate(a)
			}
		}
	}
	return nil
}

func (c *checker) folding(s span) []byte { return c.folded[s.start:s.end] }

// duplicate names the key in upper case, as it was folded.
func (c *checker) duplicate(s span) error {
	return fmt.Errorf("%w: object before offset %d: %s", ErrDuplicateKey, c.i, strconv.QuoteToASCII(string(c.folding(span{s.start, min(s.end, s.start+40)}))))
}
