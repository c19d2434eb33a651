package canopy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
)

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

// The client's own transport takes headers of 256 KiB and no more, and follows
// no proxy of the environment.
func TestAttack36_HugeHeader(t *testing.T) {
	t.Parallel()
	for size, fails := range map[int]bool{100 << 10: false, 300 << 10: true} {
		t.Run(fmt.Sprint(size>>10, " KiB"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{config: func(_ *world, c *canopy.Config) { c.Transport = nil }})
			s := canopytest.NewSeller(w.chain, canopytest.SellerConfig{
				Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime}}, Faults: canopytest.Plan{canopytest.Always(canopytest.HugeHeader(size))},
			})
			g := w.get(s.Start(t) + "/goods")
			if fails != (g.err != nil) {
				t.Errorf("got %v", g.err)
			}
			if fails {
				w.signed(0)
			}
		})
	}
}
