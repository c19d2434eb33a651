package ledger_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// A chain whose links are whole is refused where its votes do not add up: short of
// the quorum, of one person twice, of somebody who is not named, of the requester.
func TestVotesAreVerified(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	m := ledger.NewMemory(ledger.Options{Now: func() time.Time { return now }})
	for _, name := range []string{"ana", "ben", "cyd"} {
		if err := m.AddApprover(ctx, name, ledger.HashCredential(name), now); err != nil {
			t.Fatal(err)
		}
	}
	usdc := payment.KnownAssets().On(payment.Base)[0]
	amount := payment.UnitsOf(1_000_000)
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc, Amount: amount, Recipients: []payment.Recipient{{Address: payment.Address{9}, Amount: amount}},
		Method: "GET", Origin: "https://feed.example", Target: "/", Validity: time.Minute,
	}
	e, _, err := m.Reserve(ctx, ledger.Request{
		Payment: payment.Payment{ID: payment.NewID(now), Agent: "bot", Terms: terms, Host: "feed.example", Port: 443},
		Verdict: policy.Verdict{
			Status: payment.PendingApproval, Reasons: []policy.Reason{{Status: payment.PendingApproval, Code: "asked"}}, Approvers: []string{"ana", "ben", "cyd"}, Quorum: 3,
		},
		Payer: payment.Address{1}, Fingerprint: terms.Hash(), Now: now, Validity: time.Minute, Slot: payment.Slot{Kind: payment.SlotEVM},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ana", "ben", "cyd"} {
		if _, err := m.Approvals().Decide(ctx, ledger.Decision{ID: e.ApprovalID, Approve: true, By: name, Credential: name, Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := m.Events(ctx, e.ID)
	if err != nil || len(events) != 4 {
		t.Fatal(len(events), err)
	}
	if _, err := ledger.Replay(events); err != nil {
		t.Fatalf("the chain as it is: %v", err)
	}
	by := func(i int, name string) func([]ledger.Event) []ledger.Event {
		return func(events []ledger.Event) []ledger.Event {
			for _, who := range []string{"ana", "ben", "cyd"} {
				events[i].Data = []byte(strings.Replace(string(events[i].Data), `"by":"`+who+`"`, `"by":"`+name+`"`, 1))
			}
			return events
		}
	}
	for name, tt := range map[string]struct {
		want string
		bend func([]ledger.Event) []ledger.Event
	}{
		"a vote less":       {"approves with 2 of 3", func(events []ledger.Event) []ledger.Event { return slices.Delete(events, 1, 2) }},
		"twice by one":      {"approves with 2 of 3", by(2, "ana")},
		"twice, the last":   {"approves with 2 of 3", by(3, "BEN")},
		"not named":         {`"eve" may not cast`, by(1, "eve")},
		"not named, last":   {`"eve" may not cast`, by(3, "eve")},
		"the requester":     {`"bot" may not cast`, by(3, "bot")},
		"the requester, id": {"may not cast", by(2, payment.AgentID("bot"))},
	} {
		bent := slices.Clone(events)
		bent = tt.bend(bent)
		var prev payment.Hash
		for i := range bent { // whole again, as somebody would make it
			bent[i].Seq, bent[i].Prev = int64(i+1), prev
			bent[i].Hash = bent[i].Sum()
			prev = bent[i].Hash
		}
		if err := ledger.VerifyChain(bent); err != nil {
			t.Fatalf("%s: the chain is not whole: %v", name, err)
		}
		if _, err := ledger.Replay(bent); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
