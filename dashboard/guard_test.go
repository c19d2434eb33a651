package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

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
