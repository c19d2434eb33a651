package canopytest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// Every fault of the paid request at a seller of MPP, sponsored or not: what is
// answered, whether the handler ran and whether money moved. Whatever was
// answered, the seller has the transaction and can settle it once.
func TestFaultsOfCharges(t *testing.T) {
	t.Parallel()
	const required, failed, broke, stale = "payment-required", "verification-failed", "internal-payment-error", "invalid-challenge"
	for _, tc := range []struct {
		fault canopytest.Fault
		want  outcome
	}{
		{canopytest.AnswerAgain(), outcome{status: 402, code: required}},
		{canopytest.SameChallenge(), outcome{status: 402, code: required}},
		{canopytest.DropBeforeSettling(), outcome{}},
		{canopytest.DropAfterSettling(), outcome{served: true, moved: true}},
		{canopytest.Reset().At(canopytest.OnPaid), outcome{served: true, moved: true}},
		{canopytest.Status(503), outcome{status: 503}},
		{canopytest.StatusAfterSettling(500), outcome{status: 500, served: true, moved: true}},
		{canopytest.StatusWithReceipt(500), outcome{status: 500, receipt: true, served: true, moved: true}},
		{canopytest.NoReceipt(), outcome{status: 200, served: true, moved: true}},
		{canopytest.GiveAway(), outcome{status: 200, served: true}},
		{canopytest.FakeReceipt(), outcome{status: 200, receipt: true, served: true}},
		{canopytest.SayFailed(""), outcome{status: 402, code: failed}},
		{canopytest.SayFailed("payment-insufficient"), outcome{status: 402, code: "payment-insufficient"}},
		{canopytest.SettleAndSayFailed(""), outcome{status: 402, code: failed, served: true, moved: true}},
		{canopytest.SettleAndAnswerAgain(), outcome{status: 402, code: required, served: true, moved: true}},
		{canopytest.SettleAndSameChallenge(), outcome{status: 402, code: required, served: true, moved: true}},
		{canopytest.SayInternalError(), outcome{status: 500, code: broke}},
		{canopytest.SettleAndSayInternalError(), outcome{status: 500, code: broke, served: true, moved: true}},
		{canopytest.SettlementPending(), outcome{status: 500, code: broke}},
		{canopytest.FrontRun(), outcome{status: 200, receipt: true, served: true, moved: true}},
		{canopytest.Both(canopytest.SayFailed(""), canopytest.NoFreshChallenge()), outcome{status: 402, code: failed}},
		{canopytest.OtherPayee(canopytest.Address("x")).At(canopytest.OnPaid), outcome{status: 402, code: stale}},
		{canopytest.OtherPrice(2 * payment.Cent).At(canopytest.OnPaid), outcome{status: 402, code: stale}},
		{canopytest.PriceWalk(payment.Cent), outcome{status: 402, code: stale}},
		{canopytest.OtherChain(payment.Tempo).At(canopytest.OnPaid), outcome{status: 402, code: stale}},
		{canopytest.SplitTo(canopytest.Address("x"), payment.Cent/2).At(canopytest.OnPaid), outcome{status: 402, code: stale}},
		{canopytest.FlipSponsor().At(canopytest.OnPaid), outcome{status: 402, code: stale}},
		{canopytest.FixedMemo([32]byte{7}).At(canopytest.OnPaid), outcome{status: 402, code: stale}},
		{canopytest.Redirect(302, "http://elsewhere.test/").At(canopytest.OnPaid), outcome{status: 302}},
		{canopytest.RedirectAfterSettling(307, "/moved"), outcome{status: 307, receipt: true, served: true, moved: true}},
	} {
		for _, sponsored := range []bool{false, true} {
			w := newTempo(t, canopytest.Instant)
			s, url := w.mppSeller(canopytest.SellerConfig{MPP: canopytest.MPPConfig{Sponsor: sponsored}, Faults: canopytest.Plan{canopytest.Always(tc.fault)}})
			a := w.ask(url + "/cent")[0]
			r, err := w.do("GET", url+"/cent", "Authorization", credentialOf(a, pull(w.wallet.raw(w.tempo(a))), ""))
			got := outcome{served: s.Count("").Served > 0, moved: w.chain.Spent(w.wallet.Address()) > 0}
			if err == nil {
				got.status, got.receipt = r.StatusCode, receiptIn(t, r) != nil
				got.code = problemOf(r)
			}
			if got != tc.want {
				t.Errorf("%s, sponsored %v:\ngot  %+v\nwant %+v", tc.fault, sponsored, got, tc.want)
			}
			reqs := s.Requests()
			paid := reqs[len(reqs)-1]
			if !slices.Equal(paid.Faults, []string{tc.fault.String()}) || paid.Status != tc.want.status || (paid.TxHash != "") != tc.want.moved {
				t.Errorf("%s: request %+v", tc.fault, paid)
			}
			if got.status == 402 || tc.want.code == broke {
				fresh := challengesIn(t, r.Header["Www-Authenticate"])
				same := strings.Contains(tc.fault.String(), "the same challenge")
				switch none := strings.Contains(tc.fault.String(), "no fresh"); {
				case none != (len(fresh) == 0):
					t.Errorf("%s: %d challenges", tc.fault, len(fresh))
				case !none && same != (fresh[0].params["id"] == a.params["id"]):
					t.Errorf("%s: challenge %s after %s", tc.fault, fresh[0].params["id"], a.params["id"])
				}
			}
			if h := s.Harvest().All(); len(h) != 1 || h[0].Tempo == nil || len(s.Harvest().Nonces()) != 1 {
				t.Fatalf("%s: harvested %v", tc.fault, h)
			}
			if left := len(s.Harvest().Unsettled()); (left == 0) != tc.want.moved {
				t.Errorf("%s: %d could still settle", tc.fault, left)
			}
			for range 2 {
				if _, err := s.Harvest().SettleAll(t.Context()); err != nil {
					t.Error(err)
				}
			}
			w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: canopytest.Address("seller"), Amount: payment.Cent})
		}
	}
}

// Terms that differ from what the seller is honest about, from the first
// challenge on: a buyer that does as it is told pays for them.
func TestTermsOfCharges(t *testing.T) {
	t.Parallel()
	thief, memo := canopytest.Address("thief"), [32]byte{4, 2}
	for _, tc := range []struct {
		fault canopytest.Fault
		check func(*testing.T, *world, asked, reply)
	}{
		{canopytest.SplitTo(thief, payment.Cent/2), func(t *testing.T, w *world, _ asked, r reply) {
			seller := canopytest.Address("seller")
			w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: seller, Amount: payment.Cent / 2}, canopytest.Move{From: w.wallet.Address(), To: thief, Amount: payment.Cent / 2})
		}},
		{canopytest.OtherPayee(thief), func(t *testing.T, w *world, _ asked, _ reply) {
			w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: thief, Amount: payment.Cent})
		}},
		{canopytest.FixedMemo(memo), func(t *testing.T, w *world, _ asked, _ reply) {
			if m := w.chain.Memos(w.wallet.Address(), memo); len(m) != 1 {
				t.Errorf("by memo: %v", m)
			}
		}},
		{canopytest.FlipSponsor(), func(t *testing.T, w *world, a asked, _ reply) {
			if !a.request.MethodDetails.FeePayer {
				t.Error("not flipped")
			}
		}},
		{canopytest.OtherChain(payment.Tempo), func(t *testing.T, w *world, a asked, _ reply) {
			if a.request.MethodDetails.ChainID != 4217 {
				t.Errorf("chain %d", a.request.MethodDetails.ChainID)
			}
		}},
	} {
		w := newTempo(t, canopytest.Instant)
		s, url := w.mppSeller(canopytest.SellerConfig{Faults: canopytest.Plan{canopytest.Always(tc.fault)}})
		w.chain.Fund(s.Sponsor(), payment.Dollar)
		a, _, r := w.buyMPP(url + "/cent")
		if r.StatusCode != 200 {
			t.Errorf("%s: %d %s", tc.fault, r.StatusCode, r.body)
		}
		tc.check(t, w, a, r)
	}
}

// A challenge that comes as a 401.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	_, url := w.mppSeller(canopytest.SellerConfig{Faults: canopytest.Plan{canopytest.Always(canopytest.Unauthorized())}})
	r := w.get(url + "/cent")
	all := challengesIn(t, r.Header["Www-Authenticate"])
	if r.StatusCode != 401 || len(all) != 1 {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	if r := w.get(url+"/cent", "Authorization", credentialOf(all[0], pull(w.wallet.raw(w.tempo(all[0]))), "")); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// A sponsor that keeps what it was handed broadcasts it in the last second in
// which nodes take it.
func TestHarvestOfSponsorSettlesLate(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	s, url := w.mppSeller(canopytest.SellerConfig{MPP: canopytest.MPPConfig{Sponsor: true}, Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())}})
	for range 3 { // a careless buyer signs for each challenge
		w.buyMPP(url + "/cent")
	}
	w.chain.AssertSpent(t, w.wallet.Address(), 0)
	if n := len(s.Harvest().Nonces()); n != 3 {
		t.Errorf("%d nonces", n)
	}
	settled, err := s.Harvest().SettleLate(t.Context())
	if err != nil || len(settled) != 3 {
		t.Fatalf("%v, %v", settled, err)
	}
	if now := w.clock.Now(); now != start.Add(21*time.Second) {
		t.Errorf("settled at %v", now)
	}
	w.chain.AssertSpent(t, w.wallet.Address(), 3*payment.Cent)
	if left := s.Harvest().Unsettled(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// Of what is signed into one place of a lane, a seller settles one.
func TestHarvestOfOneLane(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	s, url := w.mppSeller(canopytest.SellerConfig{Faults: canopytest.Plan{canopytest.Always(canopytest.AnswerAgain())}})
	for range 3 { // variants, for three challenges
		a := w.ask(url + "/cent")[0]
		w.get(url+"/cent", "Authorization", credentialOf(a, pull(w.wallet.raw(w.tempo(a).on(payment.UnitsOf(5).Big(), 0))), ""))
	}
	if h := s.Harvest(); len(h.All()) != 3 || len(h.Nonces()) != 1 {
		t.Errorf("%d transactions, %d nonces", len(h.All()), len(h.Nonces()))
	}
	if settled, err := s.Harvest().SettleAll(t.Context()); err != nil || len(settled) != 1 {
		t.Errorf("%v, %v", settled, err)
	}
	w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: canopytest.Address("seller"), Amount: payment.Cent})
}

// A node that has no block: the seller gives up after 10 s, and the money moves
// later.
func TestChargeNodeIsSlow(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	_, url := w.mppSeller(canopytest.SellerConfig{})
	a := w.ask(url + "/cent")[0]
	v := credentialOf(a, pull(w.wallet.raw(w.tempo(a))), "")
	done := make(chan reply)
	go func() {
		r, _ := w.do("GET", url+"/cent", "Authorization", v)
		done <- r
	}()
	for len(w.chain.Pending()) == 0 {
		time.Sleep(time.Millisecond)
	}
	w.clock.Advance(10 * time.Second)
	if r := <-done; r.StatusCode != 500 || problemOf(r) != "internal-payment-error" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	w.chain.AssertSpent(t, w.wallet.Address(), 0)
	w.chain.Mine()
	w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: canopytest.Address("seller"), Amount: payment.Cent})
	if r := w.get(url+"/cent", "Authorization", v); r.StatusCode != 402 || !strings.Contains(string(r.body), "already been used") {
		t.Errorf("again: %d %s", r.StatusCode, r.body)
	}
}

// A payer that has the fee and not the price: broadcast, failed, and called a
// failed verification.
func TestChargeOfAPoorPayer(t *testing.T) {
	t.Parallel()
	clock := canopytest.NewStillClock(start)
	w := &world{T: t, clock: clock, wallet: newWallet(), client: newClient(t), chain: canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: clock})}
	w.chain.Mint(w.chain.Dollar(), w.wallet.Address(), payment.UnitsOf(30_000))
	_, url := w.mppSeller(canopytest.SellerConfig{})
	_, _, r := w.buyMPP(url + "/cent")
	if r.StatusCode != 402 || problemOf(r) != "verification-failed" || !strings.Contains(string(r.body), "no matching transfer found") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if u := w.chain.TempoUses(); len(u) != 1 || !u[0].Failed {
		t.Errorf("%+v", u)
	}
	w.chain.AssertTransfers(t)
}

// Forged receipts are on payments that did settle, each different from the
// honest one.
func TestForgedPaymentReceipts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range canopytest.ForgedPaymentReceipts() {
		w := newTempo(t, canopytest.Instant)
		s, url := w.mppSeller(canopytest.SellerConfig{Faults: canopytest.Plan{canopytest.Always(f)}})
		_, _, r := w.buyMPP(url + "/cent")
		if r.StatusCode != 200 || s.Count("").Settled != 1 || seen[f.String()] {
			t.Errorf("%s: %d, settled %d", f, r.StatusCode, s.Count("").Settled)
		}
		seen[f.String()] = true
		var got struct{ Status, Method, Reference string }
		raw, ok := canopytest.Base64ForTest(r.Header.Get("Payment-Receipt"))
		reqs := s.Requests()
		whole := len(r.Header.Values("Payment-Receipt")) == 1 && ok && json.Unmarshal(raw, &got) == nil && strings.Count(string(raw), `"status"`) == 1 && len(raw) < 1000
		if whole && got.Status == "success" && got.Method == "tempo" && got.Reference == reqs[1].TxHash {
			t.Errorf("%s: the honest receipt %s", f, raw)
		}
	}
}

// Every malformed challenge differs from the honest one and from the others; no
// odd one hides the terms.
func TestMalformedPaymentChallenges(t *testing.T) {
	t.Parallel()
	all := canopytest.MalformedPaymentChallenges()
	if len(all) < 150 {
		t.Errorf("%d malformed challenges", len(all))
	}
	w := newTempo(t, canopytest.Instant)
	s, url := w.mppSeller(canopytest.SellerConfig{MPP: canopytest.MPPConfig{Realm: "desk"}})
	text := func() string {
		r := w.get(url + "/cent")
		if r.StatusCode != 402 {
			t.Fatalf("status %d", r.StatusCode)
		}
		return unstamped.ReplaceAllString(strings.Join(r.Header["Www-Authenticate"], "\n"), "")
	}
	honest := text()
	seen := map[string]string{honest: "the honest one"}
	names := map[string]bool{}
	for _, f := range all {
		s.SetFaults("", canopytest.Plan{canopytest.Always(f)})
		got := text()
		if other, ok := seen[got]; ok {
			t.Errorf("%s: the same as %s", f, other)
		}
		seen[got] = f.String()
		if names[f.String()] {
			t.Errorf("%s: named twice", f)
		}
		names[f.String()] = true
	}
}

func TestOddPaymentChallenges(t *testing.T) {
	t.Parallel()
	for _, f := range canopytest.OddPaymentChallenges() {
		w := newTempo(t, canopytest.Instant)
		_, url := w.mppSeller(canopytest.SellerConfig{Faults: canopytest.Plan{canopytest.Always(f)}})
		r := w.get(url + "/cent")
		all := challengesIn(t, r.Header["Www-Authenticate"])
		if len(all) != 1 {
			t.Errorf("%s: %q", f, r.Header["Www-Authenticate"])
			continue
		}
		delete(all[0].params, "x-new")
		for _, other := range []string{"error", "__proto__"} {
			delete(all[0].params, other)
		}
		if strings.Contains(f.String(), "Basic") {
			all[0].params["realm"] = strings.TrimPrefix(url, "http://")
		}
		if r := w.get(url+"/cent", "Authorization", credentialOf(all[0], pull(w.wallet.raw(w.tempo(all[0]))), "")); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", f, r.StatusCode, r.body)
		}
	}
}

// Hostile text in all that people read leaves the terms payable.
func TestHostileTextOfCharges(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	s, url := w.mppSeller(canopytest.SellerConfig{})
	for i, text := range canopytest.HostileTexts() {
		s.SetFaults("", canopytest.Plan{canopytest.Always(canopytest.HostileText(text))})
		first := w.get(url + "/cent")
		a := challengesIn(t, first.Header["Www-Authenticate"])
		if len(a) != 1 || a[0].request.Amount != "10000" {
			t.Fatalf("%q: %q", text, first.Header["Www-Authenticate"])
		}
		if i > 20 && i%10 != 0 { // not every one is paid for
			continue
		}
		r := w.get(url+"/cent", "Authorization", credentialOf(a[0], pull(w.wallet.raw(w.tempo(a[0]))), ""))
		if r.StatusCode != 200 {
			t.Errorf("%q: %d %s", text, r.StatusCode, r.body)
		}
	}
}

// A realm is any text, and a payment is bound to it.
func TestHostileRealms(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	for i, text := range canopytest.HostileTexts() {
		if i%9 != 0 || len(text) > 1000 || !utf8.ValidString(text) {
			continue
		}
		_, url := w.mppSeller(canopytest.SellerConfig{MPP: canopytest.MPPConfig{Realm: text}})
		if a, _, r := w.buyMPP(url + "/cent"); r.StatusCode != 200 || a.params["realm"] != text {
			t.Errorf("%q: %d %s", text, r.StatusCode, r.body)
		}
	}
}

// Whatever a credential holds, the seller refuses it and nothing moves unless it
// is the one that was signed.
func FuzzCredential(f *testing.F) {
	clock := canopytest.NewStillClock(start)
	tempo := canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: clock})
	base := canopytest.NewChain(canopytest.ChainConfig{Clock: clock})
	payer := newWallet()
	tempo.Fund(payer.Address(), payment.Dollar)
	base.Fund(payer.Address(), payment.Dollar)
	sellers := []*canopytest.Seller{
		canopytest.NewSeller(tempo, canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: cent}),
		canopytest.NewSeller(base, canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: cent}),
		canopytest.NewSeller(tempo, canopytest.SellerConfig{Protocol: canopytest.MPP, Routes: []canopytest.Route{{Pattern: "GET /cent", Proof: true}}}),
		canopytest.NewSeller(base, canopytest.SellerConfig{Protocol: canopytest.X402 | canopytest.MPP, Routes: []canopytest.Route{{Pattern: "GET /cent", Price: payment.Cent, Also: []canopytest.Accept{{Chain: tempo}}}}}),
	}
	for _, s := range sellers {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/cent", nil))
		for _, a := range challengesIn(f, w.Header()["Www-Authenticate"]) {
			f.Add(credentialOf(a, pull([]byte{0x76, 0xc0}), ""))
			f.Add(credentialOf(a, map[string]any{"type": "hash", "hash": "0x12"}, "did:pkh:eip155:42431:0x12"))
			f.Add(credentialOf(a, map[string]any{"type": "proof", "signature": "0x12"}, "did:pkh:eip155:42431:"+payer.Address().String()))
			f.Add(credentialOf(a, map[string]any{"type": "authorization", "from": payer.Address().String(), "value": 1}, ""))
		}
	}
	f.Add("Payment e30")
	f.Add("Payment " + strings.Repeat("A", 1000))
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsAny(header, "\r\n\x00") {
			t.Skip()
		}
		for _, s := range sellers {
			r := httptest.NewRequest("GET", "/cent", nil)
			r.Header.Set("Authorization", header)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != http.StatusPaymentRequired && w.Code != http.StatusBadRequest && w.Code != http.StatusInternalServerError {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		tempo.AssertTransfers(t)
		base.AssertTransfers(t)
	})
}

// unstamped are the parameters that differ from one honest challenge to the
// next.
var unstamped = regexp.MustCompile(`id="[A-Za-z0-9_-]{43}"|expires="2026-03-01T12:05:0[0-9.]+Z"`)
