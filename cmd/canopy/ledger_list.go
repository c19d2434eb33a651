package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/policy"
)

func (a *app) ledgerListCommand() *cobra.Command {
	var states []string
	var host, since, until string
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List payments, newest first",
		Example: `  canopy ledger list
  canopy ledger list --state in_doubt --state needs_operator
  canopy ledger list --agent trader --host feed.example --since 24h --limit 0 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q := ledger.Query{Agent: a.agent, Host: host, Limit: limit}
			if limit < 0 {
				return usage(c, errors.New("--limit is not negative; 0 is all"))
			}
			for _, name := range states {
				state, err := ledger.ParseState(name)
				if err != nil {
					return usage(c, fmt.Errorf("--state: %q is not a state: there are %s", show(name, 40), strings.Join(stateNames(), ", ")))
				}
				q.States = append(q.States, state)
			}
			var err error
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
			out, rows, shadows := []shape.LedgerEntry{}, [][]string{}, 0
			for e, err := range s.Entries(c.Context(), q) {
				if err != nil {
					return err
				}
				if a.json {
					out = append(out, shape.LedgerEntryOf(e))
					continue
				}
				would := ""
				if r, ok := policy.Shadowed(e.Reasons); ok {
					shadows++
					would = "  (in shadow: " + r.Status.String() + ", " + r.Code + ")"
				}
				rows = append(rows, []string{
					e.CreatedAt.Local().Format("2006-01-02 15:04:05"), string(e.ID), e.Agent, e.State.String(), costs(e), what(e.Terms) + would,
				})
			}
			if a.json {
				return a.printJSON(out)
			}
			if len(rows) == 0 {
				a.printf("No payments.\n")
				return nil
			}
			a.table([]string{"TIME", "PAYMENT", "AGENT", "STATE", "COST", "FOR"}, rows)
			if shadows > 0 {
				a.note("In shadow, %d of these would have been decided so: mode = \"shadow\" records it and pays.", shadows)
			}
			if limit > 0 && len(rows) == limit {
				a.note("The newest %d; --limit 0 shows all.", limit)
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&states, "state", nil, "only payments in `STATE`, such as in_doubt; again for more")
	c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
	c.Flags().StringVar(&host, "host", "", "only payments to `HOST`")
	c.Flags().StringVar(&since, "since", "", "only from `TIME` on, such as 24h (ago), 2026-05-08 or 2026-05-08T18:00:00Z")
	c.Flags().StringVar(&until, "until", "", "only before `TIME`")
	c.Flags().IntVar(&limit, "limit", 50, "at most `N`; 0 for all")
	return c
}

// costs is what counts of e in the caps, with its fee where there is one: until the
// chain tells it, the bound. Where nothing was set aside it is what was judged.
func costs(e ledger.Entry) string {
	value, ok := e.Terms.Asset.Value(e.Terms.Amount)
	fee, _ := e.Spent.Sub(value)
	switch {
	case e.AuthorizedAt.IsZero() && e.Terms.FeeBound > 0:
		return fmt.Sprintf("%s with a fee of at most %s", e.Cost, e.Terms.FeeBound)
	case e.AuthorizedAt.IsZero():
		return e.Cost.String()
	case e.State.Freed() && e.Spent > 0:
		return e.Spent.String() + ", its fee"
	case e.State.Freed() || !ok || fee <= 0:
		return e.Spent.String()
	case e.Spent < e.Cost:
		return fmt.Sprintf("%s with a fee of %s", e.Spent, fee)
	}
	return fmt.Sprintf("%s with a fee of at most %s", e.Spent, fee)
}

// stateNames are the states that a payment on the ledger can have.
func stateNames() []string {
	var names []string
	for s := ledger.Proposed + 1; ; s++ {
		if _, err := ledger.ParseState(s.String()); err != nil {
			return names
		}
		names = append(names, s.String())
	}
}

// instant reads a point in time: a date, RFC 3339, or how long ago.
func instant(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	ago := strings.TrimSuffix(s, " ago")
	if d, err := time.ParseDuration(ago); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(ago, "d")); err == nil && strings.HasSuffix(ago, "d") && n >= 0 && n <= 100_000 {
		return time.Now().AddDate(0, 0, -n), nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 24h, 2026-05-08 or 2026-05-08T18:00:00Z", show(s, 40))
}
