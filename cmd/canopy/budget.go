package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/shape"
)

func (a *app) budgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "budget",
		Short: "Show what the caps and the budgets leave the agent now",
		Long: `Budget tells what counts against each cap and what is left, the money that is set
aside for pieces of work, and whether anything can be paid at all: not while
frozen, without a key, or with a ledger or a clock that an operator has to look
at. A budget is set aside by a program (WithBudget) or granted to another process
(canopy budget grant), and is taken from the one that it stands under.`,
		Example: `  canopy budget
  canopy budget --agent trader --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := a.load()
			if err != nil {
				return err
			}
			client, err := a.view(c.Context(), f)
			if err != nil {
				return err
			}
			defer client.Close()
			b, err := client.Budget(c.Context())
			if err != nil {
				return err
			}
			cannot, err := client.CannotPay(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(shape.BudgetOf(b, cannot))
			}
			defer a.cannotPay(cannot)
			if len(b.Budgets) > 0 {
				defer a.budgetTree(b.Budgets)
			}
			if len(b.Caps) == 0 {
				a.printf("The policy of %s has no cap.\n", a.agentName())
				return nil
			}
			rows := make([][]string, 0, len(b.Caps))
			for _, u := range b.Caps {
				left, _ := u.Limit.USD.Sub(min(u.USD, u.Limit.USD))
				used, remaining := u.USD.String(), left.String()
				if u.Limit.Counting {
					used = strconv.FormatInt(u.Count, 10)
					remaining = strconv.FormatInt(max(0, u.Limit.Count-u.Count), 10)
				}
				held := ""
				if u.Held > 0 && !u.Limit.Counting {
					held = u.Held.String()
				}
				rows = append(rows, []string{u.Limit.String(), u.Limit.Scope.Kind.String(), used, held, remaining, moment(u.ResetsAt)})
			}
			a.table([]string{"CAP", "SCOPE", "SPENT", "OF IT HELD", "LEFT", "NEXT CHANGE"}, rows)
			if b.HasCap && len(cannot) == 0 {
				a.note("%s can spend %s now.", a.agentName(), b.Remaining)
			}
			return nil
		},
	}
	c.AddCommand(a.budgetGrantCommand(), a.budgetEndCommand())
	return c
}

// cannotPay tells why nothing can be paid now, where that is so.
func (a *app) cannotPay(reasons []canopy.Reason) {
	for _, r := range reasons {
		a.printf("%s %s (%s)\n", a.colour(red, "Nothing can be paid now:"), show(r.Text, 400), r.Code)
	}
}
