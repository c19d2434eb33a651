package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

func (a *app) ledgerCommand() *cobra.Command {
	return group("ledger", "Read the record of payments, and settle what only a person can",
		`The ledger has every payment that was decided: why, what was signed, what the
seller said, and what is still open.`,
		a.ledgerListCommand(), a.ledgerShowCommand(), a.ledgerExportCommand(), a.ledgerVerifyCommand(), a.ledgerAckCommand(), a.ledgerResolveCommand(),
	)
}

// entryOf reads the payment that id names: its own id, or that of its approval.
func (a *app) entryOf(ctx context.Context, s ledger.Store, id string) (ledger.Entry, error) {
	if aid := payment.ApprovalID(id); aid.Valid() {
		_, e, err := a.approvalOf(ctx, s, id)
		return e, err
	}
	pid := payment.ID(id)
	if !pid.Valid() {
		return ledger.Entry{}, exit{codeUsage, fmt.Errorf("%q is not a payment's id: canopy ledger list shows them", show(id, 40))}
	}
	e, err := s.Entry(ctx, pid)
	if errors.Is(err, ledger.ErrNotFound) {
		err = fmt.Errorf("there is no payment %s on this ledger", id)
	}
	return e, err
}
