//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
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

// TestPayUpToTheCap buys until the cap is full, and no further, however often and at whatever spelling.
func TestPayUpToTheCap(t *testing.T) {
	const doc = `
[policy.default]
max_payment = "$10"
caps        = ["$7 / 24h"]
allow       = ["host:127.0.0.1"]
`
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, doc, 20_000_000)
		const reason = "Spend cap exceeded: $6.00 + $2.00 > $7 / 24h"
		b.chain.Moves(t, s.PayTo, 6_000_000, func() {
			for i := range 6 {
				resp, _, err := b.get(t, s.URL+"/two")
				if i < 3 {
					if err != nil {
						t.Fatalf("payment %d: %v", i+1, err)
					}
					paid(t, resp, ledger.Claimed, 2_000_000)
					continue
				}
				d := denied(t, err, "cap_exceeded")
				if d.Result.Reason != reason || err.Error() != "canopy: payment denied: "+reason {
					t.Errorf("reason %q in %q, want %q", d.Result.Reason, err, reason)
				}
			}
		})
		b.chain.Moves(t, s.PayTo, 0, func() {
			if k, err := b.CheckURL(t.Context(), s.URL+"/two"); err != nil || k.Status != canopy.Denied || k.Reason != reason {
				t.Errorf("check %+v, %v", k, err)
			}
			_, _, err := b.get(t, s.URL+"/two?again", canopy.WithKey("another"))
			denied(t, err, "cap_exceeded")
			_, _, err = b.get(t, s.URL+"/TWO/")
			denied(t, err, "cap_exceeded")
		})
		b.spent(t, 6_000_000)
		left, err := b.Budget(t.Context())
		if err != nil || left.Remaining != 1*canopy.Dollar || left.Spent != 6*canopy.Dollar {
			t.Errorf("budget %+v, %v", left, err)
		}
		// What still fits is still sold.
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			if _, _, err := b.get(t, s.URL+"/cent"); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestPayAfterApproval puts a payment above the threshold to a person.
func TestPayAfterApproval(t *testing.T) {
	const doc = `
[policy.default]
max_payment   = "$10"
caps          = ["$50 / 24h"]
approve_above = "$5"
allow         = ["host:127.0.0.1"]
`
	const six = 6_000_000
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, doc, 50_000_000)
		url := s.URL + "/six"
		var first canopy.Result
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, _, err := b.get(t, url)
			first = pending(t, err)
			if first.Reason != "Amount $6.00 exceeds approval threshold of $5" || first.Amount != 6*canopy.Dollar {
				t.Errorf("%+v", first)
			}
			_, _, err = b.get(t, url)
			if again := pending(t, err); again.ApprovalID != first.ApprovalID || again.PaymentID != first.PaymentID {
				t.Errorf("an equal call opened approval %s beside %s", again.ApprovalID, first.ApprovalID)
			}
			b.rule(t, first.ApprovalID, true)
			a, err := b.ApprovalStatus(t.Context(), first.ApprovalID)
			if err != nil || a.Status != ledger.ApprovalGranted || !a.UsedAt.IsZero() {
				t.Errorf("approval %+v, %v", a, err)
			}
			// What was approved is this request and no other.
			_, _, err = b.get(t, url+"?other")
			if other := pending(t, err); other.ApprovalID == first.ApprovalID {
				t.Error("another request got the same approval")
			}
		})
		b.chain.Moves(t, s.PayTo, six, func() {
			resp, _, err := b.get(t, url)
			if err != nil {
				t.Fatal(err)
			}
			if r := paid(t, resp, ledger.Claimed, six); r.PaymentID != first.PaymentID {
				t.Errorf("payment %s, want %s", r.PaymentID, first.PaymentID)
			}
		})
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, _, err := b.get(t, url)
			second := pending(t, err)
			if second.ApprovalID == first.ApprovalID {
				t.Error("an approval was offered for use twice")
			}
			b.rule(t, second.ApprovalID, false)
			a, err := b.WaitForApproval(t.Context(), second.ApprovalID)
			if err != nil || a.Status != ledger.ApprovalRefused {
				t.Errorf("approval %+v, %v", a, err)
			}
			if _, _, err = b.get(t, url); pending(t, err).ApprovalID == second.ApprovalID {
				t.Error("a denied approval is pending again")
			}
		})

		// With WithWait one call is the whole of it.
		waitFor := func(approve bool, opts ...canopy.Option) (*http.Response, error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				seen := map[canopy.ApprovalID]bool{}
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					list, err := b.store.Approvals().List(context.Background(), "", true, time.Now())
					if err != nil {
						t.Error(err)
						return
					}
					for _, a := range list {
						if strings.HasSuffix(a.Terms.Target, "?wait") && !seen[a.ID] {
							time.Sleep(100 * time.Millisecond) // a person takes time
							b.rule(t, a.ID, approve)
							return
						}
					}
				}
			}()
			defer func() { <-done }()
			resp, _, err := b.get(t, url+"?wait", append(opts, canopy.WithWait(10*time.Second))...)
			return resp, err
		}
		b.chain.Moves(t, s.PayTo, six, func() {
			resp, err := waitFor(true)
			if err != nil {
				t.Fatal(err)
			}
			paid(t, resp, ledger.Claimed, six)
		})
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, err := waitFor(false)
			d := denied(t, err, "rejected")
			if d.Result.Reason != "A person denied it: e2e" || d.Result.State != ledger.Rejected {
				t.Errorf("%+v", d.Result)
			}
			start := time.Now()
			_, _, err = b.get(t, url+"?nobody", canopy.WithWait(200*time.Millisecond))
			pending(t, err)
			if d := time.Since(start); d < 150*time.Millisecond || d > 5*time.Second {
				t.Errorf("waited %v", d)
			}
		})
		// A caller may ask for a person below the threshold too.
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, _, err := b.get(t, s.URL+"/cent", canopy.WithApproval())
			pending(t, err)
		})
		b.spent(t, 2*six)
	})
}

// TestPayMaxPrice holds the caller's own maximum, below what the policy allows.
func TestPayMaxPrice(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 4_000_000)
		b.chain.Moves(t, s.PayTo, 0, func() {
			for _, max := range []canopy.USD{0, 1, 2*canopy.Dollar - 1} {
				_, _, err := b.get(t, s.URL+"/two", canopy.WithMaxPrice(max))
				denied(t, err, "max_price")
			}
		})
		b.chain.Moves(t, s.PayTo, 2_000_000, func() {
			if _, _, err := b.get(t, s.URL+"/two", canopy.WithMaxPrice(2*canopy.Dollar)); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestPayByKey makes calls with one key, one after another and at once: one debit.
func TestPayByKey(t *testing.T) {
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		var id canopy.PaymentID
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			resp, _, err := b.get(t, s.URL+"/cent", canopy.WithKey("order-1"))
			if err != nil {
				t.Fatal(err)
			}
			id = paid(t, resp, ledger.Claimed, 10_000).PaymentID
			// The same bytes go to the seller again, who does not sell twice for them.
			_, _, err = b.get(t, s.URL+"/cent", canopy.WithKey("order-1"))
			var made *canopy.PaidError
			if !errors.As(err, &made) || made.Result.PaymentID != id || made.Result.TxHash == "" || !made.Delivered {
				t.Errorf("the same key again: %v, want *PaidError of %s", err, id)
			}
		})
		b.chain.Moves(t, s.PayTo, 0, func() {
			_, _, err := b.get(t, s.URL+"/two", canopy.WithKey("order-1"))
			if !errors.Is(err, canopy.ErrKeyConflict) {
				t.Errorf("the key of another URL: %v, want ErrKeyConflict", err)
			}
		})
		var delivered atomic.Int32
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					req, _ := http.NewRequest(http.MethodGet, s.URL+"/cent", nil)
					resp, err := b.Fetch(t.Context(), req, canopy.WithKey("order-2"))
					var made *canopy.PaidError
					var flying *canopy.InFlightError
					switch {
					case err == nil:
						resp.Body.Close()
						delivered.Add(1)
					case !errors.As(err, &made) && !errors.As(err, &flying):
						t.Errorf("one of eight: %v", err)
					}
				})
			}
			wg.Wait()
		})
		if delivered.Load() == 0 {
			t.Error("none of eight callers got the content")
		}
		b.spent(t, 20_000)
	})
}

// TestPayAndHangUp leaves while the seller works: the payment is in doubt, and asking again with the key pays
// nothing more.
func TestPayAndHangUp(t *testing.T) {
	const key = "slow-1"
	ownSellers(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			err := b.hangUp(t, 200*time.Millisecond, s.URL+"/slow", key)
			var doubt *canopy.InDoubtError
			if !errors.As(err, &doubt) || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want *InDoubtError for the hang-up", err)
			}
			if doubt.Phase != canopy.SentUnknown || doubt.Result.State != ledger.InDoubt || doubt.SafeAfter.IsZero() {
				t.Errorf("%+v", doubt)
			}
			left, err := b.Budget(t.Context())
			if err != nil || left.Held != 10_000 || left.Spent != 10_000 {
				t.Errorf("budget %+v, %v: want the price held", left, err)
			}
			b.chain.settled(t, b.payer)
			askAgain(t, b.Client, s.URL+"/slow", key, doubt.Result.PaymentID)
			// Without the key it is the same purchase still, since nothing was delivered. (The v1 seller
			// makes its goods once more for every sending, which takes its time.)
			if s.Version == 2 {
				askAgain(t, b.Client, s.URL+"/slow", "", doubt.Result.PaymentID)
			}
		})
		b.spent(t, 10_000)
	})
}

// askAgain repeats a call whose payment is in doubt or paid: content, *PaidError or *InDoubtError of the same
// payment are right.
func askAgain(t testing.TB, c *canopy.Client, url, key string, id canopy.PaymentID) {
	t.Helper()
	var opts []canopy.Option
	if key != "" {
		opts = append(opts, canopy.WithKey(key))
	}
	resp, _, err := fetch(t, c, http.MethodGet, url, nil, opts...)
	var made *canopy.PaidError
	var doubt *canopy.InDoubtError
	var got canopy.PaymentID
	switch {
	case err == nil:
		r, _ := canopy.PaymentOf(resp)
		got = r.PaymentID
	case errors.As(err, &made):
		got = made.Result.PaymentID
	case errors.As(err, &doubt):
		got = doubt.Result.PaymentID
	default:
		t.Fatalf("asking again: %v", err)
	}
	if got != id {
		t.Errorf("asking again gave payment %s, want %s", got, id)
	}
	t.Logf("asked again: %v", err)
}

// TestPayForABrokenPage gets the seller's 500 as the answer it is, with what became of the money.
func TestPayForABrokenPage(t *testing.T) {
	broken := func(t *testing.T, b *buyer, url string, state canopy.State) {
		resp, body, err := b.get(t, url)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(body, "broken on purpose") {
			t.Errorf("answer %s %s", resp.Status, body)
		}
		r := paid(t, resp, state, 10_000)
		if e, err := b.store.Entry(t.Context(), r.PaymentID); err != nil || e.Delivered || e.HTTP != 500 {
			t.Errorf("entry %+v, %v", e, err)
		}
	}
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, generous, 1_000_000)
		b.chain.Moves(t, s.PayTo, 0, func() {
			for range 3 { // an equal call sends the same bytes, and signs nothing
				broken(t, b, s.URL+"/broken", ledger.InDoubt)
			}
		})
		if got := entries(t, b.store); len(got) != 1 || got[0].Sends < 3 {
			t.Errorf("%d payments, the first sent %d times: want one, sent again", len(got), got[0].Sends)
		}
		if s.Version == 1 {
			return
		}
		b.chain.Moves(t, s.PayTo, 10_000, func() {
			broken(t, b, s.URL+"/upfront-broken", ledger.Claimed)
			_, _, err := b.get(t, s.URL+"/upfront-broken")
			var made *canopy.PaidError
			if !errors.As(err, &made) {
				t.Errorf("an equal call after a paid failure: %v, want *PaidError", err)
			}
		})
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

// TestPaySpellings judges a request by where it goes and what it asks for, in whatever spelling.
func TestPaySpellings(t *testing.T) {
	const doc = `
[policy.default]
max_payment = "$1"
caps        = ["$5 / 24h"]
allow       = ["host:127.0.0.1"]
deny        = ["host:localhost"]
`
	eachSeller(t, func(t *testing.T, s *Seller) {
		b := newBuyer(t, shared.Chain, doc, 10_000_000)
		port := s.URL[strings.LastIndex(s.URL, ":"):]
		nothing := func(url string, change func(*http.Request)) error {
			t.Helper()
			var err error
			b.chain.Moves(t, s.PayTo, 0, func() {
				req, rerr := http.NewRequest(http.MethodGet, url, nil)
				if rerr != nil {
					t.Fatal(rerr)
				}
				if change != nil {
					change(req)
				}
				var resp *http.Response
				if resp, err = b.Fetch(t.Context(), req); err == nil {
					resp.Body.Close()
					if r, ok := canopy.PaymentOf(resp); ok {
						t.Errorf("%s: %+v", url, r)
					}
				}
			})
			return err
		}
		// Express serves these as /two; their price is that of /two.
		for _, path := range []string{"/two", "/TWO", "/two/", "/Two?x=1", "//two", "/%74wo", "/x/../two"} {
			err := nothing(s.URL+path, nil)
			var d *canopy.DeniedError
			if err != nil && (!errors.As(err, &d) || d.Result.Code != "max_payment") {
				t.Errorf("%s: %v, want a denial by max_payment, or no payment asked", path, err)
			}
			t.Logf("%s: %v", path, err)
		}
		denied(t, nothing("http://localhost"+port+"/cent", nil), "denied_destination")
		denied(t, nothing(s.URL+"/cent", func(r *http.Request) { r.Host = "feed.example" }), "host_mismatch")
		for _, host := range []string{"127.1", "2130706433", "0x7f.0.0.1", "127.0.0.1."} {
			if err := nothing("http://"+host+port+"/cent", nil); err == nil {
				t.Errorf("%s was fetched", host)
			}
		}
		denied(t, nothing(strings.Replace(s.URL, "http://", "http://user@", 1)+"/cent", nil), "bad_origin")
		// A redirect that leads here from another origin is not paid.
		away := httptest.NewServer(http.RedirectHandler(s.URL+"/cent", http.StatusFound))
		defer away.Close()
		denied(t, nothing(away.URL, nil), "redirected")
		if got := b.chain.AuthorizationsUsed(t, b.payer); got != 0 {
			t.Errorf("%d authorizations used", got)
		}
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
