package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

var txHash = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)

// resolve is one call of canopy ledger resolve.
type resolve struct {
	settled string
	unused  bool
	despite bool
	unasked bool // despite nodes that cannot tell
	by      string
	reason  string
	yes     bool
}

func (a *app) ledgerResolveCommand() *cobra.Command {
	r := &resolve{}
	c := &cobra.Command{
		Use:   "resolve ID --reason TEXT (--settled TX | --unused)",
		Short: "Say, as an operator, what became of a payment",
		Long: `Resolve ends the hold of a payment by a person's word: --settled says that the
transaction TX moved the money, --unused that none ever will, so that the caps
get it back. It is for payments that are in_doubt or needs_operator, and for
claimed ones: there the seller says that it was paid, and --unused needs
--despite-claim too. In every other state there is nothing to say.

An authorization that is still valid can still move money: --unused is refused
until it is dead. Where [[chain]] names nodes, they are asked first: what they show
as used is not unused, and where they cannot tell, --unused needs --despite-chain.
It cannot be taken back: caps that got the money back never count it again. What
you say is recorded as assumed, with your name, which is never that of the agent.`,
		Example: `  canopy ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --settled 0x9b1c4e0d7f2a6b8c3d5e9f0a1b2c4d6e8f7a5b3c1d0e2f4a6b8c9d7e5f3a1b0c --reason "seen on the explorer"
  canopy ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --unused --reason "nonce is unused, finalized"
  canopy ledger resolve 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --unused --despite-claim --reason "no such tx, nonce is unused, finalized"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePayments(ledger.InDoubt, ledger.NeedsOperator, ledger.Claimed),
		RunE:              func(c *cobra.Command, args []string) error { return a.resolve(c, args[0], r) },
	}
	c.Flags().StringVar(&r.settled, "settled", "", "the transaction `TX` moved the money")
	c.Flags().BoolVar(&r.unused, "unused", false, "it never moved and cannot move any more")
	c.Flags().BoolVar(&r.despite, "despite-claim", false, "with --unused: also where the seller says that it was paid")
	c.Flags().BoolVar(&r.unasked, "despite-chain", false, "with --unused: also where the nodes of [[chain]] cannot tell")
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
	case r.despite && !r.unused:
		return usage(c, errors.New("--despite-claim goes with --unused"))
	case r.unasked && !r.unused:
		return usage(c, errors.New("--despite-chain goes with --unused"))
	case r.by == "" || r.reason == "":
		return usage(c, errors.New("--by and --reason: say who you are and how you know"))
	}
	f, s, err := a.fileAndStore()
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := a.entryOf(c.Context(), s, id)
	if err != nil {
		return err
	}
	if err := notAgent(r.by, e.Agent); err != nil {
		return usage(c, err)
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
	if !ledger.Legal(e.State, ch.To, ledger.ByOperator) {
		return fmt.Errorf("payment %s is %s: an operator has a say where it is in_doubt, needs_operator or claimed", e.ID, e.State)
	}
	if !a.json {
		a.fields("payment", string(e.ID), "state", e.State.String(), "agent", e.Agent, "for", what(e.Terms), "cost", e.Cost.String(), "valid until", moment(e.ValidBefore))
		a.fields(cameBack(e)...)
	}
	if r.unused {
		if err := a.spendable(c.Context(), f, e, r); err != nil {
			return err
		}
	}
	if err := a.confirm(c.Context(), r.yes, r.question(e)); err != nil {
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

// question is what an operator confirms.
func (r *resolve) question(e ledger.Entry) string {
	switch {
	case !r.unused:
		return fmt.Sprintf("Record that %s was spent by %s?", e.Cost, r.settled)
	case e.State == ledger.Claimed:
		return fmt.Sprintf("The seller says that it was paid (%s). Record all the same that %s was never spent, and give it back to the caps?", claimed(e), e.Cost)
	}
	return fmt.Sprintf("Record that %s was never spent, and give it back to the caps?", e.Cost)
}

// claimed is the seller's claim in a few words.
func claimed(e ledger.Entry) string {
	words := "claim: " + e.Receipt.Claim.String()
	if e.Receipt.TxHash != "" {
		words += ", tx " + show(e.Receipt.TxHash, 100)
	}
	if e.HTTP != 0 {
		words += fmt.Sprintf(", HTTP %d", e.HTTP)
	}
	return words
}

// spendable tells why e cannot be called unused.
func (a *app) spendable(ctx context.Context, f *config.File, e ledger.Entry, r *resolve) error {
	if e.State == ledger.Claimed && !r.despite {
		return exit{codeUsage, fmt.Errorf("the seller says that payment %s was paid (%s): look for it on the chain first. "+
			"If it never moved and never can, add --despite-claim; the caps get %s back", e.ID, claimed(e), e.Cost)}
	}
	if err := a.asksOf(ctx, f, e, r.unasked); err != nil {
		return err
	}
	if a.now().Before(e.ValidBefore) {
		return fmt.Errorf("payment %s can still move money until %s: wait until then", e.ID, moment(e.ValidBefore))
	}
	return nil
}
