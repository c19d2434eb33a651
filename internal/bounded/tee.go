package bounded

import (
	"io"
	"sync"
)

// Tee is a body that keeps what passes through it, up to a bound, so that the
// same request can be sent again.
type Tee struct {
	body io.ReadCloser
	max  int64
	done chan struct{}

	mu    sync.Mutex
	kept  []byte
	whole bool
	ended bool
}

// NewTee returns body as one that keeps at most max bytes. A negative max counts
// as 0.
func NewTee(body io.ReadCloser, max int64) *Tee {
	if max < 0 {
		max = 0
	}
	return &Tee{body: body, max: max, done: make(chan struct{})}
}

// Read reads the body.
func (t *Tee) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return n, err
	}
	if n > 0 {
		if int64(n) > t.max-int64(len(t.kept)) {
			t.end(false)
			return n, err
		}
		t.kept = append(t.kept, p[:n]...)
	}
	if err != nil {
		t.end(err == io.EOF)
	}
	return n, err
}

// Close closes the body. What a reader did not reach is not kept.
func (t *Tee) Close() error {
	t.mu.Lock()
	t.end(false)
	t.mu.Unlock()
	return t.body.Close()
}

// Kept returns the whole body and true once its end was read and it was not
// longer than the bound; nil and false until then, and for good after an error,
// an early Close or a byte too many. The slice does not change any more. Kept
// may be called while another goroutine reads, as net/http may do even after it
// returned a response.
func (t *Tee) Kept() (body []byte, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.whole {
		return nil, false
	}
	return t.kept, true
}

// Done returns a channel that is closed once what Kept says is final.
func (t *Tee) Done() <-chan struct{} { return t.done }

// end settles, once, whether the body was kept whole. t.mu is held.
func (t *Tee) end(whole bool) {
	if t.ended {
		return
	}
	t.ended, t.whole = true, whole
	if !whole {
		t.kept = nil
	}
	close(t.done)
}
