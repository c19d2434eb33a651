package payment

import (
	"context"

	"github.com/canopy-go/canopy/internal/permit"
)

// Permit is the proof that a ledger entry was committed. Stores put it on the
// entries that they return; a signer asks for it. It cannot be made elsewhere.
type Permit = permit.Permit

// Signer is one key. Implementations are safe for concurrent use.
type Signer interface {
	// Address is the account of the key. It never changes.
	Address() Address

	// Sign returns the 65 bytes r, s, v (v 27 or 28, s in the lower half) for
	// digest, and is the only way to a signature. It must call p.Use with
	// digest before it touches the key and give up on its error: one permit
	// signs one digest, until the permit's deadline. Sign honours the
	// cancellation of ctx where it has to wait.
	Sign(ctx context.Context, p Permit, digest [32]byte) ([]byte, error)
}

// Deterministic is an optional power of a Signer: equal digests give equal
// signatures (RFC 6979), so that lost bytes can be signed again. A signer
// without it re-sends only what is still in memory.
type Deterministic interface{ Deterministic() bool }

// IsDeterministic reports whether s has that power.
func IsDeterministic(s Signer) bool {
	d, ok := s.(Deterministic)
	return ok && d.Deterministic()
}

// IsLocal reports whether s is a signer of this module with its key in this
// process. The signatures of any other are recovered and compared.
func IsLocal(s Signer) bool {
	_, ok := s.(interface{ Local() permit.Local })
	return ok
}
