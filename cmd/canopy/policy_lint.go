package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/policy"
)

func (a *app) policyCommand() *cobra.Command {
	return group("policy", "Look after the policy", "", a.policyLintCommand(), a.policyExplainCommand(), a.policyDiffCommand(), a.policySimulateCommand(),
		a.policyPinCommand(), a.policyUnpinCommand(), a.policyVersionsCommand())
}

// linted is what policy lint prints.
type linted struct {
	OK       bool      `json:"ok"`
	File     string    `json:"file"`
	Problems []problem `json:"problems"` // why it is not a policy
	Findings []finding `json:"findings"` // what is legal and should be known
}

type finding struct {
	Level policy.Level `json:"level"` // note, warning or error
	Code  string       `json:"code"`
	Table *string      `json:"table"` // null for the document and [org]
	Line  int          `json:"line"`  // 0 where it has none
	Text  string       `json:"text"`
}

func (a *app) policyLintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lint [FILE]",
		Short: "Read a policy and tell what is wrong, or legal and rarely meant",
		Long: `Lint reads the policy in FILE, or in the configuration, and tells what each agent
can spend at worst. It exits 2 where it is no policy, and 1 where no payment, or
none of some kind, can ever pass.`,
		Example: `  canopy policy lint
  canopy policy lint staging.toml --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path := config.Find(a.config)
			if len(args) > 0 {
				path = args[0]
			}
			if _, err := os.Stat(path); err != nil {
				return exit{codeUsage, err}
			}
			out := linted{File: path, Problems: []problem{}, Findings: []finding{}}
			f, err := config.Load(path)
			var bad *config.Error
			switch {
			case errors.As(err, &bad):
				for _, p := range bad.Problems {
					out.Problems = append(out.Problems, problem{p.Line, p.Key, p.Text})
				}
				a.code = codeUsage
			case err != nil:
				return exit{codeUsage, err}
			default:
				for _, l := range policy.Lint(f.Policy) {
					w := finding{Level: l.Level, Code: l.Code, Line: lineOf(f, l), Text: l.Text}
					if l.Table != "" {
						w.Table = &l.Table
					}
					if l.Level == policy.Fault {
						a.code = codeFailed
					}
					out.Findings = append(out.Findings, w)
				}
				slices.SortStableFunc(out.Findings, func(a, b finding) int { return cmp.Compare(a.Line, b.Line) })
			}
			out.OK = a.code == codeDone
			if a.json {
				return a.printJSON(out)
			}
			if err != nil {
				return exit{codeUsage, err}
			}
			for _, w := range out.Findings {
				key := ""
				if w.Table != nil {
					key = "policy." + *w.Table
				}
				a.printf("%s: %s: %s (%s)\n", place(path, problem{w.Line, key, w.Text}), a.colour(levelColour(w.Level), w.Level.String()), show(w.Text, 500), w.Code)
			}
			if len(out.Findings) == 0 {
				a.printf("%s: nothing to say against it.\n", show(path, 300))
			}
			return nil
		},
	}
}

// lineOf is where l stands: what is about a whole table, at its head.
func lineOf(f *config.File, l policy.Finding) int {
	switch {
	case l.Line > 0:
		return l.Line
	case l.Table != "":
		return f.Line("policy." + l.Table)
	case l.Code == "no_default":
		return 0
	}
	return f.Line("org")
}

func place(path string, p problem) string {
	if p.Line > 0 {
		path = fmt.Sprintf("%s:%d", path, p.Line)
	}
	if p.Key != "" {
		path += ": " + p.Key
	}
	return show(path, 500)
}

func levelColour(l policy.Level) string {
	switch l {
	case policy.Fault:
		return red
	case policy.Warning:
		return yellow
	}
	return green
}
