package check

import (
	"context"
	"runtime"
	"sync"

	"github.com/canopy-go/canopy/ledger"
)

// historian is an optional power of a Store: it reads all payments with their
// events in one go. What it passes is the caller's to keep.
type historian interface {
	Histories(ctx context.Context, wants func(*ledger.Entry) bool, yield func(*ledger.Entry, []ledger.Event) bool) error
}

// history is one payment with its events, and what was found in it by itself.
type history struct {
	entry    *ledger.Entry
	events   []ledger.Event
	problems []string
}

// batch is a run of payments that one worker looks at.
type batch struct {
	list []history
	err  error // that ended the reading after list
	done chan struct{}
}

const batchSize = 64

// histories calls take with every payment, oldest first, after some workers
// called look with it.
func histories(ctx context.Context, s ledger.Store, wants func(*ledger.Entry) bool, look, take func(*history) error) error {
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	jobs := make(chan *batch)
	order := make(chan *batch, 2*workers)
	for range workers {
		wg.Go(func() {
			for b := range jobs {
				for i := range b.list {
					if err := look(&b.list[i]); err != nil {
						b.list, b.err = b.list[:i], err
						break
					}
				}
				close(b.done)
			}
		})
	}
	wg.Go(func() {
		defer close(order)
		defer close(jobs)
		batches(ctx, s, wants, func(b *batch) bool {
			for _, c := range []chan *batch{order, jobs} {
				select {
				case c <- b:
				case <-ctx.Done():
					return false
				}
			}
			return true
		})
	})
	for b := range order {
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		for i := range b.list {
			if err := take(&b.list[i]); err != nil {
				return err
			}
			b.list[i] = history{}
		}
		if b.err != nil {
			return b.err
		}
	}
	return caller.Err()
}

// batches gives every payment to put, some at a time, and the error that ended
// the reading with the last.
func batches(ctx context.Context, s ledger.Store, wants func(*ledger.Entry) bool, put func(*batch) bool) {
	next := func() *batch { return &batch{list: make([]history, 0, batchSize), done: make(chan struct{})} }
	b, open := next(), true
	add := func(e *ledger.Entry, events []ledger.Event) bool {
		if b.list = append(b.list, history{entry: e, events: events}); len(b.list) == batchSize {
			open = put(b)
			b = next()
		}
		return open
	}
	var err error
	if h, ok := s.(historian); ok {
		err = h.Histories(ctx, wants, add)
	} else {
		err = oneByOne(ctx, s, wants, add)
	}
	if open {
		b.err = err
		put(b)
	}
}

// oneByOne reads what a historian does from any store.
func oneByOne(ctx context.Context, s ledger.Store, wants func(*ledger.Entry) bool, yield func(*ledger.Entry, []ledger.Event) bool) error {
	for e, err := range s.Entries(ctx, ledger.Query{Oldest: true}) {
		if err != nil {
			return err
		}
		var events []ledger.Event
		if wants(&e) {
			if events, err = s.Events(ctx, e.ID); err != nil {
				return err
			}
			if int64(len(events)) > e.Version {
				events = events[:e.Version] // it moved on since it was read
			}
		}
		if !yield(&e, events) {
			return nil
		}
	}
	return nil
}
