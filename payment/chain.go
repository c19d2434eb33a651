package payment

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ChainID names a chain as CAIP-2 does, such as eip155:8453. Chain ids are
// compared as text; ParseChainID lets one spelling of each through.
type ChainID string

// Chains that Canopy knows by name.
const (
	Base        ChainID = "eip155:8453"
	BaseSepolia ChainID = "eip155:84532"
	Tempo       ChainID = "eip155:4217"
	TempoTest   ChainID = "eip155:42431"
)

// ErrChain is wrapped by every error of ParseChainID.
var ErrChain = errors.New("payment: not a chain id")

// ParseChainID reads an EVM chain as CAIP-2: eip155: and a number without
// leading zeros, above 0 and below 2^63.
func ParseChainID(s string) (ChainID, error) {
	num, ok := strings.CutPrefix(s, "eip155:")
	if !ok || !plainDigits(num) {
		return "", fmt.Errorf("%w: %q is not like eip155:8453", ErrChain, clip(s))
	}
	if n, err := strconv.ParseInt(num, 10, 64); err != nil || n == 0 {
		return "", fmt.Errorf("%w: %q is not like eip155:8453", ErrChain, clip(s))
	}
	return ChainID(s), nil
}

// EVMChain returns the chain of number n.
func EVMChain(n uint64) ChainID { return ChainID("eip155:" + strconv.FormatUint(n, 10)) }

// Number is the chain's number, and false where c is not an EVM chain.
func (c ChainID) Number() (uint64, bool) {
	num, ok := strings.CutPrefix(string(c), "eip155:")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(num, 10, 63)
	return n, err == nil && n > 0
}

// Name is the short name of a chain that Canopy knows, such as base, and else
// the chain id itself.
func (c ChainID) Name() string {
	if name, ok := chainNames[c]; ok {
		return name
	}
	return string(c)
}

// ChainByName returns the chain with that short name, or the chain that s
// names by CAIP-2.
func ChainByName(s string) (ChainID, error) {
	for c, name := range chainNames {
		if name == strings.ToLower(s) {
			return c, nil
		}
	}
	return ParseChainID(s)
}

var chainNames = map[ChainID]string{
	"eip155:1":         "ethereum",
	"eip155:11155111":  "sepolia",
	"eip155:8453":      "base",
	"eip155:84532":     "base-sepolia",
	"eip155:43114":     "avalanche",
	"eip155:43113":     "avalanche-fuji",
	"eip155:137":       "polygon",
	"eip155:80002":     "polygon-amoy",
	"eip155:42161":     "arbitrum",
	"eip155:421614":    "arbitrum-sepolia",
	"eip155:143":       "monad",
	"eip155:988":       "stable",
	"eip155:2201":      "stable-testnet",
	"eip155:14":        "flare",
	"eip155:50":        "xdc",
	"eip155:51":        "xdc-apothem",
	"eip155:42220":     "celo",
	"eip155:11142220":  "celo-sepolia",
	"eip155:1329":      "sei",
	"eip155:1328":      "sei-testnet",
	"eip155:36900":     "adi",
	"eip155:190415":    "hpp",
	"eip155:181228":    "hpp-sepolia",
	"eip155:4326":      "megaeth",
	"eip155:31612":     "mezo",
	"eip155:31611":     "mezo-testnet",
	"eip155:723487":    "radius",
	"eip155:72344":     "radius-testnet",
	"eip155:38833":     "igra",
	"eip155:2741":      "abstract",
	"eip155:11124":     "abstract-testnet",
	"eip155:4689":      "iotex",
	"eip155:3338":      "peaq",
	"eip155:1514":      "story",
	"eip155:41923":     "educhain",
	"eip155:324705682": "skale-base-sepolia",
	"eip155:4217":      "tempo",
	"eip155:42431":     "tempo-testnet",
}
