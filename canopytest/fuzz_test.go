package canopytest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// Whatever a payment header holds, a seller answers 402 and nothing moves
// unless the payment is the one that was signed.
func FuzzPaymentHeader(f *testing.F) {
	clock := canopytest.NewStillClock(start)
	chain := canopytest.NewChain(canopytest.ChainConfig{Clock: clock})
	payer := newWallet()
	chain.Fund(payer.Address(), payment.Dollar)
	handlers := map[string]*canopytest.Seller{
		"Payment-Signature": canopytest.NewSeller(chain, canopytest.SellerConfig{Routes: cent, PaymentID: canopytest.PaymentIDOptional}),
		"X-Payment":         canopytest.NewSeller(chain, canopytest.SellerConfig{Routes: cent, Version: canopytest.V1}),
	}
	a := payer.authorize(chain.Dollar(), canopytest.Address("thief"), payment.UnitsOf(1), start.Add(time.Minute))
	q := map[string]any{"scheme": "exact", "network": "base"}
	f.Add(payload2(q, a))
	f.Add(payload1(q, a))
	f.Add("e30=")
	f.Add(encode(map[string]any{"x402Version": 2, "accepted": q, "payload": map[string]any{"authorization": nil}, "extensions": []int{1}}))
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsAny(header, "\r\n\x00") {
			t.Skip()
		}
		for name, seller := range handlers {
			r := httptest.NewRequest("GET", "/cent", nil)
			r.Header.Set(name, header)
			w := httptest.NewRecorder()
			seller.ServeHTTP(w, r)
			if w.Code != http.StatusPaymentRequired && w.Code != http.StatusBadRequest && w.Code != http.StatusConflict {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		chain.AssertTransfers(t)
	})
}
