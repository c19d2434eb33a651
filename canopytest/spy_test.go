package canopytest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/internal/permit"
	"github.com/canopy-go/canopy/payment"
)

// handSigner is a signer whose key is in the test.
type handSigner struct{ wallet }

func (s handSigner) Deterministic() bool { return true }

func (s handSigner) Sign(ctx context.Context, p payment.Permit, digest [32]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.Use(digest, start); err != nil {
		return nil, err
	}
	sig, err := crypto.Sign(digest[:], s.key)
	if err == nil {
		sig[64] += 27
	}
	return sig, err
}

// recovers is the address that sig recovers to once v is 0 or 1.
func recovers(digest [32]byte, sig []byte) payment.Address {
	if len(sig) != 65 {
		return payment.Address{}
	}
	sig = slices.Clone(sig)
	if sig[64] >= 27 {
		sig[64] -= 27
	}
	pub, err := crypto.SigToPub(digest[:], sig)
	if err != nil {
		return payment.Address{}
	}
	return payment.Address(crypto.PubkeyToAddress(*pub))
}

type failures struct {
	canopytest.TB
	lines []string
}

func (f *failures) Helper()                   {}
func (f *failures) Errorf(s string, a ...any) { f.lines = append(f.lines, fmt.Sprintf(s, a...)) }

func TestSpySigner(t *testing.T) {
	t.Parallel()
	spy := canopytest.NewSpySigner(handSigner{newWallet()})
	spy.AssertNothingSigned(t)
	if !payment.IsDeterministic(spy) || payment.IsLocal(spy) {
		t.Error("the spy says other things than its signer")
	}
	var seen []canopytest.Signed
	spy.Before(func(_ context.Context, s canopytest.Signed) {
		if spy.Signatures() != len(seen) {
			t.Error("called after signing")
		}
		seen = append(seen, s)
	})
	one, two := permit.Mint("slot 1", start.Add(time.Minute)), permit.Mint("slot 2", start.Add(time.Minute))
	for _, call := range []struct {
		p    payment.Permit
		d    byte
		want error
	}{{one, 1, nil}, {one, 1, nil}, {two, 2, nil}} {
		sig, err := spy.Sign(t.Context(), call.p, [32]byte{call.d})
		if err != nil || recovers([32]byte{call.d}, sig) != spy.Address() {
			t.Errorf("%x, %v", sig, err)
		}
	}
	if _, err := spy.Sign(t.Context(), payment.Permit{}, [32]byte{3}); !errors.Is(err, permit.ErrNone) {
		t.Errorf("without a permit: %v", err)
	}
	calls := spy.Calls()
	if len(calls) != 4 || spy.Signatures() != 3 || calls[3].Err == nil || calls[0].Slot != "slot 1" || !calls[0].Deadline.Equal(start.Add(time.Minute)) || len(seen) != 4 {
		t.Errorf("calls %+v", calls)
	}
	if got := spy.Digests(); !slices.Equal(got, [][32]byte{{1}, {2}}) {
		t.Errorf("digests %v", got)
	}
	if got := spy.Slots(); !slices.Equal(got, []string{"slot 1", "slot 2"}) {
		t.Errorf("slots %v", got)
	}
	var f failures
	if spy.AssertNothingSigned(&f); len(f.lines) != 1 {
		t.Error("nothing failed")
	}
}

func TestBentSigners(t *testing.T) {
	t.Parallel()
	good := handSigner{newWallet()}
	otherKey, _ := crypto.GenerateKey()
	other := handSigner{wallet{key: otherKey}}
	half := new(big.Int).Rsh(crypto.S256().Params().N, 1)
	digest := [32]byte{7}
	sign := func(s payment.Signer) ([]byte, error) {
		return s.Sign(t.Context(), permit.Mint("slot", start.Add(time.Minute)), digest)
	}
	for _, tc := range []struct {
		name    string
		signer  payment.Signer
		length  int
		highS   bool
		parity  bool
		isValid bool // recovers to the address
	}{
		{"broken", canopytest.BrokenSigner(good), 65, false, false, false},
		{"wrong key", canopytest.WrongKeySigner(good, other), 65, false, false, false},
		{"high s", canopytest.HighSSigner(good), 65, true, false, true},
		{"parity", canopytest.ParitySigner(good), 65, false, true, true},
		{"short", canopytest.ShortSigner(good), 64, false, false, false},
	} {
		sig, err := sign(tc.signer)
		if err != nil || len(sig) != tc.length || tc.signer.Address() != good.Address() || payment.IsDeterministic(tc.signer) {
			t.Errorf("%s: %x, %v", tc.name, sig, err)
			continue
		}
		if high := new(big.Int).SetBytes(sig[32:64]).Cmp(half) > 0; high != tc.highS {
			t.Errorf("%s: high s %v", tc.name, high)
		}
		if tc.length == 65 && (sig[64] < 2) != tc.parity {
			t.Errorf("%s: v %d", tc.name, sig[64])
		}
		if ok := recovers(digest, sig) == good.Address(); ok != tc.isValid {
			t.Errorf("%s: recovers %v", tc.name, ok)
		}
	}
	if _, err := sign(canopytest.FailingSigner(good, nil)); !errors.Is(err, canopytest.ErrSigner) {
		t.Errorf("failing: %v", err)
	}
	if _, err := sign(canopytest.FailingSigner(good, io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("failing: %v", err)
	}
}

func TestSlowSigner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := canopytest.NewClock()
		slow := canopytest.SlowSigner(handSigner{newWallet()}, clock, 70*time.Second)
		begun := clock.Now()
		if _, err := slow.Sign(t.Context(), permit.Mint("slot", start.Add(time.Minute)), [32]byte{1}); err != nil || clock.Now().Sub(begun) != 70*time.Second {
			t.Errorf("%v after %v", err, clock.Now().Sub(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := slow.Sign(ctx, permit.Mint("slot", start.Add(time.Minute)), [32]byte{1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "/any", Price: payment.Cent}}})
	rec := &canopytest.Recorder{Base: w.client.Transport}
	w.client.Transport = rec
	r, err := w.do("POST", url+"/any?q=secret-1", "X-Key", "secret-2")
	if err != nil {
		t.Fatal(err)
	}
	q := w.quote(r)
	header := payload2(q, w.authorizeQuote(q))
	for range 2 {
		w.get(url+"/any", "PAYMENT-SIGNATURE", header)
	}
	sent := rec.Sent()
	if len(sent) != 3 || sent[0].Method != "POST" || string(sent[0].Body) != "body" || sent[0].Status != 402 || sent[0].Response.Get("Payment-Required") == "" || sent[1].Status != 200 {
		t.Errorf("sent %+v", sent)
	}
	if got := rec.Payments(); !slices.Equal(got, []string{header}) {
		t.Errorf("payments %v", got)
	}
	var f failures
	rec.AssertNotSent(&f, "not there")
	if len(f.lines) != 0 {
		t.Error(f.lines)
	}
	for i, secret := range []string{"secret-1", "secret-2", "body", header} {
		f.lines = nil
		if rec.AssertNotSent(&f, secret); len(f.lines) == 0 || strings.Contains(strings.Join(f.lines, ""), secret) {
			t.Errorf("secret %d: %v", i, f.lines)
		}
	}

	lost := errors.New("lost")
	rec.After = canopytest.LoseResponse(1, lost)
	header = payload2(q, w.authorizeQuote(q))
	if _, err := w.do("GET", url+"/any", "PAYMENT-SIGNATURE", header); !errors.Is(err, lost) {
		t.Errorf("lost: %v", err)
	}
	if r := w.get(url+"/any", "PAYMENT-SIGNATURE", header); errorOf(t, r) != "invalid_exact_evm_nonce_already_used" {
		t.Errorf("after the loss: %d", r.StatusCode)
	}
	w.chain.AssertSpent(t, w.wallet.Address(), 2*payment.Cent)
	rec.Before = func(*http.Request) error { return lost }
	if _, err := w.do("POST", url+"/any"); !errors.Is(err, lost) {
		t.Errorf("before: %v", err)
	}
}

func TestRebinder(t *testing.T) {
	t.Parallel()
	b := canopytest.NewRebinder()
	b.Bind("shop.test", "203.0.113.7", "127.0.0.1")
	b.Bind("six.test", "2001:db8::1", "::1")
	lookup := func(name string) string {
		t.Helper()
		addrs, err := b.Resolver().LookupNetIP(t.Context(), "ip", name)
		if err != nil || len(addrs) != 1 {
			t.Fatalf("%s: %v, %v", name, addrs, err)
		}
		return addrs[0].Unmap().String()
	}
	if got := []string{lookup("shop.test"), lookup("shop.test"), lookup("SHOP.test.")}; !slices.Equal(got, []string{"203.0.113.7", "127.0.0.1", "127.0.0.1"}) {
		t.Errorf("shop.test: %v", got)
	}
	if got := []string{lookup("six.test"), lookup("six.test")}; !slices.Equal(got, []string{"2001:db8::1", "::1"}) {
		t.Errorf("six.test: %v", got)
	}
	if b.Lookups("shop.test") != 3 || b.Lookups("six.test") != 2 || b.Lookups("x.test") != 0 {
		t.Errorf("lookups %d, %d", b.Lookups("shop.test"), b.Lookups("six.test"))
	}
	var dns *net.DNSError
	if _, err := b.Resolver().LookupHost(t.Context(), "nowhere.test"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("an unknown name: %v", err)
	}

	// A careless transport is led to loopback.
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Routes: cent})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	b.Bind("rebind.test", "127.0.0.1")
	w.client.Transport = &http.Transport{DialContext: b.DialContext, DisableKeepAlives: true}
	if r := w.get("http://rebind.test:" + port + "/cent"); r.StatusCode != 402 {
		t.Errorf("through the name: %d", r.StatusCode)
	}
}

// Chain, seller, client and clock in one bubble: an hour passes at once.
func TestNetworkInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		chain := canopytest.NewChain(canopytest.ChainConfig{Mining: canopytest.Interval, BlockTime: 10 * time.Minute})
		wal := newWallet()
		chain.Fund(wal.Address(), payment.Dollar)
		net := canopytest.NewNetwork()
		seller := canopytest.NewSeller(chain, canopytest.SellerConfig{
			SettleTimeout: time.Hour,
			Routes:        []canopytest.Route{{Pattern: "GET /", Price: payment.Cent, Timeout: time.Hour, Faults: canopytest.Plan{canopytest.Always(canopytest.Delay(time.Minute))}}},
		})
		url := net.Serve(t, "shop.test:8402", seller)
		w := &world{T: t, clock: chain.Clock(), chain: chain, wallet: wal, client: net.Client(t)}
		begun := time.Now()
		if _, r := w.buy(url + "/"); r.StatusCode != 200 {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		// A minute for each answer, and the block at ten minutes in between.
		if took := time.Since(begun); took != 11*time.Minute {
			t.Errorf("it took %v", took)
		}
		chain.AssertSpent(t, wal.Address(), payment.Cent)
		if !slices.Contains(net.Dials(), "shop.test:8402") {
			t.Errorf("dialled %v", net.Dials())
		}
		if _, err := w.do("GET", "http://elsewhere.test/"); err == nil {
			t.Error("reached a host that is not there")
		}
		slow := &canopytest.SlowTransport{Base: net.Transport(), Clock: chain.Clock(), Delay: time.Hour}
		begun = time.Now()
		resp, err := (&http.Client{Transport: slow}).Get(url + "/")
		if err != nil || time.Since(begun) != time.Hour+time.Minute {
			t.Errorf("slow transport: %v after %v", err, time.Since(begun))
		}
		if err == nil {
			resp.Body.Close()
		}
		slow.Base.(*http.Transport).CloseIdleConnections()
	})
}

// What the assertions say when they fail.
func TestAssertions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.seller(canopytest.SellerConfig{Routes: cent})
	w.buy(url + "/cent")
	me := w.wallet.Address()
	var f failures
	w.chain.AssertTransfers(&f)
	w.chain.AssertSpent(&f, me, payment.Dollar)
	w.chain.AssertSpentAtMost(&f, me, payment.Cent/2)
	w.chain.AssertSpentAtMost(&f, me, payment.Cent)
	want := []string{
		fmt.Sprintf("canopytest: transfers on eip155:8453:\ngot  $0.01 from %s to %s\nwant none", me, canopytest.Address("seller")),
		fmt.Sprintf("canopytest: %s spent $0.01 on eip155:8453, want $1.00", me),
		fmt.Sprintf("canopytest: %s spent $0.01 on eip155:8453, above the limit of $0.005", me),
	}
	if !slices.Equal(f.lines, want) {
		t.Errorf("got  %q\nwant %q", f.lines, want)
	}
}
