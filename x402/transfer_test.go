package x402_test

import (
	"context"
	"errors"
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
	for name, bad := range map[string]payment.Transfer{
		"nothing":  {To: to, Chain: payment.Base},
		"negative": {To: to, Chain: payment.Base, Amount: -1},
		"too much": {To: to, Chain: payment.Base, Amount: payment.MaxUSD},
		"memo":     {To: to, Chain: payment.Base, Amount: payment.Cent, Memo: "invoice 7"},
	} {
		if o, err := rail.Transfer(context.Background(), bad); err == nil || errors.Is(err, payment.ErrNotMine) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}
