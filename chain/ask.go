package chain

import (
	"context"
	"errors"
	"time"
)

// grace is how long nodes get that are not needed any more to contradict those
// that answered.
const grace = time.Second

// answer is what one node said.
type answer[T any] struct {
	value T
	err   error
}

// ask has every node asked at once. The answers come over the channel in the
// order in which they arrive; stop gives the rest up and waits for the end of
// all that was begun.
func ask[T any](ctx context.Context, c *Chain, f func(context.Context, *node) (T, error)) (_ <-chan answer[T], stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan answer[T], len(c.nodes))
	done := make(chan struct{}, len(c.nodes))
	for _, n := range c.nodes {
		go func() {
			defer func() { done <- struct{}{} }()
			v, err := f(ctx, n)
			out <- answer[T]{v, err}
		}()
	}
	return out, func() {
		cancel()
		for range c.nodes {
			<-done
		}
	}
}

// all asks every node at once, and returns the answers of those that gave one.
// It is an error where fewer than need did. Once that many have answered, the
// others get a second more.
func all[T any](ctx context.Context, c *Chain, need int, f func(context.Context, *node) (T, error)) ([]T, error) {
	answers, stop := ask(ctx, c, f)
	defer stop()
	var out []T
	var errs []error
	var late <-chan time.Time
	for range c.nodes {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, a.err)
				continue
			}
			if out = append(out, a.value); len(out) == need && need < len(c.nodes) {
				woken, end := c.clock.After(grace)
				defer end()
				late = woken
			}
		case <-late:
			return out, nil
		}
	}
	if len(out) < need {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// fastest is the first answer that any node gives.
func fastest[T any](ctx context.Context, c *Chain, f func(context.Context, *node) (T, error)) (T, error) {
	answers, stop := ask(ctx, c, f)
	defer stop()
	var errs []error
	for range c.nodes {
		a := <-answers
		if a.err == nil {
			return a.value, nil
		}
		errs = append(errs, a.err)
	}
	var zero T
	return zero, errors.Join(errs...)
}
