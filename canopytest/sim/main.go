// Command sim plays a world in which everything goes wrong, and holds the three
// promises against it after every step.
//
//	go run ./canopytest/sim -steps 200000 -seed 1
//
// A seed makes a world: 2 to 8 processes of the real client on one ledger with
// one set of caps, sellers of x402, of MPP and of both that harvest, lie, drop
// answers, rotate their challenges and settle at the last second, chains that
// halt, catch up and take blocks back, an EVM chain and a Tempo network with a
// small pool of lanes, fees and transactions that fail, nodes that lie, disks that
// fail before and after a commit, signers and rails that misbehave, clocks that
// are set, people who approve, deny or do not look, budgets that
// are taken from one another, granted and ended, processes that stand still and
// processes that are killed at any boundary. One goroutine runs at a time: every
// call of a store, a signer, the network, a chain or a clock's timer hands over to
// the scheduler, and the seed picks who goes on. A run is a function of its seed;
// -rail makes it one of sellers of one protocol.
//
// What is checked (the numbers are those of the invariants in the documentation)
// is counted by the simulator itself, from what took effect and what moved on
// its chain, not from what the ledger says of itself. A breach prints the seed,
// the step and the last things that happened; the same flags play it again.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	steps := flag.Int("steps", 200_000, "steps of each seed")
	seed := flag.Uint64("seed", 1, "the first seed")
	seeds := flag.Int("seeds", 1, "how many seeds")
	rail := flag.String("rail", railBoth, "what sellers are paid by: x402, mpp or both")
	loud := flag.Bool("v", false, "print everything that happens")
	flag.Parse()
	if *rail != railX402 && *rail != railMPP && *rail != railBoth {
		fmt.Fprintln(os.Stderr, "sim: -rail is x402, mpp or both")
		os.Exit(2)
	}
	for s := *seed; s < *seed+uint64(*seeds); s++ {
		began := time.Now()
		w, err := newWorld(s, *rail)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sim:", err)
			os.Exit(2)
		}
		w.loud = *loud
		b := w.play(*steps)
		took := time.Since(began)
		fmt.Printf("seed %d: %d steps, %d payments, %d moved, trace %016x, %.1f s, %.0f steps/s\n",
			s, w.step, len(w.oracle.all), w.oracle.moves, w.sum, took.Seconds(), float64(w.step)/took.Seconds())
		if b != nil {
			w.report(os.Stdout)
			os.Exit(1)
		}
	}
}
