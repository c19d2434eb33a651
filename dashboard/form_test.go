package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

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
