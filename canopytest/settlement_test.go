package canopytest_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// paidLater sends a payment on a chain that stands still, and returns when its
// transaction waits.
func (w *world) paidLater(url string, header []string) <-chan reply {
	n := len(w.chain.Pending())
	done := make(chan reply, 1)
	go func() {
		r, err := w.do("GET", url, header...)
		if err != nil {
			w.Error(err)
		}
		done <- r
	}()
	for len(w.chain.Pending()) == n {
		select {
		case r := <-done:
			done <- r
			return done
		case <-time.After(time.Millisecond):
		}
	}
	return done
}

func (w *world) header(url string) []string {
	first := w.get(url)
	q := w.quote(first)
	a := w.authorizeQuote(q)
	if first.Header.Get("Payment-Required") == "" {
		return []string{"X-PAYMENT", payload1(q, a)}
	}
	return []string{"PAYMENT-SIGNATURE", payload2(q, a)}
}

// Two identical headers in flight: one settles, the other's transaction is
// mined and reverts.
func TestIdenticalPaymentsInFlight(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		_, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent})
		header := w.header(url + "/cent")
		w.chain.SetMining(canopytest.Manual)
		first, second := w.paidLater(url+"/cent", header), w.paidLater(url+"/cent", header)
		w.chain.Mine()
		replies := []reply{<-first, <-second}
		statuses := []int{replies[0].StatusCode, replies[1].StatusCode}
		slices.Sort(statuses)
		if !slices.Equal(statuses, []int{200, 402}) {
			t.Errorf("version %d: %v", v, statuses)
		}
		for _, r := range replies {
			if want := map[canopytest.Version]string{canopytest.V2: "invalid_exact_evm_transaction_failed", canopytest.V1: "invalid_transaction_state"}[v]; r.StatusCode == 402 && errorOf(t, r) != want {
				t.Errorf("version %d: %s, want %s", v, errorOf(t, r), want)
			}
		}
		w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
	}
}

// A transaction that was mined and reverted leaves the nonce unused: the same
// header pays.
func TestRevertedPaymentPaysAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Routes: cent})
	header := w.header(url + "/cent")
	w.chain.SetMining(canopytest.Manual)
	done := w.paidLater(url+"/cent", header)
	if err := w.chain.Send(w.chain.Dollar(), w.wallet.Address(), canopytest.Address("x"), payment.UnitsOf(100_000_000)); err != nil {
		t.Fatal(err)
	}
	w.chain.Mine()
	r := <-done
	receipt := decode(t, r.Header.Get("Payment-Response"))
	if r.StatusCode != 402 || receipt["errorReason"] != "invalid_exact_evm_transaction_failed" || receipt["transaction"] == "" {
		t.Errorf("%d %v", r.StatusCode, receipt)
	}
	w.chain.SetMining(canopytest.Instant)
	w.chain.Fund(w.wallet.Address(), payment.Dollar)
	if r := w.get(url+"/cent", header...); r.StatusCode != 200 {
		t.Errorf("again: %d %s", r.StatusCode, errorOf(t, r))
	}
}

// Version 2 gives up after two waits with the hash; version 1 after one, with
// no word. Both move money when the transaction is mined after all.
func TestPendingForEver(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent, Timeout: time.Hour}}})
		header := w.header(url + "/")
		w.chain.SetMining(canopytest.Manual)
		done := w.paidLater(url+"/", header)
		w.clock.Advance(179 * time.Second)
		select {
		case r := <-done:
			t.Fatalf("version %d: answered early: %d", v, r.StatusCode)
		case <-time.After(20 * time.Millisecond):
		}
		w.clock.Advance(time.Second)
		if v == canopytest.V2 {
			select {
			case r := <-done:
				t.Fatalf("answered after one wait: %d", r.StatusCode)
			case <-time.After(20 * time.Millisecond):
			}
			w.clock.Advance(180 * time.Second)
		}
		r := <-done
		hash := w.chain.Pending()[0]
		if v == canopytest.V1 {
			if r.StatusCode != 402 || errorOf(t, r) != "Failed to settle payment: 500 Internal Server Error" || receiptOf(r) != "" {
				t.Errorf("version 1: %d %s", r.StatusCode, r.body)
			}
			w.chain.Mine()
			w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
			continue
		}
		if got := decode(t, receiptOf(r)); r.StatusCode != 402 || got["errorReason"] != "settlement_pending" || got["transaction"] != hash || got["success"] != false {
			t.Errorf("version 2: %d %v", r.StatusCode, got)
		}
		// Sent again while it is not mined, it joins the transaction.
		rejoined := make(chan reply)
		go func() { rejoined <- w.get(url+"/", header...) }()
		for s.Count("").Served < 2 {
			time.Sleep(time.Millisecond)
		}
		w.chain.Mine()
		if r := <-rejoined; r.StatusCode != 200 || decode(t, receiptOf(r))["transaction"] != hash || len(w.chain.Pending()) != 0 {
			t.Errorf("joined: %d %v", r.StatusCode, r.Header)
		}
		w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
		if r := w.get(url+"/", header...); errorOf(t, r) != "invalid_exact_evm_nonce_already_used" {
			t.Errorf("after it was mined: %d %s", r.StatusCode, errorOf(t, r))
		}
	}
}

// The seller settles although the client hung up.
func TestClientHangsUp(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		reached, release := make(chan struct{}), make(chan struct{})
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(reached)
			<-release
			if r.Context().Err() != nil {
				t.Error("the handler was cancelled")
			}
		})}}})
		header := w.header(url + "/")
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", url+"/", nil)
		req.Header.Set(header[0], header[1])
		failed := make(chan error)
		go func() {
			_, err := w.client.Do(req)
			failed <- err
		}()
		<-reached
		cancel()
		if err := <-failed; err == nil {
			t.Error("the client was answered")
		}
		close(release)
		for s.Count("").Settled == 0 {
			time.Sleep(time.Millisecond)
		}
		w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
	}
}

// A server can be closed while payments wait on a chain that stands still.
func TestCloseEndsTheWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: cent})
	header := w.header(url + "/cent")
	w.chain.SetMining(canopytest.Manual)
	done := w.paidLater(url+"/cent", header)
	s.Close()
	if r := <-done; r.StatusCode != 402 {
		t.Errorf("closed: %d", r.StatusCode)
	}
}

func TestSellerIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 4 {
					if _, r := w.buy(url + "/cent"); r.StatusCode != 200 {
						t.Errorf("version %d: %d %s", v, r.StatusCode, r.body)
					}
					s.Requests()
				}
			})
		}
		wg.Wait()
		if n := s.Count("GET /cent"); n != (canopytest.Count{Requests: 64, Paid: 32, Served: 32, Settled: 32}) {
			t.Errorf("version %d: %+v", v, n)
		}
		w.chain.AssertSpent(t, w.wallet.Address(), 32*payment.Cent)
	}
}
