package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/canopy-go/canopy/policy"
)

// Error is everything that is wrong with a configuration file.
type Error struct {
	Path     string
	Problems []Problem // by line; at least one
}

// Problem is one fault: where it is, and what would be right.
type Problem struct {
	Line int    // from 1; 0 where it is not in one line
	Key  string // such as treasury.key_env; may be empty
	Text string
}

// Error is one line for each problem, as path:line: key: text.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.in(e.Path)
	}
	return "config: " + strings.Join(lines, "\n")
}

func (p Problem) in(path string) string {
	if p.Line > 0 {
		path = fmt.Sprintf("%s:%d", path, p.Line)
	}
	if p.Key != "" {
		path += ": " + p.Key
	}
	return path + ": " + p.Text
}

// maxProblems is how many problems of a file are told.
const maxProblems = 20

type problems []Problem

// add records a problem. What could be a secret is taken out of its words.
func (l *problems) add(line int, key, format string, args ...any) {
	if len(*l) < maxProblems {
		*l = append(*l, Problem{Line: line, Key: hush(key), Text: hush(fmt.Sprintf(format, args...))})
	}
}

// addPolicy takes over what policy.Parse found.
func (l *problems) addPolicy(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.addPolicy(e)
		}
		return
	}
	var e *policy.Error
	if errors.As(err, &e) {
		l.add(e.Line, e.Key, "%s", e.Text)
	} else if err != nil {
		l.add(0, "", "%v", err)
	}
}

// fault is one problem of a file that was read before.
func (f *File) fault(key, format string, args ...any) error {
	return &Error{Path: f.Path, Problems: []Problem{{Line: f.Line(key), Key: key, Text: hush(fmt.Sprintf(format, args...))}}}
}

// in is nil without problems.
func (l problems) in(path string) error {
	if len(l) == 0 {
		return nil
	}
	slices.SortStableFunc(l, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Path: path, Problems: slices.CompactFunc(l, func(a, b Problem) bool { return a == b })}
}

// rawKey is what a private key looks like wherever it stands.
var rawKey = regexp.MustCompile(`(?i)(^|[^0-9a-z])(0x)?[0-9a-f]{64}($|[^0-9a-z])`)

// longHex is any run of hex digits that is too long to be an address.
var longHex = regexp.MustCompile(`(?i)[0-9a-f]{48,}`)

// hush takes out of s what may be a secret.
func hush(s string) string { return longHex.ReplaceAllString(s, "(not shown)") }
