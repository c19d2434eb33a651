package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

func (a *app) approvalsWaitCommand() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a person has ruled",
		Long: `Wait ends when the approval is decided or expired, or after --timeout. It pays
nothing. It exits 0 for approved, 4 for denied or expired, 3 where it still waits.`,
		Example:           "  canopy approvals wait appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --timeout 5m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeApprovals(false),
		RunE: func(c *cobra.Command, args []string) error {
			f, s, err := a.fileAndStore()
			if err != nil {
				return err
			}
			defer s.Close()
			ctx := c.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			ap, e, err := a.await(ctx, s, args[0])
			if err != nil {
				return err
			}
			switch ap.Status {
			case ledger.ApprovalPending:
				a.code = codePending
			case ledger.ApprovalRefused, ledger.ApprovalLapsed:
				a.code = codeDenied
			}
			why, err := a.blocked(c.Context(), f, s, ap)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(shape.ApprovalOf(ap, e, why != ""))
			}
			a.fields("approval", string(ap.ID), "status", ap.Status.String(), "by", ap.By, "comment", ap.Comment)
			a.next(ap, e, why)
			return nil
		},
	}
	lengthVar(c.Flags(), &timeout, "timeout", "", "give up after `SECONDS`, or such as 5m (default: wait until it is decided or expires)")
	return c
}

// await polls until the approval is no longer pending or ctx ends; then it
// returns how it stands.
func (a *app) await(ctx context.Context, s ledger.Store, id string) (ledger.Approval, ledger.Entry, error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		ap, e, err := a.approvalOf(context.WithoutCancel(ctx), s, id)
		if err != nil || ap.Status != ledger.ApprovalPending || ctx.Err() != nil {
			return ap, e, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}
