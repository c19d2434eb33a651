package mpp

import "github.com/canopy-go/canopy/internal/jsonscan"

// readEVMCharge reads the decoded request of an evm/charge challenge that can be
// paid by an authorization of EIP-3009. The decimals that it states are not
// looked at: a token's are pinned.
func readEVMCharge(v jsonscan.Value) (c charge, why skip) {
	if c, why = readCharge(v); why != (skip{}) {
		return c, why
	}
	authorization := true
	err := members(c.details, func(key string, val jsonscan.Value) (err error) {
		switch key {
		case "chainId":
			c.chainID, err = readChainID(val)
		case "credentialTypes":
			authorization, err = hasAuthorization(val)
		case "splits":
			err = fault{"unsupported", "on evm/charge"}
		}
		return named(key, err)
	})
	switch {
	case err != nil:
		return c, asSkip(err)
	case !authorization:
		return c, skipped("no_authorization", "credentialTypes")
	}
	return c, skip{}
}

func hasAuthorization(v jsonscan.Value) (found bool, err error) {
	err = v.Array(func(_ int, val jsonscan.Value) error {
		s, err := val.String()
		found = found || s == "authorization"
		return err
	})
	return found, err
}
