package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/policy"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "Look after the configuration", "", a.configCheckCommand())
}

// checked is what config check prints.
type checked struct {
	OK       bool      `json:"ok"`
	Config   string    `json:"config"`
	Problems []problem `json:"problems"`
	Warnings []string  `json:"warnings"` // what is unsafe and works
	Notes    []string  `json:"notes"`    // what has no effect in this version
	Agents   []string  `json:"agents"`   // that have a policy of their own
	Address  *string   `json:"address"`  // that pays; null where it cannot be told without a secret
	Ledger   string    `json:"ledger,omitempty"`
	Policy   string    `json:"policySha256,omitempty"`

	Chains []shape.ChainState `json:"chains,omitempty"` // with --reach
}

type problem struct {
	Line int    `json:"line"` // 0 where it is not in one line
	Key  string `json:"key"`
	Text string `json:"text"`
}

func (a *app) configCheckCommand() *cobra.Command {
	var reach bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Read the configuration and tell everything that is wrong with it",
		Long: `Check reads the configuration as every command does, opens nothing and contacts
nobody, except with --reach the nodes of [[chain]]. It tells all problems at
once, what is unsafe, and which keys have no effect in this version. It exits 2
where there is a problem, and 1 where all that is wrong is that a chain is not
reached, or that a node serves another one.`,
		Example: `  canopy config check
  canopy config check --config /etc/canopy/canopy.toml --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out := checked{Config: config.Find(a.config), Problems: []problem{}, Warnings: []string{}, Notes: []string{}, Agents: []string{}}
			f, err := config.Load(a.config)
			out.add(err)
			if err == nil {
				a.lookAt(f, &out)
			}
			if len(out.Problems) > 0 {
				a.code = codeUsage
			}
			if err == nil && reach {
				a.lookOut(c.Context(), f, &out)
			}
			if out.OK = len(out.Problems) == 0; !out.OK && a.code == codeDone {
				a.code = codeFailed
			}
			if a.json {
				return a.printJSON(out)
			}
			if err != nil {
				return exit{codeUsage, err}
			}
			a.printChecked(out)
			return nil
		},
	}
	c.Flags().BoolVar(&reach, "reach", false, "ask the nodes of [[chain]] too")
	return c
}

// add takes over what the configuration says of itself.
func (out *checked) add(err error) {
	var bad *config.Error
	switch {
	case errors.As(err, &bad):
		for _, p := range bad.Problems {
			out.Problems = append(out.Problems, problem{p.Line, p.Key, p.Text})
		}
	case err != nil:
		out.Problems = append(out.Problems, problem{Text: strings.TrimPrefix(err.Error(), "config: ")})
	}
}

// lookOut asks the chains, and each node by itself: one that is wrong stands out
// also where enough others answer.
func (a *app) lookOut(ctx context.Context, f *config.File, out *checked) {
	chains, err := f.ConnectChains()
	if err != nil {
		if len(out.Problems) == 0 { // a variable that is not set here
			out.add(err)
		}
		return
	}
	nodes, err := f.ConnectNodes()
	if err != nil {
		out.add(err)
		return
	}
	account, _ := f.Account() // told above
	out.Chains = a.reach(ctx, chains, f, account)
	failed, told := map[string]string{}, map[string]bool{}
	for _, c := range out.Chains {
		if !c.OK {
			failed[c.Name] = c.Error
		}
	}
	for _, u := range a.reachNodes(ctx, nodes) {
		name, text := u.ID().Name(), "not reached: "+show(u.err.Error(), 400)
		if failed[name] == "" && !u.wrong() { // enough others answer
			out.Warnings = append(out.Warnings, u.Key+": "+text)
			continue
		}
		told[name] = true
		out.Problems = append(out.Problems, problem{f.Line(u.Key), u.Key, text})
	}
	for i, c := range f.Chains { // each node answers, and together they do not
		name, key := c.ID.Name(), fmt.Sprintf("chain[%d]", i)
		if failed[name] != "" && !told[name] {
			out.Problems = append(out.Problems, problem{f.Line(key), key, "not reached: " + failed[name]})
		}
	}
}

// lookAt adds what a right file leaves open.
func (a *app) lookAt(f *config.File, out *checked) {
	out.Warnings = append(out.Warnings, f.Warnings...)
	out.Notes = append(out.Notes, f.Notes...)
	out.Agents = append(out.Agents, f.Policy.Agents()...)
	out.Ledger, out.Policy = f.Ledger.Path, f.Policy.Hash().String()
	for _, l := range policy.Lint(f.Policy) {
		if l.Level == policy.Fault {
			key := "policy"
			if l.Table != "" {
				key += "." + l.Table
			}
			out.Problems = append(out.Problems, problem{lineOf(f, l), key, l.Text + " (" + l.Code + ")"})
		} else if l.Level > policy.Note {
			out.Warnings = append(out.Warnings, "policy: "+l.String())
		}
	}
	asked := false
	a.lookAround(f, out)
	for i, c := range f.Chains {
		asked = asked || len(c.RPC)+len(c.RPCEnv) > 0
		if len(c.RPC)+len(c.RPCEnv) == 1 {
			out.Warnings = append(out.Warnings, fmt.Sprintf("chain[%d]: has one node: what it says is released on its word alone: add one of somebody else to rpc", i))
		}
		if c.MaxGas != "" && c.Facilitator == "" {
			day := c.GasPerDay
			if day == "" {
				day = "ten times that"
			}
			out.Notes = append(out.Notes, fmt.Sprintf("chain[%d]: direct transfers go by transactions of our own, of at most %s of the chain's coin each, and %s in 24 h", i, c.MaxGas, day))
		}
		if h := sharedHost(c); h != "" {
			out.Warnings = append(out.Warnings, fmt.Sprintf("chain[%d]: has two nodes at %s: they may be one source, whose word then counts twice: name one of somebody else", i, h))
		}
	}
	if !asked {
		out.Notes = append(out.Notes, "chain: none names an rpc: no chain is asked what became of a payment, and what was authorized counts as spent")
	}
	t := f.Treasury
	account, err := f.Account()
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		out.Problems = append(out.Problems, problem{f.Line("treasury.keystore"), "treasury.keystore", "there is no " + t.Keystore})
	case err != nil:
		out.Warnings = append(out.Warnings, err.Error())
	case t.KeyEnv == "" && t.Keystore == "":
		out.Warnings = append(out.Warnings, "treasury: names no key, so that nothing can be paid")
	case account.IsZero():
		out.Warnings = append(out.Warnings, "treasury.key_env: environment variable "+t.KeyEnv+" is not set here")
	default:
		address := account.String()
		out.Address = &address
	}
	if t.PasswordEnv != "" && os.Getenv(t.PasswordEnv) == "" {
		out.Warnings = append(out.Warnings, "treasury.password_env: environment variable "+t.PasswordEnv+" is not set here")
	}
}

// lookAround looks at the environment variables of [[chain]], and at what is
// made of them.
func (a *app) lookAround(f *config.File, out *checked) {
	unset := false
	look := func(key, name string) {
		if os.Getenv(name) == "" {
			unset = true
			out.Warnings = append(out.Warnings, key+": environment variable "+name+" is not set here, and without it nothing opens")
		}
	}
	for i, c := range f.Chains {
		for j, name := range c.RPCEnv {
			look(fmt.Sprintf("chain[%d].rpc_env[%d]", i, j), name)
		}
		if c.FacilitatorHeadersEnv != "" {
			look(fmt.Sprintf("chain[%d].facilitator_headers_env", i), c.FacilitatorHeadersEnv)
		}
	}
	if !unset {
		out.add(f.Check())
	}
}

// sharedHost is a host that two nodes of c are on, or nothing. All names of this
// machine are one.
func sharedHost(c config.Chain) string {
	urls := slices.Clone(c.RPC)
	for _, name := range c.RPCEnv {
		urls = append(urls, os.Getenv(name))
	}
	seen := map[string]bool{}
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			continue
		}
		name := strings.ToLower(u.Hostname())
		if h, err := host.Normalize(name); err == nil {
			name = h.Name
		}
		if local(name) {
			name = "this machine"
		}
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// local reports whether a host's name is one of this machine.
func local(name string) bool {
	a, err := netip.ParseAddr(name)
	if err == nil {
		return a.IsLoopback() || a.IsUnspecified()
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func (a *app) printChecked(out checked) {
	pairs := []string{"configuration", out.Config, "account", deref(out.Address), "ledger", out.Ledger, "policy", out.Policy}
	for _, agent := range out.Agents {
		pairs = append(pairs, "agent", show(agent, 100))
	}
	a.fields(append(pairs, chainFields(out.Chains)...)...)
	for _, p := range out.Problems {
		a.printf("problem: %s: %s\n", place(out.Config, p), show(p.Text, 500))
	}
	for _, w := range out.Warnings {
		a.printf("warning: %s\n", show(w, 500))
	}
	for _, n := range out.Notes {
		a.printf("note: %s\n", show(n, 500))
	}
	switch {
	case out.OK:
		a.printf("It is right.\n")
	case a.code == codeFailed:
		a.printf("The file is right, and not all that it names is reached.\n")
	default:
		a.printf("It is not right: %s.\n", count(int64(len(out.Problems)), "problem"))
	}
}
