package ulid

import "time"

// digit holds each character's value, and 0xff where there is none.
var digit = func() (d [256]byte) {
	for i := range d {
		d[i] = 0xff
	}
	for i := range len(alphabet) {
		d[alphabet[i]] = byte(i)
	}
	return d
}()

// Valid reports whether s is a ULID as New spells it: exactly 26 characters of
// upper-case Crockford base 32 (no I, L, O or U, none read as another), the
// first at most 7.
func Valid(s string) bool {
	if len(s) != Len || s[0] > '7' {
		return false
	}
	for i := range len(s) {
		if digit[s[i]] == 0xff {
			return false
		}
	}
	return true
}

// Time returns the millisecond that s was made for, in UTC, and whether s is
// valid.
func Time(s string) (time.Time, bool) {
	if !Valid(s) {
		return time.Time{}, false
	}
	var ms int64
	for i := range 10 {
		ms = ms<<5 | int64(digit[s[i]])
	}
	return time.UnixMilli(ms).UTC(), true
}
