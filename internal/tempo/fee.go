package tempo

import (
	"encoding/binary"
	"math/bits"

	"github.com/canopy-go/canopy/payment"
)

// perUnit is how many 1e-18 dollars make a base unit of a TIP-20 token, which
// has six decimals.
const perUnit = 1_000_000_000_000

// Fee is what gas costs at a price in 1e-18 dollars, in base units of the fee
// token, rounded up as the chain does. With the limits of a transaction it is
// the most that its fee can be. It cannot overflow.
func Fee(gas, price uint64) payment.Units {
	hi, lo := bits.Mul64(gas, price)
	lo, carry := bits.Add64(lo, perUnit-1, 0)
	hi += carry // below 2^64: the product of two is at most 2^128 - 2^65 + 1
	q, rem := hi/perUnit, hi%perUnit
	low, _ := bits.Div64(rem, lo, perUnit)
	var b [32]byte
	binary.BigEndian.PutUint64(b[16:], q)
	binary.BigEndian.PutUint64(b[24:], low)
	return payment.UnitsFromBytes(b)
}

// FeeBound is the most that the sender of t can be charged as a fee, 0 where it
// is sponsored.
func (t *Transaction) FeeBound() payment.Units {
	if t.Sponsored() {
		return payment.Units{}
	}
	return Fee(t.Gas, t.MaxFeePerGas)
}
