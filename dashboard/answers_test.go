package dashboard_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/dashboard"
	"github.com/canopy-go/canopy/ledger"
)

// What people answer to a webhook comes in beside the page, under its names
// alone, and is there only where it is wanted.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{true, false} {
		w := newWorld(t, nil)
		if wanted {
			w = newWorld(t, nil, func(c *dashboard.Config) {
				c.Answers = approvals.NewAnswers(approvals.NewDesk(c.Store, "webhook", c.Now))
			})
		}
		ana, ben := w.hire("ana"), w.hire("ben")
		e := w.ask("careful", terms("feed.example", "/a", 8_000_000), "")
		post := func(host string, c approvals.Credential) int {
			t.Helper()
			body := fmt.Sprintf(`{"approvalId":%q,"approve":true,"credential":%q,"termsHash":"%x"}`, e.ApprovalID, c.Reveal(), e.TermsHash[:])
			r, err := http.NewRequest("POST", w.server.URL+dashboard.AnswersPath, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if host != "" {
				r.Host = host
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return resp.StatusCode
		}
		if got := post("evil.example", ana); got != http.StatusForbidden {
			t.Errorf("under another name: %d", got)
		}
		want := http.StatusOK
		if !wanted {
			want = http.StatusUnsupportedMediaType
		}
		if a, b := post("", ana), post("", ben); a != want || b != want {
			t.Errorf("answers are %d and %d, want %d", a, b, want)
		}
		a, err := w.store.Approvals().Approval(t.Context(), e.ApprovalID, w.clock.Now())
		if err != nil || (a.Status == ledger.ApprovalGranted) != wanted {
			t.Errorf("it is %s, %v", a.Status, err)
		}
	}
}
