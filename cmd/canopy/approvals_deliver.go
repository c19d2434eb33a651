package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// undelivered is one message that a webhook has yet to deliver.
type undelivered struct {
	Webhook    string             `json:"webhook"`
	ApprovalID payment.ApprovalID `json:"approvalId"`
	Attempts   int                `json:"attempts"`
	NextAt     *string            `json:"nextAt"` // null: at once
	Failure    *string            `json:"failure"`
}

func (a *app) approvalsDeliverCommand() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "deliver",
		Short: "Deliver what webhooks have yet to tell, and show what could not be",
		Long: `Deliver posts to the webhooks of the file what is due: requests that wait for a
person, and how those ended that were told. A payment tells its own request at
once; what fails then is tried again, with growing pauses, by canopy dashboard,
canopy reconcile --every and this command. It exits 1 while something is
undelivered.`,
		Example: `  canopy approvals deliver
  canopy approvals deliver --every 10s`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if every != 0 && every < time.Second {
				return usage(c, errors.New("--every is at least 1s"))
			}
			f, s, err := a.fileAndStore()
			if err != nil {
				return err
			}
			defer s.Close()
			if len(f.Webhooks) == 0 {
				return exit{codeUsage, errors.New("the file has no [[webhook]]: see docs/approvals.md")}
			}
			hooks, err := f.OpenWebhooks(s)
			if err != nil {
				return exit{codeUsage, err}
			}
			if every != 0 {
				a.runWebhooks(c.Context(), hooks, every)()
				return nil // told to end
			}
			for _, h := range hooks {
				if err := h.Deliver(c.Context()); err != nil {
					a.note("%s", show(err.Error(), 500))
				}
			}
			return a.printUndelivered(c.Context(), s, hooks)
		},
	}
	lengthVar(c.Flags(), &every, "every", "", "go on for ever, with `SECONDS`, or such as 1m, between rounds")
	return c
}

// printUndelivered tells what is still due, and leaves code 1 where anything is.
func (a *app) printUndelivered(ctx context.Context, s ledger.Store, hooks []*approvals.Webhook) error {
	box, ok := s.(ledger.Deliveries)
	if !ok {
		return fmt.Errorf("a %T keeps no deliveries", s)
	}
	out, rows := []undelivered{}, [][]string{}
	for _, h := range hooks {
		due, err := box.Undelivered(ctx, h.Name(), a.now())
		if err != nil {
			return err
		}
		for _, u := range due {
			out = append(out, undelivered{h.Name(), u.Approval, u.Attempts, utc(u.NextAt), orNil(u.Failure)})
			rows = append(rows, []string{h.Name(), string(u.Approval), fmt.Sprint(u.Attempts), moment(u.NextAt), u.Failure})
		}
	}
	if len(out) > 0 {
		a.code = codeFailed
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(out) == 0 {
		a.printf("Everything was delivered.\n")
		return nil
	}
	a.table([]string{"WEBHOOK", "APPROVAL", "ATTEMPTS", "NEXT", "FAILURE"}, rows)
	return nil
}

// deliverEvery is how often programs that live long look for what is due.
const deliverEvery = 5 * time.Second

// deliverBeside runs the webhooks of a file beside what else a command does, and
// returns what waits for their end, which is that of ctx. Webhooks that cannot
// run are told, and stop nothing.
func (a *app) deliverBeside(ctx context.Context, f *config.File, s ledger.Store) (wait func()) {
	hooks, err := f.OpenWebhooks(s)
	if err != nil {
		a.note("warning: webhooks are not delivered: %s", show(err.Error(), 500))
		return func() {}
	}
	return a.runWebhooks(ctx, hooks, deliverEvery)
}

func (a *app) runWebhooks(ctx context.Context, hooks []*approvals.Webhook, every time.Duration) (wait func()) {
	var wg sync.WaitGroup
	for _, h := range hooks {
		wg.Go(func() { h.Run(ctx, every) })
	}
	return wg.Wait
}
