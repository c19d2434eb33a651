package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// pending puts one payment of the agent "bot" to a person.
func pending(t *testing.T, store ledger.Store, target string) ledger.Entry {
	t.Helper()
	return pendingAs(t, store, target, "")
}

// pendingAs is pending with the agent's own words.
func pendingAs(t *testing.T, store ledger.Store, target, purpose string) ledger.Entry {
	t.Helper()
	return pendingOf(t, store, target, purpose, 0)
}

// pendingBy is pending under a policy that names approvers.
func pendingBy(t *testing.T, store ledger.Store, target string, approvers ...string) ledger.Entry {
	t.Helper()
	return pendingOf(t, store, target, "", 1, approvers...)
}

func pendingOf(t *testing.T, store ledger.Store, target, purpose string, quorum int, approvers ...string) ledger.Entry {
	t.Helper()
	now := time.Now()
	amount := payment.UnitsOf(7_500_000)
	usdc := payment.KnownAssets().On(payment.Base)[0]
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc, Amount: amount,
		Recipients: []payment.Recipient{{Address: payment.Address{9}, Amount: amount}},
		Method:     "GET", Origin: "https://feed.example", Target: target, Validity: time.Minute,
	}
	rules, err := policy.Parse("t", []byte("[policy.default]\nmax_payment = \"$10\"\napprove_above = \"$5\"\ncaps = [\"$20 / 24h\"]\nallow = [\"*\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := payment.Payment{ID: payment.NewID(now), Agent: "bot", Terms: terms, Host: "feed.example", Port: 443, Purpose: purpose}
	v := rules.Evaluate(p, now, policy.History{})
	v.Approvers, v.Quorum = approvers, quorum
	e, _, err := store.Reserve(context.Background(), ledger.Request{
		Payment: p, Verdict: v, Payer: payment.Address{1},
		Fingerprint: terms.Hash(), Began: now, Now: now, Validity: time.Minute,
		Slot: payment.Slot{Kind: payment.SlotEVM, Chain: usdc.Chain, Token: usdc.Address, From: payment.Address{1}},
	})
	if err != nil || e.State != ledger.PendingApproval {
		t.Fatalf("%s %v", e.State, err)
	}
	return e
}

func TestDesk(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := ledger.NewMemory(ledger.Options{})
	desk := approvals.NewDesk(store, "cli", nil)
	e := pending(t, store, "/a")

	for name, tt := range map[string]struct {
		id   payment.ApprovalID
		r    approvals.Ruling
		want error
	}{
		"nobody":      {e.ApprovalID, approvals.Ruling{Approve: true}, approvals.ErrNoName},
		"blank":       {e.ApprovalID, approvals.Ruling{Approve: true, By: " "}, approvals.ErrNoName},
		"bad id":      {"../../x", approvals.Ruling{Approve: true, By: "ana"}, ledger.ErrNotFound},
		"unknown id":  {payment.NewApprovalID(time.Now()), approvals.Ruling{Approve: true, By: "ana"}, ledger.ErrNotFound},
		"the agent":   {e.ApprovalID, approvals.Ruling{Approve: true, By: "bot"}, ledger.ErrSelf},
		"other terms": {e.ApprovalID, approvals.Ruling{Approve: true, By: "ana", TermsHash: payment.Hash{1}}, ledger.ErrTermsChanged},
	} {
		if _, err := desk.Rule(ctx, tt.id, tt.r); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	a, err := desk.Rule(ctx, e.ApprovalID, approvals.Ruling{Approve: true, By: "ana", Reason: "needed", TermsHash: e.TermsHash})
	if err != nil || a.Status != ledger.ApprovalGranted || a.By != "ana" || a.Via != "cli" || a.Comment != "needed" {
		t.Errorf("approved: %+v, %v", a, err)
	}
	if a, err := desk.Rule(ctx, e.ApprovalID, approvals.Ruling{By: "ben"}); !errors.Is(err, ledger.ErrDecided) || a.By != "ana" {
		t.Errorf("a second ruling: %+v, %v", a, err)
	}
	if got, err := store.Entry(ctx, e.ID); err != nil || got.State != ledger.Approved {
		t.Errorf("the payment is %s, %v", got.State, err)
	}

	e = pending(t, store, "/b")
	if a, err := desk.Rule(ctx, e.ApprovalID, approvals.Ruling{By: "ben", Reason: "no"}); err != nil || a.Status != ledger.ApprovalRefused {
		t.Errorf("denied: %+v, %v", a, err)
	}
	if got, err := store.Entry(ctx, e.ID); err != nil || got.State != ledger.Rejected {
		t.Errorf("the payment is %s, %v", got.State, err)
	}
}

func TestRulingHidesItsCredential(t *testing.T) {
	t.Parallel()
	r := approvals.Ruling{Approve: true, By: "ana", Credential: "canary"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if s := fmt.Sprintf(verb, r); strings.Contains(s, "canary") {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}

func TestChannelFunc(t *testing.T) {
	t.Parallel()
	want := errors.New("down")
	var ch approvals.Channel = approvals.ChannelFunc(func(context.Context, approvals.Approval) error { return want })
	if err := ch.Notify(context.Background(), approvals.Approval{}); err != want {
		t.Errorf("Notify: %v", err)
	}
}
