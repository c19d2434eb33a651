package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

func (a *app) approvalsCommand() *cobra.Command {
	return group("approvals", "Rule on the payments that wait for a person",
		`A payment that the policy leaves to people waits as an approval. It holds no
money. An approved one is carried out when the agent makes the same call again.`,
		a.approvalsListCommand(), a.approvalsShowCommand(),
		a.ruleCommand(true), a.ruleCommand(false), a.approvalsWaitCommand(), a.approvalsOverrideCommand(), a.approvalsWatchCommand(), a.approvalsDeliverCommand(),
	)
}

// approvalOf reads an approval and its payment.
func (a *app) approvalOf(ctx context.Context, s ledger.Store, id string) (ledger.Approval, ledger.Entry, error) {
	aid := payment.ApprovalID(id)
	if !aid.Valid() {
		return ledger.Approval{}, ledger.Entry{}, exit{codeUsage, fmt.Errorf("%q is not an approval's id: canopy approvals list shows them", show(id, 40))}
	}
	ap, err := s.Approvals().Approval(ctx, aid, a.now())
	if errors.Is(err, ledger.ErrNotFound) {
		err = fmt.Errorf("there is no approval %s on this ledger", id)
	}
	if err != nil {
		return ledger.Approval{}, ledger.Entry{}, err
	}
	e, err := s.Entry(ctx, ap.Payment)
	return ap, e, err
}

// printTerms shows what a person rules on: the stored terms, whole.
func (a *app) printTerms(ctx context.Context, s ledger.Store, ap ledger.Approval) {
	t := ap.Terms
	digest := ""
	if t.Method != "" && t.Method != "GET" && t.Method != "HEAD" {
		digest = fmt.Sprintf("sha256 %x", t.BodyDigest)
	}
	a.fields(
		"approval", string(ap.ID), "payment", string(ap.Payment), "status", ap.Status.String(),
		"agent", ap.Agent, "for", what(t), "body", digest, "cost", ap.Cost.String(), "amount", amount(t),
		"fee bound", feeBound(t), "pays to", payees(t), "chain", t.Asset.Chain.Name(), "token", t.Asset.Address.String(),
		"by", joined(t.Rail, t.Scheme), "asked because", ap.Reason, "agent says", ap.Purpose,
		"asked", moment(ap.CreatedAt), "until", moment(ap.ExpiresAt), "may rule", mayRule(ap), "override", overridden(ap), "votes", votes(ap),
		"decided", moment(ap.DecidedAt), "decided by", joined(ap.By, ap.Via), "comment", ap.Comment,
		"carried out", moment(ap.UsedAt), "terms", ap.TermsHash.String(),
	)
	if o, err := host.ParseOrigin(t.Origin); err == nil {
		if why := host.Suspicious(o.Host); why != "" {
			a.printf("warning: the host may not be what it looks like: %s\n", show(why, 200))
		}
	}
	if ap.Status == ledger.ApprovalPending && !paidBefore(ctx, s, t) {
		a.printf("note: nothing on this ledger was paid to %s before\n", t.Payee())
	}
}

// mayRule is whom the policy named, and how many of them it takes.
func mayRule(ap ledger.Approval) string {
	if len(ap.Approvers) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s", ap.Quorum, strings.Join(ap.Approvers, ", "))
}

// overridden says that a payment was let go over a cap.
func overridden(ap ledger.Approval) string {
	if !ap.Override {
		return ""
	}
	return "let go over the cap, once"
}

// votes are the answers of which several are needed, one a line.
func votes(ap ledger.Approval) string {
	if len(ap.Approvers) == 0 {
		return ""
	}
	lines := make([]string, len(ap.Votes))
	for i, v := range ap.Votes {
		lines[i] = fmt.Sprintf("%s by %s via %s, %s", yes(v.Approve), v.By, v.Via, moment(v.At))
		if v.Comment != "" {
			lines[i] += ": " + show(v.Comment, 300)
		}
	}
	return strings.Join(lines, "\n")
}

func yes(approve bool) string {
	if approve {
		return "yes"
	}
	return "no"
}

func feeBound(t payment.Terms) string {
	if t.FeeBound == 0 {
		return ""
	}
	return t.FeeBound.String()
}

// paidBefore reports whether the ledger has a payment to t's payee.
func paidBefore(ctx context.Context, s ledger.Store, t payment.Terms) bool {
	q := ledger.Query{States: []ledger.State{ledger.Claimed, ledger.Settled}, Limit: 10_000}
	if o, err := host.ParseOrigin(t.Origin); err == nil {
		q.Host = o.Host
	}
	for e, err := range s.Entries(ctx, q) {
		if err != nil {
			return false
		}
		if e.Terms.Payee() == t.Payee() {
			return true
		}
	}
	return false
}
