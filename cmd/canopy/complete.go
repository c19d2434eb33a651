package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
)

// What a shell is offered is short and soon there, and nothing where that
// cannot be: no ledger is made, no secret is asked for, no error is shown.
const (
	completeTime = time.Second
	completeMost = 50
)

// newestFirst keeps the order, and offers no files.
const newestFirst = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// completionCommand makes the command that prints a shell's script, where root
// prints already: an unknown shell, and none, are mistakes.
func completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args = cobra.ArbitraryArgs
		strict(c)
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return needsCommand(c)
			}
			var shells []string
			for _, sub := range c.Commands() {
				shells = append(shells, sub.Name())
			}
			return usage(c, fmt.Errorf("%q is no shell that it knows: there are %s", show(args[0], 40), strings.Join(shells, ", ")))
		}
	}
}

// completeAgents offers the names of the policy's tables.
func (a *app) completeAgents(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	f, err := config.Load(a.config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.Policy.Agents(), cobra.ShellCompDirectiveNoFileComp
}

// completeChains offers the chains that have a name, and those of [[chain]].
func (a *app) completeChains(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	out := slices.Clone(chainNames)
	if f, err := config.Load(a.config); err == nil {
		for _, c := range f.Chains {
			if name := c.ID.Name(); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeApprovals offers approvals, with what they are for: those that wait,
// or with all set also those that were decided.
func (a *app) completeApprovals(all bool) cobra.CompletionFunc {
	return a.completeFrom(func(ctx context.Context, s ledger.Store) []cobra.Completion {
		list, err := s.Approvals().List(ctx, a.agent, !all, a.now())
		if err != nil {
			return nil
		}
		out := make([]cobra.Completion, 0, completeMost)
		for _, ap := range list[:min(len(list), completeMost)] {
			text := ap.Cost.String() + " for " + what(ap.Terms)
			if all {
				text = ap.Status.String() + ", " + text
			}
			out = append(out, cobra.CompletionWithDesc(string(ap.ID), show(text, 100)))
		}
		return out
	})
}

// completePayments offers payments in the states, all where there are none, with
// what they are for.
func (a *app) completePayments(states ...ledger.State) cobra.CompletionFunc {
	return a.completeFrom(func(ctx context.Context, s ledger.Store) []cobra.Completion {
		var out []cobra.Completion
		for e, err := range s.Entries(ctx, ledger.Query{Agent: a.agent, States: states, Limit: completeMost}) {
			if err != nil {
				return nil
			}
			text := e.State.String() + ", " + e.Cost.String() + " for " + what(e.Terms)
			out = append(out, cobra.CompletionWithDesc(string(e.ID), show(text, 100)))
		}
		return out
	})
}

// completeFrom completes one argument by what the ledger has.
func (a *app) completeFrom(read func(context.Context, ledger.Store) []cobra.Completion) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		f, err := config.Load(a.config)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if _, err := os.Stat(f.Ledger.Path); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completeTime)
		defer cancel()
		done := make(chan []cobra.Completion, 1)
		go func() { // a ledger that others hold takes its time to open: then this process is gone first
			s, err := f.OpenLedger()
			if err != nil {
				done <- nil
				return
			}
			defer s.Close()
			done <- read(ctx, s)
		}()
		select {
		case out := <-done:
			return out, newestFirst
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}
