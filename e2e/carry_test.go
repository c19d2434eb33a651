//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
	"github.com/canopy-go/canopy/signer"
	"github.com/canopy-go/canopy/x402"
)

// carrier pays by transactions of its own on a real EVM, from a ledger in a file.
type carrier struct {
	*canopy.Client
	store ledger.Store
	chain *Chain
	payer common.Address
}

// carryMax is what the transactions of one payment may cost: 0.005 of the coin.
const carryMax = 5e15

func newCarrier(t testing.TB, c *Chain) *carrier {
	t.Helper()
	a := c.Payer(t, 20_000_000)
	if err := c.fund(a.Address); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Parse("e2e", []byte("[policy.default]\ncaps = [\"$15 / 24h\"]\nallow = [\"*\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.FromHex(a.HexKey())
	if err != nil {
		t.Fatal(err)
	}
	rail, err := x402.New(x402.Config{})
	if err != nil {
		t.Fatal(err)
	}
	node, err := chain.New(chain.Config{ID: payment.Base, URLs: []string{c.URL}})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "canopy.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := canopy.New(canopy.Config{
		Treasury: canopy.Treasury{
			Signer: key, Chains: []canopy.Chain{node},
			Gas: map[canopy.ChainID]canopy.Gas{payment.Base: {Max: payment.UnitsOf(carryMax)}},
		},
		Policy: rules, Store: store, Rails: []canopy.Rail{rail},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &carrier{client, store, c, a.Address}
	t.Cleanup(func() {
		reckon(t, c, store, a.Address)
		if err := store.Close(); err != nil {
			t.Errorf("closing the ledger: %v", err)
		}
	})
	return b
}

// coin is what the payer has of the chain's own coin.
func (b *carrier) coin(t testing.TB) *big.Int {
	t.Helper()
	var have hexutil.Big
	b.chain.do(t, &have, "eth_getBalance", b.payer, "latest")
	return have.ToInt()
}

// confirm makes all that is mined final, and reconciles.
func (b *carrier) confirm(t testing.TB, want ledger.State) {
	t.Helper()
	b.chain.Mine(t, 3)
	if r, err := b.Reconcile(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Fatalf("%v, %v", r.Problems, err)
	}
	for _, e := range entries(t, b.store) {
		if e.State != want {
			t.Errorf("payment %s is %s, want %s", e.ID, e.State, want)
		}
	}
}

func (b *carrier) transfer(key string) canopy.Transfer {
	return canopy.Transfer{To: canopy.Address{19: 0x77}, Amount: payment.Dollar / 10, Key: key}
}

// TestCarryEVM pays by a transaction of our own on a real EVM: the token moves the
// dime, the account pays the gas, and the chain confirms it.
func TestCarryEVM(t *testing.T) {
	t.Parallel()
	c := NewChain(t)
	b := newCarrier(t, c)
	before := b.coin(t)
	c.Moves(t, common.Address{19: 0x77}, 100_000, func() {
		r, err := b.Pay(t.Context(), b.transfer("k"))
		if err != nil || r.State != ledger.Claimed || r.TxHash == "" || r.Gas != payment.UnitsOf(carryMax) {
			t.Fatalf("%+v, %v", r, err)
		}
		again, err := b.Pay(t.Context(), b.transfer("k"))
		if err != nil || again.PaymentID != r.PaymentID {
			t.Errorf("the same again: %+v, %v", again, err)
		}
	})
	spent := new(big.Int).Sub(before, b.coin(t))
	if spent.Sign() <= 0 || spent.Cmp(big.NewInt(carryMax)) > 0 {
		t.Errorf("the gas cost %s", spent)
	}
	t.Logf("the gas cost %s of %s", spent, big.NewInt(carryMax))
	b.confirm(t, ledger.Settled)
}

// TestCarryEVMHeld: blocks stop. A caller that leaves finds the payment in doubt
// with its hash; one that waits has the transaction replaced by one that pays
// more, and only that is mined.
func TestCarryEVMHeld(t *testing.T) {
	t.Parallel()
	c := NewChain(t)
	b := newCarrier(t, c)
	release := c.HoldBlocks(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := b.Pay(ctx, b.transfer("k"))
	var doubt *canopy.InDoubtError
	if !errors.As(err, &doubt) || doubt.Result.TxHash == "" {
		t.Fatalf("%v", err)
	}
	type answer struct {
		r   canopy.Result
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := b.Pay(t.Context(), b.transfer("k"))
		done <- answer{r, err}
	}()
	for deadline := time.Now().Add(30 * time.Second); len(entries(t, b.store)[0].Carries) < 2; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it was not replaced")
		}
	}
	time.Sleep(time.Second) // for it to be sent
	release()
	a := <-done
	if a.err != nil || a.r.State != ledger.Claimed || a.r.TxHash == doubt.Result.TxHash {
		t.Fatalf("%+v, %v", a.r, a.err)
	}
	if got := c.BalanceOf(t, common.Address{19: 0x77}); got != 100_000 {
		t.Errorf("%d moved, want 100000", got)
	}
	e := entries(t, b.store)[0]
	if len(e.Carries) != 2 || e.Carries[0].Nonce != e.Carries[1].Nonce {
		t.Errorf("%+v", e.Carries)
	}
	b.confirm(t, ledger.Settled)
}

// TestCarryEVMMany pays eight at once: each has a nonce of its own, and the day's
// gas ends after ten.
func TestCarryEVMMany(t *testing.T) {
	t.Parallel()
	c := NewChain(t)
	b := newCarrier(t, c)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if r, err := b.Pay(t.Context(), b.transfer(fmt.Sprint(i))); err != nil || r.State != ledger.Claimed {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if got := c.BalanceOf(t, common.Address{19: 0x77}); got != 800_000 {
		t.Errorf("%d moved, want 800000", got)
	}
	b.confirm(t, ledger.Settled)
	for i := range 3 {
		r, err := b.Pay(t.Context(), b.transfer(fmt.Sprint("more ", i)))
		if err != nil || (r.Code == ledger.CodeGasPerDay) != (i == 2) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestCarryEVMPoor: an account without the coin is refused before anything is
// signed.
func TestCarryEVMPoor(t *testing.T) {
	t.Parallel()
	c := NewChain(t)
	b := newCarrier(t, c)
	c.do(t, nil, "anvil_setBalance", b.payer, hexutil.EncodeBig(big.NewInt(carryMax-1)))
	r, err := b.Pay(t.Context(), b.transfer("k"))
	if err != nil || r.Code != canopy.CodeInsufficientGas {
		t.Errorf("%+v, %v", r, err)
	}
	if got := c.AuthorizationsUsed(t, b.payer); got != 0 {
		t.Errorf("%d authorizations were used", got)
	}
}
