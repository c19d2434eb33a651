package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/ledger"
)

// acked is what ledger ack prints.
type acked struct {
	Status string `json:"status"` // acknowledged
	By     string `json:"by"`
	Reason string `json:"reason"`
	Needed bool   `json:"needed"` // false: nothing was wrong
}

func (a *app) ledgerAckCommand() *cobra.Command {
	var by, reason string
	var yes bool
	c := &cobra.Command{
		Use:   "ack --reason TEXT",
		Short: "Take note of a clock that jumped, or of a ledger that is new where an older one was expected",
		Long: `After a jump of the clock, or where the account's former ledger is missing or was
set back, nothing is paid until an operator has looked. What the missing ledger
had counted is not counted any more: caps begin anew. It needs to know the
account: set the variable of key_env; a keystore without its address asks for
the password.`,
		Example: `  canopy ledger ack --reason "moved to a new machine, old ledger lost"`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := a.load()
			if err != nil {
				return err
			}
			if err := notAgent(by, append(f.Policy.Agents(), a.agentName())...); err != nil {
				return usage(c, err)
			}
			s, err := f.OpenAccountLedger(c.Context())
			if err != nil {
				return exit{codeUsage, err}
			}
			defer s.Close()
			k, ok := s.(ledger.Acker)
			if !ok {
				return errors.New("this ledger has nothing to acknowledge")
			}
			needed := true
			if p, ok := s.(ledger.Prober); ok && p.Ready(c.Context(), a.now()) == nil {
				needed = false
				a.note("Nothing is wrong with this ledger and its clock: there is nothing that has to be acknowledged.")
			}
			if err := a.confirm(c.Context(), yes, "Go on with this ledger and this clock? What is not in it is not counted."); err != nil {
				return err
			}
			if err := k.Ack(c.Context(), by, reason); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(acked{"acknowledged", by, reason, needed})
			}
			a.printf("acknowledged by %s\n", show(by, 100))
			return nil
		},
	}
	c.Flags().StringVar(&by, "by", me(), "`NAME` of who does it")
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	c.MarkFlagRequired("reason")
	return c
}
