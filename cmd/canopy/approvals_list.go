package main

import (
	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
)

func (a *app) approvalsListCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List what waits for a person, newest first",
		Example: `  canopy approvals list
  canopy approvals list --all --agent trader --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
			list, err := s.Approvals().List(c.Context(), a.agent, !all, a.now())
			if err != nil {
				return err
			}
			if a.json {
				out := make([]shape.ApprovalItem, len(list))
				for i, ap := range list {
					out[i] = shape.ApprovalItemOf(ap)
				}
				return a.printJSON(out)
			}
			if len(list) == 0 {
				a.printf("Nothing waits for a person.\n")
				return nil
			}
			rows := make([][]string, len(list))
			for i, ap := range list {
				rows[i] = []string{string(ap.ID), ap.Status.String(), ap.Agent, ap.Cost.String(), what(ap.Terms), moment(ap.ExpiresAt), ap.Reason}
			}
			a.table([]string{"APPROVAL", "STATUS", "AGENT", "COST", "FOR", "UNTIL", "ASKED BECAUSE"}, rows)
			a.note("See one with: canopy approvals show ID")
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that were decided or expired")
	return c
}
