package canopy

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Carrier is an optional power of a Rail: transactions of the account's own that
// carry direct transfers, where nobody submits them for us.
type Carrier interface {
	// CarryNeeds is the gas limit of such a transaction, and how many bytes it has
	// at most.
	CarryNeeds() (gas uint64, size int)

	// Carry builds and signs the transaction that g stands for, with one call of
	// s.Sign under g.Permit, and returns it with its hash. The same grant and a
	// deterministic signer give the same bytes. It does not sign once ctx has
	// ended.
	Carry(ctx context.Context, g payment.CarryGrant, s payment.Signer) (raw []byte, txHash string, err error)

	// ReadCarry reads the signed bytes back, and is nil where they are the
	// payer's transaction that carries g's authorization with what g.Carry says,
	// and nothing else.
	ReadCarry(raw []byte, g payment.CarryGrant) error
}

// Sender is an optional power of a Chain: transactions of the account's own. What
// it says is a claim, never evidence. Implementations are safe for concurrent
// use, and give up when ctx ends.
type Sender interface {
	// Gas is what a transaction of account's of size bytes would need now.
	Gas(ctx context.Context, account Address, size int) (payment.GasQuote, error)

	// Broadcast hands over a signed transaction. To hand over the same one again
	// is safe; with an error it may have been taken too.
	Broadcast(ctx context.Context, raw []byte) (txHash string, err error)

	// Receipt tells whether the transaction is in a block, whether it did there
	// what it was to do, and which block that is. Not found is no error.
	Receipt(ctx context.Context, txHash string) (found, ok bool, block payment.Block, err error)
}

// Gas bounds what transactions of the account's own may cost on a chain, in the
// smallest unit of its coin. Both are enforced by the ledger.
type Gas struct {
	Max    Units // that all transactions which carry one payment can cost together
	PerDay Units // that those of all payments of the account can cost in 24 hours; ten times Max where it is zero
}

// gas is a copy of t.Gas with the zeros filled.
func (t *Treasury) gas() (map[ChainID]Gas, error) {
	out := make(map[ChainID]Gas, len(t.Gas))
	for id, g := range t.Gas {
		if g.Max.IsZero() {
			return nil, fmt.Errorf("canopy: Config.Treasury.Gas[%s].Max is zero: leave the chain out", id)
		}
		if g.PerDay.IsZero() {
			day, ok := payment.UnitsFromBig(new(big.Int).Mul(g.Max.Big(), big.NewInt(10)))
			if !ok {
				return nil, fmt.Errorf("canopy: Config.Treasury.Gas[%s].Max is no amount", id)
			}
			g.PerDay = day
		}
		out[id] = g
	}
	return out, nil
}

// Codes of denials for want of gas.
const (
	CodeInsufficientGas = "insufficient_gas" // the account holds less of the chain's coin than Gas.Max
	CodeMaxGas          = "max_gas"          // a transaction would cost more than Gas.Max now
	CodeGasUnknown      = "gas_unknown"      // no node tells what a transaction would cost
)

// carriage is how transfers on a chain are carried by transactions of the
// account's own.
type carriage struct {
	Carrier
	chain Sender
	gas   Gas
}

// carriage is that of a rail on a chain; an error where there is none.
func (c *Client) carriage(rail string, id ChainID) (carriage, error) {
	gas, ok := c.cfg.Treasury.Gas[id]
	if !ok {
		return carriage{}, errors.New("and no gas is allowed for a transaction of our own (max_gas in its [[chain]], Config.Treasury.Gas)")
	}
	out := carriage{gas: gas}
	for _, r := range c.cfg.Rails {
		if r.Name() == rail {
			out.Carrier, _ = r.(Carrier)
		}
	}
	if out.Carrier == nil {
		return carriage{}, fmt.Errorf("and the rail %s makes no transactions on %s", clip(rail), id.Name())
	}
	if out.chain, ok = c.chain(id).(Sender); !ok || c.reconciler(id) == nil {
		return carriage{}, errors.New("and no nodes are configured to send a transaction of our own to (rpc in its [[chain]], Config.Treasury.Chains)")
	}
	return out, nil
}

// submits tells why a transfer on these terms could not be submitted, or nil;
// own is how transactions of the account's own carry it, where nobody else
// submits it.
func (c *Client) submits(rail string, chain ChainID) (own *carriage, err error) {
	tr := c.transferer(rail)
	if tr == nil {
		return nil, fmt.Errorf("canopy: this client has no rail %s that transfers", clip(rail))
	}
	if err = tr.Submits(chain); err == nil {
		return nil, nil
	}
	if _, carries := tr.(Carrier); carries {
		car, why := c.carriage(rail, chain)
		if why == nil {
			return &car, nil
		}
		err = fmt.Errorf("%w, %w", err, why)
	}
	return nil, unfit("Chain", err)
}

// resubmits is submits for a payment that was authorized: one without gas has no
// transactions.
func (c *Client) resubmits(e ledger.Entry) (*carriage, error) {
	own, err := c.submits(e.Terms.Rail, e.Slot.Chain)
	if err == nil && own != nil && e.Gas.IsZero() {
		return nil, errors.New("it was authorized for a facilitator, and none is configured now")
	}
	return own, err
}

// gassed is o judged by what a transaction would cost, and the bounds to reserve;
// nil where own is.
func (c *Client) gassed(ctx context.Context, o offered, own *carriage) (offered, *ledger.Gas) {
	if own == nil {
		return o, nil
	}
	bounds := &ledger.Gas{Bound: own.gas.Max, PerDay: own.gas.PerDay}
	if o.verdict.Status == payment.Denied || c.Address().IsZero() {
		return o, bounds
	}
	bounded, cancel := clock.WithTimeout(ctx, c.cfg.Clock, probeTime)
	defer cancel()
	q, err := own.quote(bounded, c.Address())
	deny := func(code, format string, args ...any) (offered, *ledger.Gas) {
		return o.denied(policy.Reason{Status: payment.Denied, Code: code, Text: fmt.Sprintf(format, args...), Cost: o.terms.Cost()}), bounds
	}
	name := o.terms.Asset.Chain.Name()
	if err != nil {
		return deny(CodeGasUnknown, "Gas unknown: no node of %s tells what a transaction costs: %s", name, noteOf(err))
	}
	if q.Coin.Cmp(own.gas.Max) < 0 {
		return deny(CodeInsufficientGas, "Insufficient gas: %s can be needed, and the account holds %s of the coin of %s", own.gas.Max.Coin(), q.Coin.Coin(), name)
	}
	if _, err := own.next(q, own.gas.Max, nil); err != nil {
		return deny(CodeMaxGas, "Gas too dear: %v", err)
	}
	return o, bounds
}

func (r *carriage) quote(ctx context.Context, account Address) (q payment.GasQuote, err error) {
	_, size := r.CarryNeeds()
	err = safely(func() (err error) { q, err = r.chain.Gas(ctx, account, size); return err })
	return q, err
}

// maxPrice bounds a price for a unit of gas: no chain's comes near it.
const maxPrice = 1 << 60

var errTooDear = errors.New("the price of gas is beyond every chain's")

// next is the transaction to make after those that were made, by what nodes say
// now, so that all of them together can cost most. The first pays for a base fee
// that doubles, if most allows it. One that is to take the place of another pays
// a quarter more than that.
func (r *carriage) next(q payment.GasQuote, most Units, made []payment.Carry) (payment.Carry, error) {
	gas, _ := r.CarryNeeds()
	out := payment.Carry{Nonce: q.Nonce, GasLimit: gas, DataFee: q.DataFee}
	if q.BaseFee > maxPrice || q.Tip > maxPrice {
		return out, errTooDear
	}
	least, fee, tip := q.BaseFee+q.BaseFee/8+1, 2*q.BaseFee+q.Tip+1, q.Tip
	if n := len(made); n > 0 && made[n-1].Nonce >= q.Mined {
		last := made[n-1]
		out.Nonce, out.DataFee = last.Nonce, larger(last.DataFee, q.DataFee)
		least = max(least, last.MaxFee+last.MaxFee/4+1)
		fee, tip = max(fee, least), max(tip, last.MaxTip+last.MaxTip/4+1)
	}
	left, ok := most.Sub(out.DataFee)
	var others []payment.Carry
	for _, c := range made {
		if c.Nonce != out.Nonce {
			others = append(others, c)
		}
	}
	if spent, counted := payment.CarryCost(others); ok && counted {
		left, ok = left.Sub(spent)
	} else {
		ok = false
	}
	affordable := new(big.Int).Div(left.Big(), new(big.Int).SetUint64(gas))
	if !ok || affordable.Cmp(new(big.Int).SetUint64(least)) < 0 {
		return out, fmt.Errorf("%d units of gas at %d cost more than is left of max_gas %s", gas, least, most.Coin())
	}
	if affordable.IsUint64() {
		fee = min(fee, affordable.Uint64())
	}
	out.MaxFee, out.MaxTip = fee, min(tip, fee)
	return out, nil
}

func larger(a, b Units) Units {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}
