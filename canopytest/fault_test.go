package canopytest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// outcome is what one payment met: what the client saw and what moved.
type outcome struct {
	status  int // 0: no answer
	code    string
	receipt bool
	served  bool
	moved   bool
}

func (w *world) pay(s *canopytest.Seller, url string) (outcome, reply) {
	w.Helper()
	header := w.header(url)
	r, err := w.do("GET", url, header...)
	o := outcome{served: s.Count("").Served > 0, moved: w.chain.Spent(w.wallet.Address()) > 0}
	if err == nil {
		o.status = r.StatusCode
		o.receipt = receiptOf(r) != "" && decode(w.T, receiptOf(r))["success"] == true
		if r.StatusCode == 402 {
			o.code = errorOf(w.T, r)
		}
	}
	return o, r
}

// Every fault of the paid request, in both versions: what is answered, whether
// the handler ran and whether money moved.
func TestFaultsOfPayments(t *testing.T) {
	t.Parallel()
	const failed, pay1, pay2 = "Failed to settle payment: 500 Internal Server Error", "X-PAYMENT header is required", "Payment required"
	for _, tc := range []struct {
		fault  canopytest.Fault
		v2, v1 outcome
	}{
		{canopytest.AnswerAgain(), outcome{status: 402, code: pay2}, outcome{status: 402, code: pay1}},
		{canopytest.DropBeforeSettling(), outcome{}, outcome{}},
		{canopytest.DropAfterSettling(), outcome{served: true, moved: true}, outcome{served: true, moved: true}},
		{canopytest.Reset().At(canopytest.OnPaid), outcome{served: true, moved: true}, outcome{served: true, moved: true}},
		{canopytest.Status(503), outcome{status: 503}, outcome{status: 503}},
		{canopytest.Status(409), outcome{status: 409}, outcome{status: 409}},
		{canopytest.StatusAfterSettling(500), outcome{status: 500, served: true, moved: true}, outcome{status: 500, served: true, moved: true}},
		{canopytest.StatusWithReceipt(500), outcome{status: 500, receipt: true, served: true, moved: true}, outcome{status: 500, receipt: true, served: true, moved: true}},
		{canopytest.NoReceipt(), outcome{status: 200, served: true, moved: true}, outcome{status: 200, served: true, moved: true}},
		{canopytest.GiveAway(), outcome{status: 200, served: true}, outcome{status: 200, served: true}},
		{canopytest.FakeReceipt(), outcome{status: 200, receipt: true, served: true}, outcome{status: 200, receipt: true, served: true}},
		{canopytest.SayFailed(""), outcome{status: 402, code: "invalid_exact_evm_transaction_failed"}, outcome{status: 402, code: "invalid_exact_evm_transaction_failed"}},
		{canopytest.SettleAndSayFailed("insufficient_funds"), outcome{status: 402, code: "insufficient_funds", served: true, moved: true}, outcome{status: 402, code: "insufficient_funds", served: true, moved: true}},
		{canopytest.SettleAndAnswerAgain(), outcome{status: 402, code: pay2, served: true, moved: true}, outcome{status: 402, code: pay1, served: true, moved: true}},
		{canopytest.FrontRun(), outcome{status: 402, code: "invalid_exact_evm_nonce_already_used", moved: true}, outcome{status: 402, code: failed, served: true, moved: true}},
		{canopytest.SettlementPending(), outcome{status: 402, code: "settlement_pending", served: true}, outcome{status: 402, code: failed, served: true}},
		{canopytest.OtherPayee(canopytest.Address("x")).At(canopytest.OnPaid), outcome{status: 402, code: "No matching payment requirements"}, outcome{status: 402, code: "invalid_exact_evm_payload_recipient_mismatch"}},
		{canopytest.OtherPrice(2 * payment.Cent).At(canopytest.OnPaid), outcome{status: 402, code: "No matching payment requirements"}, outcome{status: 402, code: "invalid_exact_evm_payload_authorization_value"}},
		{canopytest.OtherTimeout(time.Hour).At(canopytest.OnPaid), outcome{status: 402, code: "No matching payment requirements"}, outcome{status: 200, receipt: true, served: true, moved: true}},
		{canopytest.PriceWalk(payment.Cent), outcome{status: 402, code: "No matching payment requirements"}, outcome{status: 402, code: "invalid_exact_evm_payload_authorization_value"}},
		{canopytest.Redirect(302, "http://elsewhere.test/").At(canopytest.OnPaid), outcome{status: 302}, outcome{status: 302}},
		{canopytest.RedirectAfterSettling(307, "/moved"), outcome{status: 307, receipt: true, served: true, moved: true}, outcome{status: 307, receipt: true, served: true, moved: true}},
	} {
		for _, v := range versions {
			w := newWorld(t)
			s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: []canopytest.Route{{Pattern: "GET /", Price: payment.Cent, Faults: canopytest.Plan{canopytest.Always(tc.fault)}}}})
			want := tc.v2
			if v == canopytest.V1 {
				want = tc.v1
			}
			got, r := w.pay(s, url+"/")
			if got != want {
				t.Errorf("version %d, %s:\ngot  %+v\nwant %+v", v, tc.fault, got, want)
			}
			reqs := s.Requests()
			paid := reqs[len(reqs)-1]
			if !slices.Equal(paid.Faults, []string{tc.fault.String()}) || paid.Status != want.status || (paid.TxHash != "") != want.moved {
				t.Errorf("version %d, %s: request %+v", v, tc.fault, paid)
			}
			if want.status == 302 && r.Header.Get("Location") != "http://elsewhere.test/" {
				t.Errorf("Location %q", r.Header.Get("Location"))
			}
			// Whatever was answered, the seller has the authorization and can
			// settle it once.
			if h := s.Harvest().All(); len(h) != 1 {
				t.Fatalf("version %d, %s: harvested %v", v, tc.fault, h)
			}
			if _, err := s.Harvest().SettleAll(t.Context()); err != nil {
				t.Error(err)
			}
			w.chain.Mine()
			w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
		}
	}
}

func TestPlansCountAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: cent, Faults: canopytest.Plan{
		canopytest.First(canopytest.Status(500)),
		canopytest.Nth(2, canopytest.Status(503)),
		canopytest.From(4, canopytest.Status(409)),
		canopytest.Nth(2, canopytest.Redirect(302, "/x")),
		canopytest.Nth(3, canopytest.WithHeader("X-Third", "yes")),
	}})
	header := w.header(url + "/cent") // the first request, and the first without a payment
	var got []int
	for range 4 {
		r := w.get(url+"/cent", header...)
		got = append(got, r.StatusCode)
		if (r.Header.Get("X-Third") != "") != (len(got) == 2) { // the third request of all
			t.Errorf("paid request %d: %v", len(got), r.Header)
		}
	}
	if want := []int{500, 503, 200, 409}; !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
	if r := w.get(url + "/cent"); r.StatusCode != 302 || r.Header.Get("Location") != "/x" {
		t.Errorf("the second challenge: %d", r.StatusCode)
	}
	s.SetFaults("", canopytest.Plan{canopytest.First(canopytest.Status(418))})
	if r := w.get(url+"/cent", header...); r.StatusCode != 418 {
		t.Errorf("a new plan counts anew: %d", r.StatusCode)
	}
	s.SetFaults("GET /cent", canopytest.Plan{canopytest.Always(canopytest.Both(canopytest.AnswerAgain(), canopytest.WithHeader("Retry-After", "2")))})
	if r := w.get(url+"/cent", header...); r.StatusCode != 402 || r.Header.Get("Retry-After") != "2" || errorOf(t, r) != "Payment required" {
		t.Errorf("both: %d %v", r.StatusCode, r.Header)
	}
}

func TestPriceWalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: cent, Faults: canopytest.Plan{canopytest.Always(canopytest.PriceWalk(payment.Cent))}})
	r := w.get(url + "/cent")
	var prices []string
	for range 4 {
		q := w.quote(r)
		prices = append(prices, q["amount"].(string))
		r = w.get(url+"/cent", "PAYMENT-SIGNATURE", payload2(q, w.authorizeQuote(q)))
	}
	if want := []string{"10000", "20000", "30000", "40000"}; !slices.Equal(prices, want) {
		t.Errorf("prices %v, want %v", prices, want)
	}
	if n := len(s.Harvest().Nonces()); n != 4 {
		t.Errorf("%d nonces", n)
	}
}

// A seller that collects authorizations settles each in its last second.
func TestHarvest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, url := w.seller(canopytest.SellerConfig{Routes: cent, Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())}})
	for range 3 {
		header := w.header(url + "/cent")
		for range 2 {
			w.get(url+"/cent", header...)
		}
		w.clock.Advance(5 * time.Second)
	}
	w.chain.AssertTransfers(t)
	all := s.Harvest().Unsettled()
	if len(all) != 3 {
		t.Fatalf("harvest %v", all)
	}
	settled, err := s.Harvest().SettleLate(t.Context())
	if err != nil || len(settled) != 3 {
		t.Fatalf("settled %v, %v", settled, err)
	}
	for i, tx := range settled {
		if want := all[i].Expires().Add(-time.Second); !tx.Block.Time.Equal(want) {
			t.Errorf("settled at %v, want %v", tx.Block.Time, want)
		}
	}
	w.chain.AssertSpent(t, w.wallet.Address(), 3*payment.Cent)
	if again, err := s.Harvest().SettleAll(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("settled twice: %v, %v", again, err)
	}

	// What expired is lost.
	w.buy(url + "/cent")
	w.clock.Advance(time.Minute)
	if left := s.Harvest().Unsettled(); len(left) != 0 {
		t.Errorf("after expiry: %v", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.chain.SetMining(canopytest.Manual)
	w.buy(url + "/cent")
	if _, err := s.Harvest().SettleLate(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Pending: the same bytes join the transaction, and the goods come.
func TestSettlementPendingIsJoined(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		w := newWorld(t)
		s, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent, Faults: canopytest.Plan{canopytest.First(canopytest.SettlementPending())}})
		header := w.header(url + "/cent")
		r := w.get(url+"/cent", header...)
		hash := w.chain.Pending()[0]
		if v == canopytest.V2 && decode(t, receiptOf(r))["transaction"] != hash {
			t.Errorf("pending: %d %v", r.StatusCode, r.Header)
		}
		again := w.get(url+"/cent", header...)
		if v == canopytest.V2 && (again.StatusCode != 200 || decode(t, receiptOf(again))["transaction"] != hash) {
			t.Errorf("again: %d %s", again.StatusCode, again.body)
		}
		if v == canopytest.V1 && errorOf(t, again) != "invalid_transaction_state" {
			t.Errorf("version 1 broadcasts again, which reverts: %d %s", again.StatusCode, again.body)
		}
		if s.Count("").Served != 2 {
			t.Errorf("version %d: served %d", v, s.Count("").Served)
		}
		w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
	}
}

func TestForgedReceipts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range canopytest.ForgedReceipts() {
		for _, v := range versions {
			w := newWorld(t)
			_, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent, Faults: canopytest.Plan{canopytest.Always(f)}})
			_, r := w.buy(url + "/cent")
			w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
			honest := map[string]any{"success": true, "payer": w.wallet.Address().String(), "network": "eip155:8453", "transaction": w.chain.Transfers()[0].TxHash}
			if v == canopytest.V1 {
				honest["network"] = "base"
			}
			raw, err := base64.StdEncoding.DecodeString(receiptOf(r))
			var got map[string]any
			if err == nil {
				err = json.Unmarshal(raw, &got)
			}
			same := err == nil && len(got) == len(honest)
			for k, v := range honest {
				same = same && got[k] == v
			}
			twice := len(r.Header.Values("Payment-Response"))+len(r.Header.Values("X-Payment-Response")) > 1
			if r.StatusCode != 200 || same && !twice && !strings.Contains(f.String(), "key twice") {
				t.Errorf("version %d, %s: %d %s", v, f, r.StatusCode, raw)
			}
		}
		if seen[f.String()] {
			t.Errorf("%s: named twice", f)
		}
		seen[f.String()] = true
	}
}

func TestFaultsOfChallenges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	get := func(v canopytest.Version, f canopytest.Fault) reply {
		t.Helper()
		_, url := w.seller(canopytest.SellerConfig{Version: v, Routes: cent, Faults: canopytest.Plan{canopytest.Always(f)}})
		return w.get(url + "/cent")
	}
	if r := get(canopytest.V2, canopytest.TwoChallenges()); len(r.Header.Values("Payment-Required")) != 2 {
		t.Errorf("two challenges: %v", r.Header)
	}
	other := canopytest.Address("somebody else").String()
	if r := get(canopytest.V2, canopytest.BodyDiffers()); unmarshal(t, r.body)["accepts"].([]any)[0].(map[string]any)["payTo"] != other || w.quote(r)["payTo"] == other {
		t.Errorf("body of version 1: %s", r.body)
	}
	if r := get(canopytest.V1, canopytest.BodyDiffers()); w.quote(r)["payTo"] != other || !strings.Contains(string(r.body), canopytest.Address("seller").String()) {
		t.Errorf("header of version 2: %v", r.Header)
	}
	if r := get(canopytest.V1, canopytest.HugeBody(3<<20)); len(r.body) < 3<<20 || w.quote(r)["payTo"] == "" {
		t.Errorf("huge body of %d bytes", len(r.body))
	}
	if r := get(canopytest.V2, canopytest.HugeHeader(70_000)); len(r.Header.Get("X-Padding")) != 70_000 {
		t.Errorf("huge header of %d bytes", len(r.Header.Get("X-Padding")))
	}
	if r := get(canopytest.V2, canopytest.LargeTerms(70_000)); len(r.Header.Get("Payment-Required")) < 70_000 || w.quote(r)["payTo"] == "" {
		t.Errorf("large terms of %d bytes", len(r.Header.Get("Payment-Required")))
	}
	if r := get(canopytest.V2, canopytest.Foreign402()); r.StatusCode != 402 || string(r.body) != "please pay at the desk\n" || r.Header.Get("Payment-Required") != "" {
		t.Errorf("another protocol: %d %s", r.StatusCode, r.body)
	}
	if r := get(canopytest.V2, canopytest.Redirect(308, "/x")); r.StatusCode != 308 || r.Header.Get("Payment-Required") != "" {
		t.Errorf("redirect: %d %v", r.StatusCode, r.Header)
	}
	_, url := w.seller(canopytest.SellerConfig{Version: canopytest.V1, Routes: cent, Faults: canopytest.Plan{canopytest.Always(canopytest.Bomb(16 << 20))}})
	r := w.get(url+"/cent", "Accept-Encoding", "gzip")
	if len(r.body) > 1<<20 {
		t.Errorf("the bomb weighs %d bytes", len(r.body))
	}
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, z); n != 16<<20 || err != nil {
		t.Errorf("the bomb inflates to %d bytes, %v", n, err)
	}
}

func TestFaultsOfConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seller := func(f canopytest.Fault) string {
		_, url := w.seller(canopytest.SellerConfig{Routes: cent, Faults: canopytest.Plan{canopytest.Always(f)}})
		return url + "/cent"
	}
	if _, err := w.do("GET", seller(canopytest.Drop())); !errors.Is(err, io.EOF) {
		t.Errorf("drop: %v", err)
	}
	if _, err := w.do("GET", seller(canopytest.Reset())); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	whole := len(raw(t, seller(canopytest.Delay(0))))
	for _, n := range []int{0, 1, 20, 200, whole} {
		if got := raw(t, seller(canopytest.Cut(n))); len(got) != min(n, whole) && n < whole {
			t.Errorf("cut at %d: %d bytes", n, len(got))
		}
		if got := raw(t, seller(canopytest.HalfClose(n))); len(got) != n && n < whole {
			t.Errorf("half-close at %d: %d bytes", n, len(got))
		}
	}
	for _, f := range []canopytest.Fault{canopytest.SlowHead(time.Millisecond), canopytest.SlowBody(20 * time.Millisecond), canopytest.Delay(30 * time.Millisecond)} {
		begun := time.Now()
		if r := w.get(seller(f)); r.StatusCode != 402 || string(r.body) != "{}" {
			t.Errorf("%s: %d %s", f, r.StatusCode, r.body)
		}
		if took := time.Since(begun); took < 30*time.Millisecond {
			t.Errorf("%s took %v", f, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		req, _ := http.NewRequestWithContext(ctx, "GET", seller(f), nil)
		if resp, err := w.client.Do(req); err == nil {
			if _, err = io.ReadAll(resp.Body); err == nil {
				t.Errorf("%s: read within 15 ms", f)
			}
			resp.Body.Close()
		}
		cancel()
	}
}

// raw is every byte that comes back.
func raw(t *testing.T, url string) []byte {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(conn, "GET /"+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Faults of one's own.
func TestOwnFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var settled canopytest.Tx
	twice := canopytest.Instead("settle and stay silent", canopytest.OnPaid, func(x *canopytest.Exchange) canopytest.Answer {
		tx, err := x.Settle()
		if err != nil {
			t.Error(err)
		}
		settled = tx
		return x.Serve()
	})
	s, url := w.seller(canopytest.SellerConfig{Routes: cent, Faults: canopytest.Plan{canopytest.Always(twice)}})
	_, r := w.buy(url + "/cent")
	if r.StatusCode != 200 || receiptOf(r) != "" || settled.Hash == "" || s.Requests()[1].TxHash != settled.Hash {
		t.Errorf("%d %v %v", r.StatusCode, r.Header, settled)
	}
	w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
}
