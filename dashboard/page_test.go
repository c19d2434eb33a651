package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// A person reads what is asked, of whom and why, and approves: the ledger has
// their name, and the hash of what they saw.
func TestApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	b.want("/", "Nothing waits for you")
	e := w.pending("trader", 8*payment.Dollar)
	body := b.want("/", "Agent <em>trader</em> asks to pay", "$8.00", "feed.example", shop.String(), usdc.Address.String(), "base (eip155:8453)",
		"Amount $8.00 exceeds approval threshold of $5", "the weekly report", "Never paid before", "never paid at feed.example before",
		"$60 / 24h", "20 payments / 1h", "$30 / 24h", "left $60.00", e.TermsHash.String(), string(e.ApprovalID), "silence is a denial", "Approve $8.00")
	if strings.Contains(body, "style=") || strings.Contains(body, "onclick") || strings.Contains(body, "<script>") {
		t.Errorf("the page has script or style of its own in it")
	}
	a := b.rule(e.ApprovalID, "approve", " for the report\u202e ")
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/approvals/"+string(e.ApprovalID) {
		t.Fatalf("ruling: %d %s\n%s", a.status, a.header.Get("Location"), a.body)
	}
	got := w.approval(e.ApprovalID)
	if got.Status != ledger.ApprovalGranted || got.By != "ana" || got.Via != "page" || got.Comment != "for the report" {
		t.Errorf("the record says %+v", got)
	}
	b.want("/approvals/"+string(e.ApprovalID), "Approved", "by ana", "for the report", "Stop agent trader now")
	b.want("/", "Nothing waits for you", "Decided lately", "approved")
}

func TestDeny(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	e := w.pending("trader", 8*payment.Dollar)
	b.rule(e.ApprovalID, "deny", "too dear")
	if got := w.approval(e.ApprovalID); got.Status != ledger.ApprovalRefused || got.Comment != "too dear" {
		t.Errorf("the record says %+v", got)
	}
	if got, err := w.store.Entry(t.Context(), e.ID); err != nil || got.State != ledger.Rejected {
		t.Errorf("the payment is %s, %v", got.State, err)
	}
}

// A thousand requests are shown in pages, the oldest first, with their sum and
// the dearest of them before all.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.in(w.hire("ana"))
	var ids []string
	for i := range 1000 {
		usd := 6 * payment.Dollar
		if i == 700 {
			usd = 29 * payment.Dollar
		}
		ids = append(ids, string(w.pending("trader", usd).ApprovalID))
		w.clock.Advance(time.Millisecond)
	}
	b.want("/", "(1000) Approvals", "1000 requests, $6023.00 in all, the dearest $29.00", "1 to 20, the oldest first")
	seen := 0
	for next := "/"; next != ""; {
		body := b.want(next)
		for strings.Contains(body, `action="/approvals/`) {
			_, body, _ = strings.Cut(body, `action="/approvals/`)
			if seen >= len(ids) || !strings.HasPrefix(body, ids[seen]) {
				t.Fatalf("number %d on the pages is %.32s", seen, body)
			}
			seen++
		}
		next = ""
		if link, _, more := strings.Cut(body, `">Newer</a>`); more {
			next = link[strings.LastIndex(link, `href="`)+len(`href="`):]
		}
	}
	if seen != len(ids) {
		t.Errorf("the pages show %d of %d", seen, len(ids))
	}
}
