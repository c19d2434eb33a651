package eip3009_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/internal/eip3009"
)

// spellings returns the four ways to write a normalised signature: v from 0 or
// from 27, s low or high.
func spellings(low []byte) [][]byte {
	high := bytes.Clone(low)
	s := new(big.Int).SetBytes(low[32:64])
	s.Sub(crypto.S256().Params().N, s).FillBytes(high[32:64])
	high[64] = 27 + 28 - low[64]
	all := [][]byte{low, high, bytes.Clone(low), bytes.Clone(high)}
	all[2][64] -= 27
	all[3][64] -= 27
	return all
}

func TestRecoverKeys(t *testing.T) {
	t.Parallel()
	const keys = 10_000
	rng := rand.New(rand.NewPCG(3, 9))
	fill := func(b []byte) {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
	}
	for i := range keys {
		var secret, digest [32]byte
		fill(secret[:])
		fill(digest[:])
		key, err := crypto.ToECDSA(secret[:])
		if err != nil {
			continue
		}
		raw, err := crypto.Sign(digest[:], key)
		if err != nil {
			t.Fatal(err)
		}
		want := [20]byte(crypto.PubkeyToAddress(key.PublicKey))
		sig, err := eip3009.NormalizeSignature(raw)
		if err != nil || !bytes.Equal(sig[:64], raw[:64]) || sig[64] != raw[64]+27 {
			t.Fatalf("key %d: NormalizeSignature = %x, %v, want %x with v above 26", i, sig, err, raw)
		}
		odd := spellings(sig[:])[i%4]
		if again, err := eip3009.NormalizeSignature(odd); err != nil || again != sig {
			t.Fatalf("key %d, spelling %d: NormalizeSignature = %x, %v, want %x", i, i%4, again, err, sig)
		}
		if got, err := eip3009.Recover(digest, odd); err != nil || got != want {
			t.Fatalf("key %d, spelling %d: Recover = %x, %v, want %x", i, i%4, got, err, want)
		}
		bit := rng.IntN(65 * 8)
		flipped := bytes.Clone(sig[:])
		flipped[bit/8] ^= 1 << (bit % 8)
		if got, err := eip3009.Recover(digest, flipped); err == nil && got == want {
			t.Fatalf("key %d: a signature with bit %d flipped recovers the signer", i, bit)
		}
		bit = rng.IntN(256)
		digest[bit/8] ^= 1 << (bit % 8)
		if got, err := eip3009.Recover(digest, sig[:]); err == nil && got == want {
			t.Fatalf("key %d: another digest recovers the signer", i)
		}
	}
}

func TestNormalizeSignatureRefuses(t *testing.T) {
	t.Parallel()
	const n = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
	zero, one, all := strings.Repeat("0", 64), strings.Repeat("0", 63)+"1", strings.Repeat("f", 64)
	for _, tc := range []struct{ name, sig string }{
		{"empty", ""},
		{"64 bytes, as EIP-2098 has it", one + one},
		{"66 bytes", one + one + "1b00"},
		{"v 2", one + one + "02"},
		{"v 26", one + one + "1a"},
		{"v 29", one + one + "1d"},
		{"v with a chain ID", one + one + "25"},
		{"v 255", one + one + "ff"},
		{"r zero", zero + one + "1b"},
		{"s zero", one + zero + "1b"},
		{"r the order", n + one + "1b"},
		{"s the order", one + n + "1b"},
		{"r above the order", all + one + "1b"},
		{"s above the order", one + all + "1b"},
		{"all zero", zero + zero + "00"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := eip3009.NormalizeSignature(unhex(t, tc.sig))
			if !errors.Is(err, eip3009.ErrSignature) || got != [65]byte{} {
				t.Fatalf("NormalizeSignature = %x, %v, want %v", got, err, eip3009.ErrSignature)
			}
			if strings.Contains(err.Error(), one) {
				t.Errorf("the error holds the signature: %v", err)
			}
			if addr, err := eip3009.Recover([32]byte{1}, unhex(t, tc.sig)); !errors.Is(err, eip3009.ErrSignature) || addr != [20]byte{} {
				t.Errorf("Recover = %x, %v, want %v", addr, err, eip3009.ErrSignature)
			}
		})
	}
}

func TestNormalizeSignatureEdges(t *testing.T) {
	t.Parallel()
	one := strings.Repeat("0", 63) + "1"
	const (
		last = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140"
		half = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0"
		more = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a1"
	)
	for _, tc := range []struct{ name, sig, want string }{
		{"s one", one + one + "1b", one + one + "1b"},
		{"s the last", one + last + "1b", one + one + "1c"},
		{"s at the half", last + half + "01", last + half + "1c"},
		{"s above the half", last + more + "01", last + half + "1b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := eip3009.NormalizeSignature(unhex(t, tc.sig))
			if err != nil || hex.EncodeToString(got[:]) != tc.want {
				t.Errorf("NormalizeSignature = %x, %v, want %s", got, err, tc.want)
			}
		})
	}
}

// What normalises is fixed by normalising again, and recovers to the same
// address as before.
func FuzzNormalizeSignature(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1}, 65))
	f.Add(append(bytes.Repeat([]byte{0xee}, 64), 27))
	f.Fuzz(func(t *testing.T, sig []byte) {
		before := bytes.Clone(sig)
		n, err := eip3009.NormalizeSignature(sig)
		if !bytes.Equal(sig, before) {
			t.Fatal("NormalizeSignature changed its argument")
		}
		if err != nil {
			return
		}
		if again, err := eip3009.NormalizeSignature(n[:]); err != nil || again != n {
			t.Errorf("NormalizeSignature(%x) = %x, and again = %x, %v", sig, n, again, err)
		}
		digest := [32]byte{7}
		a, errA := eip3009.Recover(digest, sig)
		b, errB := eip3009.Recover(digest, n[:])
		if a != b || (errA == nil) != (errB == nil) {
			t.Errorf("Recover of %x = %x, %v, of its normal form %x, %v", sig, a, errA, b, errB)
		}
	})
}

func BenchmarkRecover(b *testing.B) {
	key, err := crypto.GenerateKey()
	if err != nil {
		b.Fatal(err)
	}
	digest := [32]byte{1}
	sig, err := crypto.Sign(digest[:], key)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := eip3009.Recover(digest, sig); err != nil {
			b.Fatal(err)
		}
	}
}
