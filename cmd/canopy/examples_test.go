package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Every line of every command's examples is read as the program reads it, up to
// the configuration, which is not there.
func TestExamples(t *testing.T) {
	t.Setenv("CANOPY_PASSWORD", canaryPassword)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			if line = strings.TrimSpace(line); line != "" {
				tryExample(t, line)
			}
		}
		if strings.HasPrefix(c.CommandPath(), "canopy completion") {
			return
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
}

func tryExample(t *testing.T, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " > ")
	args := words(t, line)
	for len(args) > 0 && strings.Contains(args[0], "=") {
		args = args[1:]
	}
	if len(args) < 2 || args[0] != "canopy" {
		t.Errorf("not a command: %s", line)
		return
	}
	for _, arg := range args {
		id, isApproval := strings.CutPrefix(arg, "appr_")
		if isApproval && !payment.ApprovalID(arg).Valid() || strings.HasPrefix(id, "01J") && !payment.ID(id).Valid() {
			t.Errorf("%s: %s is not an id", line, arg)
		}
	}
	missing := filepath.Join(t.TempDir(), "canopy.toml")
	r := call(t, t.Context(), "", append(args[1:], "--config", missing)...)
	if strings.Contains(r.err+r.out, "--help") || r.code != 0 && r.code != 2 {
		t.Errorf("%s: exit %d\n%s%s", line, r.code, r.out, r.err)
	}
}

// What is required stands in the line that shows how a command is used.
func TestUsageLines(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"freeze", "unfreeze", "ledger ack", "ledger resolve"} {
		c, _, err := (&app{}).root().Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, c.UseLine(), "--reason TEXT")
	}
}

// Both commands that are proposed where an operator is needed can be typed.
func TestNeedsOperatorHint(t *testing.T) {
	t.Parallel()
	next := (&app{}).whatNext(ledger.Entry{ID: "01J9ZC3V5Y8Q2T4W6X8Z0A1B2C", State: ledger.NeedsOperator})
	for _, command := range []string{"canopy ledger resolve", "canopy unfreeze"} {
		_, rest, ok := strings.Cut(next, command)
		if !ok {
			t.Errorf("no %s in %s", command, next)
			continue
		}
		rest, _, _ = strings.Cut(rest, ", or --settled")
		tryExample(t, command+rest)
	}
}
