package jsonscan

import "strings"

// The functions here walk text that check has passed, so they look for where
// things end and for nothing else.

func kindOf(c byte) Kind {
	switch c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

func skipSpace(s string, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// nextItem goes from the end of an item to the next one or the closing bracket.
func nextItem(s string, i int) int {
	i = skipSpace(s, i)
	if s[i] == ',' {
		i = skipSpace(s, i+1)
	}
	return i
}

// stringEnd returns where the string that begins at i ends: after the first
// quote with an even number of backslashes before it.
func stringEnd(s string, i int) int {
	for i++; ; i++ {
		i += strings.IndexByte(s[i:], '"')
		back := i
		for s[back-1] == '\\' {
			back--
		}
		if (i-back)&1 == 0 {
			return i + 1
		}
	}
}

func valueEnd(s string, i int) int {
	switch s[i] {
	case '"':
		return stringEnd(s, i)
	case '{', '[':
		for depth := 0; ; {
			switch s[i] {
			case '"':
				i = stringEnd(s, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' && !isSpace(s[i]) {
		i++
	}
	return i
}
