package chain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/canopy-go/canopy/payment"
)

// dataFees tells on some chains what data costs beside gas: the predeployed
// oracle of the OP stack.
var dataFees = payment.Address{0x42, 19: 0x0f}

// upperDataFee is of a transaction of so many bytes at most.
var upperDataFee = signature("getL1FeeUpperBound(uint256)")

// Gas is what nodes say that a transaction of account's of size bytes would need
// now. What a node says too much of costs at most what was permitted, and what
// it says too little of may keep the transaction from being mined, so where
// several nodes answer no figure is that of one alone: balance, fees and what is
// mined are the second highest. The account's next nonce is the highest, and an
// error where nodes are far apart. The fee for data, where the chain takes one,
// is twice what it is now, as the highest has it.
func (c *Chain) Gas(ctx context.Context, account payment.Address, size int) (payment.GasQuote, error) {
	all, err := all(ctx, c, 1, func(ctx context.Context, n *node) (quote, error) { return n.gas(ctx, account, size) })
	if err != nil {
		return payment.GasQuote{}, fmt.Errorf("chain: gas: %w", err)
	}
	agreed := func(f func(a, b quote) int) quote {
		slices.SortFunc(all, func(a, b quote) int { return f(b, a) })
		return all[min(c.Sources(), len(all))-1]
	}
	out := payment.GasQuote{
		Coin:    agreed(func(a, b quote) int { return a.coin.Cmp(b.coin) }).coin,
		BaseFee: agreed(func(a, b quote) int { return cmp.Compare(a.base, b.base) }).base,
		Tip:     agreed(func(a, b quote) int { return cmp.Compare(a.tip, b.tip) }).tip,
		Mined:   agreed(func(a, b quote) int { return cmp.Compare(a.mined, b.mined) }).mined,
	}
	low := all[0].nonce
	for _, q := range all {
		low, out.Nonce = min(low, q.nonce), max(out.Nonce, q.nonce)
		if q.data.Cmp(out.DataFee) > 0 {
			out.DataFee = q.data
		}
	}
	if out.Nonce-low > maxNonceGap {
		return payment.GasQuote{}, fmt.Errorf("chain: gas: the next nonce of %s is %d or %d: %w", account, low, out.Nonce, ErrDisagree)
	}
	var fits bool
	if out.DataFee, fits = out.DataFee.Add(out.DataFee); !fits {
		return payment.GasQuote{}, fmt.Errorf("chain: gas: %w: an impossible fee for data", ErrAnswer)
	}
	return out, nil
}

// maxNonceGap is how far apart nodes may be that do not have all that waits.
const maxNonceGap = 64

// quote is what one node says.
type quote struct {
	nonce, mined, base, tip uint64
	coin, data              payment.Units
}

func (n *node) gas(ctx context.Context, account payment.Address, size int) (quote, error) {
	var nonce, mined, tip quantity
	var coin wide
	var fee data
	var head *struct {
		BaseFee *quantity `json:"baseFeePerGas"`
	}
	calls := []*call{
		{method: "eth_getTransactionCount", params: []any{account.Lower(), "pending"}, result: &nonce},
		{method: "eth_getTransactionCount", params: []any{account.Lower(), "latest"}, result: &mined},
		{method: "eth_getBalance", params: []any{account.Lower(), "latest"}, result: &coin},
		{method: "eth_getBlockByNumber", params: []any{"latest", false}, result: &head},
		{method: "eth_maxPriorityFeePerGas", result: &tip},
		{method: "eth_call", result: &fee, params: []any{map[string]any{
			"to": dataFees.Lower(), "data": data(append(selector(upperDataFee), word32(word(payment.UnitsOf(uint64(size)).Bytes()))...)),
		}, "latest"}},
	}
	if err := n.read(ctx, calls...); err != nil {
		return quote{}, err
	}
	for _, c := range calls {
		if c.err != nil {
			return quote{}, fmt.Errorf("%s: %s: %w", n.host, c.method, c.err)
		}
	}
	switch {
	case head == nil || head.BaseFee == nil:
		return quote{}, fmt.Errorf("%w: %s has no base fee: the chain takes no transactions of EIP-1559", ErrAnswer, n.host)
	case len(fee) != 0 && len(fee) != 32:
		return quote{}, fmt.Errorf("%w: %s gave no fee for data", ErrAnswer, n.host)
	}
	q := quote{nonce: max(uint64(nonce), uint64(mined)), mined: uint64(mined), base: uint64(*head.BaseFee), tip: uint64(tip), coin: payment.UnitsFromBytes(coin)}
	if len(fee) == 32 {
		q.data = payment.UnitsFromBytes([32]byte(fee))
	}
	return q, nil
}
