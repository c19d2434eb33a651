package canopy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

const testKey = benchKey

const openPolicy = `
[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h"]
approve_above = "$5"
allow         = ["*"]
`

// capped is a policy with one cap and nothing else in the way.
func capped(limit string) string {
	return "[policy.default]\nmax_payment = \"$10\"\ncaps = [\"" + limit + "\"]\nallow = [\"*\"]\n"
}

// world is a client with all that it touches, on one clock.
type world struct {
	t      testing.TB
	clock  *canopytest.Clock
	chain  *canopytest.Chain
	spy    *canopytest.SpySigner // of what the client's signer is asked
	store  ledger.Store
	net    *canopytest.Network
	wire   *canopytest.Recorder // below the client
	logs   *safeBuffer
	client *canopy.Client
	skew   time.Duration // for a client whose clock is not the ledger's
	others []*canopytest.Chain

	// Of a fault that is played (fault_kit_test.go).
	cfg      canopy.Config
	rules    *policy.Policy
	audit    *audit
	life     *life
	node     *sick
	path     string // of the ledger, where it is a file
	disk     string // where it is, if that matters
	stateDir string
	elapsed  func() time.Duration
}

// setup is what a test may change of a world; zero fields are the defaults.
type setup struct {
	policy string
	id     payment.ChainID                             // of the chain
	bend   func(*world, payment.Signer) payment.Signer // the client's signer, made of an honest one
	open   func(*world) ledger.Store
	store  func(ledger.Store) ledger.Store
	begin  func(*world) // before the ledger is opened
	final  int          // blocks after which one is final
	base   *http.Transport
	config func(*world, *canopy.Config)
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, clock: canopytest.NewClock(), net: canopytest.NewNetwork(), logs: &safeBuffer{}}
	w.chain = canopytest.NewChain(canopytest.ChainConfig{ID: s.id, Clock: w.clock, Finality: s.final})
	key, err := signer.FromHex(testKey)
	must(t, err)
	var bent payment.Signer = key.WithNow(w.clock.Now)
	if s.bend != nil {
		bent = s.bend(w, bent)
	}
	if s.open != nil {
		bent = witness{bent, w}
	}
	w.spy = canopytest.NewSpySigner(bent)
	w.chain.Fund(key.Address(), 1000*payment.Dollar)
	if s.begin != nil {
		s.begin(w)
	}
	if s.open != nil {
		w.store = s.open(w)
	} else {
		w.store = ledger.NewMemory(ledger.Options{Now: w.clock.Now})
	}
	if s.store != nil {
		w.store = s.store(w.store)
	}
	base := s.base
	if base == nil {
		base = w.net.Transport()
	}
	t.Cleanup(base.CloseIdleConnections)
	w.wire = &canopytest.Recorder{Base: base}
	if s.policy == "" {
		s.policy = openPolicy
	}
	rules, err := policy.Parse("test", []byte(s.policy))
	must(t, err)
	w.rules = rules
	rail, err := x402.New(x402.Config{})
	must(t, err)
	cfg := canopy.Config{
		Agent: "tester", Treasury: canopy.Treasury{Signer: w.spy}, Policy: rules, Store: w.store,
		Rails: []canopy.Rail{rail}, Transport: w.wire, Now: w.clock.Now,
		Logger: slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if s.config != nil {
		s.config(w, &cfg)
	}
	w.cfg = cfg
	w.client, err = canopy.New(cfg)
	must(t, err)
	return w
}

// sells serves one priced GET route with faults, and returns it.
func (w *world) sells(price payment.USD, faults ...canopytest.Rule) (*canopytest.Seller, string) {
	w.t.Helper()
	s, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{
		Routes: []canopytest.Route{{Pattern: "GET /goods/", Price: price}, {Pattern: "POST /goods/", Price: price}}, Faults: faults,
	})
	return s, url + "/goods/1"
}

func (w *world) serve(host string, c canopytest.SellerConfig) (*canopytest.Seller, string) {
	w.t.Helper()
	s := canopytest.NewSeller(w.chain, c)
	return s, w.net.Serve(w.t, host, s)
}

// got is what a call came to.
type got struct {
	*http.Response
	body string
	paid canopy.Result
	cost bool // PaymentOf found one
	err  error
}

func (w *world) get(url string, opts ...canopy.Option) got {
	w.t.Helper()
	return w.do(w.request(http.MethodGet, url, nil), opts...)
}

func (w *world) request(method, url string, body io.Reader) *http.Request {
	w.t.Helper()
	req, err := http.NewRequest(method, url, body)
	must(w.t, err)
	return req
}

func (w *world) do(req *http.Request, opts ...canopy.Option) got {
	w.t.Helper()
	resp, err := w.client.Fetch(context.Background(), req, opts...)
	g := w.read(resp, err)
	if w.audit != nil {
		w.audit.run("a call")
	}
	return g
}

// read reads an answer to its end and closes it.
func (w *world) read(resp *http.Response, err error) got {
	w.t.Helper()
	if err != nil {
		if resp != nil {
			w.t.Errorf("a response beside the error %v", err)
		}
		return got{err: err}
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	must(w.t, err)
	paid, ok := canopy.PaymentOf(resp)
	for r := resp; r != nil && r.Request != nil; r = r.Request.Response {
		if h := r.Request.Header; h.Get("PAYMENT-SIGNATURE")+h.Get("X-PAYMENT")+h.Get("Payment-Authorization") != "" || strings.HasPrefix(h.Get("Authorization"), "Payment ") {
			w.t.Errorf("the credential can be reached from the response to %s", r.Request.URL)
		}
	}
	return got{Response: resp, body: string(body), paid: paid, cost: ok}
}

// bought fails the test unless g is a paid and delivered answer.
func (w *world) bought(g got) got {
	w.t.Helper()
	want := ledger.Claimed
	if g.cost && g.paid.Cost() == 0 {
		want = ledger.Settled // a proof is final with its receipt
	}
	if g.err != nil || g.StatusCode != 200 || !g.cost || g.paid.State != want {
		w.t.Fatalf("want a purchase, got %+v, error %v", g, g.err)
	}
	return g
}

// as finds an error of type E in g, or fails the test.
func as[E error](t testing.TB, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("want a %T, got %T: %v", e, err, err)
	}
	return e
}

// denied fails the test unless g was denied with the code.
func (w *world) denied(g got, code string) *canopy.DeniedError {
	w.t.Helper()
	d := as[*canopy.DeniedError](w.t, g.err)
	if d.Result.Code != code || d.Result.Status != canopy.Denied {
		w.t.Errorf("denied with %s (%v), want %s", d.Result.Code, d, code)
	}
	return d
}

// signed fails the test unless there were n purchases signed for, by slots.
func (w *world) signed(n int) {
	w.t.Helper()
	if got := len(w.spy.Slots()); got != n {
		w.t.Errorf("%d slots were signed into, want %d", got, n)
	}
}

// handed fails the test unless the seller was handed n different nonces.
func (w *world) handed(s *canopytest.Seller, n int) {
	w.t.Helper()
	if got := len(s.Harvest().Nonces()); got != n {
		w.t.Errorf("the seller was handed %d authorizations, want %d", got, n)
	}
}

func (w *world) spent(want payment.USD) {
	w.t.Helper()
	w.chain.AssertSpent(w.t, w.spy.Address(), want)
}

// counted fails the test unless the cap counts exactly that much.
func (w *world) counted(want payment.USD) {
	w.t.Helper()
	b, err := w.client.Budget(context.Background())
	must(w.t, err)
	if b.Spent != want {
		w.t.Errorf("the budget counts %v, want %v", b.Spent, want)
	}
}

// context is one for the length of the test.
func (w *world) context() context.Context {
	if t, ok := w.t.(interface{ Context() context.Context }); ok {
		return t.Context()
	}
	return context.Background()
}

// rule answers the approval as a person would.
func (w *world) rule(id canopy.ApprovalID, approve bool) {
	w.t.Helper()
	_, err := approvals.NewDesk(w.store, "test", w.clock.Now).Rule(context.Background(), id, canopy.Ruling{Approve: approve, By: "ana"})
	must(w.t, err)
}

// bubble runs f where time passes at once when everybody waits. It fails where
// a goroutine is left over at the end.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// safeBuffer is a buffer for many writers.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Clone(s.b.String())
}

// newHTTP2Server serves h over TLS and HTTP/2 on a loopback port.
func newHTTP2Server(t testing.TB, h http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}
