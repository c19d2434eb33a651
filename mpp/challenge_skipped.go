package mpp

import (
	"fmt"
	"strings"

	"github.com/canopy-go/canopy/internal/plaintext"
)

// Skipped is one challenge of the Payment scheme that cannot be paid.
type Skipped struct {
	Index int // among the response's challenges of the scheme

	// Code says why, in snake case.
	Code string

	// Detail names the field, or is what the seller wrote, cleaned and
	// bounded; for people.
	Detail string
}

// SkippedError lists the challenges that cannot be paid. It comes beside the
// offers that can, or alone where there is none.
type SkippedError struct{ Challenges []Skipped }

// Error lists the challenges.
func (e *SkippedError) Error() string {
	var b strings.Builder
	b.WriteString("mpp: challenges skipped: ")
	for i, s := range e.Challenges {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "challenge %d: %s", s.Index, s.Code)
		if s.Detail != "" {
			b.WriteString(" (" + s.Detail + ")")
		}
	}
	return b.String()
}

// Has reports whether a challenge was skipped for that reason.
func (e *SkippedError) Has(code string) bool {
	for _, s := range e.Challenges {
		if s.Code == code {
			return true
		}
	}
	return false
}

// skip is why a challenge is skipped; its zero value is that it is not.
type skip struct{ code, detail string }

func skipped(code, said string) skip {
	return skip{code, plaintext.Words(said[:min(len(said), 400)], 200)}
}

// Error makes a skip an error, for where one text is read by itself.
func (s skip) Error() string { return "mpp: " + s.code + ": " + s.detail }
