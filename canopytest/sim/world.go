package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
)

// world is everything that a seed plays: one goroutine at a time runs in it.
type world struct {
	seed  uint64
	rail  string
	rng   *rand.Rand
	setup setup

	now      time.Time     // what a perfect clock would show
	machine  time.Duration // how far the clock of the store's machine is from it
	clockGen int           // how often it was set
	skewed   bool          // a commit was refused since the clocks disagree

	step     int
	tasks    int
	timerSeq int
	back     chan struct{} // a task handed over
	timers   map[*timer]struct{}

	book      *ledger.Memory
	people    map[string]approvals.Credential
	policy    *policy.Policy
	protocols []protocol
	key       *signer.Key
	other     *signer.Key
	chains    []*chain
	sellers   map[string]*seller
	hosts     []*seller

	facilitator *seller // of direct transfers
	procs       []*proc
	owners      map[string]*proc
	freezes     map[string]time.Time // agent to when its operator lets it go
	asked       []*asking            // approvals that wait for a person
	oracle      *oracle

	trace []string // the last things that happened, a ring
	seen  int
	sum   uint64 // over all that happened
	loud  bool
	broke *breach
}

// breach is an invariant that did not hold.
type breach struct {
	step int
	what string
}

const traced = 60

var genesis = time.Date(2026, 3, 2, 21, 0, 0, 0, time.UTC)

// The rails that a world may be played on.
const (
	railX402 = "x402"
	railMPP  = "mpp"
	railBoth = "both"
)

func newWorld(seed uint64, rail string) (*world, error) {
	w := &world{
		seed: seed, rail: rail, rng: rand.New(rand.NewPCG(seed, 0xca90b1)), now: genesis,
		back: make(chan struct{}), timers: map[*timer]struct{}{}, sellers: map[string]*seller{},
		owners: map[string]*proc{}, freezes: map[string]time.Time{}, trace: make([]string, traced),
	}
	w.setup = newSetup(w.rng)
	w.oracle = newOracle(w)
	if err := w.newProtocols(); err != nil {
		return nil, err
	}
	var err error
	if w.policy, err = policy.Parse("sim", []byte(w.setup.document())); err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, w.setup.document())
	}
	if w.key, err = signer.FromHex(simKey); err != nil {
		return nil, err
	}
	if w.other, err = signer.FromHex(otherKey); err != nil {
		return nil, err
	}
	w.book = ledger.NewMemory(w.clock())
	if err := w.hire(); err != nil {
		return nil, err
	}
	w.newSellers()
	w.procs = make([]*proc, w.setup.procs)
	for n := range w.procs {
		if err := w.start(n); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// newProtocols are the rails of the world, and the chains that they pay on.
func (w *world) newProtocols() error {
	dollar := func(id payment.ChainID, symbol string) payment.Asset {
		all := payment.KnownAssets().On(id)
		return all[slices.IndexFunc(all, func(a payment.Asset) bool { return a.Symbol == symbol })]
	}
	if w.rail != railMPP {
		c := newChain(w, dollar(payment.Base, "USDC"), false, w.setup.nodes)
		w.chains = append(w.chains, c)
		x, err := newExact(c)
		if err != nil {
			return err
		}
		w.protocols = append(w.protocols, x)
	}
	if w.rail != railX402 {
		c := newChain(w, dollar(payment.TempoTest, "pathUSD"), true, w.setup.others)
		w.chains = append(w.chains, c)
		x, err := newCharges(c)
		if err != nil {
			return err
		}
		w.protocols = append(w.protocols, x)
	}
	return nil
}

// someChain is one of the chains.
func (w *world) someChain() *chain { return w.chains[w.rng.IntN(len(w.chains))] }

// chance is true one time in n, and never where n is 0.
func (w *world) chance(n int) bool { return n > 0 && w.rng.IntN(n) == 0 }

// note writes into the trace. It names payments and approvals by their number:
// their IDs and nonces are random, and nothing in a run depends on them.
func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf("%7d %s  ", w.step, w.now.Format("02 15:04:05.000")) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", w.sum, line)
	w.sum = h.Sum64()
	w.trace[w.seen%traced] = line
	w.seen++
	if w.loud {
		fmt.Println(line)
	}
}

// last are the last lines of the trace, oldest first.
func (w *world) last() []string {
	if w.seen < traced {
		return w.trace[:w.seen]
	}
	return append(slices.Clone(w.trace[w.seen%traced:]), w.trace[:w.seen%traced]...)
}

// breaks records the first breach; the run ends with this step.
func (w *world) breaks(format string, args ...any) {
	if w.broke == nil {
		w.broke = &breach{w.step, fmt.Sprintf(format, args...)}
		w.note("BREACH: %s", w.broke.what)
	}
}

// play runs up to that many steps, then lets everything come to rest, and
// returns the breach, if there was one.
func (w *world) play(steps int) *breach {
	for w.step < steps && w.broke == nil {
		w.step++
		w.act()
		if w.step%4096 == 0 {
			w.oracle.windows()
		}
		if w.step%16384 == 0 && (w.step < 1<<18 || w.step%(1<<18) == 0) { // it reads all there ever was
			w.oracle.verify()
		}
	}
	if w.broke == nil {
		w.rest()
	}
	for _, p := range w.procs {
		w.kill(p)
	}
	return w.broke
}

// act is one step: one task's turn, or something that happens around them.
func (w *world) act() {
	w.pass(time.Duration(w.rng.IntN(40)) * time.Millisecond)
	ready := w.turns()
	if n := len(ready); n > 0 && w.rng.IntN(100) < 78 {
		w.run(ready[w.rng.IntN(n)])
		return
	}
	w.happen()
}

func (w *world) turns() []*task {
	var out []*task
	for _, p := range w.procs {
		for _, t := range p.tasks {
			if w.ready(t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, c := range w.chains {
		c.advance()
	}
	w.fire()
}

// String is the task as the trace names it.
func (t *task) String() string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%s/%d", t.p, t.n)
}

// rest ends all trouble: what runs is run to its end or killed, the chain goes
// on, every node tells the truth. Then the whole ledger is checked.
func (w *world) rest() {
	w.machine = 0
	w.setup.calm = true
	for n, p := range w.procs {
		w.kill(p)
		if err := w.start(n); err != nil {
			w.breaks("no new process: %v", err)
			return
		}
	}
	for _, c := range w.chains {
		c.halted, c.poor = time.Time{}, time.Time{}
		for _, x := range c.nodes {
			if x.lie.counts() {
				c.lied = w.step
			}
			*x = node{}
		}
	}
	for range 40 {
		w.pass(time.Minute)
	}
	for range 3 {
		t := w.spawn(w.procs[0], "reconcile", w.reconcile)
		for !t.over {
			w.run(t)
		}
	}
	w.oracle.windows()
	w.oracle.verify()
	w.oracle.rested()
	w.oracle.audit()
}

// report writes what broke and what led to it.
func (w *world) report(out io.Writer) {
	fmt.Fprintf(out, "BREACH at step %d of seed %d: %s\n", w.broke.step, w.seed, w.broke.what)
	fmt.Fprintf(out, "play it again: go run ./canopytest/sim -rail %s -seed %d -steps %d\n\n", w.rail, w.seed, w.broke.step)
	fmt.Fprintf(out, "%d processes, fleet %v, calm %v, %d and %d nodes, %d lanes\n%s\n", w.setup.procs, w.setup.fleet, w.setup.calm,
		w.setup.nodes, w.setup.others, w.setup.lanes, w.setup.document())
	for _, line := range w.last() {
		fmt.Fprintln(out, line)
	}
}
