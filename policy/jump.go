package policy

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// priceJump asks where a payment costs more than some multiple of what the last
// one to the same place did.
type priceJump struct {
	times int64  // in thousandths
	text  string // as the document wrote it
}

// parseJump reads a multiple, such as 3x or 1.5x: above 1, at most 1000, with
// three decimals at most.
func parseJump(s string) (priceJump, error) {
	number, ok := strings.CutSuffix(s, "x")
	whole, decimals, point := strings.Cut(number, ".")
	n, isNumber := parseCount(whole)
	m := int64(0)
	if point {
		isNumber = isNumber && decimals != "" && len(decimals) <= 3
		for i := range 3 {
			m *= 10
			if i < len(decimals) {
				isNumber = isNumber && decimals[i] >= '0' && decimals[i] <= '9'
				m += int64(decimals[i] - '0')
			}
		}
	}
	switch {
	case !ok || !isNumber:
		return priceJump{}, fmt.Errorf(`%q is not a multiple: write one like "3x" or "1.5x"`, clip(s))
	case n < 1 || n == 1 && m == 0:
		return priceJump{}, fmt.Errorf(`%q is no jump: a multiple is above 1, like "3x" or "1.5x"`, clip(s))
	case n > 1000 || n == 1000 && m > 0:
		return priceJump{}, fmt.Errorf(`%q is above 1000x`, clip(s))
	}
	return priceJump{times: n*1000 + m, text: s}, nil
}

// exceeded reports whether cost is more than the multiple of what was paid.
func (r priceJump) exceeded(cost, paid payment.USD) bool {
	if cost < 0 || paid < 0 {
		return true
	}
	high, low := bits.Mul64(uint64(cost), 1000)
	mostHigh, mostLow := bits.Mul64(uint64(paid), uint64(r.times))
	return high > mostHigh || high == mostHigh && low > mostLow
}

// most is the multiple of what was paid, rounded down; it saturates.
func (r priceJump) most(paid payment.USD) payment.USD {
	high, low := bits.Mul64(uint64(max(paid, 0)), uint64(r.times))
	if high >= 1000 {
		return payment.MaxUSD
	}
	n, _ := bits.Div64(high, low, 1000)
	return payment.USD(min(n, uint64(payment.MaxUSD)))
}

func (r priceJump) reason(cost, paid payment.USD) Reason {
	return Reason{
		Status: payment.PendingApproval, Code: CodePriceJump, Rule: r.text, Cost: cost, Used: paid, Limit: r.most(paid),
		Text: "Price jumped: " + cost.String() + " is more than " + r.text + " the " + paid.String() + " paid before",
	}
}
