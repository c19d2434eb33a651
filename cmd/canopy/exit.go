package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
)

// The exit codes.
const (
	codeDone    = 0
	codeFailed  = 1
	codeUsage   = 2 // usage or configuration
	codePending = 3
	codeDenied  = 4
	codeInDoubt = 5
	codePaid    = 6 // paid, not delivered
)

// exit is an error that ends the program with a code; without err everything
// was said already.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// usage is a mistake in how the command was called.
func usage(c *cobra.Command, err error) error {
	return exit{codeUsage, fmt.Errorf("%w\nSee %s --help", err, c.CommandPath())}
}

// codeOf is the exit code of a decision.
func codeOf(s canopy.Status) int {
	switch s {
	case canopy.Allowed:
		return codeDone
	case canopy.PendingApproval:
		return codePending
	}
	return codeDenied
}
