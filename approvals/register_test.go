package approvals_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
)

func register(t *testing.T, store ledger.Store) *approvals.Register {
	t.Helper()
	r, err := approvals.NewRegister(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegister(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := ledger.NewMemory(ledger.Options{})
	r := register(t, store)
	ana, err := r.Add(ctx, "ana")
	if err != nil {
		t.Fatal(err)
	}
	odd, err := r.Add(ctx, "O_d.d-1")
	if err != nil {
		t.Fatal(err)
	}
	for c, want := range map[approvals.Credential]string{ana: "ana", odd: "O_d.d-1"} {
		if name, ok := c.Name(); !ok || name != want {
			t.Errorf("the name in it is %q, %v, want %q", name, ok, want)
		}
		if name, err := r.Check(ctx, c.Reveal()); err != nil || name != want {
			t.Errorf("Check: %q, %v, want %q", name, err, want)
		}
	}
	secret := ana.Reveal()[strings.LastIndexByte(ana.Reveal(), '_')+1:]
	if len(secret) != 52 || strings.Contains(odd.Reveal(), secret) {
		t.Errorf("the random part has %d letters", len(secret))
	}
	for name, c := range map[string]string{
		"none": "", "the name": "ana", "cut": ana.Reveal()[:len(ana.Reveal())-1], "longer": ana.Reveal() + "a",
		"one letter off": strings.Replace(ana.Reveal(), secret[:1], string(secret[0]^1), 1), "upper case": strings.ToUpper(ana.Reveal()),
		"another's name": strings.Replace(ana.Reveal(), "ana", "O_d.d-1", 1), "unknown": strings.Replace(ana.Reveal(), "ana", "eve", 1),
		"a space": ana.Reveal() + " ", "the hash": fmt.Sprintf("%x", ledger.HashCredential(ana.Reveal())),
	} {
		if got, err := r.Check(ctx, c); !errors.Is(err, approvals.ErrCredential) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}

	if _, err := r.Add(ctx, "ANA"); !errors.Is(err, approvals.ErrApproverExists) {
		t.Errorf("added twice: %v", err)
	}
	pending(t, store, "/a") // of the agent bot
	if _, err := r.Add(ctx, "bot"); !errors.Is(err, approvals.ErrAgentName) {
		t.Errorf("an agent approves: %v", err)
	}
	next, err := r.Rotate(ctx, "Ana")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(ctx, ana.Reveal()); !errors.Is(err, approvals.ErrCredential) {
		t.Errorf("the old credential after a rotation: %v", err)
	}
	if name, err := r.Check(ctx, next.Reveal()); err != nil || name != "ana" {
		t.Errorf("the new one: %q, %v", name, err)
	}
	if err := r.Revoke(ctx, "ana"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(ctx, next.Reveal()); !errors.Is(err, approvals.ErrCredential) {
		t.Errorf("after the revocation: %v", err)
	}
	if c, err := r.Rotate(ctx, "ana"); !errors.Is(err, ledger.ErrNotFound) || c != "" {
		t.Errorf("rotated after the revocation: %v", err)
	}
	all, err := r.List(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "ana" || all[0].RotatedAt.IsZero() || all[0].RevokedAt.IsZero() || !all[1].RevokedAt.IsZero() {
		t.Errorf("List: %+v, %v", all, err)
	}
	if b, _ := json.Marshal(all); strings.Contains(string(b), next.Reveal()) || strings.Contains(strings.ToLower(string(b)), "secret") {
		t.Errorf("the list tells a secret: %s", b)
	}
}

// A credential shows itself by Reveal alone.
func TestCredentialHidesItself(t *testing.T) {
	t.Parallel()
	c, err := register(t, ledger.NewMemory(ledger.Options{})).Add(context.Background(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	secret := c.Reveal()[strings.LastIndexByte(c.Reveal(), '_')+1:]
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", c, "in", struct{ C approvals.Credential }{c})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "c", c, "in", struct{ C approvals.Credential }{c})
	said := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		said += fmt.Sprintf(verb, c) + fmt.Sprintf(verb, struct{ C approvals.Credential }{c}) + fmt.Sprintf(verb, []approvals.Credential{c})
	}
	b, err := json.Marshal(map[string]any{"c": c, "list": []approvals.Credential{c}})
	if err != nil {
		t.Fatal(err)
	}
	said += string(b)
	if strings.Contains(said, secret) || strings.Contains(strings.ToLower(said), fmt.Sprintf("%x", secret)) {
		t.Errorf("the credential is shown:\n%s", said)
	}
}
