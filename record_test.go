package canopy_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
)

// quoteV2 is the header of a version 2 challenge for a cent.
func quoteV2(description string) string {
	return base64.StdEncoding.EncodeToString([]byte(`{"x402Version":2,"resource":{"url":"https://seller.example/","description":"` + description +
		`"},"accepts":[{"scheme":"exact","network":"eip155:8453","amount":"10000","payTo":"` + canopytest.Address("seller").String() +
		`","maxTimeoutSeconds":60,"asset":"` + dollarOnBase + `","extra":{"name":"USD Coin","version":"2"}}]}`))
}

// overSockets is a world on the system's clock, whose client dials for real.
func overSockets(t *testing.T, rt http.RoundTripper, store ledger.Store) *world {
	t.Helper()
	return newWorld(t, setup{config: func(w *world, cfg *canopy.Config) {
		cfg.Transport = rt
		if store != nil {
			w.store, cfg.Store = store, store
		}
	}})
}

// 32 callers with one key take up one payment in doubt at once; what each was
// answered is recorded.
func TestEveryOutcomeOfOnePaymentIsRecorded(t *testing.T) {
	t.Parallel()
	const callers = 32
	receipt := base64.StdEncoding.EncodeToString([]byte(`{"success":true,"transaction":"0x` + strings.Repeat("1", 64) + `","network":"eip155:8453"}`))
	var sent atomic.Int64
	all := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("PAYMENT-SIGNATURE") == "" {
			w.Header().Set("PAYMENT-REQUIRED", quoteV2("a"))
			w.WriteHeader(http.StatusPaymentRequired)
			return
		}
		switch sent.Add(1) {
		case 1:
			panic(http.ErrAbortHandler) // taken, and no answer
		case 1 + callers:
			close(all)
		}
		<-all
		w.Header().Set("PAYMENT-RESPONSE", receipt)
		io.WriteString(w, "ok")
	}))
	t.Cleanup(srv.Close)
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "canopy.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { file.Close() })
	base := &http.Transport{MaxIdleConnsPerHost: 2 * callers}
	t.Cleanup(base.CloseIdleConnections)
	w := overSockets(t, base, file)
	d := as[*canopy.InDoubtError](t, w.get(srv.URL, canopy.WithKey("k")).err)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if g := w.get(srv.URL, canopy.WithKey("k")); g.err != nil || g.paid.Warning != "" || g.paid.State != ledger.Claimed {
				t.Errorf("%v, %+v", g.err, g.paid)
			}
		})
	}
	wg.Wait()
	e, err := w.store.Entry(t.Context(), d.Result.PaymentID)
	if err != nil || e.Sends != 1+callers || !e.Delivered || e.State != ledger.Claimed {
		t.Errorf("%s, delivered %t, %d sends, %v", e.State, e.Delivered, e.Sends, err)
	}
}

// A seller's long answer that is no HTTP costs little, and does not fill an
// error.
func TestLongGarbageAfterPayment(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReaderSize(c, 64<<10)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if r.Header.Get("PAYMENT-SIGNATURE") == "" {
						fmt.Fprintf(c, "HTTP/1.1 402 Payment Required\r\nPAYMENT-REQUIRED: %s\r\nContent-Length: 0\r\n\r\n", quoteV2(strings.Repeat("x", 12_000)))
						continue
					}
					fmt.Fprintf(c, "HTTP/1.1 %s\r\n\r\n", strings.Repeat("eHh4eHh4eHh4eHh4eHh4!", 12_000))
					return
				}
			}()
		}
	}()
	base := &http.Transport{MaxResponseHeaderBytes: 512 << 10}
	t.Cleanup(base.CloseIdleConnections)
	w := overSockets(t, base, nil)
	start := time.Now()
	d := as[*canopy.InDoubtError](t, w.get("http://"+l.Addr().String()+"/x").err)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := len(d.Error()); n > 1000 {
		t.Errorf("an error of %d bytes", n)
	}
}

// panics is a transport that panics on a request with a payment.
type panics struct{ http.RoundTripper }

func (p panics) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-PAYMENT") != "" {
		panic("a bug below")
	}
	return p.RoundTripper.RoundTrip(r)
}

// A panic below the client leaves the payment in doubt, not in flight for ever.
func TestPanicOfTheTransport(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusPaymentRequired)
		w.Write(quoteV1)
	}))
	t.Cleanup(srv.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	w := overSockets(t, panics{base}, nil)
	for range 2 {
		d := as[*canopy.InDoubtError](t, w.get(srv.URL, canopy.WithKey("k")).err)
		if d.Phase != canopy.SentUnknown || !strings.Contains(d.Error(), "panicked") {
			t.Errorf("%s: %v", d.Phase, d)
		}
	}
}
