package bounded

import (
	"io"
	"sync"
	"time"
)

// Tee is a body that keeps what passes through it, up to a bound, so that the
// same request can be sent again.
type Tee struct {
	body io.ReadCloser
	max  int64
	done chan struct{} // what Kept says is final
	shut chan struct{} // Close was called

	reading sync.Mutex // held while the body is read

	mu     sync.Mutex
	kept   []byte
	whole  bool
	ended  bool
	closed bool // by Close
	held   bool
}

// NewTee returns body as one that keeps at most max bytes. A negative max counts
// as 0.
func NewTee(body io.ReadCloser, max int64) *Tee {
	if max < 0 {
		max = 0
	}
	return &Tee{body: body, max: max, done: make(chan struct{}), shut: make(chan struct{})}
}

// Hold has Close leave the body open until Release, so that Rest can read on
// where somebody, such as a transport that has its answer early, stopped.
func (t *Tee) Hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = true
}

// Release ends Hold, and closes the body if Close was called meanwhile.
func (t *Tee) Release() error {
	t.mu.Lock()
	due := t.held && t.closed
	t.held = false
	if due {
		t.end(false)
	}
	t.mu.Unlock()
	if due {
		return t.body.Close()
	}
	return nil
}

// Rest waits until what Kept says is final, for at most d. Where the body was
// closed early under Hold, it reads the rest of it.
func (t *Tee) Rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.done:
		return
	case <-timer.C:
		return
	case <-t.shut:
	}
	go func() { // a body that hangs is freed by Release
		t.reading.Lock()
		defer t.reading.Unlock()
		buf := make([]byte, 16<<10)
		for {
			select {
			case <-t.done:
				return
			default:
			}
			if _, err := t.read(buf); err != nil {
				return
			}
		}
	}()
	select {
	case <-t.done:
	case <-timer.C:
	}
}

// Read reads the body, until it is closed under Hold.
func (t *Tee) Read(p []byte) (int, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.mu.Lock()
	over := t.held && t.closed
	t.mu.Unlock()
	if over {
		return 0, ErrClosed
	}
	return t.read(p)
}

func (t *Tee) read(p []byte) (int, error) {
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

// Close closes the body, under Hold later. What a reader did not reach, and
// Rest does not, is not kept.
func (t *Tee) Close() error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.shut)
	}
	held := t.held
	if !held {
		t.end(false)
	}
	t.mu.Unlock()
	if held {
		return nil
	}
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
