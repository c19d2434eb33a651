package main

import (
	"context"
	"runtime"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// task is one call of a simulated program into its client. It runs on a
// goroutine of its own, and only while the scheduler lets it: at every boundary
// it hands over and waits for its next turn.
type task struct {
	n    int
	p    *proc
	name string
	ctx  context.Context
	stop context.CancelFunc

	turn  chan struct{}
	at    string    // the boundary where it waits
	until time.Time // it sleeps until then; zero where it is ready
	over  bool

	began    int // the step in which the call began
	clockGen int // how often its clock had been set then
	canceled bool

	want want

	unfrozen bool // it read that nothing is frozen, and has neither signed nor sent since
	signed   []*record
	grant    payment.ID // that it has its rail sign
	last     string     // what it sent
	sends    int        // of that
	bent     bool       // its rail or its signer misbehaves
}

type taskKey struct{}

// taskOf is the task that ctx is of, or nil for the simulator's own calls.
func taskOf(ctx context.Context) *task {
	t, _ := ctx.Value(taskKey{}).(*task)
	return t
}

// spawn makes a task that runs f at its first turn.
func (w *world) spawn(p *proc, name string, f func(t *task)) *task {
	w.tasks++
	t := &task{n: w.tasks, p: p, name: name, turn: make(chan struct{}), began: w.step, clockGen: p.clockGen, at: "start"}
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), taskKey{}, t))
	t.ctx, t.stop = ctx, stop
	p.tasks = append(p.tasks, t)
	go func() {
		defer func() {
			t.over = true
			w.back <- struct{}{}
		}()
		<-t.turn
		t.enter()
		f(t)
	}()
	return t
}

// enter ends the goroutine of a task whose process is gone: no instruction of it
// runs after the boundary at which it was killed, but those deferred, and they
// end at their next boundary too.
func (t *task) enter() {
	if t.p.dead {
		runtime.Goexit()
	}
}

// yield hands over at a boundary and returns at the task's next turn.
func (w *world) yield(t *task, at string) {
	if t == nil {
		return
	}
	t.enter()
	t.at = at
	w.back <- struct{}{}
	<-t.turn
	t.enter()
}

// run gives t its turn, until it hands over or ends.
func (w *world) run(t *task) {
	t.turn <- struct{}{}
	<-w.back
	if t.over {
		t.stop()
		t.p.forget(t)
	}
}

// ready reports whether t could use a turn now.
func (w *world) ready(t *task) bool {
	return !t.p.pausedAt(w.now) && (t.until.IsZero() || !w.now.Before(t.until) || t.ctx.Err() != nil)
}

// timer is what an AfterFunc waits for.
type timer struct {
	at time.Time
	p  *proc
	f  func()
	n  int
}

// clockOf is the clock of a process: the world's time for waiting, and the
// process's own idea of what time it is.
type clockOf struct{ p *proc }

func (c clockOf) Now() time.Time { return c.p.now() }

// After is not used by what the simulator runs; it hands over nothing.
func (c clockOf) After(time.Duration) (<-chan time.Time, func()) {
	panic("sim: something waits by After, which hands nothing over")
}

func (c clockOf) Sleep(ctx context.Context, d time.Duration) error {
	w, t := c.p.w, taskOf(ctx)
	if t == nil {
		panic("sim: something sleeps outside of a task")
	}
	w.sleep(t, d, "sleep")
	return ctx.Err()
}

// sleep hands over for at least d, or until the call is cancelled.
func (w *world) sleep(t *task, d time.Duration, at string) {
	t.until = w.now.Add(d)
	w.yield(t, at)
	t.until = time.Time{}
}

func (c clockOf) AfterFunc(d time.Duration, f func()) func() bool {
	w := c.p.w
	w.timerSeq++
	tm := &timer{at: w.now.Add(d), p: c.p, f: f, n: w.timerSeq}
	w.timers[tm] = struct{}{}
	return func() bool {
		_, waiting := w.timers[tm]
		delete(w.timers, tm)
		return waiting
	}
}

// fire runs the timers that are due, in order.
func (w *world) fire() {
	for {
		var due *timer
		for tm := range w.timers {
			if tm.p.dead {
				delete(w.timers, tm)
			} else if !tm.at.After(w.now) && !tm.p.pausedAt(w.now) &&
				(due == nil || tm.at.Before(due.at) || tm.at.Equal(due.at) && tm.n < due.n) {
				due = tm
			}
		}
		if due == nil {
			return
		}
		delete(w.timers, due)
		due.f()
	}
}
