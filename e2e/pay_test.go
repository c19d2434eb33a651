//go:build e2e

package e2e

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
)

// TestPayPriceList checks the price of every route, then pays it: the check signs nothing, and the payee gets
// exactly the price.
func TestPayPriceList(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 20_000_000)
		want := uint64(0)
		for _, p := range s.Prices() {
			if p.Path == "/stream" || p.Path == "/slow" || p.Path == "/broken" || p.Path == "/upfront-broken" {
				continue // tests of their own
			}
			t.Run(p.Path, func(t *testing.T) {
				if p.Method == http.MethodGet { // which CheckURL uses
					b.chain.Moves(t, s.PayTo, 0, func() { checkPrice(t, b, s, p) })
				}
				b.chain.Moves(t, s.PayTo, p.Units, func() {
					resp, body, err := fetch(t, b.Client, p.Method, s.URL+p.Path, strings.NewReader("hello"))
					if err != nil {
						t.Fatal(err)
					}
					wantBody := fmt.Sprintf(`{"path":"%s","query":{}}`, p.Path)
					if p.Path == "/echo" {
						wantBody = "hello"
					}
					if resp.StatusCode != http.StatusOK || body != wantBody {
						t.Errorf("answer %s %s", resp.Status, body)
					}
					paid(t, resp, ledger.Claimed, p.Units)
					if resp.Request.Header.Get("Payment-Signature")+resp.Request.Header.Get("X-Payment") != "" {
						t.Error("the answer's request shows the authorization")
					}
				})
			})
			want += p.Units
		}
		b.spent(t, want)
	})
}

func checkPrice(t *testing.T, b *buyer, s *Seller, p Price) {
	used := b.chain.AuthorizationsUsed(t, b.payer)
	before := len(entries(t, b.store))
	for _, cached := range []bool{false, true} {
		k, err := b.CheckURL(t.Context(), s.URL+p.Path)
		if err != nil {
			t.Fatal(err)
		}
		if k.Status != canopy.Allowed || uint64(k.Amount) != p.Units || k.Fee != 0 || k.Rail != "x402" || k.Scheme != "exact" ||
			k.Chain != "eip155:8453" || k.Recipient != canopy.Address(s.PayTo) || k.Cached != cached || k.HTTP != 402 {
			t.Errorf("check %+v, want %d units to %v, cached %v", k, p.Units, s.PayTo, cached)
		}
	}
	if got := b.chain.AuthorizationsUsed(t, b.payer); got != used {
		t.Errorf("a check used %d authorizations", got-used)
	}
	if got := len(entries(t, b.store)); got != before {
		t.Errorf("a check recorded %d payments", got-before)
	}
}

// TestPayFreePages fetches what costs nothing: no payment, no record, and a stream that is never buffered.
func TestPayFreePages(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		b.chain.Moves(t, s.PayTo, 0, func() {
			resp, _, err := b.get(t, s.URL+"/free?a=b")
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", resp, err)
			}
			if r, ok := canopy.PaymentOf(resp); ok {
				t.Errorf("payment %+v for a free page", r)
			}
			k, err := b.CheckURL(t.Context(), s.URL+"/free")
			if err != nil || k.Status != canopy.Allowed || k.Amount != 0 || k.Rail != "" {
				t.Errorf("check %+v, %v", k, err)
			}
			// Both sellers serve HEAD on a route that is priced for GET without asking.
			resp, _, err = fetch(t, b.Client, http.MethodHead, s.URL+"/cent", nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("HEAD: %v, %v", resp, err)
			}
			if r, ok := canopy.PaymentOf(resp); ok {
				t.Errorf("payment %+v for HEAD", r)
			}

			req, err := http.NewRequest(http.MethodGet, s.URL+"/free-stream", nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err = b.Fetch(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			first := make([]byte, 4096)
			if _, err := io.ReadFull(resp.Body, first); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			rest, err := io.ReadAll(resp.Body)
			if err != nil || string(first)+string(rest) != lines {
				t.Errorf("%d bytes, %v, want %d", len(rest)+4096, err, len(lines))
			}
			// The seller takes 760 ms from the first line to the end.
			if d := time.Since(at); d < 300*time.Millisecond {
				t.Errorf("the end came %v after the first line: the stream was held back", d)
			}
		})
		if got := entries(t, b.store); len(got) != 0 {
			t.Errorf("%d payments recorded", len(got))
		}
	})
}

// TestPayBodies pays POST /echo with bodies that can and cannot be given again.
func TestPayBodies(t *testing.T) {
	random := make([]byte, 3<<20)
	rand.Read(random)
	small, mega := random[:4<<10], random[:1<<20]
	// once is a body without GetBody and without a length.
	once := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b)) }
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		for _, tc := range []struct {
			name string
			body io.Reader
			want []byte
			fits bool
		}{
			{"GetBody", bytes.NewReader(small), small, true},
			{"GetBody, 3 MiB", bytes.NewReader(random), random, true},
			{"read once", once(small), small, true},
			{"read once, 1 MiB", once(mega), mega, true},
			{"read once, more", once(random), nil, false},
			{"empty", nil, nil, true},
		} {
			t.Run(tc.name, func(t *testing.T) {
				units := uint64(20_000)
				if !tc.fits {
					units = 0
				}
				used := b.chain.AuthorizationsUsed(t, b.payer)
				b.chain.Moves(t, s.PayTo, units, func() {
					req, err := http.NewRequest(http.MethodPost, s.URL+"/echo", tc.body)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", "application/x-e2e; a=b")
					resp, err := b.Fetch(t.Context(), req)
					if !tc.fits {
						if !errors.Is(err, canopy.ErrBodyNotReplayable) {
							t.Fatalf("got %v, want ErrBodyNotReplayable", err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					got, err := io.ReadAll(resp.Body)
					if err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(got, tc.want) {
						t.Errorf("%s with %d bytes, %v, want the %d that were sent", resp.Status, len(got), err, len(tc.want))
					}
					// Express adds a charset to text types only.
					if got := resp.Header.Get("Content-Type"); got != "application/x-e2e; a=b" {
						t.Errorf("content type %q", got)
					}
					paid(t, resp, ledger.Claimed, units)
				})
				if !tc.fits && b.chain.AuthorizationsUsed(t, b.payer) != used {
					t.Error("an authorization was used for a body that cannot be sent again")
				}
			})
		}
	})
}

// TestPayStream pays for a stream, whose bytes come back as they were sent.
func TestPayStream(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		b.chain.Moves(t, s.PayTo, 30_000, func() {
			resp, body, err := b.get(t, s.URL+"/stream")
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != http.StatusOK || body != lines {
				t.Errorf("%s with %d bytes, want %d", resp.Status, len(body), len(lines))
			}
			paid(t, resp, ledger.Claimed, 30_000)
		})
	})
}

// TestPayTwentyAtOnce makes twenty equal calls at once: twenty purchases.
func TestPayTwentyAtOnce(t *testing.T) {
	const payments, units = 20, 10_000
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, payments*units)
		b.chain.Moves(t, s.PayTo, payments*units, func() {
			var wg sync.WaitGroup
			for range payments {
				wg.Go(func() {
					req, _ := http.NewRequest(http.MethodGet, s.URL+"/cent", nil)
					resp, err := b.Fetch(t.Context(), req)
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					if r, _ := canopy.PaymentOf(resp); resp.StatusCode != http.StatusOK || r.State != ledger.Claimed {
						t.Errorf("%s, %+v", resp.Status, r)
					}
				})
			}
			wg.Wait()
		})
		b.spent(t, payments*units)
		if got := b.chain.AuthorizationsUsed(t, b.payer); got != payments {
			t.Errorf("%d authorizations used, want %d", got, payments)
		}
		if got := len(entries(t, b.store)); got != payments {
			t.Errorf("%d payments in the ledger, want %d", got, payments)
		}
	})
}

// TestPayUnderHTTPClient puts the client under an http.Client, which wraps its errors.
func TestPayUnderHTTPClient(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		for name, hc := range map[string]*http.Client{
			"RoundTripper": {Transport: b.Client}, "HTTPClient": b.HTTPClient(),
		} {
			t.Run(name, func(t *testing.T) {
				b.chain.Moves(t, s.PayTo, 10_000, func() {
					resp, err := hc.Get(s.URL + "/cent")
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), "/cent") {
						t.Errorf("%s %s, %v", resp.Status, body, err)
					}
					paid(t, resp, ledger.Claimed, 10_000)
				})
			})
		}
		b.Freeze(t.Context(), "enough")
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, err := b.HTTPClient().Get(s.URL + "/cent")
			if d := denied(t, err, "frozen"); d.Result.Reason != "Payments are frozen: enough" {
				t.Errorf("reason %q", d.Result.Reason)
			}
		})
	})
}

// TestPayNotWithABrowsersPage asks as a browser does. The v1 seller then answers 402 with a page of several
// megabytes instead of terms, which is handed back whole.
func TestPayNotWithABrowsersPage(t *testing.T) {
	ask := func(url string) *http.Request {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
		req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
		return req
	}
	s := shared.V1
	b := newBuyer(t, shared.Chain, generous, 1_000_000)
	b.chain.Moves(t, s.PayTo, 0, func() {
		var pages [2][]byte
		for i, do := range []func(*http.Request) (*http.Response, error){
			http.DefaultClient.Do,
			func(r *http.Request) (*http.Response, error) { return b.Fetch(t.Context(), r) },
		} {
			resp, err := do(ask(s.URL + "/cent"))
			if err != nil {
				t.Fatal(err)
			}
			if pages[i], err = io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusPaymentRequired {
				t.Errorf("%s, %v", resp.Status, err)
			}
			resp.Body.Close()
			if r, ok := canopy.PaymentOf(resp); ok {
				t.Errorf("payment %+v", r)
			}
		}
		if len(pages[0]) < 1<<20 || !bytes.Equal(pages[0], pages[1]) {
			t.Errorf("page of %d bytes, want the %d that the seller sends", len(pages[1]), len(pages[0]))
		}
	})
	// The v2 seller states its terms in a header beside the page.
	b.chain.Moves(t, shared.V2.PayTo, 10_000, func() {
		resp, err := b.Fetch(t.Context(), ask(shared.V2.URL+"/cent"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		paid(t, resp, ledger.Claimed, 10_000)
	})
}
