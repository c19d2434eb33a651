package payment

import (
	"fmt"
	"strings"
)

// coinDecimals are those of the coin of every EVM chain.
const coinDecimals = 18

// ParseCoin reads an amount of a chain's own coin, such as "0.0005", in its
// smallest unit. It has up to nine digits before the point and up to 18 after it.
func ParseCoin(s string) (Units, error) {
	whole, frac, point := strings.Cut(s, ".")
	digits := func(s string, most int) bool {
		return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
	}
	if !digits(whole, 9) || len(whole) > 1 && whole[0] == '0' || point && !digits(frac, coinDecimals) {
		return Units{}, fmt.Errorf("%w: %q is not an amount of a chain's own coin", ErrAmount, clip(s))
	}
	all := strings.TrimLeft(whole+frac+strings.Repeat("0", coinDecimals-len(frac)), "0")
	if all == "" {
		return Units{}, nil
	}
	return ParseUnits(all)
}

// Coin is u, a count of the smallest unit of a chain's own coin, as ParseCoin
// reads it.
func (u Units) Coin() string {
	s := u.String()
	if len(s) <= coinDecimals {
		s = strings.Repeat("0", coinDecimals+1-len(s)) + s
	}
	at := len(s) - coinDecimals
	return strings.TrimRight(strings.TrimRight(s[:at]+"."+s[at:], "0"), ".")
}
