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
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
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

func (a *app) printEntry(e ledger.Entry, events []ledger.Event, ruling string) {
	t := e.Terms
	a.fields(
		"payment", string(e.ID), "state", e.State.String(), "agent", e.Agent, "for", what(t), "purpose", e.Purpose, "key", e.Key,
		"cost", e.Cost.String(), "amount", amount(t), "fee bound", feeBound(t), "pays to", payees(t), "from", e.Payer.String(),
		"by", joined(t.Rail, t.Scheme), "chain", t.Asset.Chain.Name(), "token", t.Asset.Address.String(), "terms", e.TermsHash.String(),
	)
	a.printf("\nDecided\n")
	a.fields("  at", moment(e.CreatedAt), "  approval", string(e.ApprovalID), "  ruling", ruling, "  policy", e.Policy.String())
	if len(e.Reasons) == 0 {
		a.printf("  The policy allowed it.\n")
	}
	for _, r := range e.Reasons {
		a.printf("  %s (%s): %s\n", r.Status, show(r.Code, 80), show(r.Text, 400))
	}
	a.printf("\nSigned\n")
	if e.Slot.IsZero() {
		a.printf("  Nothing was signed.\n")
	} else {
		a.fields("  committed", moment(e.AuthorizedAt), "  valid until", moment(e.ValidBefore), "  slot", e.Slot.String(), "  sent", times(e.Sends)+", as far as recorded")
	}
	a.printf("\nWhat came back\n")
	a.printOutcome(e)
	a.printf("\nNext\n  %s\n", a.whatNext(e))
	a.printf("\nRecord\n")
	rows := make([][]string, len(events))
	for i, ev := range events {
		rows[i] = []string{strconv.FormatInt(ev.Seq, 10), ev.At.Local().Format("2006-01-02 15:04:05.000"), ev.From.String() + " -> " + ev.To.String(), ev.By.String(), ev.Hash.String()[:16]}
	}
	a.table([]string{"#", "AT", "MOVE", "BY", "HASH"}, rows)
}

func (a *app) printOutcome(e ledger.Entry) {
	came := cameBack(e)
	if e.HTTP == 0 && e.Receipt.Claim == payment.ClaimNone && e.Note == "" && e.Receipt.TxHash == "" {
		a.printf("  Nothing.\n")
		came = nil
	}
	came = append([]string{"outcome", moment(e.OutcomeAt)}, came...)
	came = append(came, "note", e.Note, "spent at", moment(e.SpentAt), "evidence", assumed(e))
	for i := 0; i < len(came); i += 2 {
		came[i] = "  " + came[i]
	}
	a.fields(came...)
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

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

func assumed(e ledger.Entry) string {
	if e.Assumed {
		return "assumed: an operator's word, or one node's"
	}
	return ""
}

// whatNext tells what will happen to e, and when.
func (a *app) whatNext(e ledger.Entry) string {
	held := e.Cost.String()
	resolve := a.command(fmt.Sprintf("ledger resolve %s --unused --reason \"it never moved\"", e.ID)) + ", or --settled TX"
	dead := !time.Now().Before(e.ValidBefore)
	switch e.State {
	case ledger.PendingApproval:
		return "A person rules on it: canopy approvals show " + string(e.ApprovalID)
	case ledger.Approved:
		return "The agent's same call again pays it, once."
	case ledger.Authorized:
		return "It is on its way. If its process ended, the next payment or opening of the ledger calls it in doubt."
	case ledger.Claimed:
		if e.Watched {
			return "Paid, by the seller's word. The chain confirms it."
		}
		return "Paid, by the seller's word. It counts as spent; no chain is asked to confirm it."
	case ledger.InDoubt:
		switch {
		case e.Watched:
			return held + " stays held until the chain shows the transfer, or that it can never move."
		case !dead:
			return fmt.Sprintf("It can still be settled until %s; until then the same call sends the same bytes. Afterwards %s counts as spent, unless an operator knows better, and says so then: %s", moment(e.ValidBefore), held, resolve)
		}
		return fmt.Sprintf("Its bytes are dead. %s counts as spent, unless an operator knows better: %s. An equal call is a new payment from %s.", held, resolve, moment(e.SafeAfter()))
	case ledger.NeedsOperator:
		return held + " stays held until an operator decides: " + resolve
	case ledger.Settled:
		return "Nothing: it is settled."
	}
	return "Nothing: it ended without money."
}
