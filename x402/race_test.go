//go:build race

package x402_test

// slowdown is what the race detector costs.
const slowdown = 10
