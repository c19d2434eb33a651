package canopy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/canopy-go/canopy"
)

// A seller to whom the same bytes go again says that the nonce is used, and
// names no transaction: the one that it named first is not forgotten.
func TestTransactionIsKept(t *testing.T) {
	w := newWorld(t, setup{})
	_, url := w.sells(canopy.Dollar)
	first := w.bought(w.get(url, canopy.WithKey("order-1")))
	if first.paid.TxHash == "" {
		t.Fatal("no transaction was named")
	}
	again := as[*canopy.PaidError](t, w.get(url, canopy.WithKey("order-1")).err)
	if again.Result.TxHash != first.paid.TxHash || again.Result.PaymentID != first.paid.PaymentID {
		t.Errorf("transaction %q of %s, want %q of %s", again.Result.TxHash, again.Result.PaymentID, first.paid.TxHash, first.paid.PaymentID)
	}
	if text := again.Error(); !again.Delivered || !strings.Contains(text, "was made and delivered before") {
		t.Errorf("an answer that an earlier call got: delivered %v, %s", again.Delivered, text)
	}
	e, err := w.store.Entry(context.Background(), first.paid.PaymentID)
	must(t, err)
	if e.Receipt.TxHash != first.paid.TxHash || e.Sends != 2 {
		t.Errorf("the ledger has transaction %q after %d sendings, want %q after 2", e.Receipt.TxHash, e.Sends, first.paid.TxHash)
	}
	w.signed(1)
}
