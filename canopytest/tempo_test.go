package canopytest_test

import (
	"context"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

var payee, memo1 = canopytest.Address("payee"), [32]byte{1, 2, 3}

// send broadcasts and fails the test where the pool refuses.
func (w *world) send(x *tempoTx) string {
	w.Helper()
	hash, err := w.chain.Broadcast(w.Context(), w.wallet.raw(x))
	if err != nil {
		w.Fatal(err)
	}
	return hash
}

// landed reports whether a transaction is in a block, and how it went there.
func (w *world) landed(hash string) (found, ok bool) {
	w.Helper()
	found, ok, _, err := w.chain.Receipt(w.Context(), hash)
	if err != nil {
		w.Fatal(err)
	}
	return found, ok
}

func (w *world) memoTx(amount uint64, memo [32]byte) *tempoTx {
	return newTempoTx(w.chain, memoCall(w.chain.Dollar().Address, payee, amount, memo))
}

// A payment on a lane: what moved, what it cost, and what the chain tells.
func TestTempoLane(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	from, dollar := w.wallet.Address(), w.chain.Dollar()
	if dollar.Symbol != "pathUSD" || !w.chain.IsTempo() {
		t.Fatalf("the dollar is %s", dollar)
	}
	fees := []uint64{288_263 + 247_212, 43_463} // gas: a new lane and payee, then neither
	var hashes []string
	for i, gas := range fees {
		hash := w.send(w.memoTx(10_000, [32]byte{byte(i)}).on(big.NewInt(7), uint64(i)))
		if found, ok := w.landed(hash); !found || !ok {
			t.Fatalf("%d: %v %v", i, found, ok)
		}
		hashes = append(hashes, hash)
		u := w.chain.TempoUses()[i]
		want := (gas*21_000_000_000 + 999_999_999_999) / 1_000_000_000_000 // base fee 20 and tip 1 gwei
		if u.GasUsed != gas || u.Fee != payment.UnitsOf(want) || u.Failed {
			t.Errorf("%d: %+v, want a fee of %d", i, u, want)
		}
	}
	w.chain.AssertTransfers(t, canopytest.Move{From: from, To: payee, Amount: payment.Cent}, canopytest.Move{From: from, To: payee, Amount: payment.Cent})
	if fees := w.chain.Fees(from); fees != 11_245+913 || w.chain.Spent(from) != 2*payment.Cent+fees {
		t.Errorf("fees %v, spent %v", fees, w.chain.Spent(from))
	}
	if n := w.chain.LaneNonce(from, [32]byte{31: 7}); n != 2 {
		t.Errorf("lane nonce %d", n)
	}
	if m := w.chain.Memos(from, [32]byte{1}); len(m) != 1 || m[0].TxHash != hashes[1] {
		t.Errorf("by memo: %v", m)
	}

	ctx := t.Context()
	at, _ := w.chain.Latest(ctx)
	lane := func(key byte, nonce uint64) payment.Slot {
		return payment.Slot{Kind: payment.SlotLane, Chain: w.chain.ID(), From: from, NonceID: [32]byte{31: key}, Nonce: nonce}
	}
	used, err := w.chain.Used(ctx, []payment.Slot{lane(7, 0), lane(7, 1), lane(7, 2), lane(8, 0)}, at)
	if err != nil || used[0] != true || used[1] != true || used[2] || used[3] {
		t.Errorf("used %v, %v", used, err)
	}
	uses, err := w.chain.Uses(ctx, dollar, from, 0, at)
	if err != nil || len(uses) != 2 || uses[0].Slot != lane(7, 0) || uses[1].Slot != lane(7, 1) || uses[0].Fee != payment.UnitsOf(11_245) ||
		len(uses[0].Moved) != 1 || uses[0].Moved[0] != (payment.Recipient{Address: payee, Amount: payment.UnitsOf(10_000)}) {
		t.Errorf("uses %+v, %v", uses, err)
	}
	early := at
	early.Number = uses[0].Block
	if used, _ := w.chain.Used(ctx, []payment.Slot{lane(7, 0), lane(7, 1)}, early); !used[0] || used[1] {
		t.Errorf("used at the first block: %v", used)
	}
	if ok, err := w.chain.Confirm(ctx, uses[1]); !ok || err != nil {
		t.Errorf("confirm: %v %v", ok, err)
	}
	uses[1].Fee = payment.Units{}
	if ok, _ := w.chain.Confirm(ctx, uses[1]); ok {
		t.Error("a use with another fee is confirmed")
	}
}

// Of all that is signed into one place of a lane at most one lands, and what
// leaves a gap never does.
func TestTempoLaneOnce(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	a, b := w.memoTx(1, memo1), w.memoTx(2, memo1)
	b.tip = 2_000_000_000
	ha, hb := w.send(a), w.send(b)
	gap := w.send(w.memoTx(3, memo1).on(big.NewInt(7), 2))
	next := w.send(w.memoTx(4, memo1).on(big.NewInt(7), 1)) // behind those that wait
	w.chain.Mine()
	for name, tc := range map[string]struct {
		hash string
		want bool
	}{"the one": {ha, false}, "the better paid one": {hb, true}, "one after a gap": {gap, false}, "the next": {next, true}} {
		if found, ok := w.landed(tc.hash); found != tc.want || ok != tc.want {
			t.Errorf("%s: found %v, ok %v", name, found, ok)
		}
	}
	if again := w.send(w.memoTx(3, memo1).on(big.NewInt(7), 2)); again != gap {
		t.Errorf("another hash %s", again)
	}
	w.chain.Mine()
	if n := len(w.chain.TempoUses()); n != 3 { // sent again, in its turn
		t.Errorf("%d landed", n)
	}
	if pending := w.chain.Pending(); len(pending) != 0 {
		t.Errorf("waiting: %v", pending)
	}
}

// The pool's rules: nothing is broadcast, and the lane stays as it is.
func TestTempoPool(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(*tempoTx)
		want error
	}{
		{"4 s left", func(x *tempoTx) { x.before = uint64(start.Unix() + 4) }, nil},
		{"3 s left", func(x *tempoTx) { x.before = uint64(start.Unix() + 3) }, canopytest.ErrValidBefore},
		{"none left", func(x *tempoTx) { x.before = uint64(start.Unix()) }, canopytest.ErrValidBefore},
		{"no end", func(x *tempoTx) { x.before = 0 }, nil},
		{"another chain", func(x *tempoTx) { x.chain = 4217 }, canopytest.ErrOtherChain},
		{"a price below the base fee", func(x *tempoTx) { x.maxFee = 19_999_999_999 }, canopytest.ErrFeePrice},
		{"the base fee", func(x *tempoTx) { x.maxFee, x.tip = 20_000_000_000, 0 }, nil},
		{"more gas than can be paid", func(x *tempoTx) { x.gas, x.maxFee = 1e9, 101_000_000_000 }, canopytest.ErrFeeBalance},
		{"a fee in no dollar", func(x *tempoTx) { x.token = payee[:] }, canopytest.ErrFeeToken},
		{"a fee in the token by default", func(x *tempoTx) { x.token = nil }, nil},
		{"nobody pays", func(x *tempoTx) { x.sponsored = true }, canopytest.ErrNoSponsor},
		{"on its way to a sponsor", func(x *tempoTx) { x.sponsored, x.envelope = true, 0x78 }, canopytest.ErrNoSponsor},
	} {
		w := newTempo(t, canopytest.Instant)
		x := w.memoTx(10_000, memo1)
		tc.edit(x)
		hash, err := w.chain.Broadcast(t.Context(), w.wallet.raw(x))
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if found, _ := w.landed(hash); found != (tc.want == nil) || (w.chain.Spent(w.wallet.Address()) > 0) != found {
			t.Errorf("%s: landed %v", tc.name, found)
		}
	}
}

// The same bytes are one transaction, waiting or mined.
func TestTempoSameBytes(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	raw := w.wallet.raw(w.memoTx(10_000, memo1))
	var hashes []string
	for range 2 {
		hash, err := w.chain.Broadcast(t.Context(), raw)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	w.chain.Mine()
	hash, err := w.chain.Broadcast(t.Context(), raw)
	w.chain.Mine()
	if err != nil || hash != hashes[0] || hash != hashes[1] || len(w.chain.TempoUses()) != 1 {
		t.Errorf("%v %s, %v", hashes, hash, err)
	}
	w.clock.Advance(time.Hour)
	if _, err := w.chain.Broadcast(t.Context(), raw); !errors.Is(err, canopytest.ErrValidBefore) {
		t.Errorf("after its end: %v", err)
	}
}

// A window is looked at against the block: what waits past its end is gone, and
// its place on the lane is free.
func TestTempoWindow(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	late := w.send(w.memoTx(1, memo1))
	w.clock.Advance(25 * time.Second)
	w.chain.Mine()
	if found, _ := w.landed(late); found || w.chain.LaneNonce(w.wallet.Address(), [32]byte{31: 7}) != 0 {
		t.Error("landed at its end")
	}
	early := w.memoTx(2, memo1)
	early.after = uint64(w.clock.Now().Unix() + 5)
	hash := w.send(early)
	w.clock.Advance(4 * time.Second)
	w.chain.Mine()
	if found, _ := w.landed(hash); found {
		t.Error("landed before its beginning")
	}
	w.clock.Advance(time.Second)
	w.chain.Mine()
	if found, ok := w.landed(hash); !found || !ok {
		t.Error("did not land")
	}
}

// The expiring nonce: 30 seconds, once, and only by the rules.
func TestTempoExpiring(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) uint64 { return uint64(start.Add(d).Unix()) }
	for _, tc := range []struct {
		name string
		edit func(*tempoTx)
		want bool
	}{
		{"25 s", func(*tempoTx) {}, true},
		{"30 s", func(x *tempoTx) { x.before = in(30 * time.Second) }, true},
		{"60 s", func(x *tempoTx) { x.before = in(time.Minute) }, false},
		{"no end", func(x *tempoTx) { x.before = 0 }, false},
		{"nonce 1", func(x *tempoTx) { x.nonce = 1 }, false},
	} {
		w := newTempo(t, canopytest.Instant)
		x := w.memoTx(10_000, memo1).expiring()
		tc.edit(x)
		if found, _ := w.landed(w.send(x)); found != tc.want {
			t.Errorf("%s: landed %v", tc.name, found)
		}
	}

	w := newTempo(t, canopytest.Instant)
	first := w.send(w.memoTx(10_000, memo1).expiring())
	w.send(w.memoTx(10_000, [32]byte{9}).expiring()) // another memo, another transaction
	w.send(w.memoTx(10_000, memo1).expiring())
	uses := w.chain.TempoUses()
	if len(uses) != 2 || uses[0].TxHash != first || uses[1].GasUsed != 51_263 {
		t.Errorf("%d landed: %+v", len(uses), uses)
	}
	at, _ := w.chain.Latest(t.Context())
	told, err := w.chain.Uses(t.Context(), w.chain.Dollar(), w.wallet.Address(), 0, at)
	want := payment.Slot{Kind: payment.SlotExpiring, Chain: w.chain.ID(), From: w.wallet.Address(), NonceID: memo1}
	if err != nil || len(told) != 2 || told[0].Slot != want {
		t.Errorf("uses %+v, %v", told, err)
	}
	if _, err := w.chain.Used(t.Context(), []payment.Slot{want}, at); err == nil {
		t.Error("an expiring slot is decided by its transfers alone")
	}
}

// Before T1 the expiring nonce is a lane like any other.
func TestTempoT0(t *testing.T) {
	t.Parallel()
	clock := canopytest.NewStillClock(start)
	w := &world{T: t, clock: clock, wallet: newWallet(), chain: canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: clock, TempoRules: canopytest.TempoRules{T0: true, BaseFee: 1}})}
	w.chain.Fund(w.wallet.Address(), payment.Dollar)
	a := w.send(w.memoTx(1, memo1).expiring())
	b := w.send(w.memoTx(2, memo1).expiring())
	if one, _ := w.landed(a); !one {
		t.Error("the first did not land")
	}
	if two, _ := w.landed(b); two || w.chain.LaneNonce(w.wallet.Address(), [32]byte(maxKey.Bytes())) != 1 {
		t.Error("the second landed")
	}
	if u := w.chain.TempoUses()[0]; u.GasUsed != 60_363+17_112 || u.Fee != payment.UnitsOf(78) { // at 1 gwei and 1
		t.Errorf("%+v", u)
	}
}

// A transaction that fails uses its lane up, costs its fee and moves nothing.
func TestTempoReverts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(*world, *tempoTx)
		want error
	}{
		{"more than there is", func(w *world, x *tempoTx) {
			x.calls = []rlpCall{memoCall(w.chain.Dollar().Address, payee, 200_000_000, memo1)}
		}, canopytest.ErrBalance},
		{"all that there is, and a fee", func(w *world, x *tempoTx) {
			x.calls = []rlpCall{memoCall(w.chain.Dollar().Address, payee, 100_000_000, memo1)}
		}, canopytest.ErrBalance},
		{"the second of two calls", func(w *world, x *tempoTx) {
			x.calls = append(x.calls, transferCall(w.chain.Dollar().Address, payment.Address{}, 1))
		}, canopytest.ErrRecipient},
		{"too little gas", func(_ *world, x *tempoTx) { x.gas = 300_000 }, canopytest.ErrOutOfGas},
		{"a call of another kind", func(_ *world, x *tempoTx) { x.calls[0].Data = x.calls[0].Data[:99] }, canopytest.ErrCall},
		{"a token that is none", func(_ *world, x *tempoTx) { x.calls[0].To = payee[:] }, canopytest.ErrCall},
	} {
		w := newTempo(t, canopytest.Instant)
		from := w.wallet.Address()
		x := w.memoTx(10_000, memo1)
		tc.edit(w, x)
		hash := w.send(x)
		tx, _ := w.chain.Tx(hash)
		if !errors.Is(tx.Err, tc.want) || tx.Pending {
			t.Errorf("%s: %+v, want %v", tc.name, tx, tc.want)
		}
		w.chain.AssertTransfers(t)
		u := w.chain.TempoUses()[0]
		fee, _ := w.chain.Dollar().Value(u.Fee)
		if !u.Failed || fee == 0 || w.chain.Spent(from) != fee || w.chain.LaneNonce(from, [32]byte{31: 7}) != 1 {
			t.Errorf("%s: %+v, spent %v", tc.name, u, w.chain.Spent(from))
		}
		at, _ := w.chain.Latest(t.Context())
		uses, err := w.chain.Uses(t.Context(), w.chain.Dollar(), from, 0, at)
		if err != nil || len(uses) != 1 || !uses[0].Failed || uses[0].Fee != u.Fee || len(uses[0].Moved) != 0 {
			t.Errorf("%s: uses %+v, %v", tc.name, uses, err)
		}
	}
}

// The amount and the most that the fee can be at the block's price are both
// there, or the transfer fails: to the unit.
func TestTempoBalance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		held uint64
		ok   bool
	}{{35_200, true}, {35_199, false}} { // 10,000, and 1,200,000 gas at 21 gwei; the pool wants 30,000
		clock := canopytest.NewStillClock(start)
		w := &world{T: t, clock: clock, wallet: newWallet(), chain: canopytest.NewChain(canopytest.ChainConfig{ID: payment.TempoTest, Clock: clock})}
		w.chain.Mint(w.chain.Dollar(), w.wallet.Address(), payment.UnitsOf(tc.held))
		if found, ok := w.landed(w.send(w.memoTx(10_000, memo1))); !found || ok != tc.ok {
			t.Errorf("%d held: found %v, ok %v", tc.held, found, ok)
		}
	}
}

// A sponsor pays the fee, and its signature makes another hash.
func TestTempoSponsored(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	sponsor := otherWallet("sponsor")
	w.chain.Fund(sponsor.Address(), payment.Dollar)
	x := w.memoTx(10_000, memo1).expiring()
	hash, err := w.chain.Broadcast(t.Context(), w.wallet.sponsoredRaw(x, sponsor))
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := w.landed(hash); !found || !ok {
		t.Fatal("did not land")
	}
	w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
	if fee := w.chain.Fees(sponsor.Address()); fee == 0 || w.chain.Spent(sponsor.Address()) != fee {
		t.Errorf("the sponsor paid %v", fee)
	}
	at, _ := w.chain.Latest(t.Context())
	uses, _ := w.chain.Uses(t.Context(), w.chain.Dollar(), w.wallet.Address(), 0, at)
	if len(uses) != 1 || uses[0].Slot.NonceID != memo1 || !uses[0].Fee.IsZero() {
		t.Errorf("uses %+v", uses)
	}
	// Another sponsor of the same bytes: another hash, the same payment.
	again, err := w.chain.Broadcast(t.Context(), w.wallet.sponsoredRaw(x, otherWallet("sponsor")))
	if err != nil || again != hash || len(w.chain.TempoUses()) != 1 {
		t.Errorf("%s, %v", again, err)
	}
	third := otherWallet("third")
	w.chain.Fund(third.Address(), payment.Dollar)
	if other, err := w.chain.Broadcast(t.Context(), w.wallet.sponsoredRaw(x, third)); err != nil || other == hash || len(w.chain.TempoUses()) != 1 {
		t.Errorf("%s, %v", other, err)
	}
}

// Two sponsors of the same bytes, in one block: one payment.
func TestTempoTwoSponsors(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	var hashes []string
	for _, name := range []string{"a", "b"} {
		sponsor := otherWallet(name)
		w.chain.Fund(sponsor.Address(), payment.Dollar)
		hash, err := w.chain.Broadcast(t.Context(), w.wallet.sponsoredRaw(w.memoTx(10_000, memo1).expiring(), sponsor))
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	if len(w.chain.Pending()) != 2 {
		t.Errorf("waiting: %v", w.chain.Pending())
	}
	w.chain.Mine()
	first, _ := w.landed(hashes[0])
	second, _ := w.landed(hashes[1])
	if !first || second {
		t.Errorf("landed: %v, %v", first, second)
	}
	w.chain.AssertSpent(t, w.wallet.Address(), payment.Cent)
}

// What is not final is taken back, with its lane, its replay mark and its fee;
// and lands again.
func TestTempoReorg(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Manual)
	w.chain.Finalize()
	from := w.wallet.Address()
	w.send(w.memoTx(10_000, memo1))
	w.send(w.memoTx(20_000, [32]byte{5}).expiring())
	w.chain.Mine()
	spent := w.chain.Spent(from)
	if len(w.chain.TempoUses()) != 2 {
		t.Fatal("not mined")
	}
	if err := w.chain.Reorg(1); err != nil {
		t.Fatal(err)
	}
	if w.chain.Spent(from) != 0 || w.chain.LaneNonce(from, [32]byte{31: 7}) != 0 || len(w.chain.TempoUses()) != 0 {
		t.Errorf("spent %v after the reorganisation", w.chain.Spent(from))
	}
	w.chain.Mine()
	w.chain.AssertSpent(t, from, spent)
	if err := w.chain.Reorg(1); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(25 * time.Second) // both have ended
	w.chain.Finalize()
	w.chain.AssertSpent(t, from, 0)
}

// Money that leaves by another way shows as a use that no ledger knows; and a
// node's lies are told here as elsewhere.
func TestTempoForeignAndLies(t *testing.T) {
	t.Parallel()
	w := newTempo(t, canopytest.Instant)
	from, dollar := w.wallet.Address(), w.chain.Dollar()
	w.send(w.memoTx(10_000, memo1))
	if err := w.chain.Send(dollar, from, payee, payment.UnitsOf(5)); err != nil {
		t.Fatal(err)
	}
	at, _ := w.chain.Latest(t.Context())
	uses := func() []payment.Settlement {
		out, err := w.chain.Uses(t.Context(), dollar, from, 0, at)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	told := uses()
	if len(told) != 2 || told[1].Slot == told[0].Slot || told[1].Moved[0].Amount != payment.UnitsOf(5) {
		t.Errorf("uses %+v", told)
	}
	lane := []payment.Slot{told[0].Slot}
	for lie, check := range map[canopytest.Lie]func() bool{
		canopytest.LieNoLogs: func() bool { return len(uses()) == 0 },
		canopytest.LieCancel: func() bool { return uses()[0].Canceled },
		canopytest.LiePayee:  func() bool { return uses()[0].Moved[0].Address != payee },
		canopytest.LieDates: func() bool {
			n, err := w.chain.BlockAt(t.Context(), start.Add(-time.Hour), at)
			return err == nil && n == at.Number
		},
		canopytest.LieUnused: func() bool { u, err := w.chain.Used(t.Context(), lane, at); return err == nil && !u[0] },
	} {
		w.chain.SetNodes(1, lie)
		if !check() {
			t.Errorf("lie %d is not told", lie)
		}
	}
	w.chain.SetNodes(2, canopytest.LieDates) // the other's block is lower
	if n, err := w.chain.BlockAt(t.Context(), start.Add(-time.Hour), at); err != nil || n != 0 {
		t.Errorf("block %d, %v", n, err)
	}
	for lie, want := range map[canopytest.Lie]bool{canopytest.NoLie: true, canopytest.LiePayee: false, canopytest.LieNoLogs: false, canopytest.LieUsed: true} {
		w.chain.SetNodes(2, lie)
		for _, s := range uses() {
			if s.ByAll != want {
				t.Errorf("lie %d: shown by all: %v, of %+v", lie, s.ByAll, s)
			}
		}
	}
	w.chain.SetNodes(2, canopytest.LiePayee)
	if ok, err := w.chain.Confirm(t.Context(), told[0]); ok || !errors.Is(err, canopytest.ErrDisagree) {
		t.Errorf("confirm: %v, %v", ok, err)
	}
	w.chain.SetDown(context.DeadlineExceeded)
	if _, err := w.chain.Broadcast(t.Context(), w.wallet.raw(w.memoTx(1, memo1))); err == nil {
		t.Error("a node that is down takes a transaction")
	}
}
