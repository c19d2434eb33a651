package canopytest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

func TestMining(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	auth := func() canopytest.Authorization {
		return w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1), start.Add(time.Hour))
	}
	before := w.chain.Head().Number
	hash := w.chain.Enqueue(auth())
	if tx, ok := w.chain.Tx(hash); !ok || !tx.Pending || len(w.chain.Pending()) != 1 {
		t.Fatalf("broadcast: %+v", tx)
	}
	w.clock.Advance(7 * time.Second) // blocks at 2, 4 and 6 s
	if tx, _ := w.chain.Tx(hash); tx.Pending || !tx.Block.Time.Equal(start.Add(2*time.Second)) {
		t.Errorf("after a block time: %+v", tx)
	}
	if head := w.chain.Head(); head.Number != before+3 || !head.Time.Equal(start.Add(6*time.Second)) {
		t.Errorf("head %+v after three block times", head)
	}
	if tx, err := w.chain.Settle(t.Context(), auth()); err != nil || !tx.Block.Time.Equal(start.Add(7*time.Second)) {
		t.Errorf("instant: %+v, %v", tx, err)
	}

	w.chain.SetMining(canopytest.Manual)
	still := w.chain.Head().Number
	w.clock.Advance(time.Hour)
	if w.chain.Head().Number != still {
		t.Error("a halted chain mined")
	}
	w.chain.SetMining(canopytest.Interval)
	if head := w.chain.Head(); w.clock.Now().Sub(head.Time) >= 2*time.Second {
		t.Errorf("head at %v is behind the clock at %v", head.Time, w.clock.Now())
	}
	w.clock.Advance(-time.Minute)
	last := w.chain.Head()
	if b := w.chain.Mine(); b.Time.Before(last.Time) {
		t.Errorf("block at %v after one at %v", b.Time, last.Time)
	}
	w.clock.Advance(24 * 365 * time.Hour)
	if n := w.chain.Head().Number; n > last.Number+1000 {
		t.Errorf("a year made %d blocks", n-last.Number)
	}
}

// A transaction that waits past its validity reverts when it is mined.
func TestMinedTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.chain.SetMining(canopytest.Manual)
	hash := w.chain.Enqueue(w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1), start.Add(10*time.Second)))
	w.clock.Advance(10 * time.Second)
	w.chain.Mine()
	if tx, _ := w.chain.Tx(hash); !errors.Is(tx.Err, canopytest.ErrExpired) {
		t.Errorf("mined at validBefore: %v, want %v", tx.Err, canopytest.ErrExpired)
	}
}

func TestSettleWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.chain.SetMining(canopytest.Interval)
	a := w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1), start.Add(time.Minute))
	type result struct {
		tx  canopytest.Tx
		err error
	}
	done := make(chan result)
	go func() {
		tx, err := w.chain.Settle(t.Context(), a)
		done <- result{tx, err}
	}()
	for len(w.chain.Pending()) == 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case r := <-done:
		t.Fatalf("settled before a block: %+v", r)
	default:
	}
	w.clock.Advance(2 * time.Second)
	if r := <-done; r.err != nil || r.tx.Pending {
		t.Errorf("settled: %+v", r)
	}

	ctx, cancel := context.WithCancel(t.Context())
	b := w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1), start.Add(time.Minute))
	go func() {
		tx, err := w.chain.Settle(ctx, b)
		done <- result{tx, err}
	}()
	for len(w.chain.Pending()) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if r := <-done; !errors.Is(r.err, context.Canceled) || !r.tx.Pending || r.tx.Hash == "" {
		t.Errorf("cancelled: %+v", r)
	}
	w.chain.Mine()
	w.chain.AssertSpent(t, b.From, 2)
	if _, err := w.chain.Wait(t.Context(), "0x00"); !errors.Is(err, canopytest.ErrUnknownTx) {
		t.Errorf("an unknown hash: %v", err)
	}
}

func TestReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	usdc, payee := w.chain.Dollar(), canopytest.Address("payee")
	w.chain.Finalize()
	kept := w.chain.Final()
	a := w.wallet.authorize(usdc, payee, payment.UnitsOf(1000), start.Add(time.Minute))
	tx, err := w.chain.Settle(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	w.chain.Mine()
	if err := w.chain.Reorg(2); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.chain.Tx(tx.Hash); !got.Pending || w.chain.AuthorizationState(usdc.Address, a.From, a.Nonce) {
		t.Errorf("after the reorganisation: %+v", got)
	}
	w.chain.AssertTransfers(t)
	if b, _ := w.chain.Balance(t.Context(), usdc, payee); !b.IsZero() {
		t.Errorf("payee still has %v", b)
	}
	again := w.chain.Mine()
	if got, _ := w.chain.Tx(tx.Hash); got.Pending || got.Err != nil || again.Hash == tx.Block.Hash || again.Number != tx.Block.Number {
		t.Errorf("mined again: %+v in %+v, before in %+v", got, again, tx.Block)
	}
	w.chain.AssertSpent(t, a.From, 1000)

	// The other fork may hold another authorization of the nonce.
	if err := w.chain.Reorg(1); err != nil {
		t.Fatal(err)
	}
	b := a
	b.Value = payment.UnitsOf(700)
	b = w.wallet.sign(usdc, b)
	if !w.chain.Drop(tx.Hash) || w.chain.Drop(tx.Hash) {
		t.Error("dropping is not once")
	}
	if _, err := w.chain.Settle(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.chain.AssertTransfers(t, canopytest.Move{From: a.From, To: payee, Amount: 700})

	w.chain.Finalize()
	if err := w.chain.Reorg(9); !errors.Is(err, canopytest.ErrFinal) {
		t.Errorf("dropping a final block: %v", err)
	}
	if err := w.chain.Reorg(8); err != nil {
		t.Errorf("dropping all that is not final: %v", err)
	}
	if w.chain.Final().Number < kept.Number {
		t.Error("the final block went back")
	}
}
