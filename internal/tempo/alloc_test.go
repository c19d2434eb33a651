//go:build !race

package tempo_test

import (
	"testing"

	"github.com/canopy-go/canopy/internal/tempo"
)

// The race detector makes sync.Pool drop values, so allocations are counted
// without it.
func TestAllocations(t *testing.T) {
	tx := charge()
	tx.Signature = signature(27)
	raw := tx.Encode()
	transfer := must[tempo.Transfer](t)(tempo.ParseCall(tx.Calls[0]))
	for _, tc := range []struct {
		name string
		want float64
		f    func()
	}{
		{"Encode", 1, func() { tx.Encode() }},
		{"Check", 0, func() { tx.Check() }},
		{"SigningHash", 0, func() { tx.SigningHash() }},
		{"FeePayerHash", 0, func() { tx.FeePayerHash(payee) }},
		{"Hash", 0, func() { tx.Hash() }},
		{"WithSignature", 1, func() { tx.WithSignature(tx.Signature) }},
		{"Decode", 2, func() { tempo.Decode(raw) }},
		{"Equal", 0, func() { tx.Equal(&tx) }},
		{"Call", 1, func() { transfer.Call() }},
		{"ParseCall", 0, func() { tempo.ParseCall(tx.Calls[0]) }},
		{"Attribution", 0, func() { tempo.Attribution("api.example.com", "canopy", "challenge-123") }},
		{"ProofDigest", 0, func() { tempo.ProofDigest(42431, payee, "challenge-123", "api.example.com") }},
		{"Fee", 0, func() { tempo.Fee(300_000, 25_000_000_000) }},
	} {
		if n := testing.AllocsPerRun(100, tc.f); n > tc.want {
			t.Errorf("%s allocates %v times, want %v", tc.name, n, tc.want)
		}
	}
}
