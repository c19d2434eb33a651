package canopytest_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// The digest is laid out in this package by hand; go-ethereum's reflection over
// typed data is another way to the same bytes.
func TestDigestIsThatOfTypedData(t *testing.T) {
	t.Parallel()
	for _, asset := range payment.KnownAssets().All() {
		if asset.NoAuthorization {
			continue
		}
		a := canopytest.Authorization{
			From: canopytest.Address("from"), To: canopytest.Address("to"), Value: payment.UnitsOf(123456789),
			ValidAfter: payment.UnitsOf(17), ValidBefore: payment.UnitsOf(1 << 40), Nonce: [32]byte{1, 31: 2},
		}
		number, _ := asset.Chain.Number()
		data := apitypes.TypedData{
			PrimaryType: "TransferWithAuthorization",
			Types: apitypes.Types{
				"EIP712Domain": {{Name: "name", Type: "string"}, {Name: "version", Type: "string"}, {Name: "chainId", Type: "uint256"}, {Name: "verifyingContract", Type: "address"}},
				"TransferWithAuthorization": {
					{Name: "from", Type: "address"}, {Name: "to", Type: "address"}, {Name: "value", Type: "uint256"},
					{Name: "validAfter", Type: "uint256"}, {Name: "validBefore", Type: "uint256"}, {Name: "nonce", Type: "bytes32"},
				},
			},
			Domain: apitypes.TypedDataDomain{
				Name: asset.Name, Version: asset.Version, ChainId: (*math.HexOrDecimal256)(new(big.Int).SetUint64(number)), VerifyingContract: asset.Address.String(),
			},
			Message: apitypes.TypedDataMessage{
				"from": a.From.String(), "to": a.To.String(), "value": a.Value.String(),
				"validAfter": a.ValidAfter.String(), "validBefore": a.ValidBefore.String(), "nonce": "0x" + hex.EncodeToString(a.Nonce[:]),
			},
		}
		want, _, err := apitypes.TypedDataAndHash(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Digest(asset); !slices.Equal(got[:], want) {
			t.Errorf("%s: digest %x, want %x", asset, got, want)
		}
	}
}

func TestTokenRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	usdc, payee, now := w.chain.Dollar(), canopytest.Address("payee"), w.clock.Now()
	at := func(d time.Duration) payment.Units { return payment.UnitsOf(uint64(now.Add(d).Unix())) }
	good := w.wallet.authorize(usdc, payee, payment.UnitsOf(1000), now.Add(time.Minute))
	if err := w.chain.Simulate(good); err != nil {
		t.Fatalf("a good authorization: %v", err)
	}
	if w.chain.AuthorizationState(usdc.Address, good.From, good.Nonce) {
		t.Error("simulating used the nonce")
	}
	resign := func(edit func(*canopytest.Authorization)) canopytest.Authorization {
		a := good
		edit(&a)
		return w.wallet.sign(usdc, a)
	}
	edit := func(edit func(*canopytest.Authorization)) canopytest.Authorization {
		a := good
		a.Signature = slices.Clone(a.Signature)
		edit(&a)
		return a
	}
	used := w.wallet.authorize(usdc, payee, payment.UnitsOf(1), now.Add(time.Minute))
	if _, err := w.chain.Settle(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	canceled := w.wallet.authorize(usdc, payee, payment.UnitsOf(1), now.Add(time.Minute))
	if err := w.chain.Cancel(usdc, canceled.From, canceled.Nonce); err != nil {
		t.Fatal(err)
	}
	order := crypto.S256().Params().N
	for _, tc := range []struct {
		name string
		auth canopytest.Authorization
		want error
	}{
		{"validAfter a second ago", resign(func(a *canopytest.Authorization) { a.ValidAfter = at(-time.Second) }), nil},
		{"validAfter now", resign(func(a *canopytest.Authorization) { a.ValidAfter = at(0) }), canopytest.ErrNotYetValid},
		{"validAfter later", resign(func(a *canopytest.Authorization) { a.ValidAfter = at(time.Second) }), canopytest.ErrNotYetValid},
		{"validBefore in a second", resign(func(a *canopytest.Authorization) { a.ValidBefore = at(time.Second) }), nil},
		{"validBefore now", resign(func(a *canopytest.Authorization) { a.ValidBefore = at(0) }), canopytest.ErrExpired},
		{"validBefore the end of numbers", resign(func(a *canopytest.Authorization) {
			a.ValidBefore = payment.UnitsFromBytes([32]byte(slices.Repeat([]byte{0xff}, 32)))
		}), nil},
		{"the whole balance", resign(func(a *canopytest.Authorization) { a.Value = payment.UnitsOf(99_999_999) }), nil},
		{"one unit more", resign(func(a *canopytest.Authorization) { a.Value = payment.UnitsOf(100_000_000) }), canopytest.ErrBalance},
		{"nothing", resign(func(a *canopytest.Authorization) { a.Value = payment.Units{} }), nil},
		{"to nobody", resign(func(a *canopytest.Authorization) { a.To = payment.Address{} }), canopytest.ErrRecipient},
		{"a used nonce, other terms", resign(func(a *canopytest.Authorization) { a.Nonce = used.Nonce }), canopytest.ErrNonceUsed},
		{"a cancelled nonce", resign(func(a *canopytest.Authorization) { a.Nonce = canceled.Nonce }), canopytest.ErrNonceUsed},
		{"another value than signed", edit(func(a *canopytest.Authorization) { a.Value = payment.UnitsOf(1001) }), canopytest.ErrSignature},
		{"another payee than signed", edit(func(a *canopytest.Authorization) { a.To = canopytest.Address("thief") }), canopytest.ErrSignature},
		{"another payer than signed", edit(func(a *canopytest.Authorization) { a.From = canopytest.Address("victim") }), canopytest.ErrSignature},
		{"another nonce than signed", edit(func(a *canopytest.Authorization) { a.Nonce[5] ^= 1 }), canopytest.ErrSignature},
		{"another end than signed", edit(func(a *canopytest.Authorization) { a.ValidBefore = at(2 * time.Minute) }), canopytest.ErrSignature},
		{"high s", edit(func(a *canopytest.Authorization) {
			s := new(big.Int).SetBytes(a.Signature[32:64])
			s.Sub(order, s).FillBytes(a.Signature[32:64])
			a.Signature[64] = 55 - a.Signature[64]
		}), canopytest.ErrSignature},
		{"v 0 or 1", edit(func(a *canopytest.Authorization) { a.Signature[64] -= 27 }), canopytest.ErrSignature},
		{"64 bytes", edit(func(a *canopytest.Authorization) { a.Signature = a.Signature[:64] }), canopytest.ErrSignature},
		{"no signature", edit(func(a *canopytest.Authorization) { a.Signature = nil }), canopytest.ErrSignature},
		{"an unknown token", edit(func(a *canopytest.Authorization) { a.Token = canopytest.Address("token") }), canopytest.ErrToken},
	} {
		if err := w.chain.Simulate(tc.auth); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if tc.want == nil {
			continue
		}
		if tx, err := w.chain.Settle(t.Context(), tc.auth); !errors.Is(err, tc.want) || tx.Hash != "" {
			t.Errorf("%s settled: %v, %v; want %v before any transaction", tc.name, tx, err, tc.want)
		}
		hash := w.chain.Enqueue(tc.auth)
		if tx, err := w.chain.Wait(t.Context(), hash); !errors.Is(err, canopytest.ErrReverted) || !errors.Is(err, tc.want) || tx.Hash != hash {
			t.Errorf("%s broadcast: %v, %v; want reverted by %v", tc.name, tx, err, tc.want)
		}
	}
	w.chain.AssertTransfers(t, canopytest.Move{From: w.wallet.Address(), To: payee, Amount: 1})
}

func TestTokensOfOtherDomainsTakeNoForeignSignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sepolia := canopytest.NewChain(canopytest.ChainConfig{ID: payment.BaseSepolia, Clock: w.clock})
	sepolia.Fund(w.wallet.Address(), payment.Dollar)
	a := w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1), start.Add(time.Minute))
	a.Token = sepolia.Dollar().Address
	if err := sepolia.Simulate(a); !errors.Is(err, canopytest.ErrSignature) {
		t.Errorf("signed for another chain: %v, want %v", err, canopytest.ErrSignature)
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	usdc, payee := w.chain.Dollar(), canopytest.Address("payee")
	w.clock.Advance(time.Second)
	a := w.wallet.authorize(usdc, payee, payment.UnitsOf(2500), start.Add(time.Minute))
	tx, err := w.chain.Settle(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if !tx.Block.Time.Equal(start.Add(time.Second)) || tx.Pending || !slices.Contains(tx.Block.Txs, tx.Hash) {
		t.Errorf("tx %+v", tx)
	}
	got := w.chain.TransfersOf(a.From, a.Nonce)
	if len(got) != 1 || got[0].Value != a.Value || got[0].TxHash != tx.Hash || got[0].Block.Number != tx.Block.Number || got[0].Token != usdc.Address {
		t.Errorf("transfers %+v", got)
	}
	uses := w.chain.AuthorizationUses()
	if len(uses) != 1 || uses[0].Nonce != a.Nonce || uses[0].From != a.From || uses[0].Canceled || uses[0].TxHash != tx.Hash {
		t.Errorf("uses %+v", uses)
	}
	if w.chain.AuthorizationUsed(usdc.Address, a.From, a.Nonce, tx.Block.Number-1) || !w.chain.AuthorizationUsed(usdc.Address, a.From, a.Nonce, tx.Block.Number) {
		t.Error("the nonce was used in another block than that of its transaction")
	}
	if b, err := w.chain.Balance(t.Context(), usdc, payee); err != nil || b != a.Value {
		t.Errorf("balance %v, %v", b, err)
	}
	if w.chain.Debits(usdc, a.From) != a.Value || w.chain.Spent(a.From) != 2500 {
		t.Errorf("debits %v, spent %v", w.chain.Debits(usdc, a.From), w.chain.Spent(a.From))
	}
}

func TestBalanceFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, _ := payment.KnownAssets().Lookup(payment.BaseSepolia, canopytest.NewChain(canopytest.ChainConfig{ID: payment.BaseSepolia}).Dollar().Address)
	if _, err := w.chain.Balance(t.Context(), other, w.wallet.Address()); err == nil {
		t.Error("another chain's token has a balance")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.chain.Balance(ctx, w.chain.Dollar(), w.wallet.Address()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	down := errors.New("down")
	w.chain.SetDown(down)
	if _, err := w.chain.Balance(t.Context(), w.chain.Dollar(), w.wallet.Address()); !errors.Is(err, down) {
		t.Errorf("down: %v", err)
	}
	w.chain.SetDown(nil)
	if b, err := w.chain.Balance(t.Context(), w.chain.Dollar(), w.wallet.Address()); err != nil || b != payment.UnitsOf(100_000_000) {
		t.Errorf("up again: %v, %v", b, err)
	}
}

// One nonce, two authorizations, both in one block: the first moves money and
// the second reverts.
func TestOneNonceMovesMoneyOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.chain.SetMining(canopytest.Manual)
	usdc := w.chain.Dollar()
	a := w.wallet.authorize(usdc, canopytest.Address("a"), payment.UnitsOf(30_000), start.Add(time.Minute))
	b := a
	b.To, b.Value = canopytest.Address("b"), payment.UnitsOf(40_000)
	b = w.wallet.sign(usdc, b)
	first, second := w.chain.Enqueue(a), w.chain.Enqueue(b)
	block := w.chain.Mine()
	if !slices.Equal(block.Txs, []string{first, second}) {
		t.Fatalf("block %+v", block)
	}
	if tx, _ := w.chain.Tx(first); tx.Err != nil {
		t.Errorf("first: %v", tx.Err)
	}
	if tx, _ := w.chain.Tx(second); !errors.Is(tx.Err, canopytest.ErrNonceUsed) {
		t.Errorf("second: %v", tx.Err)
	}
	w.chain.AssertTransfers(t, canopytest.Move{From: a.From, To: a.To, Amount: 30_000})
}

func TestHashesAreTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	run := func() (hashes []string, head string) {
		w := newWorld(t)
		a := w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1), start.Add(time.Minute))
		return []string{w.chain.Enqueue(a), w.chain.Enqueue(a)}, w.chain.Mine().Hash
	}
	h1, b1 := run()
	h2, b2 := run()
	if !slices.Equal(h1, h2) || b1 != b2 || h1[0] == h1[1] {
		t.Errorf("hashes %v and %v, blocks %s and %s", h1, h2, b1, b2)
	}
}

func TestChainIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 8 {
		auths := make([]canopytest.Authorization, 10)
		for i := range auths {
			auths[i] = w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1000), start.Add(time.Hour))
		}
		wg.Go(func() {
			for _, a := range auths {
				if _, err := w.chain.Settle(t.Context(), a); err != nil {
					t.Error(err)
				}
				w.chain.Balance(t.Context(), w.chain.Dollar(), a.From)
				w.chain.Spent(a.From)
				w.clock.Advance(time.Second)
			}
		})
	}
	wg.Wait()
	w.chain.AssertSpent(t, w.wallet.Address(), 80_000)
}

// The authorization prints without its signature, which is money.
func TestAuthorizationPrintsNoSignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.wallet.authorize(w.chain.Dollar(), canopytest.Address("payee"), payment.UnitsOf(1), start.Add(time.Minute))
	h := canopytest.Harvested{Authorization: a}
	for _, text := range []string{fmt.Sprint(a), fmt.Sprintf("%+v %#v %s", a, a, a), fmt.Sprintf("%v %+v %#v", h, h, h)} {
		if strings.Contains(text, hex.EncodeToString(a.Signature[:8])) || strings.Contains(text, fmt.Sprintf("%#v", a.Signature[:4])[8:]) {
			t.Errorf("it prints as %s", text)
		}
	}
}
