package main

import (
	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// explained is what policy explain prints.
type explained struct {
	URL         string          `json:"url"`
	Status      string          `json:"status"`
	Reason      *string         `json:"reason"`
	AmountUSD   payment.USD     `json:"amountUsd"`
	FeeUSD      payment.USD     `json:"feeUsd"`
	CostUSD     payment.USD     `json:"costUsd"`
	Agent       string          `json:"agent"`
	JudgedBy    *string         `json:"judgedBy"` // the policy's table; null where none does, or nothing was judged
	PolicyHash  payment.Hash    `json:"policySha256"`
	PolicyRules []explainedRule `json:"rules"`
}

type explainedRule struct {
	Key    string  `json:"key"`
	Rule   *string `json:"rule"`   // as the document wrote it
	Status string  `json:"status"` // allowed where the payment passes it
	Shadow bool    `json:"shadow"` // it is told, and decides nothing
	Code   *string `json:"code"`   // null where it passes
	Text   string  `json:"text"`
	Fix    *string `json:"fix"` // what would make it pass
}

func (a *app) policyExplainCommand() *cobra.Command {
	var maxPrice string
	c := &cobra.Command{
		Use:   "explain URL",
		Short: "Tell what every rule says of a URL, and what would make it pass",
		Long: `Explain asks a URL for its terms, as check does, and goes through the policy rule by
rule, in the order of evaluation: which ones the payment passes, which deny it or
ask a person, and for each of these what would make it pass. Nothing is signed,
reserved or recorded.`,
		Example: `  canopy policy explain https://feed.example/report
  canopy policy explain https://feed.example/report --agent trader --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			opts, err := priceOption(c, maxPrice)
			if err != nil {
				return err
			}
			f, err := a.load()
			if err != nil {
				return err
			}
			client, err := a.view(c.Context(), f)
			if err != nil {
				return err
			}
			defer client.Close()
			k, x, err := client.Explain(c.Context(), withScheme(args[0]), opts...)
			if err != nil {
				return err
			}
			a.code = codeOf(k.Status)
			if a.json {
				return a.printJSON(a.explainedOf(k, x, f.Policy))
			}
			a.printExplained(k, x)
			return nil
		},
	}
	c.Flags().StringVar(&maxPrice, "max-price", "", "the most that it may cost, in `USD`")
	return c
}

func (a *app) explainedOf(k canopy.Check, x policy.Explanation, p *policy.Policy) explained {
	out := explained{
		URL: k.URL, Status: k.Status.String(), Reason: orNil(k.Reason), AmountUSD: k.Amount, FeeUSD: k.Fee, CostUSD: k.Cost(),
		Agent: a.agentName(), JudgedBy: orNil(x.Table), PolicyHash: p.Hash(), PolicyRules: []explainedRule{},
	}
	for _, r := range x.Rules {
		out.PolicyRules = append(out.PolicyRules, explainedRule{r.Key, orNil(r.Rule), r.Status.String(), r.Shadow, orNil(r.Code), show(r.Text, 2000), orNil(r.Fix)})
	}
	return out
}

func (a *app) printExplained(k canopy.Check, x policy.Explanation) {
	a.printCheck(k)
	if len(x.Rules) == 0 {
		return
	}
	a.printf("\n")
	width := 0
	for _, r := range x.Rules {
		width = max(width, len(ruleName(r)))
	}
	width = min(width, 48)
	for _, r := range x.Rules {
		mark, colour := "pass", green
		switch {
		case r.Status == payment.PendingApproval:
			mark, colour = "asks", yellow
		case r.Status == payment.Denied:
			mark, colour = "FAIL", red
		}
		if r.Shadow {
			mark += ", shadow"
		}
		a.printf("%s  %-*s  %s\n", a.colour(colour, mark), width, show(ruleName(r), 200), show(r.Text, 500))
		if r.Fix != "" {
			a.printf("      %-*s  would pass with %s\n", width, "", show(r.Fix, 500))
		}
	}
	a.printf("\nJudged by %s.\n", oneOf(x.Table, "no table"))
}

// ruleName is the key, and the rule as the document wrote it.
func ruleName(r policy.Explained) string {
	if r.Rule == "" {
		return r.Key
	}
	return r.Key + " " + r.Rule
}
