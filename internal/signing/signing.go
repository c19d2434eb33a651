// Package signing is the one way in which rails ask a signer for a signature.
package signing

import (
	"context"
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
)

// ErrOther is wrapped where the signer or the permit is not the grant's. Nothing
// was signed.
var ErrOther = errors.New("the signer or the permit is another's")

// Sign has s sign digest once for g, and returns the one accepted spelling of the
// signature. It holds the permit to the slot and the digest, even where the
// signer would not look; the permit's deadline is for the signer to judge, who
// has the clock. Nothing is signed once ctx has ended, and nothing is returned if
// it ended meanwhile. A signature that is not the payer's is
// payment.ErrForeignSignature, where the signer is not of this module.
func Sign(ctx context.Context, g *payment.Grant, s payment.Signer, digest [32]byte) (sig [65]byte, err error) {
	var room [192]byte
	return sign(ctx, g.Payer, s, g.Permit, g.Slot.Append(room[:0]), digest)
}

// SignCarry is Sign for a transaction that carries g's authorization, under the
// permit that is for that transaction alone.
func SignCarry(ctx context.Context, g *payment.CarryGrant, s payment.Signer, digest [32]byte) (sig [65]byte, err error) {
	return sign(ctx, g.Grant.Payer, s, g.Permit, []byte(g.Key), digest)
}

func sign(ctx context.Context, payer payment.Address, s payment.Signer, p payment.Permit, key []byte, digest [32]byte) (sig [65]byte, err error) {
	if err := ctx.Err(); err != nil {
		return sig, fmt.Errorf("not signed: %w", err)
	}
	if s.Address() != payer {
		return sig, fmt.Errorf("%w: the signer is %s, the payer %s", ErrOther, s.Address(), payer)
	}
	slot := p.Slot()
	if slot == "" {
		return sig, fmt.Errorf("not signed: %w", permit.ErrNone)
	}
	if slot != string(key) {
		return sig, fmt.Errorf("%w: the permit is of another slot", ErrOther)
	}
	if err := p.Use(digest, p.Deadline().Add(-1)); err != nil {
		return sig, fmt.Errorf("not signed: %w", err)
	}
	raw, err := s.Sign(ctx, p, digest)
	if err != nil {
		return sig, fmt.Errorf("sign: %w", err)
	}
	if sig, err = eip3009.NormalizeSignature(raw); err != nil {
		return sig, fmt.Errorf("the signer's answer: %w", err)
	}
	if !payment.IsLocal(s) {
		if err := Check(payer, digest, sig); err != nil {
			return [65]byte{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return [65]byte{}, fmt.Errorf("signed, and not to be sent: %w", err)
	}
	return sig, nil
}

// Check is nil where sig is payer's over digest, and wraps
// payment.ErrForeignSignature where it is not.
func Check(payer payment.Address, digest [32]byte, sig [65]byte) error {
	got, err := eip3009.Recover(digest, sig[:])
	if err != nil {
		return fmt.Errorf("%w: %w", payment.ErrForeignSignature, err)
	}
	if payment.Address(got) != payer {
		return fmt.Errorf("%w: it is of %s, not of %s", payment.ErrForeignSignature, payment.Address(got), payer)
	}
	return nil
}
