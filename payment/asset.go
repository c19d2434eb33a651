package payment

import (
	"cmp"
	"fmt"
	"slices"
)

// Asset is a dollar token on one chain: where it is, how many decimals it has,
// and the EIP-712 domain under which its authorizations are signed. What a
// seller says of a token's decimals, name or version is never used in its place.
type Asset struct {
	Chain    ChainID
	Address  Address
	Symbol   string // for people, such as USDC
	Decimals uint8  // 6 to 18
	Name     string // EIP-712 domain name
	Version  string // EIP-712 domain version

	// NoAuthorization says that the token does not know EIP-3009
	// authorizations, so that the exact scheme cannot pay with it.
	NoAuthorization bool
}

// Validate names the first field of a that is not usable.
func (a Asset) Validate() error {
	if _, err := ParseChainID(string(a.Chain)); err != nil {
		return fmt.Errorf("payment: asset %s: chain: %w", a.Symbol, err)
	}
	switch {
	case a.Address.IsZero():
		return fmt.Errorf("payment: asset %s: address is zero", a.Symbol)
	case a.Symbol == "":
		return fmt.Errorf("payment: asset %s: symbol is missing", a.Address)
	case a.Decimals < 6 || a.Decimals > 18:
		return fmt.Errorf("payment: asset %s: decimals must be 6 to 18, not %d", a.Symbol, a.Decimals)
	case !a.NoAuthorization && (a.Name == "" || a.Version == ""):
		return fmt.Errorf("payment: asset %s: name and version of its EIP-712 domain are missing", a.Symbol)
	}
	return nil
}

// scale is how many base units make a millionth of a dollar.
func (a Asset) scale() uint64 {
	n := uint64(1)
	for range min(max(a.Decimals, 6), 18) - 6 {
		n *= 10
	}
	return n
}

// Value is what u base units are worth, rounded up to a millionth of a dollar.
// It is MaxUSD and false where that cannot be counted.
func (a Asset) Value(u Units) (USD, bool) {
	if a.Decimals < 6 || a.Decimals > 18 {
		return MaxUSD, false
	}
	q, rem := u.quo(a.scale())
	n, ok := q.Uint64()
	if !ok || n >= uint64(MaxUSD)-1 {
		return MaxUSD, false
	}
	if rem > 0 {
		n++
	}
	return USD(n), true
}

// Units is how many base units are worth exactly usd, and false where usd is
// negative or saturated. It is exact: no asset is coarser than a millionth.
func (a Asset) Units(usd USD) (Units, bool) {
	if usd < 0 || usd == MaxUSD || a.Decimals < 6 || a.Decimals > 18 {
		return Units{}, false
	}
	return UnitsOf(uint64(usd)).mul(a.scale())
}

// String is the symbol and chain, such as USDC on base.
func (a Asset) String() string { return a.Symbol + " on " + a.Chain.Name() }

// Assets is an immutable table of the tokens that payments may use, looked up
// by chain and address, never by symbol. The zero value is empty.
type Assets struct {
	byKey map[assetKey]Asset
}

type assetKey struct {
	chain   ChainID
	address Address
}

// KnownAssets is the pinned table: USDC and other dollars of the networks that
// x402 names, and the Tempo dollars.
func KnownAssets() Assets {
	t, err := Assets{}.With(pinned...)
	if err != nil {
		panic("payment: pinned table: " + err.Error())
	}
	return t
}

// With returns a table that has more as well; an entry for a token already
// there replaces it.
func (t Assets) With(more ...Asset) (Assets, error) {
	out := Assets{byKey: make(map[assetKey]Asset, len(t.byKey)+len(more))}
	for k, a := range t.byKey {
		out.byKey[k] = a
	}
	for _, a := range more {
		if err := a.Validate(); err != nil {
			return Assets{}, err
		}
		out.byKey[assetKey{a.Chain, a.Address}] = a
	}
	return out, nil
}

// Lookup returns the token at address on chain, and false where it is unknown.
func (t Assets) Lookup(chain ChainID, address Address) (Asset, bool) {
	a, ok := t.byKey[assetKey{chain, address}]
	return a, ok
}

// HasChain reports whether the table has a token on chain.
func (t Assets) HasChain(chain ChainID) bool { return len(t.On(chain)) > 0 }

// On returns the tokens of one chain, by symbol and address.
func (t Assets) On(chain ChainID) []Asset {
	return slices.DeleteFunc(t.All(), func(a Asset) bool { return a.Chain != chain })
}

// All returns every token, by chain, symbol and address.
func (t Assets) All() []Asset {
	out := make([]Asset, 0, len(t.byKey))
	for _, a := range t.byKey {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Asset) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Symbol, b.Symbol), a.Address.Compare(b.Address))
	})
	return out
}
