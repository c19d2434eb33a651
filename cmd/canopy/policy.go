package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
)

func (a *app) policyCommand() *cobra.Command {
	return group("policy", "Look after the policy", "", a.policyLintCommand())
}

// linted is what policy lint prints.
type linted struct {
	OK       bool      `json:"ok"`
	File     string    `json:"file"`
	Problems []problem `json:"problems"` // why it is not a policy
	Findings []problem `json:"findings"` // what is legal and rarely meant
}

func (a *app) policyLintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lint [FILE]",
		Short: "Read a policy and tell what is wrong, or legal and rarely meant",
		Long: `Lint reads the policy in FILE, or in the configuration. It exits 2 where it is no
policy, and 0 where there are only findings.`,
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
			out := linted{File: path, Problems: []problem{}, Findings: []problem{}}
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
				out.Findings = append(out.Findings, findings(f)...)
			}
			out.OK = err == nil
			if a.json {
				return a.printJSON(out)
			}
			if err != nil {
				return exit{codeUsage, err}
			}
			for _, p := range out.Findings {
				a.printf("%s: %s\n", place(path, p), show(p.Text, 500))
			}
			if len(out.Findings) == 0 {
				a.printf("%s: nothing to say against it.\n", show(path, 300))
			}
			return nil
		},
	}
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

// findings are what the policy's own check says.
func findings(f *config.File) []problem {
	var out []problem
	return out
}
