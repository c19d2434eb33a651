package canopy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
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

// The body of a 200 is the caller's as it comes.
func TestAnswersAreStreamed(t *testing.T) {
	for name, priced := range map[string]bool{"free": false, "paid": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				more := make(chan struct{})
				url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
					if priced && r.Header.Get("PAYMENT-SIGNATURE") == "" {
						challenge(terms(entry()), "{}")(rw, r)
						return
					}
					io.WriteString(rw, "first\n")
					http.NewResponseController(rw).Flush()
					<-more
					io.WriteString(rw, "second\n")
				})
				resp, err := w.client.Fetch(t.Context(), w.request("GET", url, nil))
				must(t, err)
				defer resp.Body.Close()
				b := bufio.NewReader(resp.Body)
				if line, _ := b.ReadString('\n'); line != "first\n" {
					t.Errorf("first line %q", line)
				}
				close(more)
				if rest, _ := io.ReadAll(b); string(rest) != "second\n" {
					t.Errorf("the rest is %q", rest)
				}
			})
		})
	}
}

// What a seller can make us read of a 402 is bounded.
func TestAttack37_ChallengesAreNotDrained(t *testing.T) {
	for name, fault := range map[string]canopytest.Fault{"64 MiB": canopytest.HugeBody(64 * mib), "bomb": canopytest.Bomb(200 * mib)} {
		for _, v := range []canopytest.Version{canopytest.V1, canopytest.V2} {
			t.Run(fmt.Sprint(name, v), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					read := &counter{}
					w := newWorld(t, setup{config: func(w *world, c *canopy.Config) { read.base = w.wire; c.Transport = read }})
					_, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
						Version: v, Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}}, Faults: canopytest.Plan{canopytest.Always(fault)},
					})
					resp, err := w.client.Fetch(t.Context(), w.request("GET", url+"/goods", nil))
					if err == nil {
						resp.Body.Close() // of a bomb without terms it is the caller's
					}
					if n := read.most.Load(); n > 64<<10+1 {
						t.Errorf("%d bytes of a body were read", n)
					}
				})
			})
		}
	}
}

// counter counts what is read of unpaid bodies.
type counter struct {
	base http.RoundTripper
	most atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.base.RoundTrip(r)
	if err == nil && resp.StatusCode == 402 {
		resp.Body = &counted{resp.Body, &c.most, 0}
	}
	return resp, err
}

type counted struct {
	io.ReadCloser
	most *atomic.Int64
	n    int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	c.most.Store(max(c.most.Load(), c.n))
	return n, err
}

// A 402 that comes byte by byte is given up after 15 s, in plain and in gzip.
func TestAttack38_SlowChallenge(t *testing.T) {
	for name, zip := range map[string]bool{"plain": false, "gzip": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
					body := []byte(strings.Repeat("please pay ", 1000))
					if zip {
						rw.Header().Set("Content-Encoding", "gzip")
						body = zipped(string(body))
						body = append(body[:10], bytes.Repeat([]byte{0, 0, 0, 255, 255}, 1000)...) // empty blocks
					}
					rw.WriteHeader(402)
					for _, b := range body {
						if _, err := rw.Write([]byte{b}); err != nil || http.NewResponseController(rw).Flush() != nil {
							return
						}
						time.Sleep(time.Second)
					}
				})
				start := w.clock.Now()
				g := w.get(url)
				if took := w.clock.Now().Sub(start); g.err == nil || took > 16*time.Second {
					t.Errorf("got %v after %v", g.err, took)
				}
				w.signed(0)
				time.Sleep(5 * time.Second) // for the seller to notice
			})
		})
	}
}

// A paid answer that comes slowly is the caller's to wait for: the hold and the
// record are not affected.
func TestAttack38_SlowAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime, canopytest.Always(canopytest.SlowBody(time.Second).At(canopytest.OnPaid)))
		resp, err := w.client.Fetch(t.Context(), w.request("GET", url, nil))
		must(t, err)
		if paid, ok := canopy.PaymentOf(resp); !ok || paid.State != ledger.Claimed {
			t.Errorf("before the body: %+v", paid)
		}
		w.counted(dime)
		w.bought(w.read(resp, nil))
	})
}

// Terms in a body in gzip are read, whoever decodes it.
func TestZippedChallenge(t *testing.T) {
	doc := `{"x402Version":1,"error":"e","accepts":[` + entry(`"amount"`, `"maxAmountRequired"`, "eip155:84532", "base-sepolia") + `]}`
	for name, asked := range map[string]string{"transport": "", "caller": "gzip"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-PAYMENT") == "" {
						rw.Header().Set("Content-Encoding", "gzip")
						rw.WriteHeader(402)
						rw.Write(zipped(doc))
					}
				})
				req := w.request("GET", url, nil)
				if asked != "" {
					req.Header.Set("Accept-Encoding", asked)
				}
				if g := w.do(req); g.err != nil || g.StatusCode != 200 || !g.cost {
					t.Errorf("got %+v", g)
				}
				w.signed(1)
			})
		})
	}
}

func zipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.Bytes()
}
