// Package bounded reads what strangers send without letting them choose how
// much, and keeps what was read so that it can be given on.
package bounded

import (
	"io"
	"math"
)

// maxEmpty is how many reads in a row may yield nothing before a reader counts
// as broken.
const maxEmpty = 100

// ReadAll reads r to its end or until one byte more than max has come, whichever
// is first, and never asks for more than that. truncated reports that byte: b
// then holds max+1 bytes, all that was read, so that Replay can give it back. b
// is valid beside an error too; the end of r is none. Memory grows with what
// arrives, not with max. A negative max counts as 0.
func ReadAll(r io.Reader, max int64) (b []byte, truncated bool, err error) {
	limit := int64(math.MaxInt64)
	if max < 0 {
		max = 0
	}
	if max < limit {
		limit = max + 1
	}
	empty := 0
	for int64(len(b)) < limit {
		if len(b) == cap(b) {
			b = grow(b, limit)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return b, int64(len(b)) > max, err
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty == maxEmpty {
			return b, false, io.ErrNoProgress
		}
	}
	return b, int64(len(b)) > max, nil
}

// grow returns b with room for more, and for no more than limit in all.
func grow(b []byte, limit int64) []byte {
	size := min(limit, int64(max(512, 2*cap(b))))
	more := make([]byte, len(b), size)
	copy(more, b)
	return more
}
