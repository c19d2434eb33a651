package approvals

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

// Approver is a person who may rule, as a Register lists them.
type Approver struct {
	Name      string
	CreatedAt time.Time
	RotatedAt time.Time // zero where the credential is the first
	RevokedAt time.Time // zero while the person may rule
}

// Register keeps who may rule, each with a credential of their own, in the
// ledger. It is for the operator: nothing in it needs a credential. It is safe
// for concurrent use.
type Register struct {
	store  ledger.Store
	people ledger.ApproverStore
	now    func() time.Time
}

// NewRegister returns the register of a ledger; now is its clock, time.Now where
// nil. It is an error where the store keeps no approvers.
func NewRegister(store ledger.Store, now func() time.Time) (*Register, error) {
	people, ok := store.(ledger.ApproverStore)
	if !ok {
		return nil, errors.New("approvals: the store keeps no approvers")
	}
	if now == nil {
		now = time.Now
	}
	return &Register{store, people, now}, nil
}

// Errors of a Register and of rulings.
var (
	ErrCredential     = ledger.ErrCredential
	ErrApproverExists = ledger.ErrApproverExists
	ErrAgentName      = errors.New("approvals: an agent has this name, and no agent approves")
)

// Add lets a person rule and returns their credential, which is told this once.
// ErrApproverExists means that somebody who may rule has the name, whatever its
// case, and ErrAgentName that an agent of this ledger does. One who was revoked
// comes back with the new credential alone.
func (r *Register) Add(ctx context.Context, name string) (Credential, error) {
	if err := ledger.CheckApprover(name); err != nil {
		return "", err
	}
	for _, err := range r.store.Entries(ctx, ledger.Query{Agent: name, Limit: 1}) {
		if err == nil {
			err = fmt.Errorf("%w: %s", ErrAgentName, name)
		}
		return "", err
	}
	c := newCredential(name)
	return c, blank(&c, r.people.AddApprover(ctx, name, ledger.HashCredential(string(c)), r.now()))
}

// Rotate gives a person a new credential, which is told this once. The one they
// had is dead when Rotate returns, in every process. ledger.ErrNotFound means
// that nobody of that name may rule.
func (r *Register) Rotate(ctx context.Context, name string) (Credential, error) {
	a, err := r.people.Approver(ctx, name)
	if err != nil {
		return "", fmt.Errorf("approvals: approver %s: %w", clip(name), err)
	}
	c := newCredential(a.Name)
	return c, blank(&c, r.people.RotateApprover(ctx, a.Name, ledger.HashCredential(string(c)), r.now()))
}

// Revoke ends that a person may rule, in every process when it returns. What
// they have ruled stays. ledger.ErrNotFound is as in Rotate.
func (r *Register) Revoke(ctx context.Context, name string) error {
	return r.people.RevokeApprover(ctx, name, r.now())
}

// List tells all approvers, the revoked too, in the order of their names.
func (r *Register) List(ctx context.Context) ([]Approver, error) {
	all, err := r.people.Approvers(ctx)
	var out []Approver
	for _, a := range all {
		out = append(out, Approver{a.Name, a.CreatedAt, a.RotatedAt, a.RevokedAt})
	}
	return out, err
}

// Check tells whose credential it is. ErrCredential means that it is nobody's
// who may rule now; how long that takes tells nothing about whose it nearly was.
func (r *Register) Check(ctx context.Context, credential string) (name string, err error) {
	name, ok := Credential(credential).Name()
	a := ledger.Approver{}
	if ok {
		if a, err = r.people.Approver(ctx, name); err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return "", err
		}
	}
	if !a.Holds(credential) || !ok {
		return "", ErrCredential
	}
	return a.Name, nil
}

// blank forgets a credential that was not stored.
func blank(c *Credential, err error) error {
	if err != nil {
		*c = ""
	}
	return err
}

// Credential is what a person proves by that they may rule: their name and 256
// random bits. None of its methods but Reveal shows it.
type Credential string

// What a credential begins with, and the letters of its random part.
const credentialPrefix = "canopy_"

var credentialText = base32.StdEncoding.WithPadding(base32.NoPadding)

func newCredential(name string) Credential {
	var secret [32]byte
	rand.Read(secret[:]) // it never fails
	return Credential(credentialPrefix + name + "_" + strings.ToLower(credentialText.EncodeToString(secret[:])))
}

// Name is whose credential it says it is, and false where it is none by its form.
func (c Credential) Name() (string, bool) {
	rest, ok := strings.CutPrefix(string(c), credentialPrefix)
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 || len(rest)-i-1 != credentialText.EncodedLen(32) || ledger.CheckApprover(rest[:i]) != nil {
		return "", false
	}
	return rest[:i], true
}

// Reveal is the credential itself, to be given to its person.
func (c Credential) Reveal() string { return string(c) }

// String hides the credential.
func (c Credential) String() string { return "canopy_[redacted]" }

// GoString hides the credential.
func (c Credential) GoString() string { return c.String() }

// Format hides the credential under every verb.
func (c Credential) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue hides the credential.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText hides the credential, in JSON too.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
