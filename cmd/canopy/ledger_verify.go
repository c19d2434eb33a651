package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/check"
)

// verified is what ledger verify prints.
type verified struct {
	OK       bool     `json:"ok"`
	Payments int64    `json:"payments"`
	Events   int64    `json:"events"`
	Problems []string `json:"problems"`
}

func (a *app) ledgerVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "verify",
		Short:   "Read everything and check the chains, the sums, the indexes and the caps",
		Example: "  canopy ledger verify --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, s, err := a.fileAndStore()
			if err != nil {
				return err
			}
			defer s.Close()
			v, ok := s.(ledger.Verifier)
			if !ok {
				return errors.New("this ledger cannot be verified")
			}
			r, err := v.Verify(c.Context())
			if err != nil {
				return err
			}
			if len(r.Problems) == 0 {
				more, err := check.Run(c.Context(), s, check.Options{Policy: f.Policy, NoEvents: true})
				if err != nil {
					return err
				}
				r.Problems = more.Problems
			}
			if len(r.Problems) > 0 {
				a.code = codeFailed
			}
			if a.json {
				return a.printJSON(verified{len(r.Problems) == 0, r.Payments, r.Events, append([]string{}, r.Problems...)})
			}
			a.printf("%s, %s\n", count(r.Payments, "payment"), count(r.Events, "event"))
			for _, p := range r.Problems {
				a.printf("problem: %s\n", show(p, 500))
			}
			if len(r.Problems) == 0 {
				a.printf("All is well.\n")
			} else {
				a.note("Pay nothing with this ledger before you know why: canopy freeze --all --reason \"ledger damaged\"")
			}
			return nil
		},
	}
}
