//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// The accounts that anvil's Tempo network gives pathUSD at its beginning.
var devKeys = []string{
	"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	"5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
}

// tempoNodes starts anvil's Tempo network, which makes a block each second, and returns a chain that asks it by
// two names: as if they were two nodes.
func tempoNodes(t *testing.T) *chain.Chain {
	t.Helper()
	cpu := map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH]
	bin := filepath.Join("peers", "node_modules", "@foundry-rs", "anvil-"+runtime.GOOS+"-"+cpu, "bin", "anvil")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	cmd := exec.Command(bin, "--network", "tempo", "--hardfork", "t4", "--block-time", "1", "--chain-id", "42431",
		"--block-base-fee-per-gas", "1", "--slots-in-an-epoch", "1", "--host", "127.0.0.1", "--port", port, "--quiet")
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting anvil: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c, err := chain.New(chain.Config{ID: payment.TempoTest, URLs: []string{"http://127.0.0.1:" + port, "http://localhost:" + port}})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err = c.Latest(t.Context()); err == nil {
			return c
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("anvil does not answer: %v", err)
	return nil
}

// tempoKey signs and sends transactions of one account.
type tempoKey struct {
	chain   *chain.Chain
	key     *ecdsa.PrivateKey
	account payment.Address
}

func newTempoKey(t *testing.T, c *chain.Chain, secret string) tempoKey {
	t.Helper()
	key, err := crypto.HexToECDSA(secret)
	if err != nil {
		t.Fatal(err)
	}
	return tempoKey{c, key, payment.Address(crypto.PubkeyToAddress(key.PublicKey))}
}

// sign completes tx and signs it, for sponsor to pay its fee where there is one.
func (k tempoKey) sign(t *testing.T, tx tempo.Transaction, sponsor *tempoKey) (raw []byte, hash string) {
	t.Helper()
	tx.ChainID, tx.MaxPriorityFeePerGas, tx.MaxFeePerGas = 42431, 1e9, 25e9
	tx.Gas, tx.FeeToken = 1_200_000, pathUSD(t).Address
	if tx.ValidBefore == 0 {
		tx.ValidBefore = uint64(time.Now().Unix()) + 25
	}
	if sponsor != nil {
		tx.FeePayer.Kind = tempo.FeePayerPlaceholder
	}
	by := func(key *ecdsa.PrivateKey, digest [32]byte, with func(*tempo.Transaction, []byte) (tempo.Transaction, error)) {
		sig, err := crypto.Sign(digest[:], key)
		if err == nil {
			tx, err = with(&tx, sig)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	by(k.key, tx.SigningHash(), (*tempo.Transaction).WithSignature)
	if sponsor != nil {
		by(sponsor.key, tx.FeePayerHash(k.account), (*tempo.Transaction).WithFeePayer)
	}
	h, err := tx.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return tx.Encode(), "0x" + common.Bytes2Hex(h[:])
}

// pay sends tx, and returns once it is in a block.
func (k tempoKey) pay(t *testing.T, tx tempo.Transaction, sponsor *tempoKey, want bool) (hash string, raw []byte, at payment.Block) {
	t.Helper()
	raw, want1 := k.sign(t, tx, sponsor)
	hash, err := k.chain.Broadcast(t.Context(), raw)
	if err != nil || hash != want1 {
		t.Fatalf("sent %s, %v; want %s", hash, err, want1)
	}
	for range 100 {
		found, ok, at, err := k.chain.Receipt(t.Context(), hash)
		if err != nil || found && ok != want {
			t.Fatalf("receipt of %s: done %v, %v", hash, ok, err)
		}
		if found {
			return hash, raw, at
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s is in no block", hash)
	return "", nil, payment.Block{}
}

func pathUSD(t *testing.T) payment.Asset {
	t.Helper()
	token, err := payment.ParseAddress("0x20c0000000000000000000000000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	asset, ok := payment.KnownAssets().Lookup(payment.TempoTest, token)
	if !ok {
		t.Fatal("pathUSD is not in the table")
	}
	return asset
}

// TestTempoChain makes every kind of transaction that takes a nonce or money of an account on a real network, and
// finds each told by what it is: with its slot, what it moved and its fee, to the last unit of the balance.
func TestTempoChain(t *testing.T) {
	t.Parallel()
	c := tempoNodes(t)
	ctx, asset := t.Context(), pathUSD(t)
	own, other, sponsor := newTempoKey(t, c, devKeys[0]), newTempoKey(t, c, devKeys[1]), newTempoKey(t, c, devKeys[2])
	payee, third := payment.Address{0x51, 19: 1}, payment.Address{0x51, 19: 2}
	lane, memo, memo2 := [32]byte{30: 1, 31: 9}, [32]byte{1, 31: 1}, [32]byte{1, 31: 2}
	call := func(to payment.Address, amount payment.Units, memo *[32]byte) tempo.Call {
		m := tempo.Transfer{Token: asset.Address, To: to, Amount: amount}
		if memo != nil {
			m.HasMemo, m.Memo = true, *memo
		}
		return m.Call()
	}
	move := func(to payment.Address, units uint64, memo *[32]byte) tempo.Call {
		return call(to, payment.UnitsOf(units), memo)
	}
	tooMuch := func(memo *[32]byte) tempo.Call {
		return call(payee, payment.UnitsFromBytes([32]byte{16: 1}), memo)
	}
	raw := func(data []byte) tempo.Call { return tempo.Call{To: asset.Address, Data: data} }
	laneSlot := func(key [32]byte, nonce uint64) payment.Slot {
		return payment.Slot{Kind: payment.SlotLane, Chain: payment.TempoTest, From: own.account, NonceID: key, Nonce: nonce}
	}
	expiring := func(memo [32]byte) payment.Slot {
		return payment.Slot{Kind: payment.SlotExpiring, Chain: payment.TempoTest, From: own.account, NonceID: memo}
	}
	before, err := c.Balance(ctx, asset, own.account)
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}

	approve := raw(pack("approve(address,uint256)", common.Address(other.account), uint64(1000)))
	take := raw(pack("transferFrom(address,address,uint256)", common.Address(own.account), common.Address(third), uint64(77)))
	steps := []struct {
		name    string
		from    tempoKey
		tx      tempo.Transaction
		sponsor *tempoKey
		slot    payment.Slot // of own
		moved   []payment.Recipient
		fee     bool // own pays one
		failed  bool
	}{
		{"a lane", own, tempo.Transaction{NonceKey: lane, Calls: []tempo.Call{move(payee, 10_000, &memo)}}, nil,
			laneSlot(lane, 0), []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(10_000)}}, true, false},
		{"a lane, failed", own, tempo.Transaction{NonceKey: lane, Nonce: 1, Calls: []tempo.Call{move(payee, 5, nil), tooMuch(&memo)}}, nil,
			laneSlot(lane, 1), nil, true, true},
		{"a lane, split", own, tempo.Transaction{NonceKey: lane, Nonce: 2, Calls: []tempo.Call{move(payee, 5, &memo), move(third, 7, nil), move(payee, 1, &memo2)}}, nil,
			laneSlot(lane, 2), []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(5)}, {Address: third, Amount: payment.UnitsOf(7)}, {Address: payee, Amount: payment.UnitsOf(1)}}, true, false},
		{"a lane, for an allowance", own, tempo.Transaction{NonceKey: lane, Nonce: 3, Calls: []tempo.Call{approve}}, nil,
			laneSlot(lane, 3), nil, true, false},
		{"a lane, sponsored", own, tempo.Transaction{NonceKey: lane, Nonce: 4, Calls: []tempo.Call{move(payee, 9, &memo)}}, &sponsor,
			laneSlot(lane, 4), []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(9)}}, false, false},
		{"a lane, sponsored, failed", own, tempo.Transaction{NonceKey: lane, Nonce: 5, Calls: []tempo.Call{tooMuch(&memo)}}, &sponsor,
			laneSlot(lane, 5), nil, false, true},
		{"expiring", own, tempo.Transaction{NonceKey: tempo.ExpiringKey, Calls: []tempo.Call{move(payee, 20, &memo), move(third, 3, nil)}}, nil,
			expiring(memo), []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(20)}, {Address: third, Amount: payment.UnitsOf(3)}}, true, false},
		{"expiring, sponsored", own, tempo.Transaction{NonceKey: tempo.ExpiringKey, Calls: []tempo.Call{move(payee, 21, &memo2)}}, &sponsor,
			expiring(memo2), []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(21)}}, false, false},
		{"expiring, failed", own, tempo.Transaction{NonceKey: tempo.ExpiringKey, Calls: []tempo.Call{tooMuch(&memo2)}}, nil,
			expiring(memo2), nil, true, true},
		{"the account's own nonce", own, tempo.Transaction{Calls: []tempo.Call{move(payee, 30, nil)}}, nil,
			laneSlot([32]byte{}, 0), []payment.Recipient{{Address: payee, Amount: payment.UnitsOf(30)}}, true, false},
		{"the account's own nonce, failed", own, tempo.Transaction{Nonce: 1, Calls: []tempo.Call{tooMuch(nil)}}, nil,
			laneSlot([32]byte{}, 1), nil, true, true},
		{"an allowance", other, tempo.Transaction{NonceKey: lane, Calls: []tempo.Call{take}}, nil,
			payment.Slot{Chain: payment.TempoTest, From: own.account}, []payment.Recipient{{Address: third, Amount: payment.UnitsOf(77)}}, false, false},
		{"somebody else's fee", other, tempo.Transaction{NonceKey: lane, Nonce: 1, Calls: []tempo.Call{move(third, 1, nil)}}, &own,
			payment.Slot{Chain: payment.TempoTest, From: own.account}, nil, true, false},
	}
	var want []payment.Settlement
	var last payment.Block
	for _, s := range steps {
		hash, bytes, at := s.from.pay(t, s.tx, s.sponsor, !s.failed)
		want = append(want, payment.Settlement{Slot: s.slot, TxHash: hash, Block: at.Number, Time: at.Time, Moved: s.moved, Token: asset.Address, Failed: s.failed})
		last = at
		if again, err := c.Broadcast(ctx, bytes); err != nil || again != hash {
			t.Errorf("%s, sent again: %s, %v", s.name, again, err)
		}
	}

	at := untilFinal(t, c, last)
	uses, err := c.Uses(ctx, asset, own.account, first.Number, at)
	if err != nil || len(uses) != len(want) {
		t.Fatalf("%d uses of %d: %+v, %v", len(uses), len(want), uses, err)
	}
	spent := payment.Units{}
	for i, s := range steps {
		got, paid := uses[i], want[i]
		if s.fee == got.Fee.IsZero() {
			t.Errorf("%s: a fee of %s", s.name, got.Fee)
		}
		paid.Fee = got.Fee
		if !got.Equal(paid) {
			t.Errorf("%s:\n%+v, want\n%+v", s.name, got, paid)
		}
		if ok, err := c.Confirm(ctx, got); err != nil || !ok {
			t.Errorf("%s: confirmed %v, %v", s.name, ok, err)
		}
		for _, m := range got.Moved {
			spent, _ = spent.Add(m.Amount)
		}
		spent, _ = spent.Add(got.Fee)
	}
	after, err := c.Balance(ctx, asset, own.account)
	if left, ok := before.Sub(spent); err != nil || !ok || left != after {
		t.Errorf("%s of %s spent, and %s are left, %v", spent, before, after, err)
	}
	slots := []payment.Slot{laneSlot(lane, 5), laneSlot(lane, 6), laneSlot([32]byte{}, 1), laneSlot([32]byte{}, 2), laneSlot(memo, 0)}
	if used, err := c.Used(ctx, slots, at); err != nil || !slices.Equal(used, []bool{true, false, true, false, false}) {
		t.Errorf("used %v, %v", used, err)
	}
	if used, err := c.Used(ctx, slots[:1], first); err != nil || used[0] {
		t.Errorf("before it was used: %v, %v", used, err)
	}
	if n, err := c.BlockAt(ctx, first.Time, at); err != nil || n > first.Number {
		t.Errorf("block %d at the time of %d, %v", n, first.Number, err)
	}

	// What is late is refused as such, and what cannot be paid for as something else.
	late, _ := own.sign(t, tempo.Transaction{NonceKey: lane, Nonce: 6, ValidBefore: uint64(time.Now().Unix()) - 1, Calls: []tempo.Call{move(payee, 1, nil)}}, nil)
	if _, err := c.Broadcast(ctx, late); !errors.Is(err, chain.ErrExpired) {
		t.Errorf("late: %v", err)
	}
	empty := newTempoKey(t, c, strings.Repeat("17", 32))
	poor, hash := empty.sign(t, tempo.Transaction{NonceKey: lane, Calls: []tempo.Call{move(payee, 1, nil)}}, nil)
	var refused *chain.RPCError
	if _, err := c.Broadcast(ctx, poor); !errors.As(err, &refused) || errors.Is(err, chain.ErrExpired) {
		t.Errorf("poor: %v", err)
	}
	if found, _, _, err := c.Receipt(ctx, hash); err != nil || found {
		t.Errorf("the receipt of what was refused: %v, %v", found, err)
	}
}

// untilFinal waits until b is final.
func untilFinal(t *testing.T, c *chain.Chain, b payment.Block) payment.Block {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		at, err := c.Finalized(ctx)
		if err == nil && at.Number >= b.Number {
			return at
		}
		if ctx.Err() != nil {
			t.Fatalf("block %d is not final: %+v, %v", b.Number, at, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestPackedStates asks a real EVM about 600 authorizations, of which two were cancelled, by the code that is never laid:
// the traffic tells that none was asked about by itself.
func TestPackedStates(t *testing.T) {
	t.Parallel()
	own := NewChain(t)
	payer := own.Payer(t, 10)
	var slots []payment.Slot
	for i := range 600 {
		s := payment.Slot{Kind: payment.SlotEVM, Chain: payment.Base, Token: payment.Address(own.Token), From: payment.Address(payer.Address)}
		rand.Read(s.NonceID[:])
		slots = append(slots, s)
		if i != 3 && i != 599 {
			continue
		}
		digest := own.domain().cancelDigest(payer.Address, s.NonceID)
		sig := payer.sign(t, digest)
		if r, err := own.Send(t.Context(), own.Faucet, pack("cancelAuthorization(address,bytes32,bytes)", payer.Address, s.NonceID, sig)); err != nil || r.Status != 1 {
			t.Fatalf("cancelling: %+v, %v", r, err)
		}
	}
	own.Mine(t, 4)
	c, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{own.URL}})
	if err != nil {
		t.Fatal(err)
	}
	at, err := c.Finalized(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := c.Traffic()
	used, err := c.Used(t.Context(), slots, at)
	if err != nil || len(used) != len(slots) {
		t.Fatal(err)
	}
	for i, u := range used {
		if u != (i == 3 || i == 599) {
			t.Errorf("slot %d used: %v", i, u)
		}
	}
	if asked := c.Traffic() - before; asked > 600*80 {
		t.Errorf("%d bytes for %d slots", asked, len(slots))
	}
}
