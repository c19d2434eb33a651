//go:build !race

package x402_test

// slowdown is what the race detector would cost.
const slowdown = 1
