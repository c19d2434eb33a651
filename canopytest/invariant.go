package canopytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/canopy-go/canopy/payment"
)

// Move is what a test expects to have moved: who paid whom how much.
type Move struct {
	From, To payment.Address
	Amount   payment.USD
}

// Debits is the sum of asset that left account, without what Mint and Fund
// made, at the latest block.
func (c *Chain) Debits(asset payment.Asset, account payment.Address) payment.Units {
	var sum payment.Units
	for _, t := range c.Transfers() {
		if t.From == account && t.Token == asset.Address {
			sum, _ = sum.Add(t.Value) // below the minted supply, which was counted
		}
	}
	return sum
}

// Spent is what left account in all tokens of the chain, in dollars, fees
// included.
func (c *Chain) Spent(account payment.Address) payment.USD {
	var sum payment.USD
	for _, asset := range c.assets.On(c.id) {
		v, _ := asset.Value(c.Debits(asset, account))
		sum, _ = sum.Add(v)
	}
	return sum
}

// Fees is what account paid in fees in all tokens of the chain, in dollars.
func (c *Chain) Fees(account payment.Address) payment.USD {
	var sum payment.USD
	for _, t := range c.Transfers() {
		if asset, ok := c.assets.Lookup(c.id, t.Token); ok && t.Fee && t.From == account {
			v, _ := asset.Value(t.Value)
			sum, _ = sum.Add(v)
		}
	}
	return sum
}

// Memos returns the transfers out of account with that memo: one or none,
// whatever was signed with it.
func (c *Chain) Memos(account payment.Address, memo [32]byte) []Transfer {
	return slices.DeleteFunc(c.Transfers(), func(t Transfer) bool { return t.From != account || !t.HasMemo || t.Memo != memo })
}

// TransfersOf returns the transfers that the nonce of from made: one or none,
// whatever was signed with it.
func (c *Chain) TransfersOf(from payment.Address, nonce [32]byte) []Transfer {
	return slices.DeleteFunc(c.Transfers(), func(t Transfer) bool { return t.From != from || t.Nonce != nonce })
}

// AssertTransfers fails tb unless the transfers of the chain, without those of
// Mint and Fund and without fees, are want in that order.
func (c *Chain) AssertTransfers(tb TB, want ...Move) {
	tb.Helper()
	var got []Move
	for _, t := range c.Transfers() {
		if t.Fee {
			continue
		}
		m := Move{From: t.From, To: t.To, Amount: payment.MaxUSD}
		if asset, ok := c.assets.Lookup(c.id, t.Token); ok {
			m.Amount, _ = asset.Value(t.Value)
		}
		got = append(got, m)
	}
	if !slices.Equal(got, want) {
		tb.Errorf("canopytest: transfers on %s:\ngot  %s\nwant %s", c.id, list(got), list(want))
	}
}

func list(moves []Move) string {
	if len(moves) == 0 {
		return "none"
	}
	lines := make([]string, len(moves))
	for i, m := range moves {
		lines[i] = fmt.Sprintf("%v from %s to %s", m.Amount, m.From, m.To)
	}
	return strings.Join(lines, "\n     ")
}

// AssertSpent fails tb unless exactly want left account.
func (c *Chain) AssertSpent(tb TB, account payment.Address, want payment.USD) {
	tb.Helper()
	if got := c.Spent(account); got != want {
		tb.Errorf("canopytest: %s spent %v on %s, want %v", account, got, c.id, want)
	}
}

// AssertSpentAtMost fails tb where more than limit left account: a cap that was
// broken, whatever any server did.
func (c *Chain) AssertSpentAtMost(tb TB, account payment.Address, limit payment.USD) {
	tb.Helper()
	if got := c.Spent(account); got > limit {
		tb.Errorf("canopytest: %s spent %v on %s, above the limit of %v", account, got, c.id, limit)
	}
}
