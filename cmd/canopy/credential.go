package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/approvals"
)

// credentialEnv names where a credential is looked for that no file gives.
const credentialEnv = "CANOPY_CREDENTIAL"

// credentials is where a person's credential comes from: never the command line,
// which every process of the machine can read.
type credentials struct {
	*app
	path string
}

func (a *app) credentialFlag(c *cobra.Command) *credentials {
	f := &credentials{app: a}
	c.Flags().StringVar(&f.path, "credential-file", "", "your credential is in this `FILE`, or - for standard input (default $"+credentialEnv+", or asked for)")
	return f
}

// get returns the credential of whoever rules: of the file, of the environment, or
// typed without being shown.
func (f *credentials) get(ctx context.Context) (approvals.Credential, error) {
	text := os.Getenv(credentialEnv)
	switch {
	case f.path != "":
		var err error
		if text, err = f.read(); err != nil {
			return "", exit{codeUsage, fmt.Errorf("--credential-file: %w", err)}
		}
	case text == "" && f.terminal():
		var err error
		if text, err = f.askSecret(ctx, "Your credential"); err != nil {
			return "", err
		}
	case text == "":
		return "", exit{codeUsage, errors.New("the policy names approvers: give your credential by --credential-file or " + credentialEnv)}
	}
	c := approvals.Credential(strings.TrimSpace(text))
	if _, ok := c.Name(); !ok {
		return "", exit{codeFailed, approvals.ErrCredential}
	}
	return c, nil
}

// maxCredential is more than a credential has.
const maxCredential = 1 << 10

func (f *credentials) read() (string, error) {
	var from io.Reader = f.in
	if f.path != "-" {
		file, err := os.Open(f.path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 && info.Mode().IsRegular() && runtime.GOOS != "windows" {
			f.note("warning: others can read %s: chmod 600 it, and canopy approvers rotate", show(f.path, 300))
		}
		from = file
	}
	b, err := io.ReadAll(io.LimitReader(from, maxCredential+1))
	if err == nil && len(b) > maxCredential {
		err = errors.New("it holds more than a credential")
	}
	return string(b), err
}
