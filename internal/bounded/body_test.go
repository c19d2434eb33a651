package bounded_test

import (
	"io"
	"testing/iotest"
)

// body is a reader that counts what is asked of it.
type body struct {
	io.Reader
	read   int
	closed int
	err    error // of Close
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *body) Close() error {
	b.closed++
	return b.err
}

// endless yields zeros for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// silent yields nothing, and no error either.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// failing yields s and then err.
func failing(s io.Reader, err error) io.Reader { return io.MultiReader(s, iotest.ErrReader(err)) }
