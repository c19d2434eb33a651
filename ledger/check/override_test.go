package check_test

import (
	"context"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
)

// ruledOn makes of every approval what somebody might have.
type ruledOn struct {
	ledger.Store
	bend func(*ledger.Approval)
}

type bentApprovals struct {
	ledger.Approvals
	bend func(*ledger.Approval)
}

func (s ruledOn) Approvals() ledger.Approvals { return bentApprovals{s.Store.Approvals(), s.bend} }

func (s bentApprovals) Approval(ctx context.Context, id payment.ApprovalID, now time.Time) (ledger.Approval, error) {
	a, err := s.Approvals.Approval(ctx, id, now)
	s.bend(&a)
	return a, err
}

// A cap is exceeded by exactly the payments that an approver let over it, and by
// those only where approvers were named.
func TestOverride(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	w.reserve(50, "a.example")
	w.reserve(50, "a.example")
	denied := w.reserve(40, "a.example") // over the cap of the host
	if denied.State != ledger.Denied {
		t.Fatalf("it is %s", denied.State)
	}
	people := w.store.(ledger.ApproverStore)
	if err := people.AddApprover(ctx, "ana", ledger.HashCredential("secret"), w.now); err != nil {
		t.Fatal(err)
	}
	_, err := w.store.(ledger.Overrider).Override(ctx, ledger.Override{
		Payment: denied.ID, Approvers: []string{"ana"}, By: "ana", Credential: "secret", Reason: "once", Now: w.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.n-- // the same call again
	if e := w.reserve(40, "a.example"); e.State != ledger.Authorized {
		t.Fatalf("it is %s: %v", e.State, e.Reasons)
	}
	if e := w.reserve(1, "a.example"); e.State != ledger.Denied {
		t.Errorf("the next is %s", e.State)
	}
	w.reserve(20, "b.example")
	w.wants(w.run(check.Options{Policy: w.rules}, nil))

	for name, tt := range map[string]struct {
		want string
		bend func(*ledger.Approval)
	}{
		"no override":     {"over $1 / 30m per host", func(a *ledger.Approval) { a.Override = false }},
		"nobody named":    {"nobody was named", func(a *ledger.Approval) { a.Approvers = nil }},
		"a larger quorum": {"1 people of those who may said yes, and it takes 2", func(a *ledger.Approval) { a.Quorum = 2 }},
		"others named":    {"0 people of those who may said yes", func(a *ledger.Approval) { a.Approvers = []string{"ben"} }},
		"one of them twice": {"1 people of those who may said yes, and it takes 2", func(a *ledger.Approval) {
			a.Quorum, a.Votes = 2, append(a.Votes, a.Votes...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.TB, w.store = t, ruledOn{w.store, tt.bend}
			w.wants(w.run(check.Options{Policy: w.rules, NoEvents: true}, nil), tt.want)
		})
	}
}
