package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/approvals"
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
