package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// The events of a payment that is no proof cannot tell that it ended like one.
func TestReplayProof(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s := ledger.NewMemory(ledger.Options{Now: func() time.Time { return now }})
	for kind, ok := range map[payment.SlotKind]bool{payment.SlotProof: true, payment.SlotEVM: false} {
		terms := payment.Terms{
			Rail: "mpp", Scheme: "tempo/proof", Asset: payment.KnownAssets().On(payment.Tempo)[0], Recipients: []payment.Recipient{{Address: payment.Address{9}}},
			Method: "GET", Origin: "https://a.example", Target: fmt.Sprintf("/%d", kind), Validity: time.Minute,
		}
		e, _, err := s.Reserve(t.Context(), ledger.Request{
			Payment: payment.Payment{ID: payment.NewID(now), Agent: "bot", Terms: terms, Host: "a.example"},
			Verdict: policy.Verdict{Status: payment.Allowed}, Payer: payment.Address{1}, Fingerprint: terms.Hash(),
			Began: now, Now: now, Validity: time.Minute, Slot: payment.Slot{Kind: kind},
		})
		if err != nil {
			t.Fatal(err)
		}
		if e, err = s.Advance(t.Context(), ledger.Change{ID: e.ID, Version: e.Version, To: ledger.InDoubt, By: ledger.ByClient, Now: now}); err != nil {
			t.Fatal(err)
		}
		events, err := s.Events(t.Context(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range []ledger.Actor{ledger.ByClient, ledger.ByRecovery} {
			end := ledger.Event{Payment: e.ID, Seq: e.Version + 1, At: now.Add(time.Minute), From: ledger.InDoubt, To: ledger.Settled, By: by, Data: []byte("{}"), Prev: e.Head}
			end.Hash = end.Sum()
			if got, err := ledger.Replay(append(events[:len(events):len(events)], end)); (err == nil) != ok || ok && got.State != ledger.Settled {
				t.Errorf("%v settled by %s: %s, %v", kind, by, got.State, err)
			}
		}
	}
}
