package ledger

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Approver is a person who may rule on the approvals that name them. The ledger
// keeps the hash of their credential and never the credential.
type Approver struct {
	Name      string
	Secret    payment.Hash // HashCredential of the credential that holds now
	CreatedAt time.Time
	RotatedAt time.Time // when Secret last took another's place; zero where it never did
	RevokedAt time.Time // zero while the person may rule
}

// ApproverStore is an optional power of a Store: it keeps who may rule. Every
// store of this module has it. Names are told apart without regard to case.
type ApproverStore interface {
	// AddApprover lets a person rule. ErrApproverExists means that somebody who
	// may has the name; one who was revoked comes back with this credential
	// alone.
	AddApprover(ctx context.Context, name string, secret payment.Hash, now time.Time) error

	// RotateApprover puts a credential in the place of the person's last one,
	// which is dead from this commit on. ErrNotFound means that nobody who may
	// rule has the name.
	RotateApprover(ctx context.Context, name string, secret payment.Hash, now time.Time) error

	// RevokeApprover ends that the person may rule, in every process from this
	// commit on. ErrNotFound means that nobody who may rule has the name.
	RevokeApprover(ctx context.Context, name string, now time.Time) error

	// Approver is the person of that name, revoked or not, or ErrNotFound.
	Approver(ctx context.Context, name string) (Approver, error)

	// Approvers lists all of them, the revoked too, in the order of their names.
	Approvers(ctx context.Context) ([]Approver, error)
}

// Errors about approvers.
var (
	ErrApproverExists = errors.New("ledger: an approver has this name already")
	ErrCredential     = errors.New("ledger: this is not the credential of an approver who may rule")
)

// CheckApprover refuses what is no name of an approver: 1 to 64 letters, digits,
// dots, hyphens and underscores, and not what an agent's public id looks like.
func CheckApprover(name string) error {
	ok := len(name) >= 1 && len(name) <= 64
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
	}
	if !ok {
		return fmt.Errorf("ledger: %q is no name of an approver: 1 to 64 letters, digits, dots, hyphens and underscores", clip(name))
	}
	if strings.HasPrefix(FoldApprover(name), "agt_") {
		return fmt.Errorf("ledger: %q looks like the id of an agent, and no agent approves", name)
	}
	return nil
}

// FoldApprover is what names of approvers are told apart by.
func FoldApprover(name string) string { return strings.ToLower(name) }

// HashCredential is what is kept of a credential. It needs no salt and no
// stretching: a credential has 256 random bits.
func HashCredential(credential string) payment.Hash {
	return sha256.Sum256([]byte("canopy.approver.v1\x00" + credential))
}

// Holds reports whether credential is the one that a may rule with. It takes the
// same time for all that are not.
func (a *Approver) Holds(credential string) bool {
	got := HashCredential(credential)
	return subtle.ConstantTimeCompare(got[:], a.Secret[:]) == 1 && a.RevokedAt.IsZero() && !a.Secret.IsZero()
}

// Act is what an ApproverStore does to an approver.
type Act uint8

// The acts.
const (
	ActAdd Act = iota
	ActRotate
	ActRevoke
)

// At is when the act is stamped, for stores, and how far the ledger's time has
// come by it: after every vote that is on record, whatever the clocks say.
func (act Act) At(seen Seen, now time.Time, env Env) (Seen, time.Time) {
	at, _ := env.lenient(seen, now)
	seen.At = latest(at, seen.At.Add(time.Microsecond))
	return seen, seen.At
}

// After is what a becomes by the act, for stores: nil stands for nobody.
func (act Act) After(a *Approver, name string, secret payment.Hash, now time.Time) (Approver, error) {
	if err := CheckApprover(name); err != nil {
		return Approver{}, err
	}
	there := a != nil && a.RevokedAt.IsZero()
	now = instant(now)
	switch {
	case act != ActRevoke && secret.IsZero():
		return Approver{}, errors.New("ledger: an approver needs a credential")
	case act == ActAdd && there:
		return Approver{}, fmt.Errorf("%w: %s", ErrApproverExists, a.Name)
	case act == ActAdd:
		return Approver{Name: name, Secret: secret, CreatedAt: now}, nil
	case !there:
		return Approver{}, fmt.Errorf("ledger: no approver %s may rule: %w", name, ErrNotFound)
	}
	n := *a
	if act == ActRotate {
		n.Secret, n.RotatedAt = secret, now
	} else {
		n.Secret, n.RevokedAt = payment.Hash{}, now
	}
	return n, nil
}
