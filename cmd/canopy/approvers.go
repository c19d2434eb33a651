package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

func (a *app) approversCommand() *cobra.Command {
	return group("approvers", "Say who may rule on payments, each with a credential of their own",
		`The people whom a policy names in approvers rule with a credential each. It is
shown once, when it is made; the ledger keeps a hash of it. Give it to its person
and never to the program that runs the agent.`,
		a.approversAddCommand(), a.approversRotateCommand(), a.approversRevokeCommand(), a.approversListCommand(),
	)
}

// register opens the register of the ledger; the caller closes the store.
func (a *app) register() (*config.File, ledger.Store, *approvals.Register, error) {
	f, s, err := a.fileAndStore()
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := approvals.NewRegister(s, a.now)
	if err != nil {
		s.Close()
		return nil, nil, nil, err
	}
	return f, s, r, nil
}

func (a *app) approversAddCommand() *cobra.Command {
	return a.credentialCommand(&cobra.Command{
		Use:   "add NAME",
		Short: "Let a person rule, and show their credential, once",
		Long: `Add makes a credential of 256 random bits for a person. It is shown this once, or
with --credential-file written to a new file that only you can read. A policy
lets the person rule where its approvers name them.`,
		Example: `  canopy approvers add ana
  canopy approvers add ben --credential-file ben.credential`,
	}, func(ctx context.Context, f *config.File, r *approvals.Register, name string) (approvals.Credential, error) {
		if err := notAgent(name, append(f.Policy.Agents(), "default")...); err != nil {
			return "", exit{codeUsage, fmt.Errorf("an agent has the name %s, and no agent approves", show(name, 80))}
		}
		return r.Add(ctx, name)
	})
}

func (a *app) approversRotateCommand() *cobra.Command {
	return a.credentialCommand(&cobra.Command{
		Use:   "rotate NAME",
		Short: "Give a person a new credential; the old one is dead at once",
		Long: `Rotate puts a new credential in the place of a person's last one, which is dead in
every process when the command returns. The new one is shown this once, or written
to a new file that only you can read.`,
		Example: "  canopy approvers rotate ana",
	}, func(ctx context.Context, _ *config.File, r *approvals.Register, name string) (approvals.Credential, error) {
		return r.Rotate(ctx, name)
	})
}

// credentialCommand is a command that makes a credential, and shows it once.
func (a *app) credentialCommand(c *cobra.Command, make func(context.Context, *config.File, *approvals.Register, string) (approvals.Credential, error)) *cobra.Command {
	var path string
	c.Args = cobra.ExactArgs(1)
	c.ValidArgsFunction = cobra.NoFileCompletions
	c.RunE = func(c *cobra.Command, args []string) error {
		f, s, r, err := a.register()
		if err != nil {
			return err
		}
		defer s.Close()
		var file *os.File
		if path != "" { // before the credential is made: nobody would ever see it
			if file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
				return exit{codeUsage, fmt.Errorf("--credential-file: nothing was changed: %w", err)}
			}
			defer file.Close()
		}
		credential, err := make(c.Context(), f, r, args[0])
		if err != nil {
			if file != nil {
				os.Remove(path)
			}
			return approverError(err, args[0])
		}
		name, _ := credential.Name()
		if file != nil {
			if _, err = fmt.Fprintln(file, credential.Reveal()); err == nil {
				err = file.Sync()
			}
			if err != nil {
				return fmt.Errorf("--credential-file: %w: make another with canopy approvers rotate %s", err, name)
			}
		}
		if a.json {
			out := shape.CredentialOf(name, credential.Reveal())
			if file != nil {
				out.Credential = nil
			}
			return a.printJSON(out)
		}
		a.note("%s may rule where a policy names them as an approver.", name)
		if file != nil {
			a.note("The credential is in %s: give it to %s, and keep it from the agent.", show(path, 300), name)
			return nil
		}
		a.note("The credential, shown this once: give it to %s, and keep it from the agent.", name)
		a.printf("%s\n", credential.Reveal())
		if !named(f, name) {
			a.note("No policy names %s yet: add approvers = [%q] to it.", name, name)
		}
		return nil
	}
	c.Flags().StringVar(&path, "credential-file", "", "write the credential to this new `FILE`, and do not show it")
	return c
}

// named reports whether a table of the policy names the approver.
func named(f *config.File, name string) bool { return len(namedBy(f, name)) > 0 }

func namedBy(f *config.File, name string) []string {
	out := []string{}
	for _, table := range f.Policy.Agents() {
		t, _ := f.Policy.Table(table)
		if slices.ContainsFunc(t.Approvers, func(n string) bool { return strings.EqualFold(n, name) }) {
			out = append(out, table)
		}
	}
	return out
}

// approverError says what is wrong with a name.
func approverError(err error, name string) error {
	switch {
	case errors.Is(err, approvals.ErrApproverExists):
		return fmt.Errorf("an approver has the name %s already: canopy approvers rotate makes a new credential", show(name, 80))
	case errors.Is(err, approvals.ErrAgentName):
		return exit{codeUsage, fmt.Errorf("an agent has the name %s, and no agent approves", show(name, 80))}
	case errors.Is(err, ledger.ErrNotFound):
		return fmt.Errorf("no approver %s may rule: canopy approvers list shows them", show(name, 80))
	case ledger.CheckApprover(name) != nil:
		return exit{codeUsage, err}
	}
	return err
}

func (a *app) approversRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "End that a person may rule, in every process at once",
		Long: `A revoked person rules on nothing more. What they ruled stays; a yes of theirs to
what still waits for others does not count.`,
		Example:           "  canopy approvers revoke ben",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			f, s, r, err := a.register()
			if err != nil {
				return err
			}
			defer s.Close()
			if err := r.Revoke(c.Context(), args[0]); err != nil {
				return approverError(err, args[0])
			}
			if a.json {
				return a.printJSON(shape.Revoked{Status: "revoked", Name: args[0]})
			}
			a.printf("%s: %s\n", args[0], a.colour(red, "revoked"))
			for _, table := range namedBy(f, args[0]) {
				t, _ := f.Policy.Table(table)
				if left, err := able(c.Context(), r, t.Approvers); err == nil && left < max(t.Quorum, 1) {
					a.note("warning: policy %s needs %d of its approvers, and %d may rule: what waits there can only be denied", show(table, 80), max(t.Quorum, 1), left)
				}
			}
			return nil
		},
	}
}

// able is how many of these people may rule now.
func able(ctx context.Context, r *approvals.Register, names []string) (int, error) {
	all, err := r.List(ctx)
	n := 0
	for _, p := range all {
		if p.RevokedAt.IsZero() && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, p.Name) }) {
			n++
		}
	}
	return n, err
}

func (a *app) approversListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List who may rule, and who may no more",
		Example: "  canopy approvers list --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, s, r, err := a.register()
			if err != nil {
				return err
			}
			defer s.Close()
			all, err := r.List(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				out := make([]shape.Approver, len(all))
				for i, p := range all {
					out[i] = shape.ApproverOf(p.Name, p.CreatedAt, p.RotatedAt, p.RevokedAt, namedBy(f, p.Name))
				}
				return a.printJSON(out)
			}
			var missing []string
			for _, table := range f.Policy.Agents() {
				t, _ := f.Policy.Table(table)
				for _, name := range t.Approvers {
					there := slices.ContainsFunc(all, func(p approvals.Approver) bool { return p.RevokedAt.IsZero() && strings.EqualFold(p.Name, name) })
					if !there && !slices.Contains(missing, name) {
						missing = append(missing, name)
					}
				}
			}
			if len(all) == 0 {
				a.printf("Nobody has a credential yet: canopy approvers add NAME\n")
			} else {
				rows := make([][]string, len(all))
				for i, p := range all {
					status := "active"
					if !p.RevokedAt.IsZero() {
						status = "revoked"
					}
					rows[i] = []string{p.Name, status, moment(p.CreatedAt), moment(p.RotatedAt), moment(p.RevokedAt), strings.Join(namedBy(f, p.Name), " ")}
				}
				a.table([]string{"NAME", "STATUS", "ADDED", "ROTATED", "REVOKED", "NAMED BY POLICY"}, rows)
			}
			for _, name := range missing {
				a.note("A policy names %s, who has no credential: canopy approvers add %s", show(name, 80), show(name, 80))
			}
			return nil
		},
	}
}
