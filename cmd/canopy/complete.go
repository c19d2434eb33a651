package main

import (
	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
)

// completeAgents offers the names of the policy's tables.
func (a *app) completeAgents(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	f, err := config.Load(a.config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.Policy.Agents(), cobra.ShellCompDirectiveNoFileComp
}

// completeApprovals offers the approvals that wait, with what they are for.
func (a *app) completeApprovals(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.quiet = true
	s, err := a.store()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	list, err := s.Approvals().List(c.Context(), a.agent, true, a.now())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	out := make([]cobra.Completion, len(list))
	for i, ap := range list {
		out[i] = cobra.CompletionWithDesc(string(ap.ID), show(ap.Cost.String()+" for "+what(ap.Terms), 100))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
