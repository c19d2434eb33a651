package tempo_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

func TestFee(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		gas, price uint64
		want       string
	}{
		{0, 0, "0"},
		{0, math.MaxUint64, "0"},
		{1, 1, "1"}, // a part of a unit is a unit
		{1, 1_000_000_000_000, "1"},
		{1, 1_000_000_000_001, "2"},
		{60_495, 1_000_000_001, "61"}, // read from a receipt
		{535_463, 21_000_000_000, "11245"},
		{300_000, 25_000_000_000, "7500"},
		{1_200_000, 25_000_000_000, "30000"},
		{math.MaxUint64, 1, "18446745"},
		{math.MaxUint64, math.MaxUint64, "340282366920938463426481120"},
	} {
		if got := tempo.Fee(tc.gas, tc.price).String(); got != tc.want {
			t.Errorf("Fee(%d, %d) = %s, want %s", tc.gas, tc.price, got, tc.want)
		}
	}
	tx := tempo.Transaction{Gas: 300_000, MaxFeePerGas: 25_000_000_000}
	if got := tx.FeeBound(); got != payment.UnitsOf(7500) {
		t.Errorf("FeeBound = %v, want 7500", got)
	}
	tx.FeePayer.Kind = tempo.FeePayerPlaceholder
	if got := tx.FeeBound(); !got.IsZero() {
		t.Errorf("FeeBound of a sponsored transaction = %v, want 0", got)
	}
}

func FuzzFee(f *testing.F) {
	f.Add(uint64(math.MaxUint64), uint64(math.MaxUint64))
	f.Add(uint64(535_463), uint64(21_000_000_000))
	f.Fuzz(func(t *testing.T, gas, price uint64) {
		n := new(big.Int).Mul(new(big.Int).SetUint64(gas), new(big.Int).SetUint64(price))
		n.Add(n, big.NewInt(1e12-1)).Quo(n, big.NewInt(1e12))
		if got := tempo.Fee(gas, price).Big(); got.Cmp(n) != 0 {
			t.Errorf("Fee(%d, %d) = %v, want %v", gas, price, got, n)
		}
	})
}
