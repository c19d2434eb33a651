package main

import (
	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/shape"
)

func (a *app) pingCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ping",
		Short: "Check that the key opens and the ledger answers",
		Long: `Ping opens the key and the ledger as a payment would, and tells who pays. It asks
the nodes of [[chain]] how they stand and what the account holds, and contacts
nobody else.`,
		Example: "  canopy ping --agent trader",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := a.load()
			if err != nil {
				return err
			}
			client, err := a.client(c.Context(), f)
			if err != nil {
				return err
			}
			defer client.Close()
			p, err := client.Ping(c.Context())
			var cannot []canopy.Reason
			if err == nil {
				cannot, err = client.CannotPay(c.Context())
			}
			chains := a.reach(c.Context(), client.Chains, f, p.Account)
			if a.json {
				if err != nil {
					a.code = codeFailed
				}
				out := shape.PingOf(p, cannot, err)
				out.Chains = chains
				return a.printJSON(out)
			}
			if err != nil {
				return err
			}
			account := p.Account.String()
			if p.Account == (canopy.Address{}) {
				account = "none: [treasury] names no key, so nothing can be paid"
			}
			a.fields(append([]string{
				"agent", p.Agent + " (" + p.AgentID + ")", "status", p.Status, "frozen", p.Frozen,
				"org", p.Org, "account", account, "latency", p.Latency.String(),
			}, chainFields(chains)...)...)
			a.cannotPay(cannot)
			return nil
		},
	}
}
