package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// TestApprovalIsOfTheTerms: an approval that a store hands back as one of other
// terms, of another payment or agent, used or not granted carries nothing out.
func TestApprovalIsOfTheTerms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: payment.Asset{Chain: payment.Base, Decimals: 6},
		Recipients: []payment.Recipient{{Address: payment.Address{1}, Amount: payment.UnitsOf(1_000_000)}},
		Amount:     payment.UnitsOf(1_000_000), Method: "GET", Origin: "https://feed.example", Target: "/data", Validity: time.Minute,
	}
	for name, bend := range map[string]func(*Approval){
		"":                nil,
		"other terms":     func(a *Approval) { a.TermsHash[0]++ },
		"another payment": func(a *Approval) { a.Payment = payment.NewID(now) },
		"another agent":   func(a *Approval) { a.Agent = "other" },
		"used":            func(a *Approval) { a.UsedAt = now },
		"not granted":     func(a *Approval) { a.Status = ApprovalRefused },
	} {
		m := NewMemory(Options{Now: func() time.Time { return now }})
		reserve := func() (Entry, error) {
			e, _, err := m.Reserve(t.Context(), Request{
				Payment: payment.Payment{ID: payment.NewID(now), Agent: "trader", Terms: terms, Host: "feed.example", Port: 443},
				Verdict: policy.Verdict{Status: payment.PendingApproval, Cost: terms.Cost()},
				Now:     now, Began: now, Validity: time.Minute, Slot: payment.Slot{Kind: payment.SlotEVM}, Fingerprint: payment.Hash{1},
			})
			return e, err
		}
		e, err := reserve()
		if err != nil || e.State != PendingApproval {
			t.Fatal(e.State, err)
		}
		if _, err := m.Approvals().Decide(t.Context(), Decision{ID: e.ApprovalID, Approve: true, By: "ana", Now: now}); err != nil {
			t.Fatal(err)
		}
		if bend != nil {
			a := *m.tx.approvals[e.ApprovalID]
			bend(&a)
			m.tx.approvals[a.ID] = &a
		}
		got, err := reserve()
		switch {
		case bend == nil && (err != nil || got.State != Authorized || got.ID != e.ID):
			t.Errorf("the approval as it is: %s, %v", got.State, err)
		case bend != nil && (err == nil || !strings.Contains(err.Error(), "is not one of payment") || got.ID != ""):
			t.Errorf("%s: %s, %v", name, got.State, err)
		}
		if e, err = m.Entry(t.Context(), e.ID); bend != nil && (err != nil || e.State != Approved) {
			t.Errorf("%s: afterwards it is %s, %v", name, e.State, err)
		}
	}
}
