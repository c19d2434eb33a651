package check

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"github.com/canopy-go/canopy/ledger"
)

// history is one payment with its events.
type history struct {
	entry  ledger.Entry
	events []ledger.Event
}

// batch is a run of payments that one worker reads the events of.
type batch struct {
	list []history
	err  error
	done chan struct{}
}

const batchSize = 64

// histories yields every payment, oldest first, with its events, which some
// workers read ahead.
func histories(ctx context.Context, s ledger.Store, without bool) iter.Seq2[history, error] {
	return func(yield func(history, error) bool) {
		caller := ctx
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		workers := runtime.GOMAXPROCS(0) + 1
		jobs := make(chan *batch)
		order := make(chan *batch, 2*workers)
		for range workers {
			wg.Go(func() {
				for b := range jobs {
					b.read(ctx, s, without)
				}
			})
		}
		wg.Go(func() {
			defer close(order)
			defer close(jobs)
			entries(ctx, s, func(b *batch) bool {
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
				yield(history{}, ctx.Err())
				return
			}
			for i := range b.list {
				if !yield(b.list[i], nil) {
					return
				}
			}
			if b.err != nil {
				yield(history{}, b.err)
				return
			}
		}
		if err := caller.Err(); err != nil {
			yield(history{}, err)
		}
	}
}

// entries gives every payment to put, a batch at a time, and the error that
// ended the reading with the last.
func entries(ctx context.Context, s ledger.Store, put func(*batch) bool) {
	next := func() *batch { return &batch{list: make([]history, 0, batchSize), done: make(chan struct{})} }
	b := next()
	for e, err := range s.Entries(ctx, ledger.Query{Oldest: true}) {
		if err != nil {
			b.err = err
			break
		}
		if b.list = append(b.list, history{entry: e}); len(b.list) == batchSize {
			if !put(b) {
				return
			}
			b = next()
		}
	}
	put(b)
}

func (b *batch) read(ctx context.Context, s ledger.Store, without bool) {
	defer close(b.done)
	for i := range b.list {
		if without && !b.list[i].entry.State.Freed() {
			continue
		}
		events, err := s.Events(ctx, b.list[i].entry.ID)
		if err != nil {
			b.list, b.err = b.list[:i], err
			return
		}
		if v := b.list[i].entry.Version; int64(len(events)) > v {
			events = events[:v] // it moved on since it was read
		}
		b.list[i].events = events
	}
}
