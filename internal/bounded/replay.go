package bounded

import (
	"errors"
	"io"
	"sync/atomic"
)

// ErrClosed is what a body gives that is read after it was closed.
var ErrClosed = errors.New("bounded: read after close")

type replay struct {
	read []byte
	err  error
	rest io.ReadCloser

	closed atomic.Bool
}

// Replay returns a body that yields read, then err where it is not nil, then
// the rest: with what ReadAll returned it is the body as it was before. Close
// closes rest, the first time only. Read and Close may be called at once, as
// rest allows. The bytes are not copied.
func Replay(read []byte, err error, rest io.ReadCloser) io.ReadCloser {
	return &replay{read: read, err: err, rest: rest}
}

func (r *replay) Read(p []byte) (int, error) {
	switch {
	case r.closed.Load():
		return 0, ErrClosed
	case len(r.read) > 0:
		n := copy(p, r.read)
		r.read = r.read[n:]
		return n, nil
	case r.err != nil:
		return 0, r.err
	}
	return r.rest.Read(p)
}

func (r *replay) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	return r.rest.Close()
}
