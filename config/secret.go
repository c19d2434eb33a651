package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

const (
	maxPassword  = 4 << 10
	commandTime  = 2 * time.Minute // a person may have to unlock something
	maxKeystore  = 64 << 10
	askForSource = "the file names no password_env or password_cmd, and nobody can be asked here"
)

// Signer reads the key of [treasury]: nil, without an error, where there is
// none. It may run password_cmd or ask a person.
func (f *File) Signer(ctx context.Context) (*signer.Key, error) {
	t := f.Treasury
	switch {
	case t.KeyEnv != "":
		key, err := signer.FromEnv(t.KeyEnv)
		if err != nil {
			return nil, fmt.Errorf("config: treasury.key_env: %w", err)
		}
		return key, nil
	case t.Keystore != "":
		password, err := f.password(ctx)
		if err != nil {
			return nil, err
		}
		key, err := signer.FromKeystore(t.Keystore, password)
		if err != nil {
			return nil, fmt.Errorf("config: treasury.keystore: %w", err)
		}
		return key, nil
	}
	return nil, nil
}

// errLocked says that the account can be told only by opening the keystore.
var errLocked = errors.New("config: treasury.keystore: the file does not tell its address")

// Account is the address that pays, as it can be told without a password; zero
// where there is no key, or its environment variable is not set.
func (f *File) Account() (payment.Address, error) {
	t := f.Treasury
	switch {
	case t.KeyEnv != "":
		key, err := signer.FromEnv(t.KeyEnv)
		if errors.Is(err, signer.ErrNoKey) {
			return payment.Address{}, nil
		}
		if err != nil {
			return payment.Address{}, fmt.Errorf("config: treasury.key_env: %w", err)
		}
		return key.Address(), nil
	case t.Keystore != "":
		return keystoreAddress(t.Keystore)
	}
	return payment.Address{}, nil
}

// keystoreAddress reads the address that a keystore states. It is confirmed
// when the key is read to sign.
func keystoreAddress(path string) (payment.Address, error) {
	info, err := os.Stat(path)
	if err != nil {
		return payment.Address{}, fmt.Errorf("config: treasury.keystore: %w", err)
	}
	if !info.Mode().IsRegular() {
		return payment.Address{}, fmt.Errorf("config: treasury.keystore: %s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return payment.Address{}, fmt.Errorf("config: treasury.keystore: %w", err)
	}
	defer file.Close()
	var head struct {
		Address string `json:"address"`
	}
	if err := json.NewDecoder(io.LimitReader(file, maxKeystore)).Decode(&head); err != nil {
		return payment.Address{}, fmt.Errorf("config: treasury.keystore: %s is not a keystore", path)
	}
	a, err := payment.ParseAddressLoose("0x" + strings.TrimPrefix(head.Address, "0x"))
	if err != nil {
		return payment.Address{}, errLocked
	}
	return a, nil
}

// password finds the keystore's password.
func (f *File) password(ctx context.Context) (string, error) {
	t := f.Treasury
	if t.PasswordEnv != "" {
		if p := os.Getenv(t.PasswordEnv); p != "" {
			return p, nil
		}
		if f.Ask == nil {
			return "", fmt.Errorf("config: treasury.password_env: environment variable %s is not set", t.PasswordEnv)
		}
	}
	if len(t.PasswordCmd) > 0 {
		return runForPassword(ctx, t.PasswordCmd)
	}
	if f.Ask == nil {
		return "", fmt.Errorf("config: treasury.keystore: %s", askForSource)
	}
	p, err := f.Ask(ctx, "Password of "+t.Keystore)
	if err == nil && p == "" {
		err = errors.New("no password was given")
	}
	if err != nil {
		return "", fmt.Errorf("config: treasury.keystore: %w", err)
	}
	return p, nil
}

// runForPassword runs a command, by itself and not through a shell, and returns
// the first line that it prints. What it says otherwise is dropped: it may be
// the secret.
func runForPassword(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var out limited
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("config: treasury.password_cmd: %s: %w", command[0], err)
	}
	line, _, _ := bytes.Cut(out.b, []byte("\n"))
	if p := strings.TrimSuffix(string(line), "\r"); p != "" {
		return p, nil
	}
	return "", fmt.Errorf("config: treasury.password_cmd: %s printed no password", command[0])
}

// limited keeps the first bytes that are written to it.
type limited struct{ b []byte }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxPassword - len(l.b); room > 0 {
		l.b = append(l.b, p[:min(len(p), room)]...)
	}
	return len(p), nil
}
