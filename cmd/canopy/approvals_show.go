package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

func (a *app) approvalsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show one approval with the terms that would be paid",
		Example:           "  canopy approvals show appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeApprovals(true),
		RunE: func(c *cobra.Command, args []string) error {
			f, s, err := a.fileAndStore()
			if err != nil {
				return err
			}
			defer s.Close()
			ap, e, err := a.approvalOf(c.Context(), s, args[0])
			if err != nil {
				return err
			}
			why, err := a.blocked(c.Context(), f, s, ap)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(shape.ApprovalOf(ap, e, why != ""))
			}
			a.printTerms(c.Context(), s, ap)
			if most := gasBeside(f, ap.Terms); most != "" {
				a.printf("note: beside it at most %s of the chain's own coin, by a transaction of ours (max_gas of today; it is not part of the terms)\n", show(most, 80))
			}
			a.next(ap, e, why)
			return nil
		},
	}
}

// gasBeside is what a transaction of ours that carries t may cost as f is now;
// empty where somebody else submits it.
func gasBeside(f *config.File, t payment.Terms) string {
	for _, c := range f.Chains {
		if c.ID == t.Asset.Chain && c.Facilitator == "" && t.IsTransfer() && t.Rail == "x402" {
			return c.MaxGas
		}
	}
	return ""
}

// next says what to do about an approval; why is what blocks its payment now.
func (a *app) next(ap ledger.Approval, e ledger.Entry, why string) {
	switch shape.Next(ap, e, why != "") {
	case shape.NextWait:
		if ap.Status == ledger.ApprovalPending {
			a.note("Rule on it with: canopy approvals approve %s, or deny", ap.ID)
		} else {
			a.note("Its payment is on the way: canopy ledger show %s", e.ID)
		}
	case shape.NextFetch, shape.NextPay:
		a.note("The agent's same call again pays it, once, before %s.", moment(ap.ExpiresAt))
	case shape.NextRetryLater:
		a.note("Approved, and not to be paid now: %s", show(why, 400))
	case shape.NextPaid:
		a.note("Paid: canopy ledger show %s", e.ID)
	case shape.NextInDoubt:
		a.note("Carried out, and in doubt: canopy ledger show %s", e.ID)
	}
}

// blocked tells why a granted approval could not be carried out now, a full cap
// or a freeze, and "" where it could. Nothing is reserved.
func (a *app) blocked(ctx context.Context, f *config.File, s ledger.Store, ap ledger.Approval) (string, error) {
	if ap.Status != ledger.ApprovalGranted || !ap.UsedAt.IsZero() {
		return "", nil
	}
	if fr, ok := s.(ledger.Freezer); ok {
		if frozen, why, err := fr.Frozen(ctx, ap.Agent); frozen || err != nil {
			return "frozen: " + why, err
		}
	}
	p := payment.Payment{ID: ap.Payment, Agent: ap.Agent, Terms: ap.Terms, Purpose: ap.Purpose}
	if o, err := host.ParseOrigin(ap.Terms.Origin); err == nil {
		p.Host, p.Port = o.Host, o.Port
	}
	now := a.now()
	past, err := ledger.PastOf(ctx, s, f.Policy, &p)
	if err != nil {
		return "", err
	}
	v := f.Policy.Evaluate(p, now, policy.History{Past: past})
	uses, err := s.Use(ctx, v.Limits, now)
	if err != nil {
		return "", err
	}
	if ap.Override {
		uses = slices.DeleteFunc(uses, func(u policy.Use) bool { return ledger.Yields(u.Limit) })
	}
	if v = v.Apply(uses); v.Status == payment.Denied {
		return v.Reason(), nil
	}
	return "", nil
}
