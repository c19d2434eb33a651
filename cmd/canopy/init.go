package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/dial"
	"github.com/canopy-go/canopy/internal/host"
	"github.com/canopy-go/canopy/signer"
)

// setup is one call of canopy init.
type setup struct {
	*app
	document

	passwordEnv string
	existing    bool
}

// made is what init prints.
type made struct {
	Config   string   `json:"config"`
	Keystore *string  `json:"keystore"` // null with --key-env
	Address  *string  `json:"address"`  // null where it cannot be told
	Ledger   string   `json:"ledger"`
	Next     []string `json:"next"`
}

func (a *app) initCommand() *cobra.Command {
	s := &setup{app: a}
	c := &cobra.Command{
		Use:   "init",
		Short: "Make a configuration, a key and a cautious policy",
		Long: `Init writes canopy.toml (or the file that --config names) and a new encrypted key
beside it, both readable by you alone, and prints the address to fund. It never
overwrites a file. The password comes from the environment, or is asked for.`,
		Example: `  canopy init --allow host:feed.example
  CANOPY_PASSWORD=… canopy init --allow 'host:*.mpp.example' --cap '$20 / 24h' --json
  canopy init --key-env CANOPY_KEY`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return s.run(c) },
	}
	fl := c.Flags()
	fl.StringVar(&s.Keystore, "keystore", "key.json", "keystore `FILE` to make, relative to the configuration")
	fl.BoolVar(&s.existing, "existing-key", false, "the keystore is there already: use it as it is")
	fl.StringVar(&s.KeyEnv, "key-env", "", "environment variable `NAME` that holds a key, in place of a keystore")
	fl.StringVar(&s.passwordEnv, "password-env", "CANOPY_PASSWORD", "environment variable `NAME` that holds the password")
	fl.StringVar(&s.Org, "org", "", "`NAME` of the organisation")
	fl.StringArrayVar(&s.Allow, "allow", nil, "`ENTRY` that may be paid, such as host:feed.example; again for more")
	fl.StringArrayVar(&s.Caps, "cap", []string{"$5 / 24h"}, "`CAP` on what is spent; again for more")
	fl.StringVar(&s.MaxPayment, "max-payment", "$1", "the most that one payment may cost, in `USD`")
	fl.StringVar(&s.ApproveAbove, "approve-above", "$0.50", "above this many `USD` a person is asked; \"\" for never")
	fl.StringArrayVar(&s.AllowPrivate, "allow-private", nil, "private `RANGE` that may be dialled, such as 127.0.0.0/8; again for more")
	return c
}

func (s *setup) run(c *cobra.Command) error {
	path := config.Find(s.config)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return exit{codeUsage, fmt.Errorf("%s is there already, and init never overwrites: name another with --config", path)}
	}
	if s.KeyEnv != "" {
		if c.Flags().Changed("keystore") || s.existing {
			return usage(c, errors.New("--key-env and --keystore: choose one"))
		}
		s.Keystore = ""
	} else {
		s.PasswordEnv = s.passwordEnv
	}
	text := s.document.text()
	file, err := config.Parse(path, text) // before anything is written
	if err != nil {
		return exit{codeUsage, unwritten(err)}
	}
	out := made{Config: path, Ledger: file.Ledger.Path}
	if file.Treasury.Keystore != "" {
		if err := s.keystore(c.Context(), file); err != nil {
			return err
		}
		out.Keystore = &file.Treasury.Keystore
	}
	if err := writeNew(path, text); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if account, err := file.Account(); err == nil && !account.IsZero() {
		address := account.String()
		out.Address = &address
	}
	out.Next = s.steps(out, file)
	if s.json {
		return s.printJSON(out)
	}
	s.fields("configuration", out.Config, "key", deref(out.Keystore), "ledger", out.Ledger, "address", deref(out.Address))
	s.printf("\nNext\n")
	for _, step := range out.Next {
		s.printf("  %s\n", step)
	}
	return nil
}

// unwritten is err of a document that is not there yet: it has no lines to name.
func unwritten(err error) error {
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		return err
	}
	var all []error
	for _, p := range wrong.Problems {
		text := p.Text
		if p.Key != "" {
			text = p.Key + ": " + text
		}
		all = append(all, errors.New(text))
	}
	return fmt.Errorf("init: nothing was made: %w", errors.Join(all...))
}

// keystore makes the key, or looks at the one that is there.
func (s *setup) keystore(ctx context.Context, file *config.File) error {
	path := file.Treasury.Keystore
	_, err := os.Lstat(path)
	there := !errors.Is(err, fs.ErrNotExist)
	switch {
	case s.existing && !there:
		return exit{codeUsage, fmt.Errorf("--existing-key: there is no %s", path)}
	case s.existing:
		if _, err := file.Account(); err != nil {
			return exit{codeUsage, err}
		}
		return nil
	case there:
		return exit{codeUsage, fmt.Errorf("%s is there already, and init never overwrites: use it with --existing-key, or name another with --keystore", path)}
	}
	password, err := s.password(ctx)
	if err != nil {
		return exit{codeUsage, err}
	}
	if utf8.RuneCountInString(password) < 8 {
		s.note("warning: the password has fewer than 8 characters: whoever gets the file can guess it")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if _, err := signer.CreateKeystore(path, password); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return nil
}

// password takes the new key's password from the environment, or asks twice.
func (s *setup) password(ctx context.Context) (string, error) {
	if p := os.Getenv(s.passwordEnv); p != "" {
		return p, nil
	}
	if !s.terminal() {
		return "", fmt.Errorf("no password for the new key: set %s, or run this on a terminal", s.passwordEnv)
	}
	p, err := s.askSecret(ctx, "Password for the new key")
	if err != nil {
		return "", err
	}
	again, err := s.askSecret(ctx, "The same again")
	switch {
	case err != nil:
		return "", err
	case p == "":
		return "", errors.New("the password is empty: nothing was made")
	case p != again:
		return "", errors.New("the two passwords differ: nothing was made")
	}
	return p, nil
}

// steps are what to do next.
func (s *setup) steps(m made, file *config.File) []string {
	var steps []string
	if m.Address != nil {
		steps = append(steps, "Send USDC on Base, or a dollar on Tempo such as USDC.e (or on Base Sepolia and Tempo's test network, to try), to "+*m.Address)
	} else if s.KeyEnv != "" {
		steps = append(steps, "Set "+s.KeyEnv+" to a key of 64 hex digits")
	}
	if len(s.Allow) == 0 {
		steps = append(steps, "Add the sellers that may be paid to allow in "+m.Config+", as host:NAME")
	}
	for _, name := range s.shut(file) {
		steps = append(steps, fmt.Sprintf("To let %s be dialled, add allow_private = [%q] below [network] in %s (--allow-private of init): no private address is now", name.host, name.within, m.Config))
	}
	if m.Keystore != nil {
		steps = append(steps, "Set "+s.passwordEnv+" where the agent runs, and keep the password: without it the money is lost")
		steps = append(steps, "Keep "+*m.Keystore+" and the ledger out of version control")
	}
	return append(steps, "canopy config check, then canopy check URL, then canopy fetch URL")
}

// undialled is a host that may be paid, and the range that would let it be
// dialled.
type undialled struct{ host, within string }

// shut are the hosts of Allow on private addresses that [network] leaves out.
func (s *setup) shut(file *config.File) []undialled {
	var out []undialled
	network := dial.Config{AllowPrivate: file.Network.AllowPrivate}
	for _, entry := range s.Allow {
		for _, part := range strings.Fields(entry) {
			name, ok := strings.CutPrefix(part, "host:")
			h, err := host.Normalize(strings.TrimPrefix(name, "*."))
			if !ok || err != nil {
				continue
			}
			addr, is := h.Addr()
			if !is && (h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost")) {
				addr, is = netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
			}
			if !is || network.Check(h.Name, addr) == nil {
				continue
			}
			within := addr.String()
			if addr.Is4() && addr.IsLoopback() {
				within = "127.0.0.0/8"
			}
			if u := (undialled{h.Name, within}); !slices.Contains(out, u) {
				out = append(out, u)
			}
		}
	}
	return out
}

// writeNew writes a file that was not there, for its owner alone.
func writeNew(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
