package canopytest_test

import (
	"slices"
	"testing"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/payment"
)

// TestNode asks a chain over JSON-RPC, and by itself: the answers are the same.
func TestNode(t *testing.T) {
	t.Parallel()
	own := canopytest.NewChain(canopytest.ChainConfig{})
	from, other := canopytest.Address("from"), [32]byte{9}
	own.Fund(from, payment.Dollar)
	for _, nonce := range [][32]byte{{1}, {2}} {
		if err := own.Cancel(own.Dollar(), from, nonce); err != nil {
			t.Fatal(err)
		}
	}
	own.Finalize()
	read, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{canopytest.NewNode(own).Start(t)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	at, err := read.Finalized(ctx)
	want, _ := own.Finalized(ctx)
	if err != nil || at != want {
		t.Errorf("finalized %+v, %v, want %+v", at, err, want)
	}
	slots := []payment.Slot{}
	for _, nonce := range [][32]byte{{1}, {2}, other} {
		slots = append(slots, payment.Slot{Kind: payment.SlotEVM, Chain: payment.Base, Token: own.Dollar().Address, From: from, NonceID: nonce})
	}
	used, err := read.Used(ctx, slots, at)
	if err != nil || !slices.Equal(used, []bool{true, true, false}) {
		t.Errorf("used %v, %v", used, err)
	}
	uses, err := read.Uses(ctx, own.Dollar(), from, 0, at)
	same, _ := own.Uses(ctx, own.Dollar(), from, 0, at)
	if err != nil || !slices.EqualFunc(uses, same, payment.Settlement.Equal) {
		t.Errorf("uses %+v, %v, want %+v", uses, err, same)
	}
	if held, err := read.Balance(ctx, own.Dollar(), from); err != nil || held != payment.UnitsOf(1_000_000) {
		t.Errorf("balance %v, %v", held, err)
	}
}
