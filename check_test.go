package canopy_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// A check says what a call would come to, and signs, reserves and stores
// nothing.
func TestCheckURL(t *testing.T) {
	for name, tc := range map[string]struct {
		price  payment.USD
		opts   []canopy.Option
		policy string
		status canopy.Status
		code   string
	}{
		"free":      {0, nil, "", canopy.Allowed, ""},
		"allowed":   {dime, nil, "", canopy.Allowed, ""},
		"pending":   {report, nil, "", canopy.PendingApproval, "approval_threshold"},
		"denied":    {11 * payment.Dollar, nil, "", canopy.Denied, "max_payment"},
		"cap":       {dime, nil, capped("$0.05 / 24h"), canopy.Denied, "cap_exceeded"},
		"max price": {dime, []canopy.Option{canopy.WithMaxPrice(1)}, "", canopy.Denied, "max_price"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{policy: tc.policy})
				s, url := w.sells(tc.price)
				c, err := w.client.CheckURL(w.context(), url, tc.opts...)
				if err != nil || c.Status != tc.status || c.Code != tc.code || c.Amount != tc.price || c.URL != url || c.Cached {
					t.Errorf("check %+v, %v", c, err)
				}
				if tc.price > 0 && (c.Rail != "x402" || c.Scheme != "exact" || c.Chain != payment.Base || c.Recipient != canopytest.Address("seller") || c.HTTP != 402) {
					t.Errorf("check %+v", c)
				}
				if tc.status != canopy.Allowed && (c.Reason == "" || len(c.Reasons) == 0) {
					t.Errorf("no reason in %+v", c)
				}
				w.signed(0)
				w.handed(s, 0)
				w.counted(0)
				for range w.store.Entries(w.context(), ledger.Query{}) {
					t.Error("a check was stored")
				}
			})
		})
	}
}

// Offers are kept for a minute; the verdict is always fresh, and a call never
// pays by what was kept.
func TestCheckURLCache(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: capped("$0.15 / 24h")})
		s, url := w.sells(dime)
		check := func() canopy.Check {
			c, err := w.client.CheckURL(w.context(), url)
			must(t, err)
			return c
		}
		check()
		s.SetPrice("GET /goods/", 2*payment.Cent)
		if c := check(); !c.Cached || c.Amount != dime || c.Status != canopy.Allowed {
			t.Errorf("second check %+v", c)
		}
		if g := w.bought(w.get(url)); g.paid.Amount != 2*payment.Cent {
			t.Errorf("paid %v, the price is 2 cents", g.paid.Amount)
		}
		s.SetPrice("GET /goods/", 5*payment.Cent)
		w.bought(w.get(url))
		if c := check(); !c.Cached || c.Status != canopy.Denied || c.Code != "cap_exceeded" {
			t.Errorf("third check %+v, want a fresh denial", c)
		}
		w.clock.Advance(61 * time.Second)
		if c := check(); c.Cached || c.Amount != 5*payment.Cent || c.Status != canopy.Allowed {
			t.Errorf("after a minute %+v", c)
		}
	})
}

// What is kept is bounded.
func TestCheckURLCacheIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime)
		for i := range 257 {
			if _, err := w.client.CheckURL(w.context(), fmt.Sprint(url, i)); err != nil {
				t.Fatal(err)
			}
		}
		if c, err := w.client.CheckURL(w.context(), url+"0"); err != nil || c.Cached {
			t.Errorf("check %+v, %v: more than 256 are kept", c, err)
		}
	})
}

func TestCheckURLRefusesWhatIsNoURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for _, bad := range []string{"", "feed.example/x", "http://", "http:///x", "http://[::1", "http://a b/", "ftp://feed.example/x", "javascript:alert(1)", "http://127.0.0.1:8402/\x00"} {
		if c, err := w.client.CheckURL(w.context(), bad); err == nil {
			t.Errorf("%q: %+v", bad, c)
		}
	}
}

// A challenge that nobody knows is denied, and the other offers have reasons.
func TestCheckURLNamesTheAlternatives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		c, err := w.client.CheckURL(w.context(), w.handler(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(402) }))
		if err != nil || c.Status != canopy.Denied || c.Code != "no_usable_offer" {
			t.Errorf("check %+v, %v", c, err)
		}
		_, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Routes: []canopytest.Route{{
			Pattern: "GET /goods", Price: 12 * payment.Dollar, Also: []canopytest.Accept{{Price: dime}, {Price: dime, PayTo: canopytest.Address("b")}},
		}}})
		c, err = w.client.CheckURL(w.context(), url+"/goods")
		if err != nil || c.Amount != dime || len(c.Others) != 2 {
			t.Fatalf("check %+v, %v", c, err)
		}
		for _, o := range c.Others {
			if o.Reason == "" {
				t.Errorf("alternative %+v", o)
			}
		}
	})
}

// The seller's order of offers decides nothing. Attack 20.
func TestAttack20_OrderOfOffers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		cheap := []string{entry(`"1000"`, `"2000"`), entry(), entry(`"1000"`, `"3000000"`), entry("84532", "8453", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", `"USDC"`, `"USD Coin"`, `"1000"`, `"1500"`)}
		var at atomic.Int32
		url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
			n := int(at.Load())
			order := make([]string, len(cheap))
			for i, e := range cheap {
				order[(i*(1+2*(n%2))+n)%len(cheap)] = e // turned, and mirrored at odd n
			}
			challenge(terms(order...), "{}")(rw, r)
		})
		for n := range 8 {
			at.Store(int32(n))
			c, err := w.client.CheckURL(w.context(), url+"/"+string(rune('a'+n)))
			if err != nil || c.Amount != 1000 || c.Chain != "eip155:84532" {
				t.Errorf("order %d: %+v, %v", n, c, err)
			}
		}
	})
}
