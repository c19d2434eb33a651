package bounded_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/canopy-go/canopy/internal/bounded"
)

var errBroken = errors.New("broken")

func TestReadAll(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		in        io.Reader
		max       int64
		want      string
		truncated bool
		err       error
	}{
		{"empty", strings.NewReader(""), 10, "", false, nil},
		{"empty, max zero", strings.NewReader(""), 0, "", false, nil},
		{"something, max zero", strings.NewReader("abc"), 0, "a", true, nil},
		{"something, max negative", strings.NewReader("abc"), -5, "a", true, nil},
		{"below", strings.NewReader("abc"), 4, "abc", false, nil},
		{"equal", strings.NewReader("abc"), 3, "abc", false, nil},
		{"one above", strings.NewReader("abcd"), 3, "abcd", true, nil},
		{"far above", strings.NewReader("abcdefgh"), 3, "abcd", true, nil},
		{"no bound", strings.NewReader("abc"), math.MaxInt64, "abc", false, nil},
		{"one byte at a time", iotest.OneByteReader(strings.NewReader("abcdef")), 6, "abcdef", false, nil},
		{"end beside data", iotest.DataErrReader(strings.NewReader("abc")), 3, "abc", false, nil},
		{"end beside a byte too many", iotest.DataErrReader(strings.NewReader("abcd")), 3, "abcd", true, nil},
		{"error first", iotest.ErrReader(errBroken), 3, "", false, errBroken},
		{"error midway", failing(strings.NewReader("abc"), errBroken), 10, "abc", false, errBroken},
		{"error after the bound", failing(strings.NewReader("abcd"), errBroken), 3, "abcd", true, nil},
		{"error at the bound", failing(strings.NewReader("abc"), errBroken), 3, "abc", false, errBroken},
		{"cut short", failing(strings.NewReader("abc"), io.ErrUnexpectedEOF), 10, "abc", false, io.ErrUnexpectedEOF},
		{"long", strings.NewReader(strings.Repeat("x", 70_000)), 70_000, strings.Repeat("x", 70_000), false, nil},
		{"silent", silent{}, 3, "", false, io.ErrNoProgress},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, truncated, err := bounded.ReadAll(tc.in, tc.max)
			if string(got) != tc.want || truncated != tc.truncated || err != tc.err {
				t.Errorf("ReadAll = %.20q (%d bytes), %v, %v, want %.20q (%d bytes), %v, %v",
					got, len(got), truncated, err, tc.want, len(tc.want), tc.truncated, tc.err)
			}
		})
	}
}

func TestReadAllBounds(t *testing.T) {
	t.Parallel()
	for _, max := range []int64{0, 1, 511, 512, 513, 64 << 10, 1 << 20} {
		b := &body{Reader: endless{}}
		got, truncated, err := bounded.ReadAll(b, max)
		if !truncated || err != nil || int64(len(got)) != max+1 || int64(b.read) != max+1 || int64(cap(got)) != max+1 {
			t.Errorf("max %d: read %d, len %d, cap %d, %v, %v", max, b.read, len(got), cap(got), truncated, err)
		}
	}
}

// Little data under a large bound takes little memory.
func TestReadAllGrowsWithData(t *testing.T) {
	t.Parallel()
	got, _, err := bounded.ReadAll(strings.NewReader("abc"), 1<<40)
	if err != nil || cap(got) > 4096 {
		t.Errorf("3 bytes took %d, %v", cap(got), err)
	}
}

// What ReadAll took and Replay gives back is the body as it was.
func FuzzReadAllReplay(f *testing.F) {
	f.Add([]byte("abcdef"), int64(3), true)
	f.Add([]byte(""), int64(0), false)
	f.Fuzz(func(t *testing.T, in []byte, bound int64, fails bool) {
		r := io.Reader(bytes.NewReader(in))
		var want error
		if fails {
			r, want = failing(r, errBroken), errBroken
		}
		rest := &body{Reader: iotest.HalfReader(r)}
		b, truncated, err := bounded.ReadAll(rest, bound)
		if truncated != (int64(len(in)) > max(bound, 0)) || int64(len(b))-1 > max(bound, 0) {
			t.Errorf("ReadAll of %d bytes, max %d: %d bytes, %v", len(in), bound, len(b), truncated)
		}
		got, err := io.ReadAll(bounded.Replay(b, err, rest))
		if !bytes.Equal(got, in) || err != want {
			t.Errorf("replayed %q, %v, want %q, %v", got, err, in, want)
		}
	})
}
