package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

func (a *app) approvalsOverrideCommand() *cobra.Command {
	var yes bool
	var reason string
	var ttl time.Duration
	var from *credentials
	c := &cobra.Command{
		Use:   "override PAYMENT_ID --reason TEXT",
		Short: "Let one payment that a cap denied go over it, once",
		Long: `Break-glass, for one of the approvers whom the policy names, with their credential:
a payment that was denied by caps of its policy table alone is approved on the same
terms. The agent's same call again pays it, once, within the hour; it counts in
every cap, and the record says who let it go and why. Nothing else yields: not a
freeze, a list, max_payment, a cap of [org] or a budget.`,
		Example:           `  canopy approvals override 01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --reason "the invoice is due today"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePayments(ledger.Denied),
		RunE: func(c *cobra.Command, args []string) error {
			if ttl < 0 || ttl > time.Hour {
				return usage(c, errors.New("--ttl is an hour at most"))
			}
			f, s, err := a.fileAndStore()
			if err != nil {
				return err
			}
			defer s.Close()
			e, err := a.deniedPayment(c.Context(), s, args[0])
			if err != nil {
				return err
			}
			power, ok := s.(ledger.Overrider)
			if !ok {
				return errors.New("this ledger lets nothing go over a cap")
			}
			if !a.json {
				a.printDenied(e)
			}
			question := fmt.Sprintf("Let %s to %s go over the cap, for agent %s?", e.Cost, show(oneOf(e.Host, e.Terms.Payee().String()), 300), show(e.Agent, 100))
			if err := a.confirm(c.Context(), yes, question); err != nil {
				return err
			}
			names, quorum := approversOf(f, e)
			if len(names) == 0 {
				return a.notRuled(ledger.ErrNoApprovers, ledger.Approval{})
			}
			credential, err := from.get(c.Context())
			if err != nil {
				return a.notRuled(err, ledger.Approval{})
			}
			by, _ := credential.Name()
			ap, err := power.Override(c.Context(), ledger.Override{
				Payment: e.ID, TermsHash: e.TermsHash, Policy: f.Policy.Hash(), Approvers: names, Quorum: quorum, By: by, Credential: credential.Reveal(),
				Via: "cli", Reason: reason, TTL: ttl, Now: a.now(),
			})
			if err != nil {
				return a.notRuled(err, ap)
			}
			if a.json {
				return a.printJSON(shape.RulingOf(ap))
			}
			a.printf("%s by %s, over the cap, as payment %s\n", ap.Status, show(ap.By, 100), ap.Payment)
			a.note("The agent's same call again pays it, once, before %s.", moment(ap.ExpiresAt))
			return nil
		},
	}
	from = a.credentialFlag(c)
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")
	lengthVar(c.Flags(), &ttl, "ttl", "", "how long it may be carried out: `SECONDS`, or such as 10m (default and at most 1h)")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	c.MarkFlagRequired("reason")
	return c
}

// deniedPayment reads the payment with this id.
func (a *app) deniedPayment(ctx context.Context, s ledger.Store, id string) (ledger.Entry, error) {
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

// printDenied shows the stored terms of a payment, and why it was denied.
func (a *app) printDenied(e ledger.Entry) {
	t := e.Terms
	pairs := []string{
		"payment", string(e.ID), "state", e.State.String(), "agent", e.Agent, "for", what(t), "cost", e.Cost.String(), "amount", amount(t),
		"fee bound", feeBound(t), "pays to", payees(t), "chain", t.Asset.Chain.Name(), "token", t.Asset.Address.String(),
		"by", joined(t.Rail, t.Scheme), "agent says", e.Purpose, "terms", e.TermsHash.String(),
	}
	for _, r := range e.Reasons {
		if r.Status == payment.Denied {
			pairs = append(pairs, "denied", r.Text)
		}
	}
	a.fields(pairs...)
}

// approversOf are whom the policy of e's agent names today.
func approversOf(f *config.File, e ledger.Entry) (names []string, quorum int) {
	t, _ := f.Policy.Table(e.Agent)
	return t.Approvers, t.Quorum
}
