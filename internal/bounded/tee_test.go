package bounded_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

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

// Under Hold an early Close leaves the rest to Rest, and Release closes.
func TestTeeHold(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		in    io.Reader
		max   int64
		want  string
		whole bool
	}{
		{"rest", strings.NewReader("abcdef"), 6, "abcdef", true},
		{"too much", strings.NewReader("abcdef"), 5, "", false},
		{"broken", failing(strings.NewReader("abcd"), errBroken), 10, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src := &body{Reader: tc.in}
			tee := bounded.NewTee(src, tc.max)
			tee.Hold()
			if _, err := io.ReadFull(tee, make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			if err := tee.Close(); err != nil || src.closed != 0 || isDone(tee) {
				t.Errorf("Close = %v, closed %d times, done %v", err, src.closed, isDone(tee))
			}
			if n, err := tee.Read(make([]byte, 1)); n != 0 || err != bounded.ErrClosed {
				t.Errorf("Read after Close = %d, %v", n, err)
			}
			tee.Rest(time.Minute)
			if got, whole := tee.Kept(); string(got) != tc.want || whole != tc.whole || !isDone(tee) {
				t.Errorf("Kept = %q, %v, want %q, %v", got, whole, tc.want, tc.whole)
			}
			for range 2 {
				if err := tee.Release(); err != nil || src.closed != 1 {
					t.Errorf("Release = %v, closed %d times", err, src.closed)
				}
			}
		})
	}
}

// A body that hangs is given up, and let go by Release.
func TestTeeHoldHangs(t *testing.T) {
	t.Parallel()
	r, _ := io.Pipe()
	tee := bounded.NewTee(r, 10)
	tee.Hold()
	tee.Rest(time.Millisecond) // nobody closed it, nobody reads it
	tee.Close()
	tee.Rest(time.Millisecond)
	if got, whole := tee.Kept(); whole || isDone(tee) {
		t.Errorf("Kept = %q, %v", got, whole)
	}
	if err := tee.Release(); err != nil || !isDone(tee) {
		t.Errorf("Release = %v, done %v", err, isDone(tee))
	}
}

// Released before it is closed, it closes as ever.
func TestTeeReleasedFirst(t *testing.T) {
	t.Parallel()
	src := &body{Reader: strings.NewReader("abc")}
	tee := bounded.NewTee(src, 10)
	tee.Hold()
	if err := tee.Release(); err != nil || src.closed != 0 {
		t.Errorf("Release = %v, closed %d times", err, src.closed)
	}
	if err := tee.Close(); err != nil || src.closed != 1 {
		t.Errorf("Close = %v, closed %d times", err, src.closed)
	}
}
