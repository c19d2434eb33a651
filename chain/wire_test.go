package chain_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"testing"

	"github.com/canopy-go/canopy/chain"
)

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// TestGzip reads what nodes answer in gzip where they were asked for that, and
// counts what came over the wire.
func TestGzip(t *testing.T) {
	t.Parallel()
	n := newFakeNode()
	for i := range byte(200) {
		n.settle(i+1, 900, payee, 70)
	}
	wire := 0
	n.raw = func(w http.ResponseWriter, r *http.Request, calls []rpc) bool {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
		}
		b := zipped(n.answer(calls))
		wire += int(r.ContentLength) + len(b)
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(b)
		return true
	}
	c, _ := connect(t, n)
	uses, err := c.Uses(t.Context(), usdc, account, 0, final)
	if err != nil || len(uses) != 200 {
		t.Fatalf("%d uses, %v", len(uses), err)
	}
	if c.Traffic() != int64(wire) || wire > 40_000 {
		t.Errorf("%d bytes counted of %d", c.Traffic(), wire)
	}
}

// TestBadEncodings refuses answers that are not what they say, are cut, unpack
// to too much, or have an encoding that was not asked for.
func TestBadEncodings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		encoding string
		bend     func(answer []byte) []byte
	}{
		"not gzip":     {"gzip", func(b []byte) []byte { return b }},
		"cut":          {"gzip", func(b []byte) []byte { z := zipped(b); return z[:len(z)-9] }},
		"empty":        {"gzip", func([]byte) []byte { return nil }},
		"a bomb":       {"gzip", func(b []byte) []byte { return zipped(append(b, bytes.Repeat([]byte(" "), 64<<20)...)) }},
		"gzip unsaid":  {"", zipped},
		"brotli":       {"br", func(b []byte) []byte { return b }},
		"gzip of gzip": {"gzip, gzip", func(b []byte) []byte { return zipped(zipped(b)) }},
	} {
		n := newFakeNode()
		n.raw = func(w http.ResponseWriter, _ *http.Request, calls []rpc) bool {
			if tt.encoding != "" {
				w.Header().Set("Content-Encoding", tt.encoding)
			}
			w.Write(tt.bend(n.answer(calls)))
			return true
		}
		c, _ := connect(t, n)
		_, err := c.Latest(t.Context())
		if !errors.Is(err, chain.ErrAnswer) && !errors.Is(err, chain.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
		quiet(t, err)
	}
}
