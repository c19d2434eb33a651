package chain

import (
	"compress/gzip"
	"fmt"
	"io"

	"github.com/canopy-go/canopy/internal/bounded"
)

// counter counts what is read of an answer, as it came over the wire.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// readAnswer reads an answer of at most maxAnswer bytes, as many as they are
// once unpacked, and tells whether there are more.
func readAnswer(r io.Reader, encoding string) (answer []byte, cut bool, err error) {
	switch encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, false, fmt.Errorf("gzip: %w", err)
		}
		r = z
	default:
		return nil, false, fmt.Errorf("its answer has an encoding that was not asked for")
	}
	return bounded.ReadAll(r, maxAnswer)
}
