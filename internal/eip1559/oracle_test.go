package eip1559_test

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/canopy-go/canopy/internal/eip1559"
)

// TestOracle compares with go-ethereum's own transactions.
func TestOracle(t *testing.T) {
	t.Parallel()
	for _, tx := range []eip1559.Transaction{sample(), {ChainID: 1, Nonce: 0, MaxFee: 1, GasLimit: 21000}} {
		to := common.Address(tx.To)
		inner := &types.DynamicFeeTx{
			ChainID: new(big.Int).SetUint64(tx.ChainID), Nonce: tx.Nonce, GasTipCap: new(big.Int).SetUint64(tx.MaxTip),
			GasFeeCap: new(big.Int).SetUint64(tx.MaxFee), Gas: tx.GasLimit, To: &to, Value: new(big.Int), Data: tx.Input,
		}
		rules := types.NewLondonSigner(inner.ChainID)
		if got, want := tx.Digest(), rules.Hash(types.NewTx(inner)); got != [32]byte(want) {
			t.Errorf("digest %x, want %x", got, want)
		}
		raw, from := signed(t, tx)
		var theirs types.Transaction
		if err := theirs.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
		sender, err := types.Sender(rules, &theirs)
		if err != nil || sender != common.Address(from) {
			t.Errorf("from %x, %v; want %x", sender, err, from)
		}
		if back, err := theirs.MarshalBinary(); err != nil || !bytes.Equal(back, raw) {
			t.Errorf("written again as %x, %v", back, err)
		}
		if theirs.Hash() != common.Hash(eip1559.Hash(raw)) {
			t.Errorf("hash %x, want %x", eip1559.Hash(raw), theirs.Hash())
		}
	}
}
