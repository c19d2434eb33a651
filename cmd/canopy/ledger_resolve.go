package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

var txHash = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)

// resolve is one call of canopy ledger resolve.
type resolve struct {
	settled string
	unused  bool
	by      string
	reason  string
	yes     bool
}

func (a *app) ledgerResolveCommand() *cobra.Command {
	r := &resolve{}
	c := &cobra.Command{
		Use:   "resolve ID --settled TX | --unused",
		Short: "Say, as an operator, what became of a payment",
		Long: `Resolve ends the hold of a payment in doubt, or one that needs an operator, by a
person's word: --settled says that the transaction TX moved the money, --unused
that none ever will. It is recorded as assumed, with your name. An authorization
that is still valid can still move money: --unused is refused until it is dead.`,
		Example: `  canopy ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --settled 0x5f…e1 --reason "seen on the explorer"
  canopy ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --unused --reason "nonce is unused, finalized"`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.resolve(c, args[0], r) },
	}
	c.Flags().StringVar(&r.settled, "settled", "", "the transaction `TX` moved the money")
	c.Flags().BoolVar(&r.unused, "unused", false, "it never moved and cannot move any more")
	c.Flags().StringVar(&r.reason, "reason", "", "`TEXT`: how you know")
	c.Flags().StringVar(&r.by, "by", me(), "`NAME` of who says so")
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask for confirmation")
	c.MarkFlagRequired("reason")
	return c
}

func (a *app) resolve(c *cobra.Command, id string, r *resolve) error {
	switch {
	case r.unused == (r.settled != ""):
		return usage(c, errors.New("say either --settled TX or --unused"))
	case r.settled != "" && !txHash.MatchString(r.settled):
		return usage(c, errors.New("--settled: a transaction is 0x and 64 hex digits"))
	case r.by == "" || r.reason == "":
		return usage(c, errors.New("--by and --reason: say who you are and how you know"))
	}
	s, err := a.store()
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := a.entryOf(c.Context(), s, id)
	if err != nil {
		return err
	}
	ch := ledger.Change{
		ID: e.ID, Version: e.Version, To: ledger.ExpiredUnused, By: ledger.ByOperator, Now: a.now(),
		Note: r.reason, Assumed: true, Who: r.by,
	}
	if r.settled != "" {
		receipt := e.Receipt
		receipt.TxHash = r.settled
		ch.To, ch.Receipt = ledger.Settled, &receipt
	}
	if err := resolvable(e, ch, a); err != nil {
		return err
	}
	if !a.json {
		a.fields("payment", string(e.ID), "state", e.State.String(), "agent", e.Agent, "for", what(e.Terms), "cost", e.Cost.String(), "valid until", moment(e.ValidBefore))
	}
	question := fmt.Sprintf("Record that %s was never spent, and give it back to the caps?", e.Cost)
	if !r.unused {
		question = fmt.Sprintf("Record that %s was spent by %s?", e.Cost, r.settled)
	}
	if err := a.confirm(c.Context(), r.yes, question); err != nil {
		return err
	}
	done, err := s.Advance(c.Context(), ch)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(shape.LedgerEntryOf(done))
	}
	a.printf("%s is %s, by the word of %s\n", done.ID, done.State, show(r.by, 100))
	return nil
}

// resolvable tells why ch cannot be.
func resolvable(e ledger.Entry, ch ledger.Change, a *app) error {
	if !ledger.Legal(e.State, ch.To, ledger.ByOperator) {
		return fmt.Errorf("payment %s is %s: there is nothing for an operator to say", e.ID, e.State)
	}
	if ch.To == ledger.ExpiredUnused && a.now().Before(e.ValidBefore) {
		return fmt.Errorf("payment %s can still move money until %s: wait until then", e.ID, moment(e.ValidBefore))
	}
	return nil
}
