//go:build !race

package mpp

// slowdown is what the race detector would cost.
const slowdown = 1
