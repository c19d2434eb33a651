package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
)

// frozen is what freeze and unfreeze print.
type frozen struct {
	Status string  `json:"status"` // frozen or active
	Agent  *string `json:"agent"`  // null: everybody
	By     string  `json:"by"`
	Reason string  `json:"reason"`
}

func (a *app) freezeCommand() *cobra.Command {
	return a.switchCommand(&cobra.Command{
		Use:   "freeze --reason TEXT [--agent NAME | --all]",
		Short: "Stop an agent's payments, in every process, at once",
		Long: `Freeze stops the payments of an agent, or with --all of everybody on this ledger,
before the next signature. What was signed before may still be settled; its
money stays held.`,
		Example: `  canopy freeze --agent trader --reason "strange prices since noon"
  canopy freeze --all --reason "leaving for the weekend"`,
	}, "frozen", func(ctx context.Context, f ledger.Freezer, agent, by, reason string) error {
		return f.Freeze(ctx, agent, by, reason)
	})
}

func (a *app) unfreezeCommand() *cobra.Command {
	return a.switchCommand(&cobra.Command{
		Use:   "unfreeze --reason TEXT [--agent NAME | --all]",
		Short: "Let an agent pay again",
		Long: `Unfreeze ends what freeze began: for an agent, or with --all the freeze of
everybody. An agent that was frozen by itself stays so until it is unfrozen by
itself.`,
		Example: `  canopy unfreeze --agent trader --reason "the seller explained"`,
	}, "active", func(ctx context.Context, f ledger.Freezer, agent, by, reason string) error {
		return f.Unfreeze(ctx, agent, by, reason)
	})
}

// known reports whether agent has a table of its own or ever asked to pay.
func known(ctx context.Context, file *config.File, s ledger.Store, agent string) bool {
	if slices.Contains(file.Policy.Agents(), agent) {
		return true
	}
	for _, err := range s.Entries(ctx, ledger.Query{Agent: agent, Limit: 1}) {
		return err == nil
	}
	return false
}

func (a *app) switchCommand(c *cobra.Command, status string, turn func(ctx context.Context, f ledger.Freezer, agent, by, reason string) error) *cobra.Command {
	var all bool
	var by, reason string
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if all && a.agent != "" {
			return usage(c, errors.New("--all and --agent: choose one"))
		}
		file, s, err := a.fileAndStore()
		if err != nil {
			return err
		}
		defer s.Close()
		if status == "active" {
			if err := notAgent(by, append(file.Policy.Agents(), a.agentName())...); err != nil {
				return usage(c, err)
			}
		}
		f, ok := s.(ledger.Freezer)
		if !ok {
			return errors.New("this ledger cannot freeze")
		}
		agent := a.agentName()
		out := frozen{Status: status, Agent: &agent, By: by, Reason: reason}
		if all {
			agent, out.Agent = "", nil
		}
		if err := turn(c.Context(), f, agent, "cli:"+by, reason); err != nil {
			return err
		}
		if !all && !known(c.Context(), file, s, agent) {
			a.note("warning: no policy table and no payment has the name %s: is it spelled right?", agent)
		}
		if a.json {
			return a.printJSON(out)
		}
		who := "everybody on this ledger"
		if !all {
			who = "agent " + agent
		}
		a.printf("%s: %s\n", show(who, 100), a.colour(mood(status), status))
		freezes, err := f.Freezes(c.Context())
		if err == nil && status == "active" {
			for other, why := range freezes {
				if other == "" || other == agent {
					a.note("Still frozen: %s (%s)", oneOf(show(other, 100), "everybody"), show(why, 200))
				}
			}
		}
		return nil
	}
	c.Flags().BoolVar(&all, "all", false, "everybody on this ledger")
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")
	c.Flags().StringVar(&by, "by", me(), "`NAME` of who does it")
	c.MarkFlagRequired("reason")
	return c
}
