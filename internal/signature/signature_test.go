package signature_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/signature"
)

// flipped is the other signature of the same key over the same digest.
func flipped(sig []byte) []byte {
	out := bytes.Clone(sig)
	s := new(big.Int).SetBytes(sig[32:64])
	s.Sub(crypto.S256().Params().N, s).FillBytes(out[32:64])
	out[64] ^= 1
	return out
}

func TestCanonicalOfEverySpelling(t *testing.T) {
	t.Parallel()
	for range 200 {
		key, err := crypto.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		var digest [32]byte
		rand.Read(digest[:])
		low, err := crypto.Sign(digest[:], key)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(low)
		want[64] += 27
		high := flipped(low)
		high27 := bytes.Clone(high)
		high27[64] += 27
		for name, sig := range map[string][]byte{"v 0 or 1": low, "high s": high, "high s, v 27 or 28": high27, "canonical": want} {
			before := bytes.Clone(sig)
			got, err := signature.Canonical(sig)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: Canonical = %x, %v; want %x", name, got, err, want)
			}
			if !bytes.Equal(sig, before) {
				t.Fatalf("%s: Canonical changed its argument", name)
			}
			if name != "canonical" && signature.Check(sig) == nil {
				t.Fatalf("%s: Check accepts it", name)
			}
		}
		addr, err := signature.Recover(digest, want)
		if err != nil || addr != crypto.PubkeyToAddress(key.PublicKey) {
			t.Fatalf("Recover = %x, %v; want %x", addr, err, crypto.PubkeyToAddress(key.PublicKey))
		}
		want[7] ^= 1
		if addr, err := signature.Recover(digest, want); err == nil && addr == crypto.PubkeyToAddress(key.PublicKey) {
			t.Fatal("Recover of a changed signature gives the same address")
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	n := crypto.S256().Params().N.Bytes()
	one := append(make([]byte, 31), 1)
	join := func(r, s []byte, v byte) []byte { return append(append(bytes.Clone(r), s...), v) }
	for _, tc := range []struct {
		name string
		sig  []byte
		want error
	}{
		{"nothing", nil, signature.ErrLength},
		{"64 bytes", make([]byte, 64), signature.ErrLength},
		{"66 bytes", make([]byte, 66), signature.ErrLength},
		{"r 0", join(make([]byte, 32), one, 27), signature.ErrMalleable},
		{"s 0", join(one, make([]byte, 32), 27), signature.ErrMalleable},
		{"r = order", join(n, one, 27), signature.ErrMalleable},
		{"s = order", join(one, n, 27), signature.ErrMalleable},
		{"v 2", join(one, one, 2), signature.ErrMalleable},
		{"v 26", join(one, one, 26), signature.ErrMalleable},
		{"v 29", join(one, one, 29), signature.ErrMalleable},
		{"v 37", join(one, one, 37), signature.ErrMalleable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := signature.Canonical(tc.sig); !errors.Is(err, tc.want) {
				t.Errorf("Canonical: %v, want %v", err, tc.want)
			}
			if _, err := signature.Recover([32]byte{1}, tc.sig); !errors.Is(err, tc.want) {
				t.Errorf("Recover: %v, want %v", err, tc.want)
			}
		})
	}
}

// The largest s that is low, and the smallest that is not.
func TestHalf(t *testing.T) {
	t.Parallel()
	half := new(big.Int).Rsh(crypto.S256().Params().N, 1)
	sig := make([]byte, 65)
	sig[31], sig[64] = 1, 27
	half.FillBytes(sig[32:64])
	if err := signature.Check(sig); err != nil {
		t.Errorf("half of the order: %v", err)
	}
	half.Add(half, big.NewInt(1)).FillBytes(sig[32:64])
	if err := signature.Check(sig); err == nil {
		t.Error("half of the order and one: accepted")
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add(make([]byte, 65))
	f.Add(bytes.Repeat([]byte{0xff}, 65))
	f.Fuzz(func(t *testing.T, sig []byte) {
		out, err := signature.Canonical(sig)
		if err != nil {
			return
		}
		if err := signature.Check(out); err != nil {
			t.Fatalf("Canonical gave %x, which Check refuses: %v", out, err)
		}
		again, err := signature.Canonical(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("Canonical twice: %x, %v; want %x", again, err, out)
		}
	})
}
