package signer_test

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/signer"
)

// foreign is a signer of another module: it never looks at its permit.
type foreign struct {
	key    *signer.Key
	spell  func(sig []byte) []byte
	err    error
	called int
}

func (f *foreign) Address() payment.Address { return f.key.Address() }

func (f *foreign) Sign(ctx context.Context, _ payment.Permit, digest [32]byte) ([]byte, error) {
	f.called++
	if f.err != nil {
		return nil, f.err
	}
	sig, err := f.key.Sign(ctx, mint(), digest)
	if err != nil {
		return nil, err
	}
	return f.spell(sig), nil
}

func highS(sig []byte) []byte {
	s := new(big.Int).SetBytes(sig[32:64])
	s.Sub(crypto.S256().Params().N, s).FillBytes(sig[32:64])
	sig[64] ^= 27 ^ 28
	return sig
}

func smallV(sig []byte) []byte { sig[64] -= 27; return sig }

func TestCheckedNormalises(t *testing.T) {
	t.Parallel()
	digest := [32]byte{9}
	want, err := key(t).Sign(t.Context(), mint(), digest)
	if err != nil {
		t.Fatal(err)
	}
	for name, spell := range map[string]func([]byte) []byte{
		"canonical":      func(sig []byte) []byte { return sig },
		"v 0 or 1":       smallV,
		"high s":         highS,
		"both":           func(sig []byte) []byte { return smallV(highS(sig)) },
		"with spare cap": func(sig []byte) []byte { return append(make([]byte, 0, 99), sig...) },
	} {
		s := signer.Checked(&foreign{key: key(t), spell: spell})
		got, err := s.Sign(t.Context(), mint(), digest)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v; want %x", name, got, err, want)
		}
	}
}

func TestCheckedRefuses(t *testing.T) {
	t.Parallel()
	digest := [32]byte{9}
	other, err := signer.FromHex("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")
	if err != nil {
		t.Fatal(err)
	}
	sign := func(d [32]byte) []byte {
		sig, err := other.Sign(t.Context(), permit.Mint("evm/other", time.Now().Add(time.Minute)), d)
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	for name, spell := range map[string]func([]byte) []byte{
		"another key":       func([]byte) []byte { return sign(digest) },
		"another digest":    func(sig []byte) []byte { sig[40] ^= 1; return sig },
		"nothing":           func([]byte) []byte { return nil },
		"64 bytes":          func(sig []byte) []byte { return sig[:64] },
		"contract account":  func(sig []byte) []byte { return append(sig, make([]byte, 120)...) },
		"v of EIP-155":      func(sig []byte) []byte { sig[64] = 37; return sig },
		"the other v":       func(sig []byte) []byte { sig[64] ^= 27 ^ 28; return sig },
		"zeros":             func([]byte) []byte { return make([]byte, 65) },
		"high s, same v":    func(sig []byte) []byte { out := highS(sig); out[64] ^= 27 ^ 28; return out },
		"r of another sign": func(sig []byte) []byte { copy(sig, sign(digest)[:32]); return sig },
	} {
		got, err := signer.Checked(&foreign{key: key(t), spell: spell}).Sign(t.Context(), mint(), digest)
		if !errors.Is(err, signer.ErrSignature) || got != nil {
			t.Errorf("%s: %x, %v; want ErrSignature", name, got, err)
		}
	}
}

func TestCheckedHoldsThePermit(t *testing.T) {
	t.Parallel()
	f := &foreign{key: key(t), spell: func(sig []byte) []byte { return sig }}
	s := signer.Checked(f)
	if _, err := s.Sign(t.Context(), payment.Permit{}, [32]byte{1}); !errors.Is(err, permit.ErrNone) {
		t.Errorf("the zero permit: %v", err)
	}
	p := mint()
	if _, err := s.Sign(t.Context(), p, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(t.Context(), p, [32]byte{2}); !errors.Is(err, permit.ErrUsed) {
		t.Errorf("another digest: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Sign(cancelled, mint(), [32]byte{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if f.called != 1 {
		t.Errorf("the signer was asked %d times, want once", f.called)
	}
	f.err = errors.New("the device is locked")
	if _, err := s.Sign(t.Context(), mint(), [32]byte{3}); !errors.Is(err, f.err) {
		t.Errorf("its own error: %v", err)
	}
}

func TestCheckedKeepsPowers(t *testing.T) {
	t.Parallel()
	k := key(t)
	if s := signer.Checked(k); s != payment.Signer(k) {
		t.Error("a Key is wrapped")
	}
	s := signer.Checked(&foreign{key: k})
	if payment.IsLocal(s) || payment.IsDeterministic(s) {
		t.Error("a foreign signer became local or deterministic")
	}
	if signer.Checked(s) != s {
		t.Error("checked twice")
	}
	if s.Address() != k.Address() {
		t.Error("another address")
	}
}
