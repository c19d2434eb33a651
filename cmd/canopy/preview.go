package main

import (
	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/shape"
)

func (a *app) previewCommand() *cobra.Command {
	var flags transferFlags
	c := &cobra.Command{
		Use:   "preview TO USD",
		Short: "Ask what the policy says of a direct transfer",
		Long: `Preview judges a transfer of dollars to an address as canopy pay would judge it now,
with the caps, the gas and the duplicates of the ledger, and exits as that would.
With --key it is judged as a new payment of its own. Nothing is signed, reserved or
recorded, and no password is needed.`,
		Example: `  canopy preview 0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C 7.50
  canopy preview 0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C 0.10 --chain base-sepolia --json
  canopy preview 0x2096a1dd90dd45F9b6C2FB2C3CF0e0d1c7C4287C 2 --chain tempo --memo "invoice 17"`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := transferOf(c, args, flags)
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
			r, err := client.Preview(c.Context(), t)
			if err != nil {
				return a.transferFailed(c, f, t, err)
			}
			a.code = codeOf(r.Status)
			if r.Warning != "" {
				a.note("warning: %s", show(r.Warning, 500))
			}
			if a.json {
				return a.printJSON(shape.Pay(r))
			}
			a.fields("verdict", r.Status.String(), "cost", costOf(r), "gas", gasBound(r), "to", t.To.String(), "chain", t.Chain.Name())
			for _, reason := range r.Reasons {
				a.printf("because  %s\n", show(reason.Said(), 400))
			}
			a.feeHint(r)
			if r.Status == canopy.Denied {
				a.transferHint(r.Reasons, t)
			}
			a.note("Nothing was paid: this was a preview.")
			return nil
		},
	}
	c.SetFlagErrorFunc(amountFirst)
	c.ValidArgsFunction = cobra.NoFileCompletions
	a.chainVar(c, &flags.chain)
	c.Flags().StringVar(&flags.key, "key", "", "`KEY` that the payment would have")
	memoVar(c, &flags.memo)
	return c
}
