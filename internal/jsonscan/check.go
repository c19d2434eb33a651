package jsonscan

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// checker goes through a document once.
type checker struct {
	s    string
	i    int // where it is
	room int // how many more objects and arrays may open

	// The keys of all open objects, innermost last, as folded text.
	keys   []span
	folded []byte
}

type span struct{ start, end int }

func (c *checker) document() (start, end int, err error) {
	start = skipSpace(c.s, 0)
	c.i = start
	if err := c.value(); err != nil {
		return 0, 0, err
	}
	end = c.i
	if c.i = skipSpace(c.s, c.i); c.i < len(c.s) {
		return 0, 0, c.syntax("more after the value")
	}
	return start, end, nil
}

func (c *checker) syntax(what string) error {
	return fmt.Errorf("%w: offset %d: %s", ErrSyntax, c.i, what)
}

// peek returns the byte at c.i, or 0, which no syntax allows, at the end.
func (c *checker) peek() byte {
	if c.i < len(c.s) {
		return c.s[c.i]
	}
	return 0
}

func (c *checker) space() { c.i = skipSpace(c.s, c.i) }

func (c *checker) value() error {
	switch b := c.peek(); b {
	case '{':
		return c.object()
	case '[':
		return c.array()
	case '"':
		_, err := c.text()
		return err
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	default:
		if b == '-' || b >= '0' && b <= '9' {
			return c.number()
		}
		return c.syntax("no value")
	}
}

func (c *checker) open() error {
	if c.room--; c.room < 0 {
		return fmt.Errorf("%w: offset %d", ErrTooDeep, c.i)
	}
	c.i++
	c.space()
	return nil
}

// more goes past a comma, or past the closing bracket and reports false.
func (c *checker) more(closing byte) (bool, error) {
	c.space()
	switch c.peek() {
	case ',':
		c.i++
		c.space()
		return true, nil
	case closing:
		c.i++
		c.room++
		return false, nil
	}
	return false, c.syntax("no comma or end")
}

func (c *checker) array() error {
	if err := c.open(); err != nil {
		return err
	}
	if c.peek() == ']' {
		c.i++
		c.room++
		return nil
	}
	for {
		if err := c.value(); err != nil {
			return err
		}
		if more, err := c.more(']'); err != nil || !more {
			return err
		}
	}
}

func (c *checker) object() error {
	if err := c.open(); err != nil {
		return err
	}
	if c.peek() == '}' {
		c.i++
		c.room++
		return nil
	}
	keys, folded := len(c.keys), len(c.folded)
	for {
		if err := c.key(); err != nil {
			return err
		}
		if err := c.value(); err != nil {
			return err
		}
		if more, err := c.more('}'); err != nil {
			return err
		} else if !more {
			break
		}
	}
	if err := c.distinct(c.keys[keys:]); err != nil {
		return err
	}
	c.keys, c.folded = c.keys[:keys], c.folded[:folded]
	return nil
}

// key goes past a key and its colon and remembers the key.
func (c *checker) key() error {
	if c.peek() != '"' {
		return c.syntax("no key")
	}
	start := c.i
	escaped, err := c.text()
	if err != nil {
		return err
	}
	c.remember(c.s[start+1:c.i-1], escaped)
	c.space()
	if c.peek() != ':' {
		return c.syntax("no colon")
	}
	c.i++
	c.space()
	return nil
}

// plain marks the bytes that stand for themselves in a string: ASCII without
// controls, the quote and the backslash.
var plain = func() (p [256]bool) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		p[b] = b != '"' && b != '\\'
	}
	return p
}()

// text goes past a string and reports whether it has escapes.
func (c *checker) text() (escaped bool, err error) {
	s := c.s
	for i := c.i + 1; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		switch b := s[i]; {
		case b == '"':
			c.i = i + 1
			return escaped, nil
		case b == '\\':
			escaped = true
			n := escapeLen(s[i:])
			if n == 0 {
				c.i = i
				return false, c.syntax("invalid escape")
			}
			i += n
		case b < ' ':
			c.i = i
			return false, c.syntax("control character in a string")
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				c.i = i
				return false, c.syntax("not UTF-8")
			}
			i += n
		}
	}
	c.i = len(s)
	return false, c.syntax("string without an end")
}

// escapeLen returns the length of the escape that s begins with, a surrogate
// pair being one, or 0 where it is none.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r, ok := hex4(s[2:])
		if !ok {
			return 0
		}
		if !utf16.IsSurrogate(r) {
			return 6
		}
		if len(s) < 12 || s[6] != '\\' || s[7] != 'u' {
			return 0
		}
		if low, ok := hex4(s[8:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12
		}
	}
	return 0
}

func (c *checker) word(w string) error {
	if len(c.s)-c.i < len(w) || c.s[c.i:c.i+len(w)] != w {
		return c.syntax("no value")
	}
	c.i += len(w)
	return nil
}

func (c *checker) digits() bool {
	start := c.i
	for c.i < len(c.s) && c.s[c.i] >= '0' && c.s[c.i] <= '9' {
		c.i++
	}
	return c.i > start
}

func (c *checker) number() error {
	if c.peek() == '-' {
		c.i++
	}
	if c.peek() == '0' {
		c.i++
	} else if !c.digits() {
		return c.syntax("no digit")
	}
	if c.peek() == '.' {
		if c.i++; !c.digits() {
			return c.syntax("no digit")
		}
	}
	if b := c.peek(); b == 'e' || b == 'E' {
		c.i++
		if b := c.peek(); b == '+' || b == '-' {
			c.i++
		}
		if !c.digits() {
			return c.syntax("no digit")
		}
	}
	return nil
}
