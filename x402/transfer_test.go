package x402_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/x402"
)

func TestTransfer(t *testing.T) {
	t.Parallel()
	rail, err := x402.New(x402.Config{})
	if err != nil {
		t.Fatal(err)
	}
	to := payment.Address{19: 7}
	for chain, want := range map[payment.ChainID]string{
		payment.Base: "USDC", "eip155:988": "USDT0", "eip155:42220": "USDC",
	} {
		o, err := rail.Transfer(context.Background(), payment.Transfer{To: to, Amount: payment.Cent, Chain: chain})
		if err != nil || o.Asset.Symbol != want || o.Asset.Chain != chain || o.Amount != payment.UnitsOf(10_000) ||
			len(o.Recipients) != 1 || o.Recipients[0] != (payment.Recipient{Address: to, Amount: o.Amount}) {
			t.Errorf("%s: %+v, %v", chain, o, err)
		}
	}
	for chain, amount := range map[payment.ChainID]payment.USD{
		"eip155:4326": payment.Cent, // no token there takes authorizations
		"eip155:5":    payment.Cent,
		payment.Tempo: payment.Cent,
	} {
		if _, err := rail.Transfer(context.Background(), payment.Transfer{To: to, Amount: amount, Chain: chain}); !errors.Is(err, payment.ErrNotMine) {
			t.Errorf("%s: %v, want ErrNotMine", chain, err)
		}
	}
	for name, bad := range map[string]struct {
		payment.Transfer
		field string
	}{
		"nothing":  {payment.Transfer{To: to, Chain: payment.Base}, "Amount"},
		"negative": {payment.Transfer{To: to, Chain: payment.Base, Amount: -1}, "Amount"},
		"too much": {payment.Transfer{To: to, Chain: payment.Base, Amount: payment.MaxUSD}, "Amount"},
		"memo":     {payment.Transfer{To: to, Chain: payment.Base, Amount: payment.Cent, Memo: "invoice 7"}, "Memo"},
	} {
		var wrong *payment.TransferError
		if o, err := rail.Transfer(context.Background(), bad.Transfer); !errors.As(err, &wrong) || wrong.Field != bad.field {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// TestTransferSeveralDollars has several tokens of one symbol: which one pays is
// never left to chance.
func TestTransferSeveralDollars(t *testing.T) {
	t.Parallel()
	const avalanche, other = payment.ChainID("eip155:43114"), payment.ChainID("eip155:31337")
	token := func(chain payment.ChainID, b byte, symbol string) payment.Asset {
		return payment.Asset{Chain: chain, Address: payment.Address{19: b}, Symbol: symbol, Name: "USD Coin", Version: "2", Decimals: 6}
	}
	known := payment.KnownAssets().On(avalanche)[0].Address
	for name, tt := range map[string]struct {
		chain payment.ChainID
		more  []payment.Asset
		want  payment.Address // zero for an error
	}{
		"the known one":       {avalanche, []payment.Asset{token(avalanche, 1, "USDC"), token(avalanche, 2, "USDC")}, known},
		"another symbol":      {avalanche, []payment.Asset{token(avalanche, 1, "USDT")}, known},
		"one USDC":            {other, []payment.Asset{token(other, 1, "USDC"), token(other, 2, "USDT")}, payment.Address{19: 1}},
		"two, none known":     {other, []payment.Asset{token(other, 1, "USDC"), token(other, 2, "USDC")}, payment.Address{}},
		"two, none called so": {other, []payment.Asset{token(other, 1, "USDT"), token(other, 2, "USAT")}, payment.Address{}},
	} {
		assets, err := payment.KnownAssets().With(tt.more...)
		if err != nil {
			t.Fatal(err)
		}
		rail, err := x402.New(x402.Config{Assets: assets, Chains: []payment.ChainID{tt.chain}})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			o, err := rail.Transfer(t.Context(), payment.Transfer{To: payment.Address{19: 7}, Amount: payment.Cent, Chain: tt.chain})
			if tt.want.IsZero() {
				if err == nil || !strings.Contains(err.Error(), "has several dollars") {
					t.Fatalf("%s: %v, %v", name, o.Asset.Address, err)
				}
			} else if err != nil || o.Asset.Address != tt.want {
				t.Fatalf("%s: %v, %v, want %v", name, o.Asset.Address, err, tt.want)
			}
		}
	}
}
