//go:build !race

package keccak_test

import (
	"testing"

	"github.com/canopy-go/canopy/internal/keccak"
)

// The race detector makes sync.Pool drop values, so allocations are counted
// without it.
func TestAllocations(t *testing.T) {
	var a, b [113]byte
	var addr [20]byte
	if n := testing.AllocsPerRun(100, func() { a[0] = keccak.Sum256(a[:], b[:])[0] }); n != 0 {
		t.Errorf("Sum256 allocates %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() { addr[0] ^= keccak.Checksum(addr)[5] }); n > 1 {
		t.Errorf("Checksum allocates %v times, want 1", n)
	}
}
