package main

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// written is what the prompt and the program write, each from its own goroutine.
type written struct {
	mu sync.Mutex
	b  strings.Builder
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestRun plays it without a terminal: the payment goes on after a yes.
func TestRun(t *testing.T) {
	t.Parallel()
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out written
	if err := run(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A payment waits for you", "Amount $7.50 exceeds approval threshold of $5", "numbers for the weekly report", "Approved.", "Paid $7.50"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
