package main

import (
	"flag"
	"os"
	"testing"
)

var (
	steps = flag.Int("steps", 5_000, "steps of each seed")
	seeds = flag.Int("seeds", 4, "how many seeds")
)

// TestWorlds plays worlds on each rail and on both, and finds no breach.
func TestWorlds(t *testing.T) {
	t.Parallel()
	for _, rail := range []string{railBoth, railMPP, railX402} {
		t.Run(rail, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(*seeds) {
				w := play(t, rail, seed+1, *steps)
				if w.broke != nil {
					w.report(os.Stdout)
					t.Fatalf("seed %d: %s", w.seed, w.broke.what)
				}
			}
		})
	}
}

// TestSameSeed plays one world twice: nothing in it depends on anything else.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	a, b := play(t, railBoth, 99, 6_000), play(t, railBoth, 99, 6_000)
	if a.sum != b.sum || a.seen != b.seen {
		t.Errorf("traces %x of %d lines and %x of %d differ", a.sum, a.seen, b.sum, b.seen)
	}
	if c := play(t, railBoth, 98, 6_000); c.sum == a.sum {
		t.Error("another seed has the same trace")
	}
}

func play(t *testing.T, rail string, seed uint64, steps int) *world {
	t.Helper()
	w, err := newWorld(seed, rail)
	if err != nil {
		t.Fatal(err)
	}
	w.play(steps)
	return w
}
