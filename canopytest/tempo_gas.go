package canopytest

import (
	"math/big"

	"github.com/canopy-go/canopy/payment"
)

// price is what one gas costs t.
func (c *Chain) price(t *TempoTx) uint64 {
	with, ok := t.Tip.Add(payment.UnitsOf(c.tempo.rules.BaseFee))
	if !ok || with.Cmp(t.MaxFee) > 0 {
		with = t.MaxFee
	}
	n, _ := with.Uint64() // below what anybody has
	return n
}

// feeOf is gas times price in units of a token with six decimals, rounded up.
func feeOf(gas uint64, price payment.Units) (payment.Units, bool) {
	n := new(big.Int).Mul(new(big.Int).SetUint64(gas), price.Big())
	n.Add(n, big.NewInt(999_999_999_999))
	return payment.UnitsFromBig(n.Quo(n, big.NewInt(1_000_000_000_000)))
}

// Gas that was measured, for a transfer with a memo to a payee that holds the
// token already.
const (
	gasNewLane    = 288_263
	gasUsedLane   = 43_463
	gasOwnNonce   = 38_263
	gasExpiring   = 51_263
	gasNewPayee   = 247_212
	gasMoreCalls  = 18_586
	gasShortNew   = 60_363
	gasShortLane  = 43_263
	gasShortPayee = 17_112
)

// gas is what carrying out t takes in the state as it is.
func (c *Chain) gas(t *TempoTx) uint64 {
	short := c.tempo.rules.T0
	payee := uint64(gasNewPayee)
	if short {
		payee = gasShortPayee
	}
	var used uint64
	first := c.next(t.Sender, t.NonceKey) == 0
	switch {
	case c.expiring(t):
		used = gasExpiring
	case t.NonceKey == [32]byte{} && (short || !first):
		used = gasOwnNonce
	case first && short:
		used = gasShortNew
	case first:
		used = gasNewLane
	case short:
		used = gasShortLane
	default:
		used = gasUsedLane
	}
	seen := map[holding]bool{}
	for i, call := range t.Calls {
		if i > 0 {
			used += gasMoreCalls
		}
		m, ok := call.transfer()
		to := holding{m.Token, m.To}
		if ok && !seen[to] && c.balances[to].IsZero() {
			used += payee
		}
		seen[to] = true
	}
	return used
}

// gasFloor is the gas limit below which nodes refuse to simulate.
func (c *Chain) gasFloor(t *TempoTx) uint64 {
	fresh := c.next(t.Sender, [32]byte{}) == 0
	unused := c.next(t.Sender, t.NonceKey) == 0
	pick := func(first, later uint64) uint64 {
		if fresh {
			return first
		}
		return later
	}
	own, used := t.NonceKey == [32]byte{}, !unused
	if c.tempo.rules.T0 {
		switch {
		case own:
			return 53_837
		case used:
			return pick(83_808, 58_671)
		}
		return pick(100_243, 75_106)
	}
	switch {
	case own:
		return pick(771_200, 521_767)
	case c.expiring(t):
		return pick(784_735, 534_335)
	case used:
		return pick(777_001, 526_601)
	}
	return pick(1_021_601, 771_200)
}
