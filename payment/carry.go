package payment

import (
	"math/bits"
	"strconv"
)

// Carry is a transaction of the account's own that carries an authorization to
// a chain: what its sender chooses. Nonce is the account's, which one
// transaction uses up; whether the authorization moves money is for the slot to
// say, whatever carries it.
type Carry struct {
	Nonce    uint64
	GasLimit uint64
	MaxFee   uint64 // for each unit of gas, in the smallest unit of the chain's coin
	MaxTip   uint64 // the part of MaxFee that is the block's builder's at most
	DataFee  Units  // set aside for what the chain takes beside gas, such as for its data on another one
}

// Cost is the most that c costs where it lands, and false where that cannot be
// counted.
func (c Carry) Cost() (Units, bool) {
	var u Units
	u.w[2], u.w[3] = bits.Mul64(c.GasLimit, c.MaxFee)
	return u.Add(c.DataFee)
}

// CarryCost is the most that all of some can cost together, of which one lands
// for each nonce; false where that cannot be counted.
func CarryCost(all []Carry) (sum Units, ok bool) {
	for i, c := range all {
		dearest, first := Units{}, true
		for j, other := range all {
			if other.Nonce != c.Nonce {
				continue
			}
			if first = first && j >= i; !first {
				break
			}
			cost, fits := other.Cost()
			if !fits {
				return Units{}, false
			}
			if cost.Cmp(dearest) > 0 {
				dearest = cost
			}
		}
		if !first {
			continue // counted with the first of its nonce
		}
		if sum, ok = sum.Add(dearest); !ok {
			return Units{}, false
		}
	}
	return sum, true
}

// CarryKey is what the permit of the nth transaction that carries a payment is
// for, from 1: as the key of a slot, and equal to that of none.
func CarryKey(id ID, n int) string { return "carry/" + string(id) + "/" + strconv.Itoa(n) }

// CarryGrant is what a rail builds a carrying transaction from.
type CarryGrant struct {
	Grant         Grant         // of the authorization
	Authorization Authorization // signed
	Carry         Carry
	Key           string // CarryKey, which Permit is for
	Permit        Permit
}

// GasQuote is what a chain's nodes say that a transaction of an account would
// need now. It is a claim.
type GasQuote struct {
	Nonce   uint64 // the account's next, what waits included
	Mined   uint64 // the account's next by the newest block: those below it are used up
	Coin    Units  // what the account holds of the chain's own coin
	BaseFee uint64 // of the newest block, for each unit of gas
	Tip     uint64 // that is usual beside it
	DataFee Units  // what the chain takes beside gas; zero where it takes nothing
}
