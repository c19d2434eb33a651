package canopy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
)

const mib = 1 << 20

// onlyReader hides what else a reader can do, so that a request has no GetBody.
type onlyReader struct{ io.Reader }

// Every body arrives twice, whole and the same: cases 1, 2 and 3.
func TestCase01_BodiesArriveWholeTwice(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", mib/16)
	for name, tc := range map[string]struct {
		body   string
		make   func(string) io.Reader
		change func(*http.Request)
	}{
		"bytes":            {body: "hello", make: func(s string) io.Reader { return strings.NewReader(s) }},
		"long bytes":       {body: long + long, make: func(s string) io.Reader { return bytes.NewReader([]byte(s)) }},
		"reader":           {body: "hello", make: func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }},
		"reader of 1 MiB":  {body: long, make: func(s string) io.Reader { return onlyReader{strings.NewReader(s)} }},
		"reader of length": {body: "hello", make: func(s string) io.Reader { return onlyReader{strings.NewReader(s)} }, change: func(r *http.Request) { r.ContentLength = 5 }},
		"chunked":          {body: "hello", make: func(s string) io.Reader { return onlyReader{strings.NewReader(s)} }, change: func(r *http.Request) { r.ContentLength, r.TransferEncoding = -1, []string{"chunked"} }},
		"GetBody of unknown length": {body: long, make: func(s string) io.Reader { return onlyReader{strings.NewReader(s)} }, change: func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(long)), nil }
		}},
		"empty reader": {body: "", make: func(s string) io.Reader { return onlyReader{strings.NewReader(s)} }},
		"none":         {body: "", make: func(string) io.Reader { return nil }},
		"NoBody":       {body: "", make: func(string) io.Reader { return http.NoBody }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.sells(dime)
				req := w.request(http.MethodPost, url, tc.make(tc.body))
				if tc.change != nil {
					tc.change(req)
				}
				w.bought(w.do(req))
				for i, r := range s.Requests() {
					if string(r.Body) != tc.body {
						t.Errorf("request %d has %d bytes, want %d", i+1, len(r.Body), len(tc.body))
					}
				}
				if sent := w.wire.Sent(); len(sent) != 2 {
					t.Errorf("%d requests were sent, want 2", len(sent))
				}
				w.spent(dime)
			})
		})
	}
}

// The paid request is framed as the first one was.
func TestCase01_PaidPostHasItsLength(t *testing.T) {
	for body, want := range map[string]string{"": "0", "hello": "5"} {
		t.Run("length "+want, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				var lengths []string
				url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
					lengths = append(lengths, fmt.Sprint(r.ContentLength, r.TransferEncoding))
					if r.Header.Get("PAYMENT-SIGNATURE") == "" {
						challenge(terms(entry()), "{}")(rw, r)
					}
				})
				if g := w.do(w.request(http.MethodPost, url, strings.NewReader(body))); g.err != nil {
					t.Fatal(g.err)
				}
				if got := strings.Join(lengths, ", "); got != want+" [], "+want+" []" {
					t.Errorf("lengths %s, want %s twice", got, want)
				}
			})
		})
	}
}

func TestCase02_BodyThatCannotBeSentAgain(t *testing.T) {
	broken := errors.New("the disk is gone")
	for name, change := range map[string]func(*http.Request){
		"over 1 MiB": func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(zeros{}, mib+1)) },
		"GetBody fails": func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("x"))
			r.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		},
		"GetBody breaks": func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("x"))
			r.GetBody = func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader("x"), errReader{broken})), nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				s, url := w.sells(dime)
				req := w.request(http.MethodPost, url, nil)
				change(req)
				g := w.do(req)
				if !errors.Is(g.err, canopy.ErrBodyNotReplayable) || name != "over 1 MiB" && !errors.Is(g.err, broken) {
					t.Errorf("got %v", g.err)
				}
				w.signed(0)
				w.handed(s, 0)
				w.counted(0)
			})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// A GetBody that gives another body once it is signed for: the seller never
// gets that whole, and nothing settles.
func TestAttack47_MutatingBody(t *testing.T) {
	for name, other := range map[string]string{"same length": "goodbye all", "shorter": "x", "longer": "hello world and more", "empty": ""} {
		for _, length := range []int64{11, 0, -1} {
			t.Run(fmt.Sprint(name, " of length ", length), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, setup{})
					s, url := w.sells(dime)
					req := w.request(http.MethodPost, url, onlyReader{strings.NewReader("hello world")})
					calls := 0
					req.ContentLength = length
					req.GetBody = func() (io.ReadCloser, error) {
						if calls++; calls > 1 {
							return io.NopCloser(strings.NewReader(other)), nil
						}
						return io.NopCloser(strings.NewReader("hello world")), nil
					}
					g := w.do(req)
					for _, r := range s.Requests() {
						if r.Paid && string(r.Body) != "hello world" {
							t.Errorf("the seller got %q whole", r.Body)
						}
					}
					if name != "longer" || length != 11 { // of that net/http sends the approved part
						as[*canopy.InDoubtError](t, g.err)
						w.spent(0)
					}
					w.counted(dime)
				})
			})
		}
	}
}

// A seller that answers before it has the body. What follows can be paid where
// the body can be had again.
func TestBodyStillBeingSentAtTheChallenge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		getBody, deaf bool          // deaf: the seller reads nothing of it and hangs up
		pause         time.Duration // of the writer
		length        int64
	}{
		"GetBody": {getBody: true, pause: 20 * time.Millisecond}, "reader": {pause: 20 * time.Millisecond},
		"slow reader": {pause: 300 * time.Millisecond}, "deaf seller": {deaf: true, pause: 100 * time.Millisecond}, "deaf, length": {deaf: true, pause: 100 * time.Millisecond, length: 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{base: &http.Transport{}})
			var paid atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("PAYMENT-SIGNATURE") == "" {
					http.NewResponseController(rw).EnableFullDuplex()
					if tc.deaf {
						rw.Header().Set("Connection", "close")
					}
					challenge(terms(entry()), "{}")(rw, r)
					http.NewResponseController(rw).Flush()
					if !tc.deaf {
						io.Copy(io.Discard, r.Body)
					}
					return
				}
				if b, err := io.ReadAll(r.Body); err == nil && string(b) == "first second" {
					paid.Add(1)
				}
			}))
			t.Cleanup(s.Close)
			pr, pw := io.Pipe()
			go func() {
				io.WriteString(pw, "first ")
				time.Sleep(tc.pause)
				io.WriteString(pw, "second")
				pw.Close()
			}()
			req := w.request(http.MethodPost, s.URL, pr)
			req.ContentLength = tc.length
			if tc.getBody {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("first second")), nil }
			}
			if g := w.do(req); g.err != nil || paid.Load() != 1 {
				t.Errorf("got %v, %d paid requests with the whole body", g.err, paid.Load())
			}
		})
	}
}

// Expect: 100-continue: the seller refuses before the body is sent at all.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{"GetBody": strings.NewReader("hello"), "reader": onlyReader{strings.NewReader("hello")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{base: &http.Transport{ExpectContinueTimeout: time.Second}})
			var got []string
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("PAYMENT-SIGNATURE") == "" {
					challenge(terms(entry()), "{}")(rw, r) // without a 100 Continue
					return
				}
				b, _ := io.ReadAll(r.Body)
				got = append(got, string(b))
			}))
			defer s.Close()
			req := w.request(http.MethodPost, s.URL, body)
			req.Header.Set("Expect", "100-continue")
			if g := w.do(req); g.err != nil || g.StatusCode != 200 || len(got) != 1 || got[0] != "hello" {
				t.Errorf("got %v, the seller %q", g.err, got)
			}
			w.signed(1)
		})
	}
}

// net/http repeats requests on connections that turn out dead, unless it cannot:
// a paid one is sent once.
func TestPaidRequestIsNotRepeatedByNetHTTP(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		body   io.Reader
		key    bool
	}{
		"GET": {method: "GET"}, "HEAD": {method: "HEAD"}, "OPTIONS": {method: "OPTIONS"}, "POST": {method: "POST"},
		"POST with a key": {method: "POST", key: true}, "POST with a body and a key": {method: "POST", key: true, body: strings.NewReader("hello")},
		"GET with a body": {method: "GET", body: strings.NewReader("hello")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				var paid atomic.Int32
				url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					if r.Header.Get("PAYMENT-SIGNATURE") == "" {
						challenge(terms(entry()), "")(rw, r)
						return
					}
					paid.Add(1)
					conn, _, err := http.NewResponseController(rw).Hijack()
					must(t, err)
					conn.Close()
				})
				req := w.request(tc.method, url, tc.body)
				if tc.key {
					req.Header.Set("Idempotency-Key", "k")
				}
				e := as[*canopy.InDoubtError](t, w.do(req).err)
				if n := paid.Load(); n != 1 || e.Phase != canopy.SentUnknown {
					t.Errorf("%d paid requests arrived, want 1; %v", n, e)
				}
				if n := len(w.net.Dials()); n != 1 {
					t.Errorf("%d connections, want one that is used again", n)
				}
			})
		})
	}
}

// A body of unknown length was kept whole, so the paid request states it.
func TestPaidReaderHasItsLength(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		var length int64
		url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
			if length = r.ContentLength; r.Header.Get("PAYMENT-SIGNATURE") == "" {
				challenge(terms(entry()), "{}")(rw, r)
			}
		})
		if g := w.do(w.request("POST", url, onlyReader{strings.NewReader("hello")})); g.err != nil || length != 5 {
			t.Errorf("got %v, length %d", g.err, length)
		}
	})
}

// The caller's body is closed once the call is over, whatever came of it.
func TestCallersBodyIsClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		path  string
		fault canopytest.Fault
		opts  []canopy.Option
	}{
		"paid": {path: "/goods/1"}, "not found": {path: "/nowhere"}, "denied": {path: "/goods/1", opts: []canopy.Option{canopy.WithMaxPrice(0)}},
		"dropped": {path: "/goods/1", fault: canopytest.Drop()}, "in doubt": {path: "/goods/1", fault: canopytest.DropBeforeSettling()},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				_, url := w.sells(dime, canopytest.Always(tc.fault))
				closed := make(chan struct{})
				w.do(w.request("POST", strings.TrimSuffix(url, "/goods/1")+tc.path, closeSignal{strings.NewReader("hello"), sync.OnceFunc(func() { close(closed) })}), tc.opts...)
				synctest.Wait()
				select {
				case <-closed:
				default:
					t.Error("it is open")
				}
			})
		})
	}
}

type closeSignal struct {
	io.Reader
	close func()
}

func (c closeSignal) Close() error { c.close(); return nil }
