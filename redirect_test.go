package canopy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// doors are the ways to the client: the library's two, and a program's own
// http.Client over RoundTrip.
func doors(w *world) map[string]func(*http.Request) (*http.Response, error) {
	return map[string]func(*http.Request) (*http.Response, error){
		"Fetch":      func(r *http.Request) (*http.Response, error) { return w.client.Fetch(w.context(), r) },
		"HTTPClient": w.client.HTTPClient().Do,
		"RoundTrip":  (&http.Client{Transport: w.client}).Do,
	}
}

// redirects runs f in a bubble for every door.
func redirects(t *testing.T, f func(t *testing.T, w *world, get func(string) got)) {
	t.Helper()
	for _, door := range []string{"Fetch", "HTTPClient", "RoundTrip"} {
		t.Run(door, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{})
				f(t, w, func(url string) got { return w.read(doors(w)[door](w.request("GET", url, nil))) })
			})
		})
	}
}

// sellsAt serves a priced route and one that is free at a host.
func (w *world) sellsAt(host string, payTo string, faults ...canopytest.Rule) (*canopytest.Seller, string) {
	return w.serve(host, canopytest.SellerConfig{
		PayTo: canopytest.Address(payTo), Faults: faults,
		Routes: []canopytest.Route{{Pattern: "GET /paid", Price: dime}, {Pattern: "GET /free"}},
	})
}

func (w *world) redirect(host, from, to string) string {
	return w.net.Serve(w.t, host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == from {
			http.Redirect(rw, r, to, http.StatusFound)
			return
		}
		http.NotFound(rw, r)
	}))
}

// Before payment, on one origin: the place that was led to is paid.
func TestRedirectOnOneOriginIsPaid(t *testing.T) {
	redirects(t, func(t *testing.T, w *world, get func(string) got) {
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Routes: []canopytest.Route{
			{Pattern: "GET /old", Handler: http.RedirectHandler("/paid", http.StatusFound)}, {Pattern: "GET /paid", Price: dime},
		}})
		w.bought(get(url + "/old"))
		w.handed(s, 1)
		w.spent(dime)
	})
}

// Before payment, to another origin: that is not the one that was asked for.
func TestAttack27_RedirectToAnotherOriginIsNotPaid(t *testing.T) {
	for name, from := range map[string]string{"host": "127.0.0.2:8402", "port": "127.0.0.1:9000"} {
		t.Run(name, func(t *testing.T) {
			redirects(t, func(t *testing.T, w *world, get func(string) got) {
				b, bURL := w.sellsAt("127.0.0.1:8402", "b")
				a := w.redirect(from, "/", bURL+"/paid")
				d := w.denied(get(a+"/"), "redirected")
				if !strings.Contains(d.Error(), "127.0.0.1:8402") {
					t.Errorf("it does not say where to: %v", d)
				}
				w.handed(b, 0)
				w.signed(0)
				if g := get(a + "/nowhere"); g.err != nil || g.StatusCode != 404 {
					t.Errorf("got %+v", g)
				}
			})
		})
	}
}

// To another origin and back: the last hop is where the call began, but a
// stranger chose it.
func TestAttack27_RedirectThroughAnotherOrigin(t *testing.T) {
	redirects(t, func(t *testing.T, w *world, get func(string) got) {
		s, url := w.sellsAt("127.0.0.1:8402", "a", canopytest.First(canopytest.Redirect(302, "http://127.0.0.2:8402/back")))
		w.redirect("127.0.0.2:8402", "/back", url+"/paid")
		w.denied(get(url+"/paid"), "redirected")
		w.handed(s, 0)
		w.signed(0)
	})
}

// After payment, to another host that asks again: one payment, to the approved
// host, and no credential anywhere else. Case 7, attack 28.
func TestCase07_RedirectAfterPaymentPaysNothingMore(t *testing.T) {
	for _, settled := range []bool{true, false} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(status, settled), func(t *testing.T) {
				redirects(t, func(t *testing.T, w *world, get func(string) got) {
					b, bURL := w.sellsAt("127.0.0.2:8402", "b")
					fault := canopytest.Redirect(status, bURL+"/paid").At(canopytest.OnPaid)
					if settled {
						fault = canopytest.RedirectAfterSettling(status, bURL+"/paid")
					}
					a, aURL := w.sellsAt("127.0.0.1:8402", "a", canopytest.Always(fault))
					g := get(aURL + "/paid")
					if g.err != nil || g.StatusCode != 402 || !g.cost || g.paid.Recipient != canopytest.Address("a") {
						t.Errorf("got %+v, want b's 402 and a's payment", g)
					}
					w.handed(a, 1)
					w.handed(b, 0)
					w.counted(dime)
					for _, r := range b.Requests() {
						if r.Paid || r.Header.Get("Payment-Signature")+r.Header.Get("X-Payment") != "" {
							t.Error("the credential was carried to b")
						}
					}
				})
			})
		}
	}
}

// After payment, on one origin: followed, without the credential, paid once.
func TestAttack28_PaidRedirectIsFollowedWithoutCredential(t *testing.T) {
	for target, want := range map[string]int{"/free": 200, "/paid": 402} {
		t.Run(target, func(t *testing.T) {
			redirects(t, func(t *testing.T, w *world, get func(string) got) {
				s, url := w.sellsAt("127.0.0.1:8402", "a", canopytest.Always(canopytest.RedirectAfterSettling(303, target)))
				g := get(url + "/paid")
				if g.err != nil || g.StatusCode != want || !g.cost || g.paid.Amount != dime {
					t.Errorf("got %+v", g)
				}
				w.handed(s, 1)
				w.spent(dime)
				if n := s.Count("").Paid; n != 1 {
					t.Errorf("%d requests with a payment, want 1", n)
				}
			})
		})
	}
}

// A program that follows nothing gets the 303 itself and what it cost.
func TestAttack28_PaidRedirectIsReturned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sellsAt("127.0.0.1:8402", "a", canopytest.Always(canopytest.RedirectAfterSettling(303, "/free")))
		hc := w.client.HTTPClient()
		hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		g := w.read(hc.Get(url + "/paid"))
		if g.StatusCode != 303 || g.paid.Amount != dime {
			t.Errorf("got %+v", g)
		}
		w.spent(dime)
	})
}

// A loop of redirects ends, paid or not.
func TestRedirectLoop(t *testing.T) {
	redirects(t, func(t *testing.T, w *world, get func(string) got) {
		s, url := w.sellsAt("127.0.0.1:8402", "a", canopytest.Always(canopytest.RedirectAfterSettling(303, "/paid")))
		if g := get(url + "/paid"); g.err != nil || g.StatusCode != 402 {
			t.Errorf("got %+v", g)
		}
		w.handed(s, 1)
		w.spent(dime)
	})
}

// A POST that is redirected by 307 with its body is bought where it is led to,
// on one origin.
func TestRedirect307KeepsTheBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Routes: []canopytest.Route{
			{Pattern: "POST /old", Handler: http.RedirectHandler("/paid", http.StatusTemporaryRedirect)}, {Pattern: "POST /paid", Price: dime},
		}})
		w.bought(w.do(w.request("POST", url+"/old", strings.NewReader("hello"))))
		for _, r := range s.Requests() {
			if string(r.Body) != "hello" {
				t.Errorf("%s got %q", r.Target, r.Body)
			}
		}
		w.spent(dime)
	})
}

// Cookies and credentials of the program's own are for its http.Client to keep;
// a payment adds none.
func TestRedirectKeepsCookies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		url := w.handler(func(rw http.ResponseWriter, r *http.Request) {
			if c, err := r.Cookie("session"); err == nil {
				io.WriteString(rw, c.Value)
				return
			}
			if r.Header.Get("PAYMENT-SIGNATURE") == "" {
				challenge(terms(entry()), "{}")(rw, r)
				return
			}
			http.SetCookie(rw, &http.Cookie{Name: "session", Value: "bought"})
			http.Redirect(rw, r, "/again", http.StatusSeeOther)
		})
		hc := w.client.HTTPClient()
		hc.Jar, _ = cookiejar.New(nil)
		if g := w.read(hc.Get(url)); g.err != nil || g.body != "bought" || g.paid.Amount != payment.USD(1000) {
			t.Errorf("got %+v", g)
		}
		w.signed(1)
	})
}

// A check follows redirects too, and says what a call would say.
func TestCheckFollowsRedirects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, bURL := w.sellsAt("127.0.0.1:8402", "b")
		a := w.redirect("127.0.0.2:8402", "/", bURL+"/paid")
		c, err := w.client.CheckURL(w.context(), a+"/")
		if err != nil || c.Status != canopy.Denied || c.Code != "redirected" || c.URL != bURL+"/paid" {
			t.Errorf("check %+v, %v", c, err)
		}
		w.signed(0)
	})
}
