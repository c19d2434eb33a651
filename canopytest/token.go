package canopytest

import (
	"math/big"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// check is the rule of transferWithAuthorization at time t, in FiatTokenV2's
// order.
func (c *Chain) check(a Authorization, t time.Time) error {
	asset, ok := c.assets.Lookup(c.id, a.Token)
	if !ok || asset.NoAuthorization {
		return ErrToken
	}
	now, _ := payment.UnitsFromBig(big.NewInt(max(t.Unix(), 0)))
	switch {
	case now.Cmp(a.ValidAfter) <= 0:
		return ErrNotYetValid
	case now.Cmp(a.ValidBefore) >= 0:
		return ErrExpired
	}
	if _, used := c.used[slot{a.Token, a.From, a.Nonce}]; used {
		return ErrNonceUsed
	}
	if !a.signedBy(asset, false) {
		return ErrSignature
	}
	return c.movable(a)
}

func (c *Chain) movable(a Authorization) error {
	if a.To.IsZero() {
		return ErrRecipient
	}
	if c.balances[holding{a.Token, a.From}].Cmp(a.Value) < 0 {
		return ErrBalance
	}
	return nil
}

// apply carries tx out in the head block, or returns why it reverts.
func (c *Chain) apply(tx *transaction) error {
	a := tx.auth
	switch tx.kind {
	case txTempo:
		return c.applyTempo(tx)
	case txCarried:
		return c.applyCarried(tx)
	case txAuthorized:
		if err := c.check(a, c.head().Time); err != nil {
			return err
		}
		c.use(tx, false)
	case txSend:
		if err := c.movable(a); err != nil {
			return err
		}
	case txCancel:
		if _, used := c.used[slot{a.Token, a.From, a.Nonce}]; used {
			return ErrNonceUsed
		}
		c.use(tx, true)
		return nil
	}
	c.move(a.Token, a.From, a.To, a.Value)
	c.transfers = append(c.transfers, Transfer{
		Token: a.Token, From: a.From, To: a.To, Value: a.Value, Nonce: a.Nonce, TxHash: tx.hash, Block: c.stamp(),
	})
	return nil
}

func (c *Chain) use(tx *transaction, canceled bool) {
	a := tx.auth
	c.used[slot{a.Token, a.From, a.Nonce}] = use{block: c.head().Number}
	c.uses = append(c.uses, AuthorizationUse{
		Token: a.Token, From: a.From, Nonce: a.Nonce, Canceled: canceled, TxHash: tx.hash, Block: c.stamp(),
	})
}

// stamp is the head as records carry it: without the transactions, which are
// still being gathered.
func (c *Chain) stamp() Block {
	b := c.head()
	b.Txs = nil
	return b
}

// move changes balances. The zero address has no balance: what comes from it is
// minted, and what goes back to it is unminted by a reorganisation.
func (c *Chain) move(token, from, to payment.Address, value payment.Units) {
	if !from.IsZero() {
		left, ok := c.balances[holding{token, from}].Sub(value)
		if !ok {
			panic("canopytest: a balance below zero")
		}
		c.balances[holding{token, from}] = left
	}
	if !to.IsZero() {
		sum, ok := c.balances[holding{token, to}].Add(value)
		if !ok {
			panic("canopytest: a balance above 2^256-1")
		}
		c.balances[holding{token, to}] = sum
	}
}
