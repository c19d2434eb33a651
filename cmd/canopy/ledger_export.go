package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/export"
	"github.com/canopy-go/canopy/ledger"
)

func (a *app) ledgerExportCommand() *cobra.Command {
	var format, since, until string
	c := &cobra.Command{
		Use:   "export",
		Short: "Print every payment, oldest first, for other programs",
		Long: `Export prints the payments of the ledger, oldest first, on standard output: as
JSON, one payment a line with its events, or as CSV. It holds no key of an
account and no signature. cost_usd is what was judged, with the bound of its fee;
spent_usd is what counts in the caps, with the fee that was paid once that is known.`,
		Example: `  canopy ledger export > payments.jsonl
  canopy ledger export --format csv --since 2026-05-01 --agent trader > may.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if format != "jsonl" && format != "csv" {
				return usage(c, errors.New("--format is jsonl or csv"))
			}
			q := ledger.Query{Agent: a.agent, Oldest: true}
			if q.Since, err = instant(since); err != nil {
				return usage(c, fmt.Errorf("--since: %w", err))
			}
			if q.Until, err = instant(until); err != nil {
				return usage(c, fmt.Errorf("--until: %w", err))
			}
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
			write := export.CSV
			if format == "jsonl" {
				write = export.JSON
			}
			if err := write(c.Context(), a.out, s, q); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: jsonl or csv")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]cobra.Completion{"jsonl", "csv"}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().StringVar(&since, "since", "", "only from `TIME` on, such as 24h (ago), 2026-05-08 or 2026-05-08T18:00:00Z")
	c.Flags().StringVar(&until, "until", "", "only before `TIME`")
	return c
}
