package signer

import (
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
)

// Key is a private key in this process, as a [payment.Signer]. It is immutable
// and safe for concurrent use. The zero Key signs nothing.
type Key struct {
	address payment.Address
	now     func() time.Time

	// sign closes over the key, so that nothing which walks the fields of a
	// Key, by reflection or otherwise, can meet it.
	sign func(digest []byte) ([]byte, error)
}

var (
	_ payment.Signer        = (*Key)(nil)
	_ payment.Deterministic = (*Key)(nil)
	_ fmt.Formatter         = Key{}
	_ slog.LogValuer        = Key{}
	_ json.Marshaler        = Key{}
)

// Errors of this package that a caller may tell apart.
var (
	ErrKey      = errors.New("signer: not a private key")
	ErrPassword = errors.New("signer: the keystore does not open with this password")
	ErrFile     = errors.New("signer: the keystore file is not safe to use")
	ErrNoKey    = errors.New("signer: there is no key")
)

// FromHex reads a key from 64 hex digits, with or without 0x before them.
// Nothing else is accepted, no space and no other length, and the error does
// not repeat any of s.
func FromHex(s string) (*Key, error) {
	digits := strings.TrimPrefix(s, "0x")
	if len(digits) != 64 {
		return nil, fmt.Errorf("%w: it has %d characters, not 64 hex digits", ErrKey, len(digits))
	}
	var b [32]byte
	defer clear(b[:])
	if _, err := hex.Decode(b[:], []byte(digits)); err != nil {
		return nil, fmt.Errorf("%w: it has characters that are no hex digits", ErrKey)
	}
	k, err := crypto.ToECDSA(b[:])
	if err != nil {
		return nil, fmt.Errorf("%w: it is zero or above the order of the curve", ErrKey)
	}
	return newKey(k), nil
}

// FromEnv reads a key, spelled as FromHex wants it, from the environment
// variable called name.
func FromEnv(name string) (*Key, error) {
	s, ok := os.LookupEnv(name)
	if !ok || s == "" {
		return nil, fmt.Errorf("%w: environment variable %s is not set", ErrNoKey, name)
	}
	k, err := FromHex(s)
	if err != nil {
		return nil, fmt.Errorf("environment variable %s: %w", name, err)
	}
	return k, nil
}

func newKey(k *ecdsa.PrivateKey) *Key {
	return &Key{
		address: payment.Address(crypto.PubkeyToAddress(k.PublicKey)),
		now:     time.Now,
		sign:    func(digest []byte) ([]byte, error) { return crypto.Sign(digest, k) },
	}
}

// WithNow returns the same key, judging the deadline of permits by now, which
// is time.Now where it is nil.
func (k *Key) WithNow(now func() time.Time) *Key {
	c := *k
	if c.now = now; now == nil {
		c.now = time.Now
	}
	return &c
}

// Address is the account of the key.
func (k *Key) Address() payment.Address { return k.address }

// Sign uses p for digest, and then signs: r, s, v with v 27 or 28 and s in the
// lower half. It does not wait for anything.
func (k *Key) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	if k == nil || k.sign == nil {
		return nil, ErrNoKey
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("signer: not signed: %w", err)
	}
	if err := p.Use(digest, k.now()); err != nil {
		return nil, fmt.Errorf("signer: not signed: %w", err)
	}
	sig, err := k.sign(digest[:])
	if err != nil {
		return nil, errors.New("signer: the curve refused to sign")
	}
	sig[64] += 27
	return sig, nil
}

// Deterministic is true: equal digests give equal signatures (RFC 6979).
func (k *Key) Deterministic() bool { return true }

// Local marks the key as one of this module, in this process.
func (k *Key) Local() permit.Local { return permit.Local{} }

// String is the address.
func (k Key) String() string { return k.address.String() }

// GoString is the address.
func (k Key) GoString() string { return k.String() }

// Format writes the address, whatever the verb and its flags.
func (k Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// LogValue is the address.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText writes the address.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalJSON writes the address as a string.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(`"` + k.String() + `"`), nil }
