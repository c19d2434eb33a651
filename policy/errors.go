package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one fault of a policy document. Parse and New join up to 20 of them.
type Error struct {
	File string // as given to Parse; empty for a policy of Go values
	Line int    // from 1; 0 where the fault is not in one line
	Key  string // such as policy.default.caps; may be empty
	Text string // what is wrong, and what would be right
}

// Error is file:line: key: text.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("policy: ")
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		b.WriteString(e.File + ": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Text)
	return b.String()
}

// maxErrors is how many faults of a document are told.
const maxErrors = 20

// errorList collects the faults of a document.
type errorList struct {
	file string
	list []*Error
}

func (l *errorList) add(line int, key, text string) {
	if len(l.list) < maxErrors {
		l.list = append(l.list, &Error{File: l.file, Line: line, Key: key, Text: text})
	}
}

// join is nil where nothing was added; else the errors by line.
func (l *errorList) join() error {
	if len(l.list) == 0 {
		return nil
	}
	slices.SortStableFunc(l.list, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(l.list))
	for i, e := range l.list {
		errs[i] = e
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
