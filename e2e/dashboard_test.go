//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
)

const pagePolicy = `
[org]
name = "Acme"
caps = ["$50 / 24h"]
[policy.default]
max_payment   = "$10"
caps          = ["$20 / 24h", "60 payments / 1h", "$15 / 24h per host"]
approve_above = "$5"
allow         = ["host:127.0.0.1"]
max_pending   = 300
[policy.trader]
from = "default"
`

// served runs canopy dashboard until the test ends and returns where it is.
func (sh *shell) served(t testing.TB) string {
	t.Helper()
	cmd := sh.command("dashboard", "--json", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("canopy dashboard: %v", err)
		}
	})
	var at struct{ URL string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&at); err != nil || at.URL == "" {
		t.Fatalf("canopy dashboard says %+v, %v", at, err)
	}
	return strings.TrimSuffix(at.URL, "/")
}

// approver makes a person who may rule and returns their credential.
func (sh *shell) approver(t testing.TB, name string) string {
	t.Helper()
	r := sh.run(t, 0, "approvers", "add", name)
	credential := regexp.MustCompile(`canopy_` + name + `_[a-z2-7]+`).FindString(r.out)
	if credential == "" {
		t.Fatalf("%s\nno credential in it", r)
	}
	return credential
}

// login logs a person in, by the keyboard alone.
func (p Tab) login(at, credential string) {
	p.t.Helper()
	p.Goto(at + "/")
	p.Fill("#credential", credential)
	p.Press("Enter")
	p.Wait(".me")
	if u := p.URL(); u != at+"/" || strings.Contains(u, "canopy_") {
		p.t.Fatalf("a login leads to %s", u)
	}
}

// TestPageApproves holds a payment that a program waits for: a person sees it come up, reads it, and lets it go;
// the program goes on, and the chain has it.
func TestPageApproves(t *testing.T) {
	b := NewBrowser(t)
	s := shared.V2
	sh := newShell(t, shared.Chain, pagePolicy, allowLoopback, 50_000_000)
	defer sh.reckon(t)
	at := sh.served(t)
	credential := sh.approver(t, "ana")
	page := b.Open("ana", 1180, 900, "light")
	page.login(at, credential)
	page.Reads("Nothing waits for you.")

	sh.chain.Moves(t, s.PayTo, 6_000_000, func() {
		done := make(chan ran, 1)
		go func() {
			done <- sh.exec(t, 0, "fetch", "--agent", "trader", "--purpose", "the weekly report", "--wait", "60s", s.URL+"/six")
		}()
		page.Wait(".ask") // it comes up by itself
		page.Reads("Agent trader asks to pay $6.00 to 127.0.0.1", "Amount $6.00 exceeds approval threshold of $5", "the weekly report",
			"Never paid before", s.PayTo.Hex(), s.URL+"/six", "$20 / 24h", "silence is a denial")
		var title string
		page.Evaluate(&title, "document.title")
		if !strings.HasPrefix(title, "(1) ") {
			t.Errorf("the title is %q", title)
		}
		page.Shot("approval", true)
		page.Fill(".ask input[name=reason]", "as we said on Monday")
		page.Click("button[value=approve]")
		page.Wait("h1")
		page.Reads("Approved by ana", "as we said on Monday")
		r := <-done
		r.has(t, "paid $6.00")
		if r.code != 0 || r.out != `{"path":"/six","query":{}}` {
			t.Errorf("the program that waited: %s", r)
		}
	})
	page.Goto(at + "/ledger")
	page.Reads("claimed", s.URL+"/six", "trader")
	page.Click("a[href^='/payments/']")
	page.Wait("h1")
	page.Reads("Payment of $6.00", "A person ruled on it: approved by ana (page)")

	// The second time it is known, and a no ends it.
	sh.chain.Moves(t, s.PayTo, 0, func() {
		sh.run(t, 3, "fetch", "--agent", "trader", s.URL+"/six?again")
		page.Goto(at + "/")
		page.Reads("was paid once before", "the same price")
		page.Click("button[value=deny]")
		page.Wait("h1")
		page.Reads("Denied by ana")
	})
	if heard := b.Heard(); len(heard) > 0 {
		t.Errorf("the browser reports %q", heard)
	}
}

// TestPageIsSafe sends the corpus of hostile texts through the page, and posts forms that are not its own.
func TestPageIsSafe(t *testing.T) {
	b := NewBrowser(t)
	s := shared.V2
	sh := newShell(t, shared.Chain, pagePolicy, allowLoopback, 50_000_000)
	defer sh.reckon(t)
	at := sh.served(t)
	page := b.Open("ana", 1180, 900, "light")
	page.login(at, sh.approver(t, "ana"))
	texts := canopytest.HostileTexts()
	for i := 0; i < len(texts); i += len(texts) / 24 {
		text := strings.ReplaceAll(texts[i], "\x00", "")
		sh.run(t, 3, "fetch", "-q", "--purpose", strings.ToValidUTF8(text[:min(len(text), 500)], ""), s.URL+"/six?n="+url.QueryEscape(text[:min(len(text), 60)]))
	}
	sh.run(t, 3, "fetch", "-q", "--purpose", `"><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>`, s.URL+"/six?last")
	for _, path := range []string{"/", "/?from=20", "/ledger", "/policy"} {
		page.Goto(at + path)
		if n := page.Count("main script, main img, main iframe, main object, main [onerror], main [onload], main a[href^='javascript:'], main [style]"); n > 0 {
			t.Errorf("%s has %d elements that no text may make", path, n)
		}
	}
	page.Goto(at + "/?from=20")
	page.Reads(`"><img src=x onerror=alert(1)><script>alert(2)</script>`)

	// Another site has the browser send a form; its cookie goes with nothing.
	pending := page.Count(".ask")
	var form struct{ Path, Token, Terms string }
	page.Evaluate(&form, `(() => { const f = document.querySelector("form.rule"); return { path: f.getAttribute("action"), token: f.token.value, terms: f.terms.value }; })()`)
	evil := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<!doctype html><form method="post" action="` + at + form.Path + `"><input name="token" value="` + form.Token + `"><input name="terms" value="` + form.Terms +
			`"><input name="answer" value="approve"></form><iframe src="` + at + `/"></iframe>`))
	})}
	elsewhere := listen(t, evil)
	b.Heard()
	page.Goto(elsewhere)
	page.Evaluate(nil, `document.forms[0].submit()`)
	page.Wait("pre")
	page.Reads("That came from another site")
	page.Goto(at + "/?from=20")
	if n := page.Count(".ask"); n != pending {
		t.Errorf("after a foreign form %d wait, before %d", n, pending)
	}
	b.Heard() // a frame that was refused is reported

	// The page's own form, twice.
	page.Evaluate(&form, `(() => { const f = document.querySelector("form.rule"); return { path: f.getAttribute("action"), token: f.token.value, terms: f.terms.value }; })()`)
	var statuses []int
	page.Evaluate(&statuses, `(async () => { const f = document.querySelector("form.rule"); const send = () => fetch(f.getAttribute("action"), { method: "POST", redirect: "manual", body: new URLSearchParams({ token: f.token.value, terms: f.terms.value, answer: "deny" }) }); const a = await send(), b = await send(); return [a.type === "opaqueredirect" ? 303 : a.status, b.status]; })()`)
	if len(statuses) != 2 || statuses[0] != 303 || statuses[1] != 403 {
		t.Errorf("a form and the same again: %v, want 303 and 403", statuses)
	}
	b.Heard() // the 403

	// A name that is not the page's, though it leads there.
	_, port, _ := strings.Cut(strings.TrimPrefix(at, "http://"), ":")
	if status := page.Goto("http://canopy.localhost:" + port + "/"); status != http.StatusForbidden {
		t.Errorf("a foreign host: %d", status)
	}
	for _, h := range b.Heard() {
		if strings.HasPrefix(h, "dialog") || strings.HasPrefix(h, "request: http") && !strings.Contains(h, "canopy.localhost") {
			t.Errorf("the browser reports %s", h)
		}
	}
}

// TestPageLooks goes through all pages in light and dark, wide and on a phone: nothing is wider than its window,
// every text can be read and every control has a name; without script they work too.
func TestPageLooks(t *testing.T) {
	b := NewBrowser(t)
	s := shared.V2
	sh := newShell(t, shared.Chain, pagePolicy, allowLoopback, 50_000_000)
	defer sh.reckon(t)
	for i, path := range []string{"/cent", "/two", "/subcent", "/cent?2", "/two?2"} {
		sh.run(t, 0, "fetch", "-q", "--agent", []string{"trader", "scout"}[i%2], s.URL+path)
	}
	sh.run(t, 4, "fetch", "-q", "--agent", "trader", "--max-price", "0.01", s.URL+"/two?dear")
	sh.run(t, 3, "fetch", "-q", "--agent", "trader", "--purpose", "the weekly report, as ana asked for on Monday", s.URL+"/six")
	sh.run(t, 3, "fetch", "-q", "--agent", "scout", s.URL+"/six?map=berlin")
	at, credential := sh.served(t), sh.approver(t, "ana")
	for _, look := range []struct {
		name          string
		width, height int
		scheme        string
	}{{"light", 1180, 900, "light"}, {"dark", 1180, 900, "dark"}, {"phone", 390, 844, "light"}, {"phone-dark", 360, 740, "dark"}} {
		page := b.Open(look.name, look.width, look.height, look.scheme)
		page.Goto(at + "/login")
		page.Shot("login-"+look.name, false)
		page.Readable()
		page.Named()
		page.login(at, credential)
		for name, path := range map[string]string{"approvals": "/", "spending": "/spending", "ledger": "/ledger", "policy": "/policy", "freeze": "/freeze", "nothing": "/nothing"} {
			page.Goto(at + path)
			page.Shot(name+"-"+look.name, name == "spending")
			page.Readable()
			page.Named()
		}
		page.Goto(at + "/ledger")
		page.Click("a[href^='/payments/']")
		page.Wait("h1")
		page.Shot("payment-"+look.name, false)
		page.Readable()
	}
	for _, h := range b.Heard() {
		if !strings.Contains(h, "404") { // of /nothing
			t.Errorf("the browser reports %s", h)
		}
	}
	// By the keyboard alone: the first stop leads past the menu.
	page := b.Open("keyboard", 1180, 900, "light")
	page.login(at, credential)
	page.Press("Tab")
	var focus string
	if page.Evaluate(&focus, "document.activeElement.innerText"); focus != "Skip to the content" {
		t.Errorf("the first stop is %q", focus)
	}
}

// listen serves on an address of its own until the test ends.
func listen(t testing.TB, s *http.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "http://" + strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1) + "/"
}
