//go:build race

package mpp

// slowdown is what the race detector may cost.
const slowdown = 10
