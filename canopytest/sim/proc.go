package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
)

// proc is one simulated process: a client and its handle on the shared store.
type proc struct {
	w     *world
	n     int // its place; a restarted process keeps it
	boot  int // how often something was started in this place
	agent string
	owner string

	client *canopy.Client
	store  *store
	base   *ledger.Memory

	offset   time.Duration // of its clock from the world's time, beside the machine's
	clockGen int           // how often its clock, or the machine's, was set
	booted   bool          // it reserved once, and so has reconciled

	dead   bool
	paused time.Time // it stands still until then
	wants  []want    // what its program asked for lately
	tasks  []*task
}

func (p *proc) String() string { return fmt.Sprintf("p%d.%d", p.n, p.boot) }

// now is what the process's clock shows.
func (p *proc) now() time.Time { return p.w.now.Add(p.w.machine + p.offset) }

func (p *proc) pausedAt(now time.Time) bool { return now.Before(p.paused) }

func (p *proc) forget(t *task) {
	p.tasks = slices.DeleteFunc(p.tasks, func(o *task) bool { return o == t })
}

// start puts a new process into place n.
func (w *world) start(n int) error {
	p := &proc{w: w, n: n, agent: w.setup.agents[n%len(w.setup.agents)], clockGen: w.clockGen}
	if old := w.procs[n]; old != nil {
		p.boot, p.wants = old.boot+1, old.wants
	}
	if w.setup.fleet {
		p.offset = time.Duration(w.rng.IntN(17)-8) * time.Second
	}
	p.owner = fmt.Sprintf("owner-%d-%d", n, p.boot)
	w.owners[p.owner] = p
	p.base = w.book.Share(w.clock(), p.owner, w.alive)
	p.store = &store{w: w, p: p, base: p.base}
	rails, err := w.rails(p)
	if err != nil {
		return err
	}
	client, err := canopy.New(canopy.Config{
		Agent: p.agent, Policy: w.policy, Store: p.store, Rails: rails, Lanes: w.setup.lanes,
		Treasury: w.treasury(p), Transport: transport{w, p}, Clock: clockOf{p},
	})
	if err != nil {
		return err
	}
	p.client = client
	w.procs[n] = p
	return nil
}

// clock is the clock of the machine that the store is on.
func (w *world) clock() ledger.Options {
	return ledger.Options{
		Now:     func() time.Time { return w.now.Add(w.machine) },
		Elapsed: func() time.Duration { return w.now.Sub(genesis) },
		Boot:    "sim",
	}
}

// alive is what the ledger asks about owners.
func (w *world) alive(owner string) bool {
	p := w.owners[owner]
	return p != nil && !p.dead
}

// kill ends p where it stands: no task of it runs on.
func (w *world) kill(p *proc) {
	p.dead = true
	for len(p.tasks) > 0 {
		w.run(p.tasks[0])
	}
}
