//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
)

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
