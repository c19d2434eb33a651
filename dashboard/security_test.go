package dashboard_test

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/dashboard"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// pages are all that can be read.
var pages = []string{"/", "/spending", "/ledger", "/ledger/export.csv", "/ledger/export.jsonl", "/policy", "/freeze"}

// Nobody who is not logged in reads or does anything.
func TestLoginNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	e := w.pending("trader", 8*payment.Dollar)
	b := w.browser()
	for _, path := range append(pages, "/approvals/"+string(e.ApprovalID), "/payments/"+string(e.ID), "/nowhere") {
		a := b.get(path)
		if a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/login?next=") || strings.Contains(a.body, "trader") {
			t.Errorf("GET %s: %d %s\n%s", path, a.status, a.header.Get("Location"), a.body)
		}
	}
	for _, path := range []string{"/approvals/" + string(e.ApprovalID), "/freeze", "/logout"} {
		if a := b.post(path, url.Values{"answer": {"approve"}, "whom": {"all"}, "reason": {"x"}}); a.status != http.StatusUnauthorized {
			t.Errorf("POST %s: %d", path, a.status)
		}
	}
	if a := b.get("/events"); a.status != http.StatusUnauthorized {
		t.Errorf("GET /events: %d", a.status)
	}
	if got := w.approval(e.ApprovalID); got.Status != ledger.ApprovalPending {
		t.Errorf("the approval is %s", got.Status)
	}
	// A login leads on to where it was asked for, and to no other site.
	for next, want := range map[string]string{
		"/approvals/" + string(e.ApprovalID): "/approvals/" + string(e.ApprovalID), "/ledger?agent=trader": "/ledger?agent=trader",
		"": "/", "//evil.example/": "/", "https://evil.example/": "/", `/\evil.example`: "/", "/login": "/", "javascript:alert(1)": "/",
		"/%2e%2e//evil.example": "/", "evil.example": "/", "/\nSet-Cookie: a=b": "/", "/..//evil.example": "/",
	} {
		a := w.browser().post("/login", url.Values{"credential": {c.Reveal()}, "next": {next}})
		if got := a.header.Get("Location"); a.status != http.StatusSeeOther || got != want {
			t.Errorf("next %q leads to %q (%d), want %q", next, got, a.status, want)
		}
	}
}

// The session ends by itself, by the approver's act and by the operator's.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	alive := func(b browser) bool { return b.get("/freeze").status == http.StatusOK }

	b := w.in(c)
	cookie := w.browser().login(c).header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, c.Reveal()) || strings.Contains(cookie, "ana") {
		t.Errorf("the cookie tells who it is: %q", cookie)
	}
	other := w.in(c)
	b.post("/logout", b.form(b.want("/"), "/logout"))
	if alive(b) || !alive(other) {
		t.Errorf("after a logout: %v and, elsewhere, %v", alive(b), alive(other))
	}
	for range 20 { // used, it lives on
		w.clock.Advance(29 * time.Minute)
		if !alive(other) {
			t.Fatal("a session in use ended")
		}
	}
	w.clock.Advance(30 * time.Minute)
	if alive(other) {
		t.Errorf("a session lives on unused")
	}
	b = w.in(c)
	for range 24 {
		w.clock.Advance(29 * time.Minute)
		alive(b)
	}
	w.clock.Advance(29 * time.Minute)
	if alive(b) {
		t.Errorf("a session outlives its lifetime")
	}
	// A page that watches by itself keeps none open.
	b = w.in(c)
	for range 2 {
		w.clock.Advance(16 * time.Minute)
		r := b.request("GET", "/freeze", nil)
		r.Header.Set("X-Canopy-Watching", "1")
		b.do(r)
	}
	if alive(b) {
		t.Errorf("a watching page keeps its session open")
	}
	b = w.in(c)
	c2, err := w.people.Rotate(t.Context(), "ana")
	if err != nil || alive(b) {
		t.Errorf("a session outlives the credential: %v", err)
	}
	if a := w.browser().login(c); a.status != http.StatusForbidden {
		t.Errorf("the old credential: %d", a.status)
	}
	b = w.in(c2)
	if err := w.people.Revoke(t.Context(), "ana"); err != nil || alive(b) {
		t.Errorf("a session outlives its approver: %v", err)
	}
	// A forged or foreign cookie is none.
	for _, v := range []string{"", "x", strings.Repeat("A", 43), "../../etc/passwd"} {
		r := w.browser().request("GET", "/freeze", nil)
		r.AddCookie(&http.Cookie{Name: "canopy", Value: v})
		if a := w.browser().do(r); a.status != http.StatusSeeOther {
			t.Errorf("the cookie %q: %d", v, a.status)
		}
	}
}

// TLS keeps the cookie to TLS, and to this host.
func TestCookieOverTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(c *dashboard.Config) { c.TLS = true })
	got := w.browser().login(w.hire("ana")).header.Get("Set-Cookie")
	if !strings.HasPrefix(got, "__Host-canopy") || !strings.Contains(got, "Secure") {
		t.Errorf("the cookie is %q", got)
	}
}

// Attack 76: guesses are answered alike, and ever more slowly.
func TestGuessing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	w.hire("ben")
	b := w.browser()
	wrong := c.Reveal()[:len(c.Reveal())-1] + "2"
	if wrong == c.Reveal() {
		wrong = c.Reveal()[:len(c.Reveal())-1] + "3"
	}
	first := b.login(approvals.Credential(wrong))
	for _, guess := range []string{"", "x", "canopy_", "canopy_ana_", "canopy_eve_" + wrong[len("canopy_ana_"):], strings.Repeat("a", 10_000)} {
		if a := w.browser().login(approvals.Credential(guess)); a.status != http.StatusForbidden || a.body != first.body {
			t.Errorf("%.20q is answered %d, unlike another", guess, a.status)
		}
	}
	for range 4 {
		if a := b.login(approvals.Credential(wrong)); a.status != http.StatusForbidden {
			t.Fatalf("a free guess: %d", a.status)
		}
	}
	waits := 0
	for _, want := range []string{"2", "3", "5", "9"} {
		a := b.login(c) // even the right one has to wait
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != want {
			t.Errorf("guess %d: %d, Retry-After %q, want %s", waits, a.status, a.header.Get("Retry-After"), want)
		}
		w.clock.Advance(time.Duration(1<<waits) * time.Second)
		waits++
		if a := b.login(approvals.Credential(wrong)); a.status != http.StatusForbidden {
			t.Errorf("after the wait: %d", a.status)
		}
	}
	w.clock.Advance(11 * time.Minute)
	if a := b.login(c); a.status != http.StatusSeeOther {
		t.Errorf("much later: %d", a.status)
	}
}

// Attacks 70 and 56: a form of another site, of another session, for another
// approval or of other terms does nothing, and one's own does it once.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	b, other := w.in(c), w.in(c)
	e, f := w.pending("trader", 8*payment.Dollar), w.pending("trader", 9*payment.Dollar)
	path := "/approvals/" + string(e.ApprovalID)
	pending := func(what string) {
		t.Helper()
		for _, id := range []payment.ApprovalID{e.ApprovalID, f.ApprovalID} {
			if got := w.approval(id); got.Status != ledger.ApprovalPending {
				t.Errorf("%s: approval is %s", what, got.Status)
			}
		}
		if all, err := w.store.(ledger.Freezer).Freezes(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("%s: frozen %v", what, all)
		}
	}
	form := func() url.Values {
		v := b.form(b.want(path), path)
		v.Set("answer", "approve")
		return v
	}
	try := func(what string, want int, b browser, path string, v url.Values, change ...func(*http.Request)) {
		t.Helper()
		r := b.request("POST", path, v)
		for _, c := range change {
			c(r)
		}
		if a := b.do(r); a.status != want {
			t.Errorf("%s: %d, want %d", what, a.status, want)
		}
		pending(what)
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, site := range []string{"cross-site", "same-site"} {
		try("a "+site+" post", http.StatusForbidden, b, path, form(), header("Sec-Fetch-Site", site))
	}
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:1", strings.Replace(b.server.URL, "http", "https", 1) + ".evil.example"} {
		try("a post from "+origin, http.StatusForbidden, b, path, form(), header("Origin", origin), func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") })
	}
	bare := func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") }
	try("no token", http.StatusForbidden, b, path, url.Values{"answer": {"approve"}}, bare)
	try("a guessed token", http.StatusForbidden, b, path, url.Values{"answer": {"approve"}, "token": {strings.Repeat("A", 43)}}, bare)
	try("another session's", http.StatusForbidden, other, path, form())
	try("of another approval", http.StatusForbidden, b, "/approvals/"+string(f.ApprovalID), form())
	v := form()
	v.Set("terms", f.TermsHash.String())
	try("other terms", http.StatusForbidden, b, path, v)
	v = form()
	v.Del("terms")
	try("no terms", http.StatusForbidden, b, path, v)
	v = b.form(b.want("/freeze"), "/freeze")
	v.Set("answer", "approve")
	v.Set("terms", e.TermsHash.String())
	try("the form of the freeze", http.StatusForbidden, b, path, v)
	v = form()
	v.Set("whom", "all")
	v.Set("reason", "x")
	try("a ruling as a freeze", http.StatusForbidden, b, "/freeze", v)
	v = form()
	v.Set("answer", "maybe")
	try("neither yes nor no", http.StatusBadRequest, b, path, v)
	old := form()
	w.clock.Advance(20 * time.Minute)
	b.want("/")
	try("JSON", http.StatusUnsupportedMediaType, b, path, form(), header("Content-Type", "application/json"))
	try("a form as a file", http.StatusUnsupportedMediaType, b, path, form(), header("Content-Type", "multipart/form-data; boundary=x"))
	v = form()
	v.Set("reason", strings.Repeat("x", 20<<10))
	if a := b.post(path, v); a.status == http.StatusSeeOther {
		t.Errorf("a body of 20 KiB is taken")
	}
	pending("a large body")
	for range 5 {
		w.clock.Advance(21 * time.Minute)
		b.want("/")
	}
	try("a form of two hours ago", http.StatusForbidden, b, path, old)

	v = form()
	if a := b.post(path, v); a.status != http.StatusSeeOther {
		t.Fatalf("its own form: %d\n%s", a.status, a.body)
	}
	if a := b.post(path, v); a.status != http.StatusForbidden {
		t.Errorf("the same form again: %d", a.status)
	}
	if got := w.approval(e.ApprovalID); got.Status != ledger.ApprovalGranted || len(got.Votes) != 1 {
		t.Errorf("the record says %+v", got)
	}
}

// Attacks 71 and 73: other names, frames and sites get nothing, and every answer
// says what the page may load: its own files alone.
func TestHostsAndHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	own := strings.TrimPrefix(w.server.URL, "http://")
	_, port, _ := strings.Cut(own, ":")
	for _, host := range []string{"evil.example", "evil.example:" + port, "localhost:" + port, "127.0.0.1", own + ".", "127.0.0.1.evil.example:" + port, "[::1]:" + port, "0x7f.1:" + port} {
		for _, method := range []string{"GET", "POST"} {
			r := b.request(method, "/", nil)
			r.Host = host
			if a := b.do(r); a.status != http.StatusForbidden || strings.Contains(a.body, "evil") {
				t.Errorf("%s from host %s: %d\n%s", method, host, a.status, a.body)
			}
		}
	}
	for _, path := range append(pages, "/login", "/static/style.css", "/nowhere", "/approvals/x", "/%2e%2e") {
		a := b.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"Referrer-Policy":         "no-referrer", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
			"Cache-Control": "no-store", "X-Frame-Options": "DENY",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("GET %s: %s is %q", path, name, got)
			}
		}
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
		if a := b.do(b.request(method, "/freeze", nil)); a.status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, a.status)
		}
	}
}

// GET and HEAD change nothing, whatever they name: attack 54.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	e := w.pending("trader", 8*payment.Dollar)
	path := "/approvals/" + string(e.ApprovalID)
	f := b.form(b.want(path), path)
	f.Set("answer", "approve")
	f.Set("act", "freeze")
	f.Set("whom", "all")
	f.Set("reason", "x")
	for _, method := range []string{"GET", "HEAD"} {
		for _, p := range append(pages, path, "/payments/"+string(e.ID), "/logout", "/login") {
			b.do(b.request(method, p+"?"+f.Encode(), nil))
		}
	}
	if got := w.approval(e.ApprovalID); got.Status != ledger.ApprovalPending || len(got.Votes) > 0 {
		t.Errorf("a GET ruled: %+v", got)
	}
	if all, err := w.store.(ledger.Freezer).Freezes(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("a GET froze %v", all)
	}
	if a := b.get("/freeze"); a.status != http.StatusOK {
		t.Errorf("a GET logged out: %d", a.status)
	}
	// The values of a form count in its body alone.
	r := b.request("POST", path+"?"+f.Encode(), url.Values{})
	if a := b.do(r); a.status != http.StatusForbidden {
		t.Errorf("a form in the address: %d", a.status)
	}
}

// Attack 77: an id is told by its alphabet, and no spelling reaches anything.
func TestPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	e := w.pending("trader", 8*payment.Dollar)
	id := string(e.ApprovalID)
	spellings := []string{
		"..", "../", "../../etc/passwd", "%2e%2e", "%2e%2e%2f", "..%2f..%2fetc%2fpasswd", "%252e%252e%252f", "....//", "..;/", "%c0%ae%c0%ae/",
		"%00", id + "%00", id + "%00.html", id + "%20", "%20" + id, id + "/", id + "/..", "./" + id, id + "%0d%0aX-Evil:1", id + "%0a",
		"%61ppr_" + strings.TrimPrefix(id, "appr_"), strings.ToLower(id), "APPR_" + strings.TrimPrefix(id, "appr_"), strings.TrimPrefix(id, "appr_"),
		id + id, id[:len(id)-1], "appr_" + strings.Repeat("0", 27), "appr_UUUUUUUUUUUUUUUUUUUUUUUUUU", "appr_" + strings.Repeat("9", 5000), "\\..\\..", "*", "~root",
		"appr_" + strings.Repeat("%F0%9F%91%8D", 26), string(e.ID) + ".json", "-1", "0", "NaN",
	}
	for _, dir := range []string{"/approvals/", "/payments/", "/static/"} {
		for _, s := range spellings {
			if dir == "/payments/" && s == strings.TrimPrefix(id, "appr_") {
				continue // it may be a payment's
			}
			u, err := url.Parse(w.server.URL)
			if err != nil {
				t.Fatal(err)
			}
			u.Opaque = "//" + u.Host + dir + s
			r := (&http.Request{Method: "GET", URL: u, Host: u.Host, Header: http.Header{}}).WithContext(t.Context())
			a := b.do(r)
			if a.status != http.StatusNotFound && a.status != http.StatusBadRequest || strings.Contains(a.body, "root:") || a.header.Get("X-Evil") != "" {
				t.Errorf("GET %s%s: %d", dir, s, a.status)
			}
		}
	}
	if len(spellings) < 30 {
		t.Errorf("%d spellings", len(spellings))
	}
	b.want("/approvals/"+id, "feed.example")
	b.want("/payments/"+string(e.ID), "feed.example")
}

// tampered is a ledger in which somebody changed what an approval shows.
type tampered struct {
	*ledger.Memory
	change func(*ledger.Approval)
}

func (s tampered) Approvals() ledger.Approvals { return tamperedApprovals{s.Memory.Approvals(), s} }

type tamperedApprovals struct {
	ledger.Approvals
	s tampered
}

func (a tamperedApprovals) Approval(ctx context.Context, id payment.ApprovalID, now time.Time) (ledger.Approval, error) {
	ap, err := a.Approvals.Approval(ctx, id, now)
	a.s.change(&ap)
	return ap, err
}

func (a tamperedApprovals) List(ctx context.Context, agent string, pending bool, now time.Time) ([]ledger.Approval, error) {
	all, err := a.Approvals.List(ctx, agent, pending, now)
	for i := range all {
		a.s.change(&all[i])
	}
	return all, err
}

// Attack 74: what is shown is what the hash stands for, or nothing can be
// approved.
func TestTamperedTerms(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ledger.Approval){
		"amount": func(a *ledger.Approval) { a.Terms.Amount = payment.UnitsOf(1); a.Cost = 1 },
		"payee": func(a *ledger.Approval) {
			a.Terms.Recipients = []payment.Recipient{{Address: payer, Amount: a.Terms.Amount}}
		},
		"target": func(a *ledger.Approval) { a.Terms.Target = "/other" },
		"hash":   func(a *ledger.Approval) { a.TermsHash[0]++ },
		"both":   func(a *ledger.Approval) { a.Terms.Target = "/other"; a.TermsHash = a.Terms.Hash() },
		"agent":  func(a *ledger.Approval) { a.Agent = "careful" },
		"cost":   func(a *ledger.Approval) { a.Cost = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := false
			w := newWorld(t, func(c *canopytest.Clock) ledger.Store {
				return tampered{ledger.NewMemory(ledger.Options{Now: c.Now}), func(a *ledger.Approval) {
					if on {
						change(a)
					}
				}}
			})
			b := w.in(w.hire("ana"))
			e := w.pending("trader", 8*payment.Dollar)
			path := "/approvals/" + string(e.ApprovalID)
			f := b.form(b.want(path, `value="approve"`), path)
			on = true
			for _, p := range []string{"/", path} {
				if body := b.want(p, "The stored terms are not those that were judged"); strings.Contains(body, `value="approve"`) || strings.Contains(body, `action="`+path) {
					t.Errorf("GET %s lets it be ruled on", p)
				}
			}
			// The form that was shown before rules on what it showed.
			f.Set("answer", "approve")
			f.Set("terms", e.TermsHash.String())
			if a := b.post(path, f); a.status == http.StatusSeeOther && name != "hash" {
				if got, err := w.store.Entry(t.Context(), e.ID); err != nil || got.TermsHash != e.TermsHash || got.State != ledger.Approved {
					t.Errorf("it ruled on other terms: %+v, %v", got, err)
				}
			}
		})
	}
}

// Attacks 50 and 72: what sellers and agents write is text.
func TestHostileText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	plain := b.want("/")
	for i, text := range canopytest.HostileTexts() {
		tm := terms("feed.example", "/x", payment.USD(6_000_000+i))
		tm.Target = "/" + text
		e := w.ask("trader", tm, text)
		if e.State != ledger.PendingApproval {
			t.Fatalf("it is %s", e.State)
		}
		path := "/approvals/" + string(e.ApprovalID)
		f := b.form(b.want(path), path)
		for _, p := range []string{path, "/payments/" + string(e.ID)} {
			body := b.want(p, "feed.example")
			for _, tag := range []string{"<script", "<img", "<iframe", "<object", "<embed", "<base", "<link", "<meta", `="javascript:`, "<style", "<math"} {
				if got, want := strings.Count(strings.ToLower(body), tag), strings.Count(strings.ToLower(plain), tag); got != want {
					t.Errorf("%.60q makes %d of %s, want %d", text, got, tag, want)
				}
			}
			for _, r := range body {
				if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xe0000 && r < 0xe0fff {
					t.Errorf("%.60q shows %U", text, r)
					break
				}
			}
		}
		f.Set("answer", "deny")
		f.Set("reason", text[:min(len(text), 2000)])
		if a := b.post(path, f); a.status != http.StatusSeeOther {
			t.Errorf("%.60q as a reason: %d", text, a.status)
		}
	}
	if err := w.store.(ledger.Freezer).Freeze(t.Context(), "trader", "x", "<script>alert(1)</script>"); err != nil {
		t.Fatal(err)
	}
	if body := b.want("/", "&lt;script&gt;alert(1)"); strings.Contains(body, "<script>") {
		t.Errorf("a reason of a freeze is markup")
	}
	b.want("/policy")
	b.want("/ledger?text=" + url.QueryEscape("<script>"))
}

// No secret is in a page or an address: not the cookie's, not the credential.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	b := w.in(c)
	e := w.pending("trader", 8*payment.Dollar)
	u, _ := url.Parse(w.server.URL)
	var cookie string
	for _, k := range b.Jar.Cookies(u) {
		cookie = k.Value
	}
	if len(cookie) != 43 {
		t.Fatalf("the cookie has %d characters", len(cookie))
	}
	for _, p := range append(pages, "/approvals/"+string(e.ApprovalID), "/payments/"+string(e.ID), "/nowhere") {
		body := b.get(p).body
		if strings.Contains(body, cookie) || strings.Contains(body, c.Reveal()) {
			t.Errorf("GET %s shows a secret", p)
		}
		for link := range strings.SplitSeq(body, `href="`) {
			if link, _, _ = strings.Cut(link, `"`); strings.HasPrefix(link, "http") && !strings.Contains(body, "<urlset") {
				t.Errorf("GET %s leads to %s", p, link)
			}
		}
	}
}

// A page that watches hears of what is new, goes on from where it was, and stops
// with its session.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.hire("ana")
	b := w.in(c)
	listen := func(last string) (*bufio.Scanner, context.CancelFunc) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		r := b.request("GET", "/events", nil).WithContext(ctx)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := b.Do(r)
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v, %v", resp, err)
		}
		t.Cleanup(func() { cancel(); resp.Body.Close() })
		return bufio.NewScanner(resp.Body), cancel
	}
	next := func(s *bufio.Scanner) (id, event, data string) {
		t.Helper()
		for s.Scan() {
			k, v, _ := strings.Cut(s.Text(), ": ")
			switch k {
			case "id":
				id = v
			case "event":
				event = v
			case "data":
				return id, event, v
			}
		}
		t.Fatalf("the stream ended: %v", s.Err())
		return
	}
	s, stop := listen("")
	_, _, data := next(s)
	if data != `{"topics":["approvals","freezes","payments"],"pending":0,"frozen":false}` {
		t.Errorf("at first %s", data)
	}
	w.pending("trader", 8*payment.Dollar)
	var id string
	for told := false; !told; told = strings.Contains(data, `"approvals"`) {
		id, _, data = next(s)
	}
	if !strings.HasSuffix(data, `"pending":1,"frozen":false}`) {
		t.Errorf("a new approval: %s", data)
	}
	stop()
	if err := w.store.(ledger.Freezer).Freeze(t.Context(), "", "ana", "x"); err != nil {
		t.Fatal(err)
	}
	s, _ = listen(id)
	if _, _, data = next(s); !strings.Contains(data, `"freezes"`) || strings.Contains(data, `"approvals"`) || !strings.HasSuffix(data, `"pending":1,"frozen":true}`) {
		t.Errorf("after it was away: %s", data)
	}
	if err := w.people.Revoke(t.Context(), "ana"); err != nil {
		t.Fatal(err)
	}
	_, event, _ := next(s)
	for s.Scan() && s.Text() == "" {
	}
	if event != "over" || s.Text() != "" {
		t.Errorf("a revoked approver's stream goes on with %s", event)
	}
}

// Only so many pages watch at once.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	var status int
	for range 65 {
		resp, err := b.Do(b.request("GET", "/events", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if status = resp.StatusCode; status != 200 {
			break
		}
	}
	if status != http.StatusServiceUnavailable {
		t.Errorf("the 65th page watches: %d", status)
	}
	b.want("/freeze")
}

// Who is not named cannot rule, and one person is not two.
func TestQuorum(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ana, ben, eve := w.in(w.hire("ana")), w.in(w.hire("Ben")), w.in(w.hire("eve"))
	e := w.pending("careful", 8*payment.Dollar)
	path := "/approvals/" + string(e.ApprovalID)
	if body := eve.want(path, "The policy names ana, ben"); strings.Contains(body, `action="`+path) {
		t.Errorf("one who is not named gets a form")
	}
	if a := ana.rule(e.ApprovalID, "approve", ""); a.status != http.StatusSeeOther {
		t.Fatalf("ana: %d\n%s", a.status, a.body)
	}
	if body := ana.want(path, "1 of 2 who have to say yes", "You have approved it", "ana</strong> said yes"); strings.Contains(body, `value="approve"`) {
		t.Errorf("she can say yes again")
	}
	if a := ana.rule(e.ApprovalID, "approve", ""); a.status != http.StatusConflict || !strings.Contains(a.body, "somebody else has to") {
		t.Errorf("twice: %d", a.status)
	}
	if got := w.approval(e.ApprovalID); got.Status != ledger.ApprovalPending {
		t.Errorf("one of two decides: %s", got.Status)
	}
	if a := ben.rule(e.ApprovalID, "approve", ""); a.status != http.StatusSeeOther {
		t.Fatalf("ben: %d\n%s", a.status, a.body)
	}
	if got := w.approval(e.ApprovalID); got.Status != ledger.ApprovalGranted || got.Yes() != 2 {
		t.Errorf("the record says %+v", got)
	}
}

// Of two at once one is first, and the other is told.
func TestSomebodyWasFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ana, ben := w.in(w.hire("ana")), w.in(w.hire("ben"))
	e := w.pending("trader", 8*payment.Dollar)
	path := "/approvals/" + string(e.ApprovalID)
	f := ben.form(ben.want(path), path)
	ana.rule(e.ApprovalID, "deny", "")
	f.Set("answer", "approve")
	if a := ben.post(path, f); a.status != http.StatusConflict || !strings.Contains(a.body, "Somebody was first: it is denied") {
		t.Errorf("the second: %d\n%s", a.status, a.body)
	}

	// Silence is a denial: after its end nobody says yes.
	e = w.pending("trader", 9*payment.Dollar)
	path = "/approvals/" + string(e.ApprovalID)
	w.clock.Advance(23*time.Hour + 50*time.Minute)
	c, err := w.people.Rotate(t.Context(), "ben")
	if err != nil {
		t.Fatal(err)
	}
	ben = w.in(c)
	f = ben.form(ben.want(path), path)
	f.Set("answer", "approve")
	w.clock.Advance(11 * time.Minute)
	if a := ben.post(path, f); a.status != http.StatusConflict || !strings.Contains(a.body, "It expired before your answer") {
		t.Errorf("after its end: %d\n%s", a.status, a.body)
	}
}

// heard is a ledger that keeps what it was told of a ruling.
type heard struct {
	*ledger.Memory
	last *ledger.Decision
}

func (s heard) Approvals() ledger.Approvals { return heardApprovals{s.Memory.Approvals(), s.last} }

type heardApprovals struct {
	ledger.Approvals
	last *ledger.Decision
}

func (a heardApprovals) Decide(ctx context.Context, d ledger.Decision) (ledger.Approval, error) {
	*a.last = d
	return a.Approvals.Decide(ctx, d)
}

// A ruling says whose it is, by which credential, and on which terms.
func TestRulingIsBound(t *testing.T) {
	t.Parallel()
	var last ledger.Decision
	w := newWorld(t, func(c *canopytest.Clock) ledger.Store {
		return heard{ledger.NewMemory(ledger.Options{Now: c.Now}), &last}
	})
	c := w.hire("ana")
	b := w.in(c)
	e := w.pending("trader", 8*payment.Dollar)
	f := b.form(b.want("/approvals/"+string(e.ApprovalID)), "/approvals/"+string(e.ApprovalID))
	f.Set("answer", "approve")
	f.Set("by", "ben")
	f.Set("via", "cli")
	b.post("/approvals/"+string(e.ApprovalID), f)
	if last.By != "ana" || last.Via != "page" || last.Credential != c.Reveal() || last.TermsHash != e.TermsHash || last.ID != e.ApprovalID || last.Way != ledger.AtDesk || !last.Approve {
		t.Errorf("the ledger was told %+v", last)
	}
}

// A form does what it is for: that of a freeze ends none, and none logs out.
func TestFormsOfOtherActs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	if err := w.store.(ledger.Freezer).Freeze(t.Context(), "trader", "ben", "odd prices"); err != nil {
		t.Fatal(err)
	}
	page := b.want("/freeze")
	stop := b.form(page[strings.Index(page, `value="freeze"`)-400:], "/freeze")
	for stop.Get("act") != "freeze" {
		page = page[strings.Index(page, "</form>")+1:]
		stop = b.form(page[strings.Index(page, `action="/freeze"`):], "/freeze")
	}
	stop.Set("act", "unfreeze")
	stop.Set("agent", "trader")
	stop.Set("reason", "x")
	if a := b.post("/freeze", stop); a.status != http.StatusForbidden {
		t.Errorf("a freeze's form as its end: %d", a.status)
	}
	out := b.form(b.want("/freeze"), "/freeze")
	if a := b.post("/logout", out); a.status != http.StatusForbidden {
		t.Errorf("a freeze's form as a logout: %d", a.status)
	}
	if all, err := w.store.(ledger.Freezer).Freezes(t.Context()); err != nil || all["trader"] == "" {
		t.Errorf("frozen %v, %v", all, err)
	}
	// Nor does a login that is not needed lead away.
	for _, next := range []string{"//evil.example/", "https://evil.example/"} {
		if a := b.get("/login?next=" + url.QueryEscape(next)); a.status != http.StatusSeeOther || a.header.Get("Location") != "/" {
			t.Errorf("%s: %d to %s", next, a.status, a.header.Get("Location"))
		}
	}
}
