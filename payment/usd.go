package payment

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// USD is an amount of dollars in millionths: 1_000_000 is one dollar. It is
// never negative where it comes from a parser of this package.
type USD int64

// Amounts of dollars for use as 25*payment.Dollar.
const (
	Cent   USD = 10_000
	Dollar USD = 1_000_000
)

// MaxUSD stands for "more than can be counted": sums that overflow saturate
// to it, and no limit admits it, since ParseUSD refuses anything near it.
const MaxUSD USD = math.MaxInt64

// largestUSD is the largest amount that ParseUSD accepts: one trillion dollars.
const largestUSD USD = 1_000_000_000_000 * Dollar

// ErrAmount is wrapped by every error of a parser of amounts.
var ErrAmount = errors.New("payment: not an amount")

// ParseUSD reads dollars from text: digits, at most six decimals, and an
// optional leading $, as in "$10", "0.005" or "7.50". Signs, exponents,
// separators, spaces, leading zeros and anything finer than a millionth of a
// dollar are refused, as is more than a trillion dollars.
func ParseUSD(s string) (USD, error) {
	digits := strings.TrimPrefix(s, "$")
	whole, frac, point := strings.Cut(digits, ".")
	if !plainDigits(whole) || len(whole) > 13 || point && !fraction(frac) {
		return 0, fmt.Errorf("%w: %q is not dollars such as 10 or 0.005", ErrAmount, clip(s))
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", ErrAmount, clip(s))
	}
	u := USD(n)
	if u > largestUSD/Dollar {
		return 0, fmt.Errorf("%w: %q is more than a trillion dollars", ErrAmount, clip(s))
	}
	u *= Dollar
	if point {
		f, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %q", ErrAmount, clip(s))
		}
		u += USD(f)
	}
	if u > largestUSD {
		return 0, fmt.Errorf("%w: %q is more than a trillion dollars", ErrAmount, clip(s))
	}
	return u, nil
}

// plainDigits reports whether s is a decimal count without leading zeros.
func plainDigits(s string) bool {
	if s == "" || s[0] == '0' && len(s) > 1 {
		return false
	}
	return allDigits(s)
}

// fraction reports whether s is one to six decimals, or more when those beyond
// the sixth are zeros.
func fraction(s string) bool {
	if s == "" || len(s) > 30 || !allDigits(s) {
		return false
	}
	return len(s) <= 6 || strings.Trim(s[6:], "0") == ""
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// clip bounds foreign text that goes into an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// Add returns u+v, or MaxUSD and false where the sum cannot be counted or a
// term is negative or already saturated.
func (u USD) Add(v USD) (USD, bool) {
	if u < 0 || v < 0 || u > MaxUSD-v || u == MaxUSD || v == MaxUSD {
		return MaxUSD, false
	}
	return u + v, true
}

// Sub returns u-v, or 0 and false where v is more than u.
func (u USD) Sub(v USD) (USD, bool) {
	if u < 0 || v < 0 || v > u {
		return 0, false
	}
	return u - v, true
}

// Decimal is u as digits with at least two decimals and no sign of currency,
// such as 7.50 or 0.0005.
func (u USD) Decimal() string { return string(u.appendDecimal(nil)) }

// String is u as people write it, such as $7.50, with at least two decimals.
func (u USD) String() string {
	if u == MaxUSD {
		return "more than can be counted"
	}
	if u < 0 {
		return "-$" + string((-u).appendDecimal(nil))
	}
	return string(u.appendDecimal([]byte{'$'}))
}

func (u USD) appendDecimal(b []byte) []byte {
	if u < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendInt(b, int64(u/Dollar), 10)
	frac := int64(u % Dollar)
	b = append(b, '.')
	for unit, i := int64(100_000), 0; i < 6 && (i < 2 || frac > 0); i++ {
		b = append(b, byte('0'+frac/unit))
		frac %= unit
		unit /= 10
	}
	return b
}

// MarshalJSON writes u as a JSON number with at least two decimals.
func (u USD) MarshalJSON() ([]byte, error) { return u.appendDecimal(nil), nil }

// UnmarshalJSON reads u from the characters of a JSON number, or from a string
// that ParseUSD accepts; a number that is not exact to a millionth is refused.
func (u *USD) UnmarshalJSON(b []byte) error {
	s := string(b)
	if len(s) >= 2 && s[0] == '"' {
		var err error
		if s, err = strconv.Unquote(s); err != nil {
			return fmt.Errorf("%w: %s", ErrAmount, clip(string(b)))
		}
	} else if strings.HasPrefix(s, "$") {
		return fmt.Errorf("%w: %s", ErrAmount, clip(s))
	}
	v, err := ParseUSD(s)
	if err != nil {
		return err
	}
	*u = v
	return nil
}

// MarshalText writes u as Decimal does.
func (u USD) MarshalText() ([]byte, error) { return u.appendDecimal(nil), nil }

// UnmarshalText reads what ParseUSD accepts.
func (u *USD) UnmarshalText(b []byte) error {
	v, err := ParseUSD(string(b))
	if err == nil {
		*u = v
	}
	return err
}
