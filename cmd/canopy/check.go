package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/payment"
)

func (a *app) checkCommand() *cobra.Command {
	var maxPrice string
	c := &cobra.Command{
		Use:   "check URL",
		Short: "Ask what a URL costs, and whether the policy would pay it",
		Long: `Check sends one unpaid GET and tells the seller's terms and the policy's verdict.
Nothing is signed, reserved or recorded, and no password is needed.`,
		Example: `  canopy check https://feed.example/depth/btc-usd
  canopy check https://feed.example/report --max-price 0.05 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rawURL := withScheme(args[0])
			if err := badURL(rawURL); err != nil {
				return usage(c, err)
			}
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
			k, err := client.CheckURL(c.Context(), rawURL, opts...)
			if err != nil {
				return err
			}
			a.code = codeOf(k.Status)
			if a.json {
				return a.printJSON(shape.CheckOf(k))
			}
			a.printCheck(k)
			a.hint(k.Reasons, k.URL)
			return nil
		},
	}
	c.Flags().StringVar(&maxPrice, "max-price", "", "the most that it may cost, in `USD`")
	return c
}

func (a *app) printCheck(k canopy.Check) {
	if k.Rail == "" && k.Status == canopy.Allowed {
		a.printf("%s is free (HTTP %d).\n", show(k.URL, 300), k.HTTP)
		return
	}
	price, to := "", ""
	if k.Rail != "" {
		price, to = withFee(k.Amount, k.Fee), recipients(k.Recipients)
	}
	a.fields(
		"url", k.URL, "verdict", k.Status.String(), "price", price, "to", to,
		"by", joined(k.Rail, k.Scheme, k.Asset.Symbol), "chain", k.Chain.Name(),
		"seller says", k.Description,
	)
	for _, r := range k.Reasons {
		if r.Code != canopy.CodeChosen { // the lines of the other offers say it
			a.printf("because      %s\n", plaintext.Words(r.Said(), 2000))
		}
	}
	if len(k.Reasons) == 0 && k.Reason != "" {
		a.printf("because      %s\n", plaintext.Words(k.Reason, 2000))
	}
	for _, o := range k.Others {
		a.printf("or           %s, %s with %s to %s: %s\n", withFee(o.Amount, o.Fee), o.Rail, o.Asset, recipients(o.Recipients), plaintext.Words(o.Reason, 2000))
	}
}

func joined(parts ...string) string {
	s := ""
	for _, p := range parts {
		if p != "" && s != "" {
			s += ", "
		}
		s += p
	}
	return s
}

// priceOption reads --max-price. An empty one is a mistake, never no limit: it is
// what a variable of the shell gives that is not set.
func priceOption(c *cobra.Command, s string) ([]canopy.Option, error) {
	if !c.Flags().Changed("max-price") {
		return nil, nil
	}
	if s == "" {
		return nil, usage(c, errors.New("--max-price: it is empty: leave it out, or give dollars such as 0.05"))
	}
	usd, err := payment.ParseUSD(s)
	if err != nil {
		return nil, usage(c, fmt.Errorf("--max-price: %q is not dollars such as 0.05", show(s, 40)))
	}
	return []canopy.Option{canopy.WithMaxPrice(usd)}, nil
}
