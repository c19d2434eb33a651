package payment

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Units is a count of a token's base units, 0 to 2^256-1. It is a value: two
// counts are equal when they are ==, and the zero value is 0.
type Units struct {
	w [4]uint64 // most significant first
}

// UnitsOf returns n as Units.
func UnitsOf(n uint64) Units { return Units{[4]uint64{3: n}} }

// ParseUnits reads a count as sellers must write it: ^(0|[1-9][0-9]{0,77})$,
// below 2^256. Signs, leading zeros, exponents, spaces and other digits are
// refused.
func ParseUnits(s string) (Units, error) {
	if !plainDigits(s) || len(s) > 78 {
		return Units{}, fmt.Errorf("%w: %q is not a count of base units", ErrAmount, clip(s))
	}
	var u Units
	for len(s) > 0 {
		n := min(len(s), 18)
		var chunk, scale uint64 = 0, 1
		for i := range n {
			chunk = chunk*10 + uint64(s[i]-'0')
			scale *= 10
		}
		var ok bool
		if u, ok = u.mul(scale); ok {
			u, ok = u.Add(UnitsOf(chunk))
		}
		if !ok {
			return Units{}, fmt.Errorf("%w: more than 2^256-1 base units", ErrAmount)
		}
		s = s[n:]
	}
	return u, nil
}

// UnitsFromBytes reads a big-endian count of 32 bytes.
func UnitsFromBytes(b [32]byte) Units {
	var u Units
	for i := range u.w {
		u.w[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return u
}

// UnitsFromBig returns b as Units, and false where it is nil, negative or
// above 2^256-1.
func UnitsFromBig(b *big.Int) (Units, bool) {
	if b == nil || b.Sign() < 0 || b.BitLen() > 256 {
		return Units{}, false
	}
	var buf [32]byte
	b.FillBytes(buf[:])
	return UnitsFromBytes(buf), true
}

// Bytes is u as 32 big-endian bytes, the form that EIP-712 and the ABI sign.
func (u Units) Bytes() [32]byte {
	var b [32]byte
	for i, w := range u.w {
		binary.BigEndian.PutUint64(b[8*i:], w)
	}
	return b
}

// Big is u as a new big.Int.
func (u Units) Big() *big.Int {
	b := u.Bytes()
	return new(big.Int).SetBytes(b[:])
}

// IsZero reports whether u is 0.
func (u Units) IsZero() bool { return u == Units{} }

// Uint64 is u, and false where it does not fit.
func (u Units) Uint64() (uint64, bool) {
	return u.w[3], u.w[0]|u.w[1]|u.w[2] == 0
}

// Cmp is -1, 0 or +1 as u is below, equal to or above v.
func (u Units) Cmp(v Units) int {
	for i := range u.w {
		if u.w[i] != v.w[i] {
			if u.w[i] < v.w[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// Add returns u+v, and false where the sum is above 2^256-1.
func (u Units) Add(v Units) (Units, bool) {
	var carry uint64
	for i := 3; i >= 0; i-- {
		u.w[i], carry = bits.Add64(u.w[i], v.w[i], carry)
	}
	return u, carry == 0
}

// Sub returns u-v, and false where v is above u.
func (u Units) Sub(v Units) (Units, bool) {
	var borrow uint64
	for i := 3; i >= 0; i-- {
		u.w[i], borrow = bits.Sub64(u.w[i], v.w[i], borrow)
	}
	return u, borrow == 0
}

func (u Units) mul(n uint64) (Units, bool) {
	var carry uint64
	for i := 3; i >= 0; i-- {
		hi, lo := bits.Mul64(u.w[i], n)
		var c uint64
		u.w[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	return u, carry == 0
}

// quo returns u/n and the remainder; n is not 0.
func (u Units) quo(n uint64) (q Units, rem uint64) {
	for i := range u.w {
		q.w[i], rem = bits.Div64(rem, u.w[i], n)
	}
	return q, rem
}

// String is u in decimal.
func (u Units) String() string {
	if n, ok := u.Uint64(); ok {
		return strconv.FormatUint(n, 10)
	}
	var parts []string
	for !u.IsZero() {
		var rem uint64
		if u, rem = u.quo(1e18); u.IsZero() {
			parts = append(parts, fmt.Sprint(rem))
		} else {
			parts = append(parts, fmt.Sprintf("%018d", rem))
		}
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return b.String()
}

// MarshalText writes u in decimal.
func (u Units) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what ParseUnits accepts.
func (u *Units) UnmarshalText(b []byte) error {
	v, err := ParseUnits(string(b))
	if err == nil {
		*u = v
	}
	return err
}
