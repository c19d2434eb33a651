package payment_test

import (
	"encoding/hex"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/internal/eip3009"
	"github.com/canopy-go/canopy/payment"
)

func asset(t testing.TB, chain payment.ChainID, symbol string) payment.Asset {
	t.Helper()
	for _, a := range payment.KnownAssets().On(chain) {
		if a.Symbol == symbol {
			return a
		}
	}
	t.Fatalf("no %s on %s", symbol, chain)
	return payment.Asset{}
}

// Domain separators that were read from the chains, or that the golden vectors
// have: decimals, name and version of the table are right if these come out.
func TestPinnedDomains(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		chain  payment.ChainID
		symbol string
		want   string
	}{
		{payment.Base, "USDC", "02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"},
		{payment.BaseSepolia, "USDC", "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"},
		{"eip155:143", "USDC", "fe22123edc0dd4aeb912eb7948c5f0e531592c2053b3067612f427db342c93c6"},
		{"eip155:14", "USDT0", "4c53d754dcb2f406ecf83695856d8c10b13296a318d9a481043412bf253d43ae"},
	} {
		a := asset(t, tt.chain, tt.symbol)
		n, _ := a.Chain.Number()
		d := eip3009.Domain{Name: a.Name, Version: a.Version, ChainID: n, Contract: a.Address}
		sep := d.Separator()
		if got := hex.EncodeToString(sep[:]); got != tt.want {
			t.Errorf("%s: separator %s, want %s", a, got, tt.want)
		}
	}
}

func TestKnownAssets(t *testing.T) {
	t.Parallel()
	table := payment.KnownAssets()
	seen := map[string]bool{}
	for _, a := range table.All() {
		if a.NoAuthorization && a.Name == "" {
			a.Name = "x" // a token that is moved by transactions of its own has no domain
		}
		if err := a.Validate(); err != nil {
			t.Error(err)
		}
		key := string(a.Chain) + a.Address.Lower()
		if seen[key] {
			t.Errorf("%s stands twice", a)
		}
		seen[key] = true
		if got, ok := table.Lookup(a.Chain, a.Address); !ok || got.Symbol != a.Symbol {
			t.Errorf("Lookup of %s gave %v, %t", a, got, ok)
		}
		if a.Chain.Name() == string(a.Chain) {
			t.Errorf("%s: its chain has no name", a)
		}
	}
	if len(seen) < 30 {
		t.Errorf("the table has %d assets", len(seen))
	}
	if _, ok := table.Lookup(payment.Base, payment.Address{1}); ok {
		t.Error("an unknown address was found")
	}
	if _, ok := table.Lookup("eip155:1", asset(t, payment.Base, "USDC").Address); ok {
		t.Error("Base's address was found on another chain")
	}
	if d := asset(t, "eip155:4326", "MegaUSD").Decimals; d != 18 {
		t.Errorf("MegaUSD has %d decimals, want 18", d)
	}
}

func TestAssetsWith(t *testing.T) {
	t.Parallel()
	base := payment.KnownAssets()
	fake := payment.Asset{Chain: payment.Base, Address: payment.Address{7}, Symbol: "USDX", Decimals: 6, Name: "X", Version: "1"}
	more, err := base.With(fake)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := base.Lookup(payment.Base, fake.Address); ok {
		t.Error("With changed its receiver")
	}
	if got, ok := more.Lookup(payment.Base, fake.Address); !ok || got != fake {
		t.Errorf("the new asset is %v, %t", got, ok)
	}
	for name, bad := range map[string]payment.Asset{
		"chain":    {Chain: "base", Address: fake.Address, Symbol: "X", Decimals: 6, Name: "X", Version: "1"},
		"address":  {Chain: payment.Base, Symbol: "X", Decimals: 6, Name: "X", Version: "1"},
		"symbol":   {Chain: payment.Base, Address: fake.Address, Decimals: 6, Name: "X", Version: "1"},
		"decimals": {Chain: payment.Base, Address: fake.Address, Symbol: "X", Decimals: 5, Name: "X", Version: "1"},
		"many":     {Chain: payment.Base, Address: fake.Address, Symbol: "X", Decimals: 19, Name: "X", Version: "1"},
		"name":     {Chain: payment.Base, Address: fake.Address, Symbol: "X", Decimals: 6, Version: "1"},
		"version":  {Chain: payment.Base, Address: fake.Address, Symbol: "X", Decimals: 6, Name: "X"},
	} {
		if _, err := base.With(bad); err == nil {
			t.Errorf("%s: a bad asset was taken", name)
		}
	}
}

func TestValueRoundsUp(t *testing.T) {
	t.Parallel()
	six, eighteen := asset(t, payment.Base, "USDC"), asset(t, "eip155:4326", "MegaUSD")
	for _, tt := range []struct {
		asset payment.Asset
		units string
		want  payment.USD
		ok    bool
	}{
		{six, "0", 0, true},
		{six, "1", 1, true},
		{six, "10000", payment.Cent, true},
		{eighteen, "1", 1, true},
		{eighteen, "1000000000000", 1, true},
		{eighteen, "1000000000001", 2, true},
		{eighteen, "1000000000000000000", payment.Dollar, true},
		{six, "1000000000000000000000000000000", payment.MaxUSD, false},
		{six, maxUnits.String(), payment.MaxUSD, false},
		{eighteen, maxUnits.String(), payment.MaxUSD, false},
		{six, "9223372036854775805", 9223372036854775805, true},
		{six, "9223372036854775806", payment.MaxUSD, false},
		{payment.Asset{Decimals: 5}, "1", payment.MaxUSD, false},
		{payment.Asset{Decimals: 255}, "1", payment.MaxUSD, false},
	} {
		if got, ok := tt.asset.Value(units(t, tt.units)); got != tt.want || ok != tt.ok {
			t.Errorf("%d decimals, %s units: %d, %t, want %d, %t", tt.asset.Decimals, tt.units, got, ok, tt.want, tt.ok)
		}
	}
}

// What a cost is worth is never less than the units, and never a whole
// millionth more; dollars come back exactly.
func TestValueAgainstBig(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := payment.Asset{Decimals: uint8(rapid.IntRange(6, 18).Draw(t, "decimals"))}
		n := rapid.Uint64().Draw(t, "units")
		usd, ok := a.Value(payment.UnitsOf(n))
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Decimals)-6), nil)
		want := new(big.Int).Add(new(big.Int).SetUint64(n), new(big.Int).Sub(scale, big.NewInt(1)))
		want.Quo(want, scale)
		if fits := want.Cmp(big.NewInt(int64(payment.MaxUSD)-1)) < 0; fits != ok || fits && big.NewInt(int64(usd)).Cmp(want) != 0 {
			t.Fatalf("%d units of %d decimals: %d, %t, want %s", n, a.Decimals, usd, ok, want)
		}
		d := payment.USD(rapid.Int64Range(0, 1e18).Draw(t, "usd"))
		u, ok := a.Units(d)
		if back, ok2 := a.Value(u); !ok || !ok2 || back != d {
			t.Fatalf("%s is %s units, which are %s", d, u, back)
		}
	})
}

// Every count of units up to a dollar comes back from text and value.
func TestSmallAmountsExhaustively(t *testing.T) {
	t.Parallel()
	six := asset(t, payment.Base, "USDC")
	for n := range uint64(1_000_001) {
		usd, ok := six.Value(payment.UnitsOf(n))
		if back, err := payment.ParseUSD(usd.String()); !ok || err != nil || uint64(back) != n {
			t.Fatalf("%d units are %s, which is %d, %v", n, usd, back, err)
		}
	}
}
