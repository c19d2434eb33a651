package x402

import "github.com/canopy-go/canopy/payment"

// v1Networks are the EVM networks as version 1 names them. A name stands for
// the chain of that number in every place where the protocol puts it.
var v1Networks = map[string]payment.ChainID{
	"abstract":           "eip155:2741",
	"abstract-testnet":   "eip155:11124",
	"avalanche":          "eip155:43114",
	"avalanche-fuji":     "eip155:43113",
	"base":               "eip155:8453",
	"base-sepolia":       "eip155:84532",
	"celo":               "eip155:42220",
	"educhain":           "eip155:41923",
	"ethereum":           "eip155:1",
	"flare":              "eip155:14",
	"iotex":              "eip155:4689",
	"megaeth":            "eip155:4326",
	"monad":              "eip155:143",
	"peaq":               "eip155:3338",
	"polygon":            "eip155:137",
	"polygon-amoy":       "eip155:80002",
	"sei":                "eip155:1329",
	"sei-testnet":        "eip155:1328",
	"sepolia":            "eip155:11155111",
	"skale-base-sepolia": "eip155:324705682",
	"stable":             "eip155:988",
	"stable-testnet":     "eip155:2201",
	"story":              "eip155:1514",
}

// chainOf returns the EVM chain that network names in a document of that
// version, and false where it names none. Version 1 has names of its own, and
// sellers that write CAIP-2 in it.
func chainOf(network string, version int) (payment.ChainID, bool) {
	if version == 1 {
		if c, ok := v1Networks[network]; ok {
			return c, true
		}
	}
	c, err := payment.ParseChainID(network)
	return c, err == nil
}
