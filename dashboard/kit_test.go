package dashboard_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/dashboard"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

const document = `
[org]
caps = ["$100 / 24h"]
[policy.default]
max_payment   = "$50"
caps          = ["$60 / 24h", "20 payments / 1h", "$30 / 24h per host"]
approve_above = "$5"
allow         = ["*"]
max_pending   = 1000
[policy.trader]
from = "default"
[policy.careful]
from = "default"
approvers = ["ana", "ben"]
quorum = 2
`

var (
	noon  = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	payer = payment.Address{19: 0xa1}
	usdc  = payment.Asset{
		Chain: payment.Base, Address: payment.Address{19: 0xcc}, Symbol: "USDC", Decimals: 6, Name: "USD Coin", Version: "2",
	}
	shop = payment.Address{0x20, 19: 0x77}
)

// world is a ledger with a page on it, and people who may rule.
type world struct {
	testing.TB
	clock  *canopytest.Clock
	store  ledger.Store
	policy *policy.Policy
	people *approvals.Register
	page   *dashboard.Page
	server *httptest.Server
	serial int
}

// newWorld is one on store, or on an empty Memory.
func newWorld(t testing.TB, store func(*canopytest.Clock) ledger.Store, change ...func(*dashboard.Config)) *world {
	t.Helper()
	w := &world{TB: t, clock: canopytest.NewStillClock(noon)}
	if store == nil {
		store = func(c *canopytest.Clock) ledger.Store { return ledger.NewMemory(ledger.Options{Now: c.Now}) }
	}
	w.store = store(w.clock)
	var err error
	if w.policy, err = policy.Parse("canopy.toml", []byte(document)); err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.page.ServeHTTP(rw, r) }))
	cfg := dashboard.Config{
		Store: w.store, Policy: w.policy, Hosts: []string{w.server.Listener.Addr().String()}, Now: w.clock.Now, Zone: time.UTC, Poll: 20 * time.Millisecond,
	}
	for _, c := range change {
		c(&cfg)
	}
	if w.page, err = dashboard.New(cfg); err != nil {
		t.Fatal(err)
	}
	if w.people, err = approvals.NewRegister(w.store, w.clock.Now); err != nil {
		t.Fatal(err)
	}
	w.server.Start()
	t.Cleanup(w.server.Close)
	return w
}

// hire lets a person rule.
func (w *world) hire(name string) approvals.Credential {
	w.Helper()
	c, err := w.people.Add(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// terms are those of a request of a price at a host.
func terms(host, target string, usd payment.USD) payment.Terms {
	return payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc, Recipients: []payment.Recipient{{Address: shop, Amount: payment.UnitsOf(uint64(usd))}},
		BodyDigest: sha256.Sum256(nil), Amount: payment.UnitsOf(uint64(usd)), Method: "GET", Origin: "https://" + host, Target: target, Validity: time.Minute,
	}
}

// ask decides one payment as a client would.
func (w *world) ask(agent string, t payment.Terms, purpose string) ledger.Entry {
	w.Helper()
	w.serial++
	host := strings.TrimPrefix(t.Origin, "https://")
	pay := payment.Payment{ID: payment.NewID(w.clock.Now()), Agent: agent, Terms: t, Host: host, Port: 443, Purpose: purpose}
	v := w.policy.Evaluate(pay, w.clock.Now(), policy.History{})
	e, _, err := w.store.Reserve(context.Background(), ledger.Request{
		Payment: pay, Verdict: v, Payer: payer, Now: w.clock.Now(), Began: w.clock.Now(), Validity: time.Minute,
		Slot: payment.Slot{Kind: payment.SlotEVM}, Fingerprint: payment.Hash{byte(w.serial), byte(w.serial >> 8), byte(w.serial >> 16), 1},
	})
	if err != nil {
		w.Fatalf("Reserve: %v", err)
	}
	return e
}

// pending is a payment that waits for a person.
func (w *world) pending(agent string, usd payment.USD) ledger.Entry {
	w.Helper()
	e := w.ask(agent, terms("feed.example", fmt.Sprintf("/report?n=%d", w.serial), usd), "the weekly report")
	if e.State != ledger.PendingApproval {
		w.Fatalf("it is %s: %v", e.State, e.Reasons)
	}
	return e
}

func (w *world) approval(id payment.ApprovalID) ledger.Approval {
	w.Helper()
	a, err := w.store.Approvals().Approval(w.Context(), id, w.clock.Now())
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// browser is one that keeps cookies and follows no redirect by itself.
type browser struct {
	*world
	*http.Client
}

func (w *world) browser() browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	return browser{w, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b browser) do(r *http.Request) answer {
	b.Helper()
	resp, err := b.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (b browser) request(method, path string, form url.Values) *http.Request {
	b.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(b.Context(), method, b.server.URL+path, body)
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.server.URL)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

func (b browser) get(path string) answer { b.Helper(); return b.do(b.request("GET", path, nil)) }
func (b browser) post(path string, form url.Values) answer {
	b.Helper()
	return b.do(b.request("POST", path, form))
}

// want gets a page, which must be there.
func (b browser) want(path string, has ...string) string {
	b.Helper()
	a := b.get(path)
	if a.status != http.StatusOK {
		b.Fatalf("GET %s: %d\n%s", path, a.status, a.body)
	}
	for _, s := range has {
		if !strings.Contains(a.body, s) {
			b.Errorf("GET %s: %q is missing in\n%s", path, s, a.body)
		}
	}
	return a.body
}

func (b browser) login(c approvals.Credential) answer {
	b.Helper()
	return b.post("/login", url.Values{"credential": {c.Reveal()}})
}

// in is a browser in which a person is logged in.
func (w *world) in(c approvals.Credential) browser {
	w.Helper()
	b := w.browser()
	if a := b.login(c); a.status != http.StatusSeeOther || a.header.Get("Location") != "/" {
		w.Fatalf("login: %d\n%s", a.status, a.body)
	}
	return b
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// form is the first form of a page that goes to path, with what is hidden in it.
func (b browser) form(page, path string) url.Values {
	b.Helper()
	i := strings.Index(page, `action="`+path+`"`)
	if i < 0 {
		b.Fatalf("there is no form for %s in\n%s", path, page)
	}
	page, _, _ = strings.Cut(page[i:], "</form>")
	v := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		v.Set(m[1], m[2])
	}
	return v
}

// rule answers an approval on its page.
func (b browser) rule(id payment.ApprovalID, answer, reason string) answer {
	b.Helper()
	path := "/approvals/" + string(id)
	f := b.form(b.want(path), path)
	f.Set("answer", answer)
	f.Set("reason", reason)
	return b.post(path, f)
}
