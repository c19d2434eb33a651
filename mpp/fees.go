package mpp

import (
	"errors"
	"fmt"

	"github.com/canopy-go/canopy/internal/tempo"
	"github.com/canopy-go/canopy/payment"
)

// Fees bound the fee of a transaction on Tempo: Gas for its first call and
// GasPerCall for each further one, at MaxPrice each. The bound is part of what
// a payment costs, and is set aside with it; what the chain did not take of it
// stops counting once the payment is settled.
type Fees struct {
	Gas        uint64 // default 1,200,000: a new lane and a new payee take about 540,000
	GasPerCall uint64 // default 300,000
	MaxPrice   uint64 // of one gas, in 1e-18 dollars; default 25 gwei, 25e9
	Tip        uint64 // of it, at most what goes to who makes the block; default 1 gwei
}

// The bounds that sponsors hold transactions to.
const (
	maxGas      = 2_000_000
	maxPrice    = 100_000_000_000
	maxTip      = 10_000_000_000
	maxFeeTotal = 50_000_000_000_000_000 // gas times price
)

func (f Fees) filled() (Fees, error) {
	if f.Gas == 0 {
		f.Gas = 1_200_000
	}
	if f.GasPerCall == 0 {
		f.GasPerCall = 300_000
	}
	if f.MaxPrice == 0 {
		f.MaxPrice = 25_000_000_000
	}
	if f.Tip == 0 {
		f.Tip = min(1_000_000_000, f.MaxPrice)
	}
	switch {
	case f.Gas > 30_000_000 || f.GasPerCall > 30_000_000:
		return f, errors.New("more gas than a block has")
	case f.MaxPrice > 1_000_000_000_000:
		return f, fmt.Errorf("a MaxPrice of %d is more than 1,000 gwei: it is in 1e-18 dollars", f.MaxPrice)
	case f.Tip > f.MaxPrice:
		return f, fmt.Errorf("a Tip of %d is more than the MaxPrice of %d", f.Tip, f.MaxPrice)
	}
	return f, nil
}

// limits are the gas limits of one transaction, as they are signed.
type limits struct{ gas, price, tip uint64 }

// limits are those of a transaction with so many calls, within what sponsors
// take where one pays.
func (f Fees) limits(calls int, sponsored bool) limits {
	l := limits{gas: f.Gas + uint64(calls-1)*f.GasPerCall, price: f.MaxPrice, tip: f.Tip}
	if sponsored {
		l.gas, l.price = min(l.gas, maxGas), min(l.price, maxPrice)
		l.price = min(l.price, maxFeeTotal/l.gas)
		l.tip = min(l.tip, maxTip, l.price)
	}
	return l
}

// bound is the most that the fee can be, in dollars, rounded up.
func (l limits) bound(a payment.Asset) (payment.USD, bool) {
	return a.Value(tempo.Fee(l.gas, l.price))
}
