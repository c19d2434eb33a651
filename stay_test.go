package canopy_test

import (
	"net/http"
	"testing"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
)

// WithoutRedirects gives back the redirect, before and after a payment.
func TestWithoutRedirects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Routes: []canopytest.Route{
			{Pattern: "GET /free", Handler: http.RedirectHandler("/paid", http.StatusFound)},
			{Pattern: "GET /paid", Price: dime, Handler: http.RedirectHandler("/free", http.StatusSeeOther)},
		}})
		g := w.get(url+"/free", canopy.WithoutRedirects())
		if g.err != nil || g.StatusCode != http.StatusFound || g.Header.Get("Location") != "/paid" || g.cost {
			t.Errorf("the free redirect: %+v", g)
		}
		g = w.get(url+"/paid", canopy.WithoutRedirects())
		if g.err != nil || g.StatusCode != http.StatusSeeOther || g.Header.Get("Location") != "/free" || g.paid.Amount != dime {
			t.Errorf("the paid redirect: %+v", g)
		}
		w.spent(dime)
	})
}
