package canopytest_test

import (
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

var cent = []canopytest.Route{{Pattern: "GET /cent", Price: payment.Cent}}

func TestSellerTakesAPaymentOnce(t *testing.T) {
	t.Parallel()
	for _, v := range []canopytest.Version{canopytest.V2, canopytest.V1} {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent})
		header, paid := w.buy(url + "/cent")
		if paid.StatusCode != 200 || string(paid.body) != "{\"path\":\"/cent\"}\n" {
			t.Fatalf("version %d: %d %s %v", v, paid.StatusCode, paid.body, paid.Header)
		}
		receipt := paid.Header.Get("Payment-Response")
		if v == canopytest.V1 {
			receipt = paid.Header.Get("X-Payment-Response")
		}
		got := decode(t, receipt)
		tx, ok := w.chain.Tx(got["transaction"].(string))
		if got["success"] != true || !ok || tx.Pending || tx.Err != nil {
			t.Errorf("version %d: receipt %v, tx %v", v, got, tx)
		}
		w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: canopytest.Address("seller"), Amount: payment.Cent})

		again := w.get(url+"/cent", header...)
		want, served := "invalid_exact_evm_nonce_already_used", 1
		if v == canopytest.V1 {
			want, served = "Failed to settle payment: 500 Internal Server Error", 2
		}
		if again.StatusCode != 402 || errorOf(t, again) != want {
			t.Errorf("version %d again: %d %s %s", v, again.StatusCode, errorOf(t, again), again.body)
		}
		if n := s.Count("GET /cent"); n != (canopytest.Count{Requests: 3, Paid: 2, Served: served, Settled: 1}) {
			t.Errorf("version %d: counts %+v", v, n)
		}
		w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
	}
}
