package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

// ruleCommand is approve or deny.
func (a *app) ruleCommand(approve bool) *cobra.Command {
	var yes bool
	r := approvals.Ruling{Approve: approve}
	var from *credentials
	name, short := "deny", "Say no to a payment that waits"
	example := `  canopy approvals deny appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --by ana --reason "too dear"`
	if approve {
		name, short = "approve", "Let a payment that waits go, once, on the terms shown"
		example = `  canopy approvals approve appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C
  canopy approvals approve appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C --by ana --reason "for the report" --yes`
	}
	c := &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Long: `The stored terms are shown first, and what was shown is what the ruling is on.
It is recorded with the name of who made it, who is never the agent itself.
Where the policy names approvers, it takes the credential of one of them.`,
		Example:           example,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeApprovals(false),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
			ap, _, err := a.approvalOf(c.Context(), s, args[0])
			if err != nil {
				return err
			}
			if !a.json {
				a.printTerms(c.Context(), s, ap)
			}
			if ap.Status == ledger.ApprovalPending {
				if err := a.confirm(c.Context(), yes, ask(approve, ap)); err != nil {
					return err
				}
			}
			if len(ap.Approvers) > 0 && ap.Status == ledger.ApprovalPending || from.path != "" {
				credential, err := from.get(c.Context())
				if err != nil {
					return a.notRuled(err, ap)
				}
				r.Credential = credential.Reveal()
				if !c.Flags().Changed("by") {
					r.By, _ = credential.Name()
				}
			}
			r.TermsHash = ap.TermsHash // what was shown
			ruled, err := approvals.NewDesk(s, "cli", a.now).Rule(c.Context(), ap.ID, r)
			if err != nil {
				return a.notRuled(err, ruled)
			}
			if a.json {
				return a.printJSON(shape.RulingOf(ruled))
			}
			if ruled.Status == ledger.ApprovalPending {
				a.printf("%s by %s\n", ruled.Status, show(r.By, 100))
				a.note("%s", stillNeeded(ruled))
				return nil
			}
			a.printf("%s by %s\n", ruled.Status, show(ruled.By, 100))
			if approve {
				a.note("The agent's same call again pays it, once, before %s.", moment(ruled.ExpiresAt))
			}
			return nil
		},
	}
	c.Flags().StringVar(&r.By, "by", me(), "`NAME` of who rules; a credential tells it too")
	from = a.credentialFlag(c)
	c.Flags().StringVar(&r.Reason, "reason", "", "`TEXT` for the record")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	return c
}

func verb(approve bool) string {
	if approve {
		return "Approve"
	}
	return "Deny"
}

// ask is what a person confirms: how much, to whom, for which agent.
func ask(approve bool, ap ledger.Approval) string {
	to := ap.Terms.Payee().String()
	if o, err := host.ParseOrigin(ap.Terms.Origin); err == nil {
		to = o.Host + " (" + to + ")"
	}
	return fmt.Sprintf("%s %s to %s for agent %s?", verb(approve), ap.Cost, show(to, 300), show(ap.Agent, 100))
}

// notRuled reports a ruling that was not taken.
func (a *app) notRuled(err error, ap ledger.Approval) error {
	code := "failed"
	switch {
	case errors.Is(err, ledger.ErrDecided):
		code = "already_decided"
		if ap.Status != ledger.ApprovalPending {
			err = fmt.Errorf("approval %s is %s already", ap.ID, ap.Status)
		}
	case errors.Is(err, ledger.ErrTermsChanged):
		code = "terms_changed"
	case errors.Is(err, ledger.ErrSelf):
		code = "self_approval"
	case errors.Is(err, approvals.ErrNoName):
		code = "no_name"
	case errors.Is(err, ledger.ErrVoted):
		code = "already_voted"
	case errors.Is(err, approvals.ErrCredential):
		code = "credential"
	case errors.Is(err, ledger.ErrNotNamed):
		code = "not_named"
	case errors.Is(err, ledger.ErrNoApprovers):
		code = "no_approvers"
	case errors.Is(err, ledger.ErrNotOverridable):
		code = "not_overridable"
	case errors.Is(err, ledger.ErrFrozen):
		code = "frozen"
	case errors.Is(err, ledger.ErrClockSkew):
		code = "clock_skew"
	}
	if usage, ok := errors.AsType[exit](err); ok && usage.code == codeUsage {
		return err
	}
	if a.json {
		a.code = codeFailed
		return a.printJSON(shape.Refused(err, code))
	}
	return err
}

// stillNeeded says who has to say yes yet.
func stillNeeded(ap ledger.Approval) string {
	var left []string
	for _, name := range ap.Approvers {
		if !slices.ContainsFunc(ap.Votes, func(v ledger.Vote) bool { return strings.EqualFold(v.By, name) }) {
			left = append(left, name)
		}
	}
	return fmt.Sprintf("%d of %d have said yes: it waits for %d of %s", ap.Yes(), ap.Quorum, max(ap.Quorum-ap.Yes(), 1), show(strings.Join(left, ", "), 1000))
}
