package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
)

// pinned is what policy pin, unpin and versions print of a pin.
type pinned struct {
	Policy *string `json:"policySha256"` // null where the pin was taken out
	At     *string `json:"at"`
	By     string  `json:"by"`
	Reason string  `json:"reason"`
	Holds  bool    `json:"holds"` // it is the one that holds now
}

func (a *app) policyPinCommand() *cobra.Command {
	return a.pinCommand(&cobra.Command{
		Use:   "pin --reason TEXT",
		Short: "Let no other document decide than this one, as it is now",
		Long: `Pin records the hash and the text of the configuration, as it is now, in the
ledger. From then on a payment that another document judged is denied, in every
process: who changes the file changes nothing until it is pinned again. A program
that runs goes on with the document that it read.

Where the pinned document names approvers, one of them has to pin or unpin, with
their credential.`,
		Example: `  canopy policy pin --reason "a cap for the new feed"`,
	}, true)
}

func (a *app) policyUnpinCommand() *cobra.Command {
	return a.pinCommand(&cobra.Command{
		Use:     "unpin --reason TEXT",
		Short:   "Let whatever document a program reads decide",
		Example: `  canopy policy unpin --reason "trying out limits"`,
	}, false)
}

func (a *app) pinCommand(c *cobra.Command, pins bool) *cobra.Command {
	var by, reason string
	var proof *credentials
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		f, s, err := a.fileAndStore()
		if err != nil {
			return err
		}
		defer s.Close()
		if err := notAgent(by, append(f.Policy.Agents(), a.agentName())...); err != nil {
			return usage(c, err)
		}
		p, ok := s.(ledger.Pinner)
		if !ok {
			return errors.New("this ledger pins no policy")
		}
		if by, err = a.mayPin(c.Context(), s, p, by, proof); err != nil {
			return err
		}
		pin := ledger.Pin{By: by, Reason: reason}
		if pins {
			text, err := os.ReadFile(f.Path)
			if err != nil {
				return exit{codeUsage, err}
			}
			if pin.Policy = f.Policy.Hash(); sha256.Sum256(text) != pin.Policy {
				return errors.New("the file was changed while it was read: look at it again")
			}
			pin.Document = string(text)
		}
		if err := p.Pin(c.Context(), pin); err != nil {
			return err
		}
		all, err := p.Pins(c.Context())
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(pinnedOf(all)[0])
		}
		if pins {
			a.printf("Pinned: %s, policy %s\n", show(f.Path, 300), short8(pin.Policy[:]))
			return nil
		}
		a.printf("No policy is pinned any more.\n")
		return nil
	}
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` for the record")
	c.Flags().StringVar(&by, "by", me(), "`NAME` of who does it")
	c.MarkFlagRequired("reason")
	proof = a.credentialFlag(c)
	return c
}

// mayPin is the name of who pins: of an approver, where the pinned document
// names any.
func (a *app) mayPin(ctx context.Context, s ledger.Store, p ledger.Pinner, by string, proof *credentials) (string, error) {
	names, err := pinApprovers(ctx, p)
	if err != nil || len(names) == 0 {
		return by, err
	}
	credential, err := proof.get(ctx)
	if err != nil {
		return "", err
	}
	people, err := approvals.NewRegister(s, a.now)
	if err != nil {
		return "", err
	}
	who, err := people.Check(ctx, credential.Reveal())
	if err != nil {
		return "", exit{codeFailed, err}
	}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, who) }) {
		return "", exit{codeFailed, fmt.Errorf("the pinned policy names %s, and %s is none of them", strings.Join(names, ", "), who)}
	}
	return who, nil
}

// pinApprovers are the people whom the pinned document names.
func pinApprovers(ctx context.Context, p ledger.Pinner) ([]string, error) {
	pin, err := p.Pinned(ctx)
	if err != nil || pin.Policy.IsZero() {
		return nil, err
	}
	f, err := config.Parse("the pinned policy", []byte(pin.Document))
	if err != nil {
		return nil, fmt.Errorf("the pinned policy cannot be read by this canopy: %w", err)
	}
	var names []string
	for _, agent := range f.Policy.Agents() {
		if t, ok := f.Policy.Table(agent); ok {
			names = append(names, t.Approvers...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (a *app) policyVersionsCommand() *cobra.Command {
	var document bool
	c := &cobra.Command{
		Use:   "versions",
		Short: "List which policies were pinned, newest first",
		Long: `Versions lists what policy pin and policy unpin did. Each decision on the ledger
has the hash of the document that made it: see canopy ledger show. With --document
the text of the pinned one is printed.`,
		Example: `  canopy policy versions
  canopy policy versions --document > pinned.toml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, s, err := a.fileAndStore()
			if err != nil {
				return err
			}
			defer s.Close()
			p, ok := s.(ledger.Pinner)
			if !ok {
				return errors.New("this ledger pins no policy")
			}
			if document {
				pin, err := p.Pinned(c.Context())
				if err == nil && pin.Policy.IsZero() {
					err = errors.New("no policy is pinned")
				}
				if err != nil {
					return err
				}
				a.printf("%s", pin.Document)
				return nil
			}
			all, err := p.Pins(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(pinnedOf(all))
			}
			a.printPins(f, all)
			return nil
		},
	}
	c.Flags().BoolVar(&document, "document", false, "print the text of the pinned one")
	return c
}

func (a *app) printPins(f *config.File, all []ledger.Pin) {
	if len(all) == 0 {
		a.printf("No policy was ever pinned: whatever document a program reads decides.\n")
		return
	}
	var rows [][]string
	for i, p := range all {
		what, now := "unpinned", ""
		if !p.Policy.IsZero() {
			what = short8(p.Policy[:])
			if i == 0 {
				now = "holds"
			}
		}
		rows = append(rows, []string{p.At.Local().Format("2006-01-02 15:04:05"), what, now, p.By, p.Reason})
	}
	a.table([]string{"TIME", "POLICY", "", "BY", "REASON"}, rows)
	if hash := f.Policy.Hash(); !all[0].Policy.IsZero() && all[0].Policy != hash {
		a.note("warning: %s is not the pinned one (it is %s): payments that it judges are denied until canopy policy pin", show(f.Path, 300), short8(hash[:]))
	}
}

func pinnedOf(all []ledger.Pin) []pinned {
	out := []pinned{}
	for i, p := range all {
		v := pinned{At: utc(p.At), By: p.By, Reason: p.Reason, Holds: i == 0 && !p.Policy.IsZero()}
		if !p.Policy.IsZero() {
			v.Policy = orNil(hex.EncodeToString(p.Policy[:]))
		}
		out = append(out, v)
	}
	return out
}

// short8 is the beginning of a hash, for people.
func short8(hash []byte) string { return hex.EncodeToString(hash[:8]) }
