package bounded_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/canopy-go/canopy/internal/bounded"
)

func isDone(t *bounded.Tee) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

func TestTee(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		in    io.Reader
		max   int64
		want  string
		whole bool
		err   error
	}{
		{"empty", strings.NewReader(""), 10, "", true, nil},
		{"empty, max zero", strings.NewReader(""), 0, "", true, nil},
		{"empty, max negative", strings.NewReader(""), -1, "", true, nil},
		{"something, max zero", strings.NewReader("a"), 0, "", false, nil},
		{"below", strings.NewReader("abc"), 4, "abc", true, nil},
		{"equal", strings.NewReader("abc"), 3, "abc", true, nil},
		{"above", strings.NewReader("abcd"), 3, "", false, nil},
		{"end beside data", iotest.DataErrReader(strings.NewReader("abc")), 3, "abc", true, nil},
		{"end beside a byte too many", iotest.DataErrReader(strings.NewReader("abcd")), 3, "", false, nil},
		{"one byte at a time", iotest.OneByteReader(strings.NewReader("abc")), 3, "abc", true, nil},
		{"error first", iotest.ErrReader(errBroken), 3, "", false, errBroken},
		{"error midway", failing(strings.NewReader("abc"), errBroken), 10, "", false, errBroken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src := &body{Reader: tc.in}
			tee := bounded.NewTee(src, tc.max)
			if got, whole := tee.Kept(); got != nil || whole || isDone(tee) {
				t.Errorf("before reading: Kept = %q, %v, done %v", got, whole, isDone(tee))
			}
			n, err := io.Copy(io.Discard, tee)
			if err != tc.err || int(n) != src.read {
				t.Errorf("copied %d of %d, %v, want %v", n, src.read, err, tc.err)
			}
			for range 2 { // before and after Close
				if got, whole := tee.Kept(); string(got) != tc.want || whole != tc.whole || !isDone(tee) {
					t.Errorf("Kept = %q, %v, done %v, want %q, %v, true", got, whole, isDone(tee), tc.want, tc.whole)
				}
				if err := tee.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestTeeEarlyClose(t *testing.T) {
	t.Parallel()
	src := &body{Reader: strings.NewReader("abcdef"), err: errBroken}
	tee := bounded.NewTee(src, 100)
	if _, err := io.ReadFull(tee, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	// All the bytes, but not the end: there might have been more.
	if err := tee.Close(); err != errBroken {
		t.Errorf("Close = %v, want %v", err, errBroken)
	}
	if got, whole := tee.Kept(); got != nil || whole || !isDone(tee) {
		t.Errorf("Kept = %q, %v, done %v", got, whole, isDone(tee))
	}
	if _, err := io.ReadAll(tee); err != nil {
		t.Fatal(err)
	}
	if got, whole := tee.Kept(); got != nil || whole {
		t.Errorf("reading after Close: Kept = %q, %v", got, whole)
	}
}

func TestTeeConcurrent(t *testing.T) {
	t.Parallel()
	tee := bounded.NewTee(&body{Reader: iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 5000)))}, 5000)
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(io.Discard, tee) })
	wg.Go(func() {
		for !isDone(tee) {
			if got, whole := tee.Kept(); whole != (got != nil) {
				t.Errorf("Kept = %d bytes, %v", len(got), whole)
			}
		}
	})
	wg.Wait()
	if got, whole := tee.Kept(); len(got) != 5000 || !whole {
		t.Errorf("Kept = %d bytes, %v", len(got), whole)
	}
}

// A request's body that net/http sent is kept, with and without its length.
func TestTeeOfRequest(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}))
	defer srv.Close()
	const text = "a question"
	for _, length := range []int64{int64(len(text)), -1} {
		tee := bounded.NewTee(io.NopCloser(strings.NewReader(text)), 1<<20)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, tee)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(answer) != text {
			t.Errorf("answer %q, %v", answer, err)
		}
		<-tee.Done()
		if got, whole := tee.Kept(); string(got) != text || !whole {
			t.Errorf("length %d: Kept = %q, %v", length, got, whole)
		}
	}
}
