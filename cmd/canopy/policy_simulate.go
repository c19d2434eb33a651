package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger/whatif"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// simulated is what policy simulate prints.
type simulated struct {
	Policy   string             `json:"policy"`
	Since    *string            `json:"since"` // of the first decision that was looked at
	Until    *string            `json:"until"` // and of the last
	Payments int                `json:"payments"`
	Others   int                `json:"others"` // refused for reasons of no policy
	Moves    []simulatedMove    `json:"moves"`
	Changed  []simulatedPayment `json:"changed"`
	Days     []simulatedDay     `json:"days"`
}

type simulatedMove struct {
	Was      string      `json:"was"`
	WouldBe  string      `json:"wouldBe"`
	Payments int         `json:"payments"`
	CostUSD  payment.USD `json:"costUsd"`
}

type simulatedPayment struct {
	TransactionID payment.ID  `json:"transactionId"`
	Time          string      `json:"time"`
	Agent         string      `json:"agent"`
	Host          *string     `json:"host"` // null for a direct transfer
	Recipient     string      `json:"recipient"`
	CostUSD       payment.USD `json:"costUsd"`
	Was           string      `json:"was"`
	WouldBe       string      `json:"wouldBe"`
	Reason        *string     `json:"reason"`
}

type simulatedDay struct {
	Date       string      `json:"date"`
	SpentUSD   payment.USD `json:"spentUsd"`
	WouldBeUSD payment.USD `json:"wouldBeUsd"`
}

func (a *app) policySimulateCommand() *cobra.Command {
	var path, since, until string
	var limit int
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Tell what another policy would have decided about the payments of the past",
		Long: `Simulate judges the payments of the ledger again, in order, each at the instant
at which it was decided, by the policy of another file. What that policy would
have let through counts against its caps; what was paid before --since counts as
it was. A payment that it would put to a person counts as approved where it was
paid. Nothing is changed.`,
		Example: `  canopy policy simulate --policy new.toml --since 30d
  canopy policy simulate --policy new.toml --since 2026-05-01 --until 2026-06-01 --agent trader --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage(c, errors.New("--limit is not negative; 0 is all"))
			}
			o := whatif.Options{Agent: a.agent, Most: limit}
			if limit == 0 {
				o.Most = 1 << 30
			}
			var err error
			if o.Since, err = instant(since); err != nil {
				return usage(c, fmt.Errorf("--since: %w", err))
			}
			if o.Until, err = instant(until); err != nil {
				return usage(c, fmt.Errorf("--until: %w", err))
			}
			if path == "" {
				path = config.Find(a.config)
			}
			p, err := readPolicy(path)
			if err != nil {
				return err
			}
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
			r, err := whatif.Run(c.Context(), s, p, o)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(simulatedOf(path, r))
			}
			a.printSimulated(path, r)
			return nil
		},
	}
	c.Flags().StringVar(&path, "policy", "", "the `FILE` with the other policy (default: the configuration, to see what its changes would have done)")
	c.Flags().StringVar(&since, "since", "", "only what was decided from `TIME` on, such as 30d (ago), 2026-05-08 or 2026-05-08T18:00:00Z")
	c.Flags().StringVar(&until, "until", "", "only what was decided before `TIME`")
	c.Flags().IntVar(&limit, "limit", 20, "show at most `N` of the payments that would be decided otherwise; 0 for all")
	return c
}

func simulatedOf(path string, r whatif.Report) simulated {
	out := simulated{
		Policy: path, Since: utc(r.Since), Until: utc(r.Until), Payments: r.Payments, Others: r.Others,
		Moves: []simulatedMove{}, Changed: []simulatedPayment{}, Days: []simulatedDay{},
	}
	for _, m := range r.Moves {
		out.Moves = append(out.Moves, simulatedMove{m.Was.String(), m.Now.String(), m.Payments, m.USD})
	}
	for _, c := range r.Changed {
		out.Changed = append(out.Changed, simulatedPayment{
			c.ID, *utc(c.At), c.Agent, orNil(c.Host), c.Payee.String(), c.Cost, c.Was.String(), c.Now.String(), orNil(why(c)),
		})
	}
	for _, d := range r.Days {
		out.Days = append(out.Days, simulatedDay{d.Date.Format(time.DateOnly), d.Was, d.Now})
	}
	return out
}

func utc(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return orNil(t.UTC().Format(time.RFC3339))
}

// why is the reason for what would have been decided, or where it would be
// allowed, for what was.
func why(c whatif.Change) string {
	status := c.Now
	if status == payment.Allowed {
		status = c.Was
	}
	return policy.Verdict{Status: status, Reasons: c.Reasons}.Reason()
}

// printSimulated prints the report for people: what became of what, which
// payments, and the days as bars.
func (a *app) printSimulated(path string, r whatif.Report) {
	if r.Payments+r.Others == 0 {
		a.printf("No payments.\n")
		return
	}
	a.printf("%s, decided from %s to %s, judged again by %s.\n", count(int64(r.Payments), "payment"),
		r.Since.Local().Format("2006-01-02 15:04"), r.Until.Local().Format("2006-01-02 15:04"), show(path, 200))
	if r.Others > 0 {
		a.printf("%s refused for reasons of no policy, and would be again.\n", count(int64(r.Others), "payment"))
	}
	a.printf("\n")
	rows, changed := [][]string{}, 0
	for _, m := range r.Moves {
		mark := ""
		if m.Was != m.Now {
			mark = "changed"
			changed += m.Payments
		}
		rows = append(rows, []string{m.Was.String(), m.Now.String(), fmt.Sprint(m.Payments), m.USD.String(), mark})
	}
	a.table([]string{"WAS", "WOULD BE", "PAYMENTS", "COST", ""}, rows)
	if len(r.Changed) > 0 {
		a.printf("\n")
		rows = rows[:0]
		for _, c := range r.Changed {
			rows = append(rows, []string{
				c.At.Local().Format("2006-01-02 15:04:05"), string(c.ID), c.Agent, oneOf(c.Host, c.Payee.String()), c.Cost.String(), c.Was.String(), c.Now.String(), why(c),
			})
		}
		a.table([]string{"TIME", "PAYMENT", "AGENT", "TO", "COST", "WAS", "WOULD BE", "WHY"}, rows)
		if changed > len(r.Changed) {
			a.note("The first %d of %d; --limit 0 shows all.", len(r.Changed), changed)
		}
	}
	a.chart(r.Days)
}

// chart draws what was spent each day over what would have been.
func (a *app) chart(days []whatif.Day) {
	if len(days) == 0 {
		return
	}
	top, wide := payment.USD(1), 0
	for _, d := range days {
		top = max(top, d.Was, d.Now)
		wide = max(wide, utf8.RuneCountInString(d.Was.String()), utf8.RuneCountInString(d.Now.String()))
	}
	a.printf("\nSpent each day (UTC), and what would have been:\n")
	for _, d := range days {
		a.printf("%s  was    %*s %s\n", d.Date.Format(time.DateOnly), wide, d.Was, bar(d.Was, top))
		a.printf("%s  would  %*s %s\n", strings.Repeat(" ", len(time.DateOnly)), wide, d.Now, a.colour(moodOf(d), bar(d.Now, top)))
	}
}

func moodOf(d whatif.Day) string {
	switch {
	case d.Now > d.Was:
		return red
	case d.Now < d.Was:
		return green
	}
	return yellow
}

// bar is v of top as at most 40 blocks, with eighths.
func bar(v, top payment.USD) string {
	const wide = 40
	for top > payment.MaxUSD/(wide*8) {
		v, top = v/2, top/2
	}
	eighths := int64(v * wide * 8 / top)
	if v > 0 {
		eighths = max(eighths, 1)
	}
	s := strings.Repeat("█", int(eighths/8))
	if rest := eighths % 8; rest > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return s
}
