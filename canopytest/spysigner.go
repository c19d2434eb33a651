package canopytest

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// Signed is one call of a signer.
type Signed struct {
	Slot     string    // of the permit; empty where there was none
	Deadline time.Time // of the permit
	Digest   [32]byte
	Err      error // what the signer returned
}

// SpySigner passes every call on to another signer and remembers it: what a
// test asks when it wants to know that nothing was signed. It is safe for
// concurrent use.
type SpySigner struct {
	inner payment.Signer

	mu     sync.Mutex
	calls  []Signed
	before func(context.Context, Signed)
}

var _ payment.Deterministic = (*SpySigner)(nil)

// NewSpySigner returns a spy on inner. It is not a local signer to Canopy, which
// therefore recovers and compares its signatures.
func NewSpySigner(inner payment.Signer) *SpySigner { return &SpySigner{inner: inner} }

// Before has f called at each call, before the key is used: to look at the
// ledger at that moment, or to cancel.
func (s *SpySigner) Before(f func(context.Context, Signed)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Address is that of the inner signer.
func (s *SpySigner) Address() payment.Address { return s.inner.Address() }

// Deterministic is what the inner signer says.
func (s *SpySigner) Deterministic() bool { return payment.IsDeterministic(s.inner) }

// Sign is that of the inner signer.
func (s *SpySigner) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	call := Signed{Slot: p.Slot(), Deadline: p.Deadline(), Digest: digest}
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(ctx, call)
	}
	sig, err := s.inner.Sign(ctx, p, digest)
	call.Err = err
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	return sig, err
}

// Calls returns every call, also those that failed, in the order of their ends.
func (s *SpySigner) Calls() []Signed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Signatures is how many signatures were returned.
func (s *SpySigner) Signatures() int {
	n := 0
	for _, c := range s.Calls() {
		n += one(c.Err == nil)
	}
	return n
}

// Digests returns the different digests that were signed, in order.
func (s *SpySigner) Digests() [][32]byte {
	var out [][32]byte
	for _, c := range s.Calls() {
		if c.Err == nil && !slices.Contains(out, c.Digest) {
			out = append(out, c.Digest)
		}
	}
	return out
}

// Slots returns the different slots that were signed into, in order: one for
// each payment.
func (s *SpySigner) Slots() []string {
	var out []string
	for _, c := range s.Calls() {
		if c.Err == nil && !slices.Contains(out, c.Slot) {
			out = append(out, c.Slot)
		}
	}
	return out
}

// AssertNothingSigned fails tb where any signature was returned.
func (s *SpySigner) AssertNothingSigned(tb TB) {
	tb.Helper()
	if n := s.Signatures(); n > 0 {
		tb.Errorf("canopytest: %d signatures were made, want none", n)
	}
}

// bent is a signer whose signatures pass through change.
type bent struct {
	payment.Signer
	change func(context.Context, payment.Permit, [32]byte) ([]byte, error)
}

func (b bent) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	return b.change(ctx, p, digest)
}

// Deterministic is false: whatever bends a signature need not do so twice.
func (b bent) Deterministic() bool { return false }

// SlowSigner returns inner with a wait of d before each signature, as a key in
// a remote service or a hardware wallet has. It gives up when ctx ends.
func SlowSigner(inner payment.Signer, clock *Clock, d time.Duration) payment.Signer {
	return bent{inner, func(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
		if err := clock.Sleep(ctx, d); err != nil {
			return nil, err
		}
		return inner.Sign(ctx, p, digest)
	}}
}

// ErrSigner is what a FailingSigner returns unless told otherwise.
var ErrSigner = errors.New("canopytest: the signer failed")

// FailingSigner returns a signer with inner's address that signs nothing and
// returns err, or ErrSigner where err is nil.
func FailingSigner(inner payment.Signer, err error) payment.Signer {
	if err == nil {
		err = ErrSigner
	}
	return bent{inner, func(context.Context, payment.Permit, [32]byte) ([]byte, error) { return nil, err }}
}

// WrongKeySigner returns a signer that says it is inner and has other sign: its
// signatures recover to another address.
func WrongKeySigner(inner, other payment.Signer) payment.Signer {
	return bent{inner, other.Sign}
}

// BrokenSigner returns inner with one bit of every signature's s turned, which
// then recovers to no account that anybody knows.
func BrokenSigner(inner payment.Signer) payment.Signer {
	return edited(inner, func(sig []byte) { sig[50] ^= 1 })
}

// HighSSigner returns inner with the other of the two signatures that each key
// has for a digest: s in the upper half, which tokens refuse.
func HighSSigner(inner payment.Signer) payment.Signer {
	order, _ := new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
	return edited(inner, func(sig []byte) {
		s := new(big.Int).SetBytes(sig[32:64])
		s.Sub(order, s).FillBytes(sig[32:64])
		sig[64] = 27 + 28 - sig[64]
	})
}

// ParitySigner returns inner with v as 0 or 1 in place of 27 or 28, as some
// services spell it.
func ParitySigner(inner payment.Signer) payment.Signer {
	return edited(inner, func(sig []byte) { sig[64] -= 27 })
}

// ShortSigner returns inner without the last byte of each signature.
func ShortSigner(inner payment.Signer) payment.Signer {
	return bent{inner, func(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
		sig, err := inner.Sign(ctx, p, digest)
		return sig[:max(len(sig)-1, 0)], err
	}}
}

// edited changes a copy of each signature of 65 bytes.
func edited(inner payment.Signer, change func([]byte)) payment.Signer {
	return bent{inner, func(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
		sig, err := inner.Sign(ctx, p, digest)
		if err != nil || len(sig) != 65 {
			return sig, err
		}
		sig = slices.Clone(sig)
		change(sig)
		return sig, nil
	}}
}
