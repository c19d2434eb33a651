package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

func (a *app) ledgerShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Tell one payment: why, what was signed, what the seller said, what comes next",
		Example: `  canopy ledger show 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C
  canopy ledger show appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePayments(),
		RunE: func(c *cobra.Command, args []string) error {
			f, s, err := a.fileAndStore()
			if err != nil {
				return err
			}
			defer s.Close()
			a.asks = askable(f)
			e, err := a.entryOf(c.Context(), s, args[0])
			if err != nil {
				return err
			}
			events, err := s.Events(c.Context(), e.ID)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(shape.LedgerDetailOf(e, events))
			}
			a.printEntry(e, events, ruled(c.Context(), s, e, a.now()))
			return nil
		},
	}
}

// ruled tells who ruled on e, where a person was asked.
func ruled(ctx context.Context, s ledger.Store, e ledger.Entry, now time.Time) string {
	if e.ApprovalID == "" {
		return ""
	}
	ap, err := s.Approvals().Approval(ctx, e.ApprovalID, now)
	if err != nil || ap.By == "" {
		return ""
	}
	words := fmt.Sprintf("%s by %s (%s) at %s", ap.Status, ap.By, ap.Via, moment(ap.DecidedAt))
	if ap.Comment != "" {
		words += ": " + ap.Comment
	}
	return words
}

// gasOf is what transactions of our own may cost that carry e; empty where there
// are none.
func gasOf(e ledger.Entry) string {
	if e.Gas.IsZero() {
		return ""
	}
	n := fmt.Sprintf("%d transactions", len(e.Carries))
	if len(e.Carries) == 1 {
		n = "1 transaction"
	}
	return "at most " + e.Gas.Coin() + " of the chain's own coin, by " + n + " of ours"
}

func (a *app) printEntry(e ledger.Entry, events []ledger.Event, ruling string) {
	t := e.Terms
	a.fields(
		"payment", string(e.ID), "state", e.State.String(), "agent", e.Agent, "for", what(t), "purpose", e.Purpose, "key", e.Key,
		"cost", e.Cost.String(), "counts", counts(e), "amount", amount(t), "fee bound", feeBound(t), "gas", gasOf(e), "pays to", payees(t), "from", e.Payer.String(),
		"by", joined(t.Rail, t.Scheme), "chain", t.Asset.Chain.Name(), "token", t.Asset.Address.String(), "terms", e.TermsHash.String(),
		"policy", e.Policy.String(), "approval", string(e.ApprovalID), "slot", e.Slot.String(), "realm", show(e.Realm, 200),
	)
	for _, c := range a.teller().Tell(e, events, ruling) {
		a.printf("\n%s\n", c.Title)
		for _, line := range c.Lines {
			a.printf("  %s\n", line)
		}
	}
	a.printf("\nRecord\n")
	rows := make([][]string, len(events))
	for i, ev := range events {
		rows[i] = []string{strconv.FormatInt(ev.Seq, 10), ev.At.Local().Format("2006-01-02 15:04:05.000"), ev.From.String() + " -> " + ev.To.String(), ev.By.String(), ev.Hash.String()[:16]}
	}
	a.table([]string{"#", "AT", "MOVE", "BY", "HASH"}, rows)
}

// counts is what counts of e in the caps, where that is not its cost.
func counts(e ledger.Entry) string {
	if e.AuthorizedAt.IsZero() || e.Spent == e.Cost {
		return ""
	}
	return e.Spent.String()
}

// cameBack are the names and values of what the seller said of e.
func cameBack(e ledger.Entry) []string {
	status := ""
	if e.HTTP != 0 {
		status = fmt.Sprintf("HTTP %d", e.HTTP)
		if !e.Delivered {
			status += ", not delivered"
		}
	}
	claim := ""
	if e.Receipt.Claim != payment.ClaimNone {
		claim = e.Receipt.Claim.String()
	}
	return []string{
		"answer", status, "seller claims", claim, "tx", e.Receipt.TxHash,
		"seller's code", e.Receipt.Code, "seller's words", e.Receipt.Message,
	}
}
