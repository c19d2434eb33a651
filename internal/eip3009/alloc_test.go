//go:build !race

package eip3009_test

import (
	"testing"

	"github.com/canopy-go/canopy/internal/eip3009"
)

// The race detector makes sync.Pool drop values, so allocations are counted
// without it.
func TestDigestAllocations(t *testing.T) {
	d := eip3009.Domain{Name: "USD Coin", Version: "2", ChainID: 8453}
	separator := d.Separator()
	var a eip3009.Authorization
	if n := testing.AllocsPerRun(100, func() { a.Nonce = eip3009.Digest(separator, a) }); n != 0 {
		t.Errorf("Digest allocates %v times, want 0", n)
	}
	sig := make([]byte, 65)
	sig[31], sig[32], sig[64] = 1, 0xf0, 28
	if n := testing.AllocsPerRun(100, func() { eip3009.NormalizeSignature(sig) }); n != 0 {
		t.Errorf("NormalizeSignature allocates %v times, want 0", n)
	}
}
