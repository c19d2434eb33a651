package canopytest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// Tx is what a chain knows of a transaction.
type Tx struct {
	Hash    string // 0x and hex
	Pending bool   // broadcast and not mined; for ever, where it cannot land
	Block   Block  // that it is in; zero while pending
	Err     error  // why it was reverted; nil for one that is pending or succeeded
}

// Errors of Settle and Wait, beyond those of the token.
var (
	ErrReverted  = errors.New("canopytest: the transaction was mined and reverted")
	ErrUnknownTx = errors.New("canopytest: no such transaction")
	ErrTimeout   = errors.New("canopytest: the transaction was not mined in time")
)

type transaction struct {
	kind    txKind
	auth    Authorization
	tempo   *TempoTx   // where kind is txTempo
	carried *CarriedTx // where kind is txCarried
	hash    string
	mined   bool
	block   uint64
	err     error
}

type txKind uint8

const (
	txAuthorized txKind = iota
	txSend
	txMint
	txCancel
	txTempo
	txCarried
)

// Simulate reports what would stop a from settling at the latest block and the
// clock's time; nil where nothing would.
func (c *Chain) Simulate(a Authorization) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.check(a, c.clock.Now())
}

// Enqueue puts a among the transactions that wait, without looking at it, and
// returns the transaction's hash. It is mined by the next block, even where the
// chain mines instantly.
func (c *Chain) Enqueue(a Authorization) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.enqueue(txAuthorized, a).hash
}

// Settle simulates a, broadcasts it and waits until it is mined. Where it fails
// before the broadcast the Tx is zero and the error is the token's; a
// transaction that was mined and reverted is ErrReverted with the token's
// error; and where ctx ends first, the Tx is pending and may yet be mined.
func (c *Chain) Settle(ctx context.Context, a Authorization) (Tx, error) {
	return c.settle(ctx, a, time.Time{})
}

func (c *Chain) settle(ctx context.Context, a Authorization, deadline time.Time) (Tx, error) {
	c.mu.Lock()
	c.catchUp()
	if err := c.check(a, c.clock.Now()); err != nil {
		c.mu.Unlock()
		return Tx{}, err
	}
	tx := c.enqueue(txAuthorized, a)
	c.mu.Unlock()
	return c.waitUntil(ctx, tx.hash, deadline)
}

// Wait waits until a transaction is mined and returns it; a chain that mines
// instantly mines it now. Errors are those of Settle.
func (c *Chain) Wait(ctx context.Context, hash string) (Tx, error) {
	return c.waitUntil(ctx, hash, time.Time{})
}

// waitUntil is Wait with an end by the chain's clock.
func (c *Chain) waitUntil(ctx context.Context, hash string, deadline time.Time) (Tx, error) {
	for {
		c.mu.Lock()
		c.catchUp()
		tx, ok := c.byHash[hash]
		if !ok {
			c.mu.Unlock()
			return Tx{}, fmt.Errorf("%w: %s", ErrUnknownTx, hash)
		}
		if !tx.mined && c.mining == Instant && slices.Contains(c.pool, tx) {
			c.mine(c.clock.Now())
		}
		seen, until, changed := c.view(tx), deadline, c.changed
		lost := (tx.kind == txTempo || tx.kind == txCarried) && !tx.mined && !slices.Contains(c.pool, tx)
		if c.mining == Interval {
			if next := c.head().Time.Add(c.interval); until.IsZero() || next.Before(until) {
				until = next
			}
		}
		c.mu.Unlock()
		switch {
		case !seen.Pending && seen.Err != nil:
			return seen, fmt.Errorf("%w: %w", ErrReverted, seen.Err)
		case !seen.Pending:
			return seen, nil
		case !deadline.IsZero() && !c.clock.Now().Before(deadline):
			return seen, ErrTimeout
		case lost:
			return seen, ErrNeverLands
		}
		if err := c.clock.wait(ctx, until, changed); err != nil {
			return seen, err
		}
	}
}

// Tx returns the transaction with that hash, and false where there is none.
func (c *Chain) Tx(hash string) (Tx, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	tx, ok := c.byHash[hash]
	if !ok {
		return Tx{}, false
	}
	return c.view(tx), true
}

// Pending returns the hashes of the transactions that wait, in order.
func (c *Chain) Pending() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	hashes := make([]string, 0, len(c.pool))
	for _, tx := range c.pool {
		hashes = append(hashes, tx.hash)
	}
	return hashes
}

// Drop takes a waiting transaction away, as nodes do with one that was replaced
// or priced too low, and reports whether it was there.
func (c *Chain) Drop(hash string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	n := len(c.pool)
	c.pool = slices.DeleteFunc(c.pool, func(tx *transaction) bool { return tx.hash == hash })
	return len(c.pool) < n
}

// Fund mints dollars of Dollar to account. It panics where the amount is not
// one.
func (c *Chain) Fund(account payment.Address, amount payment.USD) {
	asset := c.Dollar()
	units, ok := asset.Units(amount)
	if !ok {
		panic(fmt.Sprintf("canopytest: %v cannot be minted", amount))
	}
	c.Mint(asset, account, units)
}

// Mint creates amount of asset on account, in a block of its own.
func (c *Chain) Mint(asset payment.Asset, account payment.Address, amount payment.Units) {
	c.own(txMint, Authorization{Token: asset.Address, To: account, Value: amount})
}

// Send moves amount of asset by an ordinary transfer of its holder, in a block
// of its own: money that leaves by another way than authorizations. It fails
// with ErrBalance.
func (c *Chain) Send(asset payment.Asset, from, to payment.Address, amount payment.Units) error {
	return c.own(txSend, Authorization{Token: asset.Address, From: from, To: to, Value: amount})
}

// Cancel marks the nonce of from as cancelled, as its holder may, in a block of
// its own. It fails with ErrNonceUsed.
func (c *Chain) Cancel(asset payment.Asset, from payment.Address, nonce [32]byte) error {
	return c.own(txCancel, Authorization{Token: asset.Address, From: from, Nonce: nonce})
}

func (c *Chain) own(kind txKind, a Authorization) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	waiting := c.pool
	c.pool = nil
	tx := c.enqueue(kind, a)
	c.mine(c.clock.Now())
	c.pool = waiting
	return tx.err
}

// enqueue adds a transaction to those that wait. Equal content gets the same hash
// in every run, and another one each time it is sent again.
func (c *Chain) enqueue(kind txKind, a Authorization) *transaction {
	value, after, before := a.Value.Bytes(), a.ValidAfter.Bytes(), a.ValidBefore.Bytes()
	content := keccak.Sum256([]byte("canopytest tx "+string(c.id)), []byte{byte(kind)}, a.Token[:], a.From[:], a.To[:],
		value[:], after[:], before[:], a.Nonce[:], a.Signature)
	c.copies[content]++
	n := payment.UnitsOf(c.copies[content]).Bytes()
	sum := keccak.Sum256(content[:], n[:])
	a.Signature = slices.Clone(a.Signature)
	tx := &transaction{kind: kind, auth: a, hash: "0x" + hex.EncodeToString(sum[:])}
	c.byHash[tx.hash] = tx
	c.pool = append(c.pool, tx)
	return tx
}

func (c *Chain) view(tx *transaction) Tx {
	if !tx.mined {
		return Tx{Hash: tx.hash, Pending: true}
	}
	b := c.blocks[tx.block]
	b.Txs = slices.Clone(b.Txs)
	return Tx{Hash: tx.hash, Block: b, Err: tx.err}
}
