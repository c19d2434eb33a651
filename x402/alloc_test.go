//go:build !race

package x402_test

import "testing"

// The race detector makes sync.Pool drop values, so allocations are counted
// without it.
func TestAllocations(t *testing.T) {
	r, k, g := rail(t), key(t), grant(t, offer(t, quote))
	if n := testing.AllocsPerRun(100, func() { r.Authorize(t.Context(), g, k) }); n >= 15 {
		t.Errorf("Authorize allocates %v times, want fewer than 15", n)
	}
	resp, body := inHeader(quote)
	if n := testing.AllocsPerRun(100, func() { r.Offers(resp, body) }); n > 10 {
		t.Errorf("Offers allocates %v times, want at most 10", n)
	}
}
