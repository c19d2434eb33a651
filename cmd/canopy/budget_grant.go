package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// purse opens the ledger's budgets; the caller closes the store.
func (a *app) purse() (ledger.Store, ledger.Budgeter, error) {
	s, err := a.store()
	if err != nil {
		return nil, nil, err
	}
	b, ok := s.(ledger.Budgeter)
	if !ok {
		return nil, nil, errors.Join(errors.New("this ledger keeps no budgets"), s.Close())
	}
	return s, b, nil
}

func (a *app) budgetGrantCommand() *cobra.Command {
	var name, usd, from, by string
	var ttl time.Duration
	c := &cobra.Command{
		Use:   "grant --name NAME --usd USD [--from BUDGET] [--ttl TIME]",
		Short: "Set money aside for another process, and show its token, once",
		Long: `Grant makes a budget and the token by which a process works under it: as the
environment variable ` + config.BudgetEnv + `, or canopy.Config.BudgetToken of a program. What that
process pays counts there. It can divide the budget, and never widen it.

The budget is taken from --from where that is given. It ends after --ttl, by
canopy budget end, or with the one that it was taken from. Where ` + config.BudgetEnv + ` is
set, the new one is part of that.`,
		Example: `  canopy budget grant --name reader --usd 2 --ttl 1h
  canopy budget grant --name page --usd 0.50 --from bgt_01JD7W0000000000000000000A --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			limit, err := payment.ParseUSD(strings.TrimPrefix(usd, "$"))
			if err != nil {
				return usage(c, fmt.Errorf("--usd %q: %w", show(usd, 40), err))
			}
			if err := ledger.CheckBudgetName(name); err != nil {
				return usage(c, fmt.Errorf("--name: %s", strings.TrimPrefix(err.Error(), "ledger: ")))
			}
			if from != "" && !payment.BudgetID(from).Valid() {
				return usage(c, fmt.Errorf("--from %s: not the id of a budget", show(from, 60)))
			}
			s, purse, err := a.purse()
			if err != nil {
				return err
			}
			defer s.Close()
			now := a.now()
			n := ledger.NewBudget{Agent: a.agentName(), Parent: payment.BudgetID(from), Name: name, Limit: limit, By: by, Now: now}
			if ttl > 0 {
				n.ExpiresAt = now.Add(ttl)
			}
			if err := narrowed(c.Context(), purse, &n); err != nil {
				return err
			}
			b, token, err := ledger.GrantBudget(c.Context(), purse, n)
			if err != nil {
				return budgetError(err)
			}
			if a.json {
				return a.printJSON(shape.GrantOf(b, token))
			}
			a.note("%s for %s is set aside for agent %s: budget %s%s.", b.Limit, show(b.Name, 100), b.Agent, b.ID, until(b.ExpiresAt))
			a.note("The token, shown this once: run the process with it in %s.", config.BudgetEnv)
			a.printf("%s\n", token)
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&name, "name", "", "what the money is for: `NAME`, for people")
	fl.StringVar(&usd, "usd", "", "how much: `USD`, such as 2 or 0.50")
	fl.StringVar(&from, "from", "", "the `BUDGET` to take it from")
	lengthVar(fl, &ttl, "ttl", "", "how long it lasts: `TIME`, such as 1h (default: until it is ended)")
	fl.StringVar(&by, "by", me(), "`NAME` of who grants it")
	c.MarkFlagRequired("name")
	c.MarkFlagRequired("usd")
	return c
}

// narrowed makes n part of the budget that the environment binds to, where it
// does.
func narrowed(ctx context.Context, purse ledger.Budgeter, n *ledger.NewBudget) error {
	token := os.Getenv(config.BudgetEnv)
	if token == "" {
		return nil
	}
	b, err := purse.JoinBudget(ctx, n.Agent, token, "", n.Now)
	if err != nil {
		return exit{codeUsage, fmt.Errorf("%s: %w", config.BudgetEnv, err)}
	}
	n.Within = b.ID
	if n.Parent == "" {
		n.Parent = b.ID
	}
	return nil
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", until " + moment(t)
}

// budgetError is err, as a mistake of whoever called where it is one.
func budgetError(err error) error {
	if errors.Is(err, ledger.ErrBudget) || errors.Is(err, ledger.ErrBudgetEnded) || errors.Is(err, ledger.ErrNotFound) {
		return exit{codeUsage, err}
	}
	return err
}

func (a *app) budgetEndCommand() *cobra.Command {
	var by, reason string
	c := &cobra.Command{
		Use:   "end ID [--reason TEXT]",
		Short: "End a budget, and all that was taken from it",
		Long: `End ends a budget, of a grant or of a program, with all that was taken from it, in
every process at once. What it did not spend is free again where it was taken from;
what was authorized before goes on, and stays counted.`,
		Example: `  canopy budget end bgt_01JD7W0000000000000000000A --reason "the work is done"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id := payment.BudgetID(args[0])
			if !id.Valid() {
				return usage(c, fmt.Errorf("%s is not the id of a budget: see canopy budget", show(args[0], 60)))
			}
			s, purse, err := a.purse()
			if err != nil {
				return err
			}
			defer s.Close()
			why := "ended by " + by
			if reason != "" {
				why += ": " + reason
			}
			b, err := purse.EndBudget(c.Context(), id, why, a.now())
			if err != nil {
				return budgetError(fmt.Errorf("budget %s: %w", id, err))
			}
			if a.json {
				return a.printJSON(shape.BudgetEndOf(b))
			}
			a.printf("%s (%s): ended %s: %s\n", show(b.Name, 100), b.ID, moment(b.EndedAt), show(b.Why, 200))
			return nil
		},
	}
	c.Flags().StringVar(&by, "by", me(), "`NAME` of who does it")
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")
	return c
}

// budgetTree prints the budgets of the agent, each under the one that it was
// taken from.
func (a *app) budgetTree(list []*canopy.BudgetNode) {
	var rows [][]string
	var add func(list []*canopy.BudgetNode, indent string)
	add = func(list []*canopy.BudgetNode, indent string) {
		for _, n := range list {
			state := "open"
			switch {
			case !n.EndedAt.IsZero():
				state = "ended: " + n.Why
			case !n.ExpiresAt.IsZero():
				state = "until " + moment(n.ExpiresAt)
			}
			rows = append(rows, []string{indent + show(n.Name, 60), n.Limit.String(), n.Spent.String(), nonzero(n.Held), nonzero(n.Given), n.Left.String(), show(state, 80), string(n.ID)})
			add(n.Children, indent+"- ")
		}
	}
	add(list, "")
	a.printf("\n")
	a.table([]string{"BUDGET", "LIMIT", "SPENT", "OF IT HELD", "GIVEN", "LEFT", "STATE", "ID"}, rows)
}

func nonzero(u payment.USD) string {
	if u == 0 {
		return ""
	}
	return u.String()
}
