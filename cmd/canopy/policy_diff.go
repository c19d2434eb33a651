package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/policy"
)

// differences is what policy diff prints.
type differences struct {
	Old         string       `json:"old"`
	New         string       `json:"new"`
	Differences []difference `json:"differences"`
	Tighter     int          `json:"tighter"`
	Looser      int          `json:"looser"`
	Mixed       int          `json:"mixed"`
}

type difference struct {
	Table  *string       `json:"table"` // null for [org]
	Key    *string       `json:"key"`   // null where one policy has no such table
	Was    *string       `json:"was"`   // null where there was none
	Is     *string       `json:"is"`
	Effect policy.Effect `json:"effect"` // tighter, looser or mixed
}

func (a *app) policyDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff [OLD] NEW",
		Short: "Tell in what one policy differs from another, and which way",
		Long: `Diff compares what two policies decide, with what tables inherit and every
default: spelling, order and comments are no difference. OLD is the policy of the
configuration where it is not given. Each difference is tighter (it can only
refuse or ask more), looser, or mixed.`,
		Example: `  canopy policy diff new.toml
  canopy policy diff yesterday.toml canopy.toml --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			paths := args
			if len(args) == 1 {
				paths = []string{config.Find(a.config), args[0]}
			}
			was, err := readPolicy(paths[0])
			if err != nil {
				return err
			}
			is, err := readPolicy(paths[1])
			if err != nil {
				return err
			}
			found := policy.Diff(was, is)
			out := differences{Old: paths[0], New: paths[1], Differences: []difference{}}
			for _, d := range found {
				out.Differences = append(out.Differences, difference{orNil(d.Table), orNil(d.Key), orNil(d.Was), orNil(d.Is), d.Effect})
				switch d.Effect {
				case policy.Tighter:
					out.Tighter++
				case policy.Looser:
					out.Looser++
				default:
					out.Mixed++
				}
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printDiff(found)
			if len(found) == 0 {
				a.printf("They decide the same.\n")
				return nil
			}
			a.printf("\n%s, %s, %s.\n", a.colour(green, fmt.Sprintf("%d tighter", out.Tighter)), a.colour(red, fmt.Sprintf("%d looser", out.Looser)), a.colour(yellow, fmt.Sprintf("%d mixed", out.Mixed)))
			return nil
		},
	}
}

// readPolicy is the policy of a file.
func readPolicy(path string) (*policy.Policy, error) {
	f, err := config.Load(path)
	if err != nil {
		return nil, exit{codeUsage, err}
	}
	return f.Policy, nil
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// printDiff prints the differences, one table after the other.
func (a *app) printDiff(found []policy.Difference) {
	last := "\x00"
	for _, d := range found {
		if d.Table != last {
			name := "[org]"
			if d.Table != "" {
				name = "[policy." + d.Table + "]"
			}
			a.printf("%s\n", show(name, 200))
			last = d.Table
		}
		key := cmp.Or(d.Key, "judged by")
		colour := map[policy.Effect]string{policy.Tighter: green, policy.Looser: red, policy.Mixed: yellow}[d.Effect]
		var change string
		switch {
		case d.Was == "":
			change = "+ " + d.Is
		case d.Is == "":
			change = "- " + d.Was
		default:
			change = d.Was + " -> " + d.Is
		}
		a.printf("  %-7s  %s: %s\n", a.colour(colour, fmt.Sprintf("%-7s", d.Effect)), key, show(change, 400))
	}
}
