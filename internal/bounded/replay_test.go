package bounded_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/canopy-go/canopy/internal/bounded"
)

func TestReplay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		read string
		err  error
		rest io.Reader
		want string
		end  error
	}{
		{"both", "abc", nil, strings.NewReader("def"), "abcdef", nil},
		{"nothing read", "", nil, strings.NewReader("def"), "def", nil},
		{"nothing left", "abc", nil, strings.NewReader(""), "abc", nil},
		{"nothing at all", "", nil, strings.NewReader(""), "", nil},
		{"error met while reading", "abc", errBroken, strings.NewReader("never"), "abc", errBroken},
		{"error in the rest", "abc", nil, failing(strings.NewReader("d"), errBroken), "abcd", errBroken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rest := &body{Reader: tc.rest}
			r := bounded.Replay([]byte(tc.read), tc.err, rest)
			got, err := io.ReadAll(iotest.OneByteReader(r))
			if string(got) != tc.want || err != tc.end {
				t.Errorf("read %q, %v, want %q, %v", got, err, tc.want, tc.end)
			}
			if err := r.Close(); err != nil || rest.closed != 1 {
				t.Errorf("Close = %v, closed %d times", err, rest.closed)
			}
		})
	}
}

func TestReplayEarlyClose(t *testing.T) {
	t.Parallel()
	rest := &body{Reader: endless{}, err: errBroken}
	r := bounded.Replay([]byte("abc"), nil, rest)
	if _, err := io.ReadFull(r, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != errBroken {
		t.Errorf("Close = %v, want %v", err, errBroken)
	}
	if n, err := r.Read(make([]byte, 8)); n != 0 || !errors.Is(err, bounded.ErrClosed) {
		t.Errorf("Read after Close = %d, %v, want 0, %v", n, err, bounded.ErrClosed)
	}
	if err := r.Close(); err != nil || rest.closed != 1 || rest.read != 0 {
		t.Errorf("second Close = %v; the rest was closed %d times and gave %d bytes", err, rest.closed, rest.read)
	}
}

func TestReplayZeroSizedRead(t *testing.T) {
	t.Parallel()
	r := bounded.Replay([]byte("abc"), nil, &body{Reader: strings.NewReader("d")})
	if n, err := r.Read(nil); n != 0 || err != nil {
		t.Errorf("Read(nil) = %d, %v", n, err)
	}
	if got, err := io.ReadAll(r); string(got) != "abcd" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestReplayCloseWhileReading(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	defer pw.Close()
	r := bounded.Replay([]byte("abc"), nil, pr)
	var wg sync.WaitGroup
	wg.Go(func() {
		if got, err := io.ReadAll(r); err == nil || len(got) > 3 {
			t.Errorf("read %q, %v, want an error", got, err)
		}
	})
	r.Close()
	wg.Wait()
}
