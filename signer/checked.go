package signer

import (
	"context"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/payment"
)

// ErrSignature is wrapped where a signer returned bytes that its address did
// not sign.
var ErrSignature = errors.New("signer: the signature is not one of this address")

// Checked returns s such that each of its signatures is brought to the one
// accepted spelling (low s, v 27 or 28) and its address recovered before it is
// returned: a signature of another key is ErrSignature. It also uses the
// permit for the digest before s is asked. Signatures of contract accounts
// (EIP-1271), which recover to nothing, are refused. A [Key] is returned as it
// is.
func Checked(s payment.Signer) payment.Signer {
	switch s.(type) {
	case *Key, checked:
		return s
	}
	return checked{s}
}

type checked struct{ payment.Signer }

var _ payment.Deterministic = checked{}

func (c checked) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("signer: not signed: %w", err)
	}
	// The deadline is for the signer itself to judge, by its own clock.
	if err := p.Use(digest, p.Deadline().Add(-1)); err != nil {
		return nil, fmt.Errorf("signer: not signed: %w", err)
	}
	raw, err := c.Signer.Sign(ctx, p, digest)
	if err != nil {
		return nil, err
	}
	sig, err := eip3009.NormalizeSignature(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if got, err := eip3009.Recover(digest, sig[:]); err != nil || payment.Address(got) != c.Address() {
		return nil, fmt.Errorf("%w: %s", ErrSignature, c.Address())
	}
	return sig[:], nil
}

// Deterministic is what the signer says of itself. Normalising is a function
// of the signature, so equal signatures stay equal.
func (c checked) Deterministic() bool { return payment.IsDeterministic(c.Signer) }

// String is the address.
func (c checked) String() string { return c.Address().String() }
