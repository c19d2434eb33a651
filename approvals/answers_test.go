package approvals_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// answering is a ledger with people who may rule, and where they answer.
type answering struct {
	*testing.T
	store    *ledger.Memory
	register *approvals.Register
	handler  http.Handler
}

func newAnswering(t *testing.T) *answering {
	t.Helper()
	w := &answering{T: t, store: ledger.NewMemory(ledger.Options{})}
	var err error
	if w.register, err = approvals.NewRegister(w.store, nil); err != nil {
		t.Fatal(err)
	}
	w.handler = approvals.NewAnswers(approvals.NewDesk(w.store, "webhook", nil))
	return w
}

func (w *answering) add(name string) approvals.Credential {
	w.Helper()
	c, err := w.register.Add(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// post posts a body and returns the status and the code, or the ruling's status.
func (w *answering) post(body string, header ...string) (int, string) {
	w.Helper()
	r := httptest.NewRequest("POST", "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	var got struct{ Status, Code, Error string }
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		w.Fatalf("%s: %v", rec.Body, err)
	}
	if strings.Contains(rec.Body.String(), "canopy_") {
		w.Errorf("the answer tells a credential: %s", rec.Body)
	}
	if got.Code != "" {
		return rec.Code, got.Code
	}
	return rec.Code, got.Status
}

func body(e ledger.Entry, approve bool, c approvals.Credential) string {
	return fmt.Sprintf(`{"approvalId":%q,"approve":%t,"credential":%q,"termsHash":"%x","reason":"as agreed"}`, e.ApprovalID, approve, c.Reveal(), e.TermsHash[:])
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	w := newAnswering(t)
	ana, ben := w.add("ana"), w.add("ben")
	rotated := w.add("cyn")
	if _, err := w.register.Rotate(t.Context(), "cyn"); err != nil {
		t.Fatal(err)
	}
	if err := w.register.Revoke(t.Context(), "ben"); err != nil {
		t.Fatal(err)
	}
	e := pendingBy(t, w.store, "/a", "ana", "ben", "cyn")
	other := pendingBy(t, w.store, "/b", "ana")
	want := func(status int, code string) func(int, string) {
		return func(gotStatus int, gotCode string) {
			t.Helper()
			if gotStatus != status || gotCode != code {
				t.Errorf("%d %s, want %d %s", gotStatus, gotCode, status, code)
			}
		}
	}
	good := body(e, true, ana)
	free := pending(t, w.store, "/c")
	want(401, "credential")(w.post(body(e, true, ben))) // revoked
	want(403, "not_named")(w.post(body(e, true, w.add("dan"))))
	want(403, "no_approvers")(w.post(body(free, true, ana)))
	want(401, "credential")(w.post(body(e, true, rotated))) // has another by now
	want(401, "credential")(w.post(body(e, true, "canopy_ana_x")))
	want(401, "credential")(w.post(strings.Replace(good, "canopy_ana_", "canopy_cyn_", 1)))
	want(409, "terms_changed")(w.post(strings.Replace(good, fmt.Sprintf("%x", e.TermsHash[:]), fmt.Sprintf("%x", other.TermsHash[:]), 1)))
	want(404, "not_found")(w.post(strings.Replace(good, string(e.ApprovalID), string(payment.NewApprovalID(time.Now())), 1)))
	for name, bad := range map[string]string{
		"nothing": "", "no object": "[]", "half": good[:40], "unknown key": strings.Replace(good, `"reason"`, `"by":"x","reason"`, 1),
		"key twice": strings.Replace(good, `"reason"`, `"approve":false,"reason"`, 1), "key in capitals": strings.Replace(good, `"reason"`, `"Approve":false,"reason"`, 1),
		"no approve": strings.Replace(good, `"approve":true,`, "", 1), "approve as text": strings.Replace(good, `:true`, `:"true"`, 1),
		"null": strings.Replace(good, `:true`, `:null`, 1), "odd id": strings.Replace(good, string(e.ApprovalID), "../../x", 1),
		"no hash": fmt.Sprintf(`{"approvalId":%q,"approve":true,"credential":%q}`, e.ApprovalID, ana.Reveal()), "after": good + "{}",
		"no credential": strings.Replace(good, ana.Reveal(), "", 1), "long reason": strings.Replace(good, "as agreed", strings.Repeat("x", 1001), 1),
	} {
		if status, code := w.post(bad); status != 400 || code != "invalid" {
			t.Errorf("%s: %d %s", name, status, code)
		}
	}
	want(413, "too_large")(w.post(strings.Repeat(" ", 20<<10) + good))
	want(403, "browser")(w.post(good, "Origin", "https://evil.example"))
	want(403, "browser")(w.post(good, "Sec-Fetch-Site", "same-origin"))
	want(415, "content_type")(w.post(good, "Content-Type", "text/plain"))
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, httptest.NewRequest("GET", "/?approve=true", nil))
	if rec.Code != 405 {
		t.Errorf("GET: %d", rec.Code)
	}
	if a := approvalOf(t, w.store, e); a.Status != ledger.ApprovalPending {
		t.Fatalf("it is %s before anybody answered", a.Status)
	}
	want(200, "approved")(w.post(good))
	if a := approvalOf(t, w.store, e); a.Status != ledger.ApprovalGranted || a.By != "ana" || a.Via != "webhook" || a.Comment != "as agreed" {
		t.Errorf("it is %+v", a)
	}
	want(409, "decided")(w.post(good)) // a replay
	want(409, "decided")(w.post(body(e, false, ana)))
	want(200, "denied")(w.post(body(other, false, ana)))

	two := pendingOf(t, w.store, "/two", "", 2, "ana", "dan")
	want(200, "pending")(w.post(body(two, true, ana)))
	want(409, "voted")(w.post(body(two, true, ana)))
	dan, err := w.register.Rotate(t.Context(), "dan")
	if err != nil {
		t.Fatal(err)
	}
	want(200, "approved")(w.post(body(two, true, dan)))
}

// However the desk's way is called, what comes over a network needs named
// approvers.
func TestAnswersAreRemote(t *testing.T) {
	t.Parallel()
	w := newAnswering(t)
	w.handler = approvals.NewAnswers(approvals.NewDesk(w.store, "slack", nil))
	ana := w.add("ana")
	e := pending(t, w.store, "/a")
	if status, code := w.post(body(e, true, ana)); status != 403 || code != "no_approvers" {
		t.Errorf("%d %s", status, code)
	}
}

// FuzzAnswer: no body that is not an answer rules.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"approvalId":"appr_01J9ZC3V5Y8Q2T4W6X8Z0A1B2C","approve":true,"credential":"c","termsHash":"00"}`))
	f.Add([]byte(`{"approve":true}`))
	store := ledger.NewMemory(ledger.Options{})
	h := approvals.NewAnswers(approvals.NewDesk(store, "webhook", nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(string(b)))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != 400 && rec.Code != 401 && rec.Code != 413 {
			t.Errorf("%d for %q", rec.Code, b)
		}
	})
}
