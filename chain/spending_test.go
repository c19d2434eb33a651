package chain_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

var (
	nonces  = payment.Address{0x4e, 0x4f, 0x4e, 0x43, 0x45}
	fees    = payment.Address{0xfe, 0xec}
	pathUSD = payment.Asset{Chain: payment.TempoTest, Address: token, Symbol: "pathUSD", Decimals: 6, NoAuthorization: true}
	laneKey = [32]byte{31: 7}
)

// sent is a transaction on a Tempo chain.
type sent struct {
	n      byte // its hash, and its place in the block
	block  uint64
	from   payment.Address // account where zero
	key    *[32]byte       // of the nonce; nil for a transaction of another kind than Tempo's
	nonce  uint64
	moves  []move
	fee    uint64 // of the account, 0 for none
	failed bool
	memo   *[32]byte // of the call, where it failed
	t0     bool      // before T1: the expiring nonce is counted as a lane
}

type move struct {
	to     payment.Address
	amount uint64
	memo   *[32]byte
}

func (s sent) hash() string { return fmt.Sprintf("0x%064x", uint64(s.n)+0x2000) }

// mine puts what a real node shows of a transaction into a node.
func (f *fakeNode) mine(s sent) {
	index := int(s.n) * 100
	emit := func(of payment.Address, data []byte, event string, topics ...string) {
		f.log(s.block, index, s.hash(), data, event, topics...)
		f.logs[len(f.logs)-1]["address"] = of.Lower()
		index++
	}
	if s.from.IsZero() {
		s.from = account
	}
	if s.key != nil && *s.key != [32]byte{} && (*s.key != tempo.ExpiringKey || s.t0) && s.from == account {
		emit(nonces, word(s.nonce+1), "NonceIncremented(address,uint256,uint64)", topic(account), "0x"+hex.EncodeToString(s.key[:]))
		f.lanes[hex.EncodeToString(s.key[:])] = s.nonce + 1
	}
	call := tempo.Transfer{Token: token, To: payee, Amount: payment.UnitsOf(1)}
	elsewhere := tempo.Transfer{To: payee, Memo: [32]byte{0xbb}, HasMemo: true} // of another token
	if len(s.moves) > 0 {
		s.memo = s.moves[0].memo
	}
	if s.memo != nil {
		call.HasMemo, call.Memo = true, *s.memo
	}
	if !s.failed {
		for _, m := range s.moves {
			emit(token, word(m.amount), "Transfer(address,address,uint256)", topic(account), topic(m.to))
			if m.memo != nil {
				emit(token, word(m.amount), "TransferWithMemo(address,address,uint256,bytes32)", topic(account), topic(m.to), "0x"+hex.EncodeToString(m.memo[:]))
			}
		}
	}
	if s.fee > 0 {
		emit(token, word(s.fee), "Transfer(address,address,uint256)", topic(account), topic(fees))
	}
	tx := map[string]any{
		"hash": s.hash(), "from": s.from.Lower(), "nonce": q(s.nonce), "blockNumber": q(s.block), "type": "0x2", "to": token.Lower(),
	}
	if s.key != nil {
		key := strings.TrimLeft(hex.EncodeToString(s.key[:]), "0")
		tx["nonceKey"], tx["type"] = "0x"+strings.Repeat("0", max(0, 1-len(key)))+key, "0x76"
		tx["calls"] = []any{
			map[string]any{"to": nil, "input": nil, "data": nil},
			map[string]any{"to": token.Lower(), "input": "0x95777d59"},
			map[string]any{"to": payee.Lower(), "input": "0x" + hex.EncodeToString(elsewhere.Call().Data)},
			map[string]any{"to": token.Lower(), "value": "0x0", "input": "0x" + hex.EncodeToString(call.Call().Data), "data": nil},
		}
	}
	status := "0x1"
	if s.failed {
		status = "0x0"
	}
	f.txs[s.hash()] = tx
	f.ends[s.hash()] = map[string]any{
		"transactionHash": s.hash(), "status": status, "blockNumber": q(s.block), "blockHash": blockHash(s.block),
		"blockTimestamp": blockTime(s.block).Unix(),
	}
}

func newTempoNode(all ...sent) *fakeNode {
	n := newFakeNode()
	n.id = "0xa5bf"
	for _, s := range all {
		n.mine(s)
	}
	return n
}

func connectTempo(t testing.TB, nodes ...*fakeNode) *chain.Chain {
	t.Helper()
	c, _ := connectTo(t, chain.Config{ID: payment.TempoTest}, nodes...)
	return c
}

func laneSlot(key [32]byte, nonce uint64) payment.Slot {
	return payment.Slot{Kind: payment.SlotLane, Chain: payment.TempoTest, From: account, NonceID: key, Nonce: nonce}
}

func expiring(memo [32]byte) payment.Slot {
	return payment.Slot{Kind: payment.SlotExpiring, Chain: payment.TempoTest, From: account, NonceID: memo}
}

func to(a payment.Address, amount uint64) payment.Recipient {
	return payment.Recipient{Address: a, Amount: payment.UnitsOf(amount)}
}

var (
	memo, memo2, protocol = [32]byte{1, 2}, [32]byte{3}, [32]byte{}
	nobody                = payment.Slot{Chain: payment.TempoTest, From: account}
	other                 = payment.Address{19: 0x77}
)

// spent is what is told of each kind of transaction.
var spent = map[string]struct {
	tx      sent
	want    payment.Settlement // slot, what moved, fee, failed
	lookups int                // of the transaction and its receipt
}{
	"a lane": {
		sent{key: &laneKey, nonce: 4, moves: []move{{payee, 70, &memo}}, fee: 3},
		payment.Settlement{Slot: laneSlot(laneKey, 4), Moved: []payment.Recipient{to(payee, 70)}, Fee: payment.UnitsOf(3)}, 0},
	"a lane, failed": {
		sent{key: &laneKey, nonce: 0, fee: 3, failed: true},
		payment.Settlement{Slot: laneSlot(laneKey, 0), Fee: payment.UnitsOf(3), Failed: true}, 1},
	"a lane, failed, sponsored": {
		sent{key: &laneKey, nonce: 0, failed: true},
		payment.Settlement{Slot: laneSlot(laneKey, 0), Failed: true}, 1},
	"a lane, for something else": {
		sent{key: &laneKey, nonce: 9, fee: 3},
		payment.Settlement{Slot: laneSlot(laneKey, 9), Fee: payment.UnitsOf(3)}, 1},
	"a lane, sponsored": {
		sent{key: &laneKey, nonce: 4, moves: []move{{payee, 70, &memo}}},
		payment.Settlement{Slot: laneSlot(laneKey, 4), Moved: []payment.Recipient{to(payee, 70)}}, 0},
	"a lane, split": {
		sent{key: &laneKey, nonce: 1, moves: []move{{payee, 70, &memo}, {other, 5, nil}, {payee, 5, &memo2}}, fee: 1},
		payment.Settlement{Slot: laneSlot(laneKey, 1), Moved: []payment.Recipient{to(payee, 70), to(other, 5), to(payee, 5)}, Fee: payment.UnitsOf(1)}, 0},
	"expiring": {
		sent{key: &tempo.ExpiringKey, moves: []move{{payee, 70, &memo}, {other, 5, &memo2}}},
		payment.Settlement{Slot: expiring(memo), Moved: []payment.Recipient{to(payee, 70), to(other, 5)}}, 1},
	"expiring, with a fee": {
		sent{key: &tempo.ExpiringKey, moves: []move{{payee, 70, &memo}}, fee: 9},
		payment.Settlement{Slot: expiring(memo), Moved: []payment.Recipient{to(payee, 70)}, Fee: payment.UnitsOf(9)}, 1},
	"expiring, without a memo": {
		sent{key: &tempo.ExpiringKey, moves: []move{{payee, 70, nil}}},
		payment.Settlement{Slot: expiring([32]byte{}), Moved: []payment.Recipient{to(payee, 70)}}, 1},
	"expiring, failed": {
		sent{key: &tempo.ExpiringKey, fee: 9, failed: true, memo: &memo2},
		payment.Settlement{Slot: expiring(memo2), Fee: payment.UnitsOf(9), Failed: true}, 2},
	"expiring, before T1": {
		sent{key: &tempo.ExpiringKey, moves: []move{{payee, 70, &memo}, {other, 5, &memo2}}, t0: true},
		payment.Settlement{Slot: expiring(memo), Moved: []payment.Recipient{to(payee, 70), to(other, 5)}}, 1},
	"expiring, before T1, with a fee, failed": {
		sent{key: &tempo.ExpiringKey, nonce: 3, fee: 9, failed: true, memo: &memo2, t0: true},
		payment.Settlement{Slot: expiring(memo2), Fee: payment.UnitsOf(9), Failed: true}, 2},
	"nothing, on a lane": {
		sent{key: &laneKey, nonce: 4, moves: []move{{payee, 0, nil}}},
		payment.Settlement{Slot: laneSlot(laneKey, 4), Moved: []payment.Recipient{to(payee, 0)}}, 0},
	"nothing, by the account's own nonce": {
		sent{nonce: 3, moves: []move{{payee, 0, nil}}},
		payment.Settlement{Slot: laneSlot(protocol, 3), Moved: []payment.Recipient{to(payee, 0)}}, 1},
	"an allowance, for something and nothing": {
		sent{from: other, moves: []move{{payee, 0, nil}, {other, 70, nil}, {payee, 0, nil}}},
		payment.Settlement{Slot: nobody, Moved: []payment.Recipient{to(other, 70)}}, 1},
	"somebody else's fee, and nothing": {
		sent{from: other, key: &laneKey, moves: []move{{payee, 0, nil}}, fee: 8},
		payment.Settlement{Slot: nobody, Fee: payment.UnitsOf(8)}, 1},
	"the account's own nonce": {
		sent{key: &protocol, nonce: 12, moves: []move{{payee, 70, nil}}, fee: 2},
		payment.Settlement{Slot: laneSlot(protocol, 12), Moved: []payment.Recipient{to(payee, 70)}, Fee: payment.UnitsOf(2)}, 1},
	"the account's own nonce, failed": {
		sent{key: &protocol, nonce: 12, fee: 2, failed: true},
		payment.Settlement{Slot: laneSlot(protocol, 12), Fee: payment.UnitsOf(2), Failed: true}, 2},
	"a transaction of another kind": {
		sent{nonce: 3, moves: []move{{payee, 70, nil}}, fee: 2},
		payment.Settlement{Slot: laneSlot(protocol, 3), Moved: []payment.Recipient{to(payee, 70)}, Fee: payment.UnitsOf(2)}, 1},
	"an allowance": {
		sent{from: other, key: &laneKey, nonce: 4, moves: []move{{other, 70, &memo}}},
		payment.Settlement{Slot: nobody, Moved: []payment.Recipient{to(other, 70)}}, 1},
	"an allowance, expiring": {
		sent{from: other, key: &tempo.ExpiringKey, moves: []move{{payee, 70, &memo}}},
		payment.Settlement{Slot: nobody, Moved: []payment.Recipient{to(payee, 70)}}, 1},
	"somebody else's fee": {
		sent{from: other, key: &laneKey, nonce: 4, fee: 8},
		payment.Settlement{Slot: nobody, Fee: payment.UnitsOf(8)}, 2},
}

func TestSpendings(t *testing.T) {
	t.Parallel()
	for name, tt := range spent {
		tt.tx.n, tt.tx.block = 1, 900
		want := tt.want
		want.TxHash, want.Block, want.Time, want.Token = tt.tx.hash(), 900, blockTime(900), token
		a, b := newTempoNode(tt.tx), newTempoNode(tt.tx)
		c := connectTempo(t, a, b)
		uses, err := c.Uses(t.Context(), pathUSD, account, 0, final)
		if err != nil || len(uses) != 1 || !uses[0].Equal(want) || !uses[0].ByAll {
			t.Errorf("%s:\n%+v, %v, want\n%+v", name, uses, err, want)
			continue
		}
		if got := a.called("eth_getTransactionByHash") + a.called("eth_getTransactionReceipt"); got != tt.lookups {
			t.Errorf("%s: %d lookups, want %d", name, got, tt.lookups)
		}
		if ok, err := c.Confirm(t.Context(), uses[0]); err != nil || !ok {
			t.Errorf("%s: confirmed %v, %v", name, ok, err)
		}
		for what, forge := range map[string]func(*payment.Settlement){
			"fee":    func(s *payment.Settlement) { s.Fee = payment.UnitsOf(55) },
			"failed": func(s *payment.Settlement) { s.Failed = !s.Failed },
			"moved":  func(s *payment.Settlement) { s.Moved = append(slices.Clone(s.Moved), to(other, 1)) },
			"slot":   func(s *payment.Settlement) { s.Slot.Nonce++ },
		} {
			forged := uses[0]
			forge(&forged)
			if ok, err := c.Confirm(t.Context(), forged); err != nil || ok {
				t.Errorf("%s: confirms another %s: %v, %v", name, what, ok, err)
			}
		}
		// One that leaves it out hides nothing, and confirms nothing.
		c = connectTempo(t, newTempoNode(), b)
		if uses, err := c.Uses(t.Context(), pathUSD, account, 0, final); err != nil || len(uses) != 1 || !uses[0].Equal(want) || uses[0].ByAll {
			t.Errorf("%s, of one: %+v, %v", name, uses, err)
		}
		if ok, err := c.Confirm(t.Context(), want); ok || !errors.Is(err, chain.ErrDisagree) {
			t.Errorf("%s, of one: confirmed %v, %v", name, ok, err)
		}
	}
}

// TestNothingSpent tells of no use where somebody else had the token tell that
// nothing left the account, and where nothing did on the expiring nonce.
func TestNothingSpent(t *testing.T) {
	t.Parallel()
	for name, tx := range map[string]sent{
		"an allowance":                 {from: other, moves: []move{{payee, 0, nil}}},
		"an allowance, twice":          {from: other, key: &laneKey, moves: []move{{payee, 0, &memo}, {other, 0, nil}}},
		"a fee":                        {from: other, moves: []move{{fees, 0, nil}}},
		"before T1, failed, sponsored": {key: &tempo.ExpiringKey, failed: true, memo: &memo, t0: true},
	} {
		tx.n, tx.block = 1, 900
		c := connectTempo(t, newTempoNode(tx), newTempoNode(tx))
		if uses, err := c.Uses(t.Context(), pathUSD, account, 0, final); err != nil || len(uses) != 0 {
			t.Errorf("%s: %+v, %v", name, uses, err)
		}
	}
	// Beside an authorization of ours, only that is a use.
	n := newTempoNode(sent{n: 1, block: 900, from: other, moves: []move{{other, 0, nil}}})
	n.settle(1, 900, payee, 70)
	for i, l := range n.logs {
		l["transactionHash"], l["logIndex"] = sent{n: 1}.hash(), q(uint64([]int{2, 0, 1}[i]))
	}
	uses, err := connectTempo(t, n).Uses(t.Context(), pathUSD, account, 0, final)
	if err != nil || len(uses) != 1 || uses[0].Slot.Kind != payment.SlotEVM || len(uses[0].Moved) != 1 || uses[0].Moved[0] != to(payee, 70) {
		t.Errorf("beside an authorization: %+v, %v", uses, err)
	}
}

// TestSpendingsInOrder tells all of them from one another, in the chain's order.
func TestSpendingsInOrder(t *testing.T) {
	t.Parallel()
	n := newTempoNode()
	var names []string
	for name := range spent {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		tx := spent[name].tx
		tx.n, tx.block = byte(i), 900+uint64(i/4)
		n.mine(tx)
	}
	slices.Reverse(n.logs)
	uses, err := connectTempo(t, n).Uses(t.Context(), pathUSD, account, 0, final)
	if err != nil || len(uses) != len(names) {
		t.Fatalf("%d uses, %v", len(uses), err)
	}
	for i, name := range names {
		want, tx := spent[name].want, sent{n: byte(i)}
		want.TxHash, want.Block, want.Token = tx.hash(), 900+uint64(i/4), token
		if !uses[i].Equal(want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, uses[i], want)
		}
	}
}

// TestAuthorizationsOnTempo tells what an authorization moved from what the
// transaction's own sender did.
func TestAuthorizationsOnTempo(t *testing.T) {
	t.Parallel()
	n := newTempoNode(sent{n: 1, block: 900, key: &laneKey, nonce: 5, moves: []move{{other, 4, nil}}, fee: 2})
	n.settle(1, 900, payee, 70)
	n.cancel(2, 900)
	for i, l := range n.logs {
		l["transactionHash"], l["logIndex"] = sent{n: 1}.hash(), q(uint64([]int{0, 7, 8, 1, 2, 3}[i]))
	}
	uses, err := connectTempo(t, n).Uses(t.Context(), pathUSD, account, 0, final)
	if err != nil || len(uses) != 3 {
		t.Fatalf("%+v, %v", uses, err)
	}
	used, canceled, own := uses[0], uses[1], uses[2]
	if used.Slot.Kind != payment.SlotEVM || used.Slot.NonceID != nonceOf(1) || len(used.Moved) != 1 || used.Moved[0] != to(payee, 70) {
		t.Errorf("use %+v", used)
	}
	if !canceled.Canceled || canceled.Slot.NonceID != nonceOf(2) || len(canceled.Moved) != 0 {
		t.Errorf("cancellation %+v", canceled)
	}
	if own.Slot != laneSlot(laneKey, 5) || len(own.Moved) != 1 || own.Moved[0] != to(other, 4) || own.Fee != payment.UnitsOf(2) {
		t.Errorf("own %+v", own)
	}
}

// TestForgedSpendings refuses what a node shows of a transaction where it cannot
// be: it is an error, and never that nothing was spent.
func TestForgedSpendings(t *testing.T) {
	t.Parallel()
	failed := sent{n: 1, block: 900, key: &tempo.ExpiringKey, fee: 9, failed: true}
	lane := sent{n: 1, block: 900, key: &laneKey, nonce: 4, moves: []move{{payee, 70, &memo}}, fee: 3}
	tx := func(name string, v any) func(*fakeNode) { return func(n *fakeNode) { n.txs[failed.hash()][name] = v } }
	end := func(name string, v any) func(*fakeNode) { return func(n *fakeNode) { n.ends[failed.hash()][name] = v } }
	topics := func(i int, topics ...string) func(*fakeNode) {
		return func(n *fakeNode) {
			n.logs[i]["topics"] = append(n.logs[i]["topics"].([]string)[:2:2], topics...)
		}
	}
	data := func(i int, b []byte) func(*fakeNode) {
		return func(n *fakeNode) { n.logs[i]["data"] = "0x" + hex.EncodeToString(b) }
	}
	for name, tt := range map[string]struct {
		tx   sent
		bend func(*fakeNode)
	}{
		"no transaction":         {failed, func(n *fakeNode) { n.txs = nil }},
		"another transaction":    {failed, tx("hash", "0x"+strings.Repeat("11", 32))},
		"another block":          {failed, tx("blockNumber", "0x385")},
		"no block":               {failed, tx("blockNumber", nil)},
		"a nonce key too wide":   {failed, tx("nonceKey", "0x1"+strings.Repeat("00", 32))},
		"a nonce key, signed":    {failed, tx("nonceKey", "0x-1")},
		"a nonce key, padded":    {failed, tx("nonceKey", "0x01")},
		"a nonce of 65 bits":     {failed, tx("nonce", "0x10000000000000000")},
		"no receipt":             {failed, func(n *fakeNode) { n.ends = nil }},
		"another receipt":        {failed, end("transactionHash", "0x"+strings.Repeat("11", 32))},
		"a receipt elsewhere":    {failed, end("blockNumber", "0x385")},
		"a status of two":        {failed, end("status", "0x2")},
		"no status":              {failed, end("status", nil)},
		"a lane's nonce of zero": {lane, data(0, word(0))},
		"a lane's wide nonce":    {lane, data(0, slices.Repeat([]byte{1}, 32))},
		"a lane's short nonce":   {lane, data(0, []byte{1})},
		"no lane":                {lane, topics(0)},
		"no payee":               {lane, topics(1)},
		"a padded payee":         {lane, topics(1, "0x"+strings.Repeat("ff", 32))},
		"no amount":              {lane, data(1, nil)},
		"a fee beyond counting": {lane, func(n *fakeNode) {
			data(3, slices.Repeat([]byte{0xff}, 32))(n)
			more := map[string]any{}
			for k, v := range n.logs[3] {
				more[k] = v
			}
			n.logs = append(n.logs, more)
		}},
		"another contract": {lane, func(n *fakeNode) {
			n.logs[0]["address"] = other.Lower()
			n.bend = func(c rpc) (reply, bool) { return reply{result: n.logs}, c.Method == "eth_getLogs" }
		}},
	} {
		n := newTempoNode(tt.tx)
		tt.bend(n)
		if uses, err := connectTempo(t, n).Uses(t.Context(), pathUSD, account, 0, final); err == nil || !errors.Is(err, chain.ErrAnswer) {
			t.Errorf("%s: %+v, %v", name, uses, err)
		}
	}
	// A lane that its log hides is told by the transaction.
	n := newTempoNode(lane)
	n.logs = n.logs[1:]
	uses, err := connectTempo(t, n).Uses(t.Context(), pathUSD, account, 0, final)
	if err != nil || len(uses) != 1 || uses[0].Slot != laneSlot(laneKey, 4) {
		t.Errorf("no log of the nonce: %+v, %v", uses, err)
	}
	// Nor is a transfer of ours what another contract logs as a nonce, or a nonce
	// what the token logs.
	n = newTempoNode(lane)
	n.logs[0]["address"] = token.Lower()
	uses, err = connectTempo(t, n).Uses(t.Context(), pathUSD, account, 0, final)
	if err != nil || len(uses) != 1 || n.called("eth_getTransactionByHash") != 1 {
		t.Errorf("the token logs a nonce: %+v, %v", uses, err)
	}
}

// TestLanes reads the counters of lanes, each once, beside authorizations.
func TestLanes(t *testing.T) {
	t.Parallel()
	a, b := newTempoNode(), newTempoNode()
	for _, n := range []*fakeNode{a, b} {
		n.lanes[hex.EncodeToString(laneKey[:])] = 3
		n.nonce = 1
		n.used[nonceOf(2)] = true
	}
	c := connectTempo(t, a, b)
	auth := slot(2)
	auth.Chain = payment.TempoTest
	slots := []payment.Slot{laneSlot(laneKey, 0), auth, laneSlot(laneKey, 2), laneSlot(laneKey, 3), laneSlot(memo, 0), laneSlot(protocol, 0), laneSlot(protocol, 1), laneSlot(laneKey, 1<<63)}
	used, err := c.Used(t.Context(), slots, final)
	if err != nil || !slices.Equal(used, []bool{true, true, true, false, false, true, false, false}) {
		t.Errorf("used %v, %v", used, err)
	}
	if a.called("eth_call") != 3 || a.called("eth_getTransactionCount") != 1 {
		t.Errorf("%d calls and %d counts", a.called("eth_call"), a.called("eth_getTransactionCount"))
	}
	b.lanes[hex.EncodeToString(laneKey[:])] = 2
	if used, err := c.Used(t.Context(), []payment.Slot{laneSlot(laneKey, 2)}, final); !errors.Is(err, chain.ErrDisagree) {
		t.Errorf("used %v, %v", used, err)
	}
	for _, answer := range []any{"0x", "0x01", "0x" + strings.Repeat("01", 32), nil, 1} {
		n := newTempoNode()
		n.bend = func(c rpc) (reply, bool) { return reply{result: answer}, c.Method == "eth_call" }
		if used, err := connectTempo(t, n).Used(t.Context(), slots[:1], final); !errors.Is(err, chain.ErrAnswer) {
			t.Errorf("a counter of %v: %v, %v", answer, used, err)
		}
	}
	// What no counter tells, and what is another chain's.
	elsewhere, base := laneSlot(laneKey, 0), laneSlot(laneKey, 0)
	elsewhere.Chain, base.Chain = payment.Tempo, payment.Base
	for _, s := range []payment.Slot{expiring(memo), laneSlot(tempo.ExpiringKey, 0), elsewhere, nobody, {Kind: payment.SlotProof, Chain: payment.TempoTest, Payment: "x"}} {
		if used, err := c.Used(t.Context(), []payment.Slot{s}, final); err == nil {
			t.Errorf("%s: used %v", s, used)
		}
		if ok, err := c.Confirm(t.Context(), payment.Settlement{Slot: s}); err == nil {
			t.Errorf("%s: confirmed %v of no token", s, ok)
		}
	}
	evm, _ := connect(t, newFakeNode())
	if used, err := evm.Used(t.Context(), []payment.Slot{base}, final); err == nil {
		t.Errorf("a lane on an EVM chain: %v", used)
	}
}

// TestConfiguredTempo has a chain count as one of Tempo by its configuration.
func TestConfiguredTempo(t *testing.T) {
	t.Parallel()
	n := newTempoNode()
	n.id = "0x7a56"
	own := laneSlot(laneKey, 0)
	own.Chain = payment.EVMChain(0x7a56)
	plain, _ := connectTo(t, chain.Config{ID: own.Chain}, n)
	if used, err := plain.Used(t.Context(), []payment.Slot{own}, final); err == nil {
		t.Errorf("not of Tempo: used %v", used)
	}
	said, _ := connectTo(t, chain.Config{ID: own.Chain, Tempo: true}, n)
	if used, err := said.Used(t.Context(), []payment.Slot{own}, final); err != nil || used[0] {
		t.Errorf("of Tempo: used %v, %v", used, err)
	}
}

// TestTempoTraffic tells what reconciling 1,000 payments on lanes takes with two
// nodes.
func TestTempoTraffic(t *testing.T) {
	t.Parallel()
	a, b := newTempoNode(), newTempoNode()
	var slots []payment.Slot
	for i := range 1000 {
		key := [32]byte{30: 1, 31: byte(i % 16)}
		tx := sent{n: byte(i), block: uint64(i), key: &key, nonce: uint64(i / 16), moves: []move{{payee, 70, &memo}}, fee: 3}
		slots = append(slots, laneSlot(key, tx.nonce))
		for _, n := range []*fakeNode{a, b} {
			from := len(n.logs)
			n.mine(tx)
			for _, l := range n.logs[from:] {
				l["transactionHash"] = fmt.Sprintf("0x%064x", i+1)
			}
		}
	}
	c := connectTempo(t, a, b)
	used, err := c.Used(t.Context(), slots, final)
	if err != nil || slices.Contains(used, false) {
		t.Fatal(err)
	}
	uses, err := c.Uses(t.Context(), pathUSD, account, 0, final)
	if err != nil || len(uses) != len(slots) {
		t.Fatalf("%d uses, %v", len(uses), err)
	}
	if c.Traffic() > 15<<18 {
		t.Errorf("%d KiB for 1,000 payments", c.Traffic()>>10)
	}
	t.Logf("%d KiB for 1,000 payments on lanes", c.Traffic()>>10)
}
