package dashboard_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

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
