package canopy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
)

const dollarOnBase = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"

// quoteV1 is the body of a version 1 challenge for a cent.
var quoteV1 = []byte(`{"x402Version":1,"error":"","accepts":[{"scheme":"exact","network":"base","maxAmountRequired":"10000","resource":"https://seller.example/","description":"","mimeType":"","payTo":"` +
	canopytest.Address("seller").String() + `","maxTimeoutSeconds":60,"asset":"` + dollarOnBase + `","extra":{"name":"USD Coin","version":"2"}}]}`)

// refusingStreams is a hostile seller that speaks HTTP/2 and refuses every
// stream that carries a payment, after taking it: to net/http a request that was
// not processed, and may be sent again. It calls taken with the number of each.
func refusingStreams(t *testing.T, taken func(n int64)) (url string, count *atomic.Int64) {
	t.Helper()
	lender := httptest.NewUnstartedServer(nil)
	lender.StartTLS()
	cert := lender.TLS.Certificates[0]
	lender.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	must(t, err)
	t.Cleanup(func() { l.Close() })
	count = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go refuseStreams(c, count, taken)
		}
	}()
	return "https://" + l.Addr().String(), count
}

func refuseStreams(c net.Conn, count *atomic.Int64, taken func(int64)) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(c, c)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fr.WriteSettings()
	for {
		frame, err := fr.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				fr.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			paid := false
			for _, h := range f.Fields {
				paid = paid || strings.EqualFold(h.Name, "x-payment")
			}
			if paid {
				taken(count.Add(1))
				fr.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
				continue
			}
			var block bytes.Buffer
			enc := hpack.NewEncoder(&block)
			enc.WriteField(hpack.HeaderField{Name: ":status", Value: "402"})
			enc.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/json"})
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndHeaders: true})
			fr.WriteData(f.StreamID, true, quoteV1)
		}
	}
}

// trusting is a transport of tests, behind a type that New does not look into.
type trusting struct{ http.RoundTripper }

func overHTTP2(t *testing.T) func(*world, *canopy.Config) {
	return func(_ *world, cfg *canopy.Config) {
		base := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		t.Cleanup(base.CloseIdleConnections)
		cfg.Transport = trusting{base}
	}
}

// Over HTTP/2 net/http repeats a request without a body whatever its method,
// where a stream is refused. A payment leaves once.
func TestHTTP2DoesNotRepeatAPayment(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			url, count := refusingStreams(t, func(int64) {})
			w := newWorld(t, setup{config: overHTTP2(t)})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := w.client.Fetch(ctx, w.request(method, url+"/x", nil))
			d := as[*canopy.InDoubtError](t, err)
			e, err := w.store.Entry(t.Context(), d.Result.PaymentID)
			if err != nil || count.Load() != 1 || e.Sends != 1 {
				t.Errorf("%d payments left, the ledger knows of %d, %v", count.Load(), e.Sends, err)
			}
		})
	}
}

// Nothing leaves after a freeze, by net/http's own doing either.
func TestHTTP2FreezeBetweenRepeats(t *testing.T) {
	t.Parallel()
	var client *canopy.Client
	url, count := refusingStreams(t, func(n int64) {
		if n == 1 {
			client.Freeze(context.Background(), "stop")
		}
	})
	w := newWorld(t, setup{config: overHTTP2(t)})
	client = w.client
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := w.client.Fetch(ctx, w.request("POST", url+"/x", nil)); err == nil || count.Load() != 1 {
		t.Errorf("%d payments left, %v", count.Load(), err)
	}
}
