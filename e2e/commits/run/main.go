//go:build e2e

// Command run makes payments on a ledger and writes a line for each answer.
//
//	run LEDGER STATEDIR
package main

import (
	"fmt"
	"os"

	"github.com/canopy-go/canopy/e2e/commits"
)

func main() {
	if err := commits.Run(os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
