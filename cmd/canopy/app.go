package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// app is one run of the program: where it reads and writes, and the flags that
// every command has.
type app struct {
	in       io.Reader
	out, err io.Writer

	config  string
	agent   string
	json    bool
	verbose bool
	quiet   bool
	noColor bool

	asks map[payment.ChainID]bool // the chains whose nodes are asked, where a command tells of them

	freezer ledger.Freezer // of the ledger that was opened last, where it can

	code int // the outcome that a command left, where it ended without an error
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	a := &app{in: in, out: out, err: errw}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	completionCommand(root)
	if err := root.ExecuteContext(ctx); err != nil {
		return a.fail(err)
	}
	return a.code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "canopy",
		Short: "Let an agent pay, inside limits that you set",
		Long: `canopy fetches URLs and pays for them where a seller asks for it, inside the
policy of canopy.toml. A person rules on what the policy leaves to people, and
reads in the ledger what happened.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 waits for approval,
4 denied, 5 in doubt, 6 paid and not delivered.`,
		SuggestionsMinimumDistance: 2,
		Example: `  canopy init --allow host:feed.example
  canopy fetch https://feed.example/depth/btc-usd
  canopy approvals list
  canopy ledger list`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknown(c, args[0])
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if a.json {
				return needsCommand(c)
			}
			return c.Help()
		},
	}
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if !c.Flags().Changed("agent") {
			return nil
		}
		if err := policy.CheckName(a.agent); err != nil {
			return usage(c, fmt.Errorf("--agent %q: %w", show(a.agent, 80), err))
		}
		return nil
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, err) })
	f := root.PersistentFlags()
	f.StringVar(&a.config, "config", "", "configuration `FILE` (default $CANOPY_CONFIG, then ./canopy.toml)")
	f.StringVar(&a.agent, "agent", "", "whose money it is: the `NAME` of a policy (default \"default\")")
	f.BoolVar(&a.json, "json", false, "print JSON, and nothing else, on standard output")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "tell what happens, on standard error")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "no hints and no warnings")
	f.BoolVar(&a.noColor, "no-color", false, "no colours (also: NO_COLOR)")
	root.AddCommand(
		a.initCommand(), a.fetchCommand(), a.checkCommand(), a.payCommand(), a.previewCommand(), a.budgetCommand(), a.pingCommand(),
		a.approvalsCommand(), a.approversCommand(), a.ledgerCommand(), a.reconcileCommand(), a.freezeCommand(), a.unfreezeCommand(),
		a.dashboardCommand(), a.policyCommand(), a.configCommand(), a.versionCommand(),
	)
	root.RegisterFlagCompletionFunc("agent", a.completeAgents)
	strict(root)
	return root
}

// strict makes wrong arguments errors of usage in every command below c.
func strict(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usage(c, err)
			}
			return nil
		}
	}
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if err := c.ValidateRequiredFlags(); err != nil {
			return usage(c, err)
		}
		return nil
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// group is a command that only has commands below it.
func group(use, short, long string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, unknown(c, args[0]))
			}
			return needsCommand(c)
		},
	}
	c.AddCommand(subs...)
	return c
}

// needsCommand says which commands there are below c.
func needsCommand(c *cobra.Command) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" {
			names = append(names, sub.Name())
		}
	}
	return usage(c, fmt.Errorf("%s needs a command: %s", c.CommandPath(), strings.Join(names, ", ")))
}

// unknown says that there is no such command, and which one may be meant.
func unknown(c *cobra.Command, name string) error {
	err := fmt.Errorf("%s has no command %q", c.CommandPath(), show(name, 40))
	if near := c.SuggestionsFor(name); len(near) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, near[0])
	}
	return err
}

// agentName is the agent that pays.
func (a *app) agentName() string {
	if a.agent == "" {
		return "default"
	}
	return a.agent
}

// load reads the configuration.
func (a *app) load() (*config.File, error) {
	f, err := config.Load(a.config)
	if err != nil {
		return nil, exit{codeUsage, err}
	}
	for _, w := range f.Warnings {
		a.note("warning: %s", w)
	}
	if a.terminal() {
		f.Ask = a.askSecret
	}
	if a.verbose {
		f.Logger = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return f, nil
}

// client opens a client that pays; view one that only looks.
func (a *app) client(ctx context.Context, f *config.File) (*config.Client, error) {
	c, err := opened(f.Open(ctx, a.agentName()))
	if err == nil {
		a.freezer, _ = c.Store.(ledger.Freezer)
	}
	return c, err
}

func (a *app) view(ctx context.Context, f *config.File) (*config.View, error) {
	v, err := opened(f.View(ctx, a.agentName()))
	if err == nil {
		a.freezer, _ = v.Store.(ledger.Freezer)
	}
	return v, err
}

func opened[T any](c *T, err error) (*T, error) {
	if err != nil {
		return nil, exit{codeUsage, err}
	}
	return c, nil
}

// store opens the ledger.
func (a *app) store() (ledger.Store, error) {
	_, s, err := a.fileAndStore()
	return s, err
}

func (a *app) fileAndStore() (*config.File, ledger.Store, error) {
	f, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	s, err := f.OpenLedger()
	if err != nil {
		return nil, nil, exit{codeUsage, err}
	}
	return f, s, nil
}

// printJSON writes v on standard output.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// printf writes for people on standard output.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// note writes for people on standard error, unless they want quiet.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// fail reports err and returns its exit code.
func (a *app) fail(err error) int {
	e := exit{codeFailed, err}
	errors.As(err, &e)
	if e.err == nil { // everything is said
		return e.code
	}
	if a.json {
		a.printJSON(shape.Error(e.err))
		return e.code
	}
	text := e.err.Error()
	if !strings.HasPrefix(text, "canopy: ") {
		text = "canopy: " + text
	}
	fmt.Fprintln(a.err, visibleLines(text))
	return e.code
}
