package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

func (a *app) approvalsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one approval with the terms that would be paid",
		Example: "  canopy approvals show appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
			ap, e, err := a.approvalOf(c.Context(), s, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(shape.ApprovalOf(ap, e, blocked(c.Context(), s, ap)))
			}
			a.printTerms(c.Context(), s, ap)
			a.next(shape.Next(ap, e, blocked(c.Context(), s, ap)), ap, e)
			return nil
		},
	}
}

// next says what to do about an approval.
func (a *app) next(next string, ap ledger.Approval, e ledger.Entry) {
	switch next {
	case shape.NextWait:
		if ap.Status == ledger.ApprovalPending {
			a.note("Rule on it with: canopy approvals approve %s, or deny", ap.ID)
		} else {
			a.note("Its payment is on the way: canopy ledger show %s", e.ID)
		}
	case shape.NextFetch, shape.NextPay:
		a.note("The agent's same call again pays it, once, before %s.", moment(ap.ExpiresAt))
	case shape.NextRetryLater:
		a.note("Approved, and it cannot be paid now: agent %s is frozen.", show(ap.Agent, 100))
	case shape.NextPaid:
		a.note("Paid: canopy ledger show %s", e.ID)
	case shape.NextInDoubt:
		a.note("Carried out, and in doubt: canopy ledger show %s", e.ID)
	}
}

// blocked reports whether the agent's payments are stopped.
func blocked(ctx context.Context, s ledger.Store, ap ledger.Approval) bool {
	f, ok := s.(ledger.Freezer)
	if !ok {
		return false
	}
	frozen, _, err := f.Frozen(ctx, ap.Agent)
	return err != nil || frozen
}
