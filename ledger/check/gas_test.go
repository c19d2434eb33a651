package check_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// carried is a transfer of a cent with a transaction of our own that costs 6 of
// the 10 units of its gas, where a day has perDay.
func (w *world) carried(perDay uint64) ledger.Entry {
	w.Helper()
	w.n++
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc, Amount: payment.UnitsOf(10_000), Validity: time.Minute,
		Recipients: []payment.Recipient{{Address: payment.Address{9}, Amount: payment.UnitsOf(10_000)}},
	}
	p := payment.Payment{ID: payment.NewID(w.now), Agent: "bot", Terms: terms}
	e, _, err := w.store.Reserve(context.Background(), ledger.Request{
		Payment: p, Verdict: w.rules.Evaluate(p, w.now, policy.History{}), Payer: payment.Address{1}, Fingerprint: payment.Hash{byte(w.n)},
		Began: w.now, Now: w.now, Validity: time.Minute, Watched: true, Key: fmt.Sprint("key ", w.n), Slot: payment.Slot{Kind: payment.SlotEVM},
		Gas: &ledger.Gas{Bound: payment.UnitsOf(10), PerDay: payment.UnitsOf(perDay)},
	})
	if err != nil || e.State != ledger.Authorized {
		w.Fatal(e.State, e.Reasons, err)
	}
	return w.change(e, ledger.Change{To: e.State, By: ledger.ByClient, Carry: &payment.Carry{Nonce: 7, GasLimit: 6, MaxFee: 1}})
}

// Transactions that can cost more than their payment's gas, and a day's gas that
// is over what a configuration has, are found.
func TestGas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.carried(30)
	w.carried(30)
	w.now = w.now.Add(24*time.Hour + 59*time.Second)
	w.carried(30)
	w.now = w.now.Add(time.Second)
	w.move(w.move(first, ledger.InDoubt, ledger.ByClient), ledger.Settled, ledger.ByChain)
	per := func(n uint64) check.Options {
		return check.Options{GasPerDay: map[payment.ChainID]payment.Units{payment.Base: payment.UnitsOf(n)}}
	}
	if got := w.run(per(30), nil); len(got) != 0 {
		t.Errorf("30 a day: %v", got)
	}
	if got := w.run(per(29), nil); len(got) != 1 || !strings.Contains(got[0], "I1: with it the gas of a day is 0.00000000000000003") {
		t.Errorf("29 a day: %v", got)
	}
	for name, bend := range map[string]func(*ledger.Entry){
		"cheaper":  func(e *ledger.Entry) { e.Gas = payment.UnitsOf(5) },
		"two":      func(e *ledger.Entry) { e.Carries = append(e.Carries, payment.Carry{Nonce: 8, GasLimit: 5, MaxFee: 1}) },
		"too much": func(e *ledger.Entry) { e.Carries[0].GasLimit, e.Carries[0].MaxFee = 1<<63, 1<<63 },
	} {
		got := w.run(check.Options{NoEvents: true}, func(e *ledger.Entry) {
			if e.ID == first.ID {
				bend(e)
			}
		})
		if len(got) == 0 || !strings.Contains(got[0], "I1: its") {
			t.Errorf("%s: %v", name, got)
		}
	}
	sign := func(slot string, at time.Time) []string {
		return w.run(check.Options{Signatures: []check.Signature{{Slot: slot, At: at}}}, nil)
	}
	if got := sign(payment.CarryKey(first.ID, 1), first.AuthorizedAt); len(got) != 0 {
		t.Errorf("a transaction that was permitted: %v", got)
	}
	if got := sign(payment.CarryKey(first.ID, 2), first.AuthorizedAt); len(got) != 1 || !strings.Contains(got[0], "I3") {
		t.Errorf("one that was not: %v", got)
	}
	if got := sign(payment.CarryKey(first.ID, 1), first.AuthorizedAt.Add(-time.Hour)); len(got) != 1 || !strings.Contains(got[0], "I3") {
		t.Errorf("one before its payment: %v", got)
	}
}
