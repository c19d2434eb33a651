package main

import (
	"strings"
	"testing"
)

// The example runs, and its sub-agents get what they were given and no more.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"reader: bought 3 of 4, and then: Budget exceeded: $0.75 + $0.25 > $0.80 of budget reader",
		"analyst: bought 1 of 1\nchart: bought 1 of 3, and then: Budget exceeded: $0.25 + $0.25 > $0.30 of budget chart",
		"A third sub-agent: canopy: budget translator: ledger: budget market report has $0.20 left, and $0.50 was asked of it",
		"translator: bought 2 of 2",
		"  market report      $1.40 of $2.00 spent, $0.55 left, $0.05 given\n",
		"    analyst          $0.65 of $1.00 spent, cancelled\n",
		"  market report      $1.90 of $2.00 spent, $0.05 left, $0.05 given\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
