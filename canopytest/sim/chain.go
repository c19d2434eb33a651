package main

import (
	"math/big"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// chain is the simulated chain: one dollar token with the rules of EIP-3009,
// blocks that come late or all at once, and reorganisations above the final
// block.
type chain struct {
	w        *world
	asset    payment.Asset
	finality int
	blocks   []block
	pool     []*chainTx // broadcast, not mined
	uses     map[[32]byte]*chainTx
	log      []*chainTx          // mined, by block
	signed   map[[32]byte]string // digest to signature: what the key really signed
	halted   time.Time           // no block before it; zero where it runs
	minted   int                 // transactions so far
}

type block struct {
	time time.Time
	hash [32]byte
}

// chainTx is one use of an authorization that was broadcast, or the cancellation
// of one.
type chainTx struct {
	n        int
	auth     canopytest.Authorization
	block    int  // -1 while it waits
	canceled bool // by the key's holder, outside of the ledger
	stolen   bool // signed with the key outside of the ledger
	told     bool // every agent was frozen for it
}

// outside reports whether the ledger had no part in it.
func (tx *chainTx) outside() bool { return tx.canceled || tx.stolen }

const blockTime = 2 * time.Second

func newChain(w *world, asset payment.Asset) *chain {
	c := &chain{w: w, asset: asset, finality: 8, uses: map[[32]byte]*chainTx{}, signed: map[[32]byte]string{}}
	c.mine(w.now)
	return c
}

func (c *chain) head() int { return len(c.blocks) - 1 }

// final is the newest block that cannot be taken back.
func (c *chain) final() int { return max(c.head()-c.finality, 0) }

func (c *chain) finalTime() time.Time { return c.blocks[c.final()].time }

// mine appends a block stamped t, or as its parent where that is later, with
// what waits and may settle in it.
func (c *chain) mine(t time.Time) {
	t = t.UTC().Truncate(time.Second)
	if n := len(c.blocks); n > 0 && t.Before(c.blocks[n-1].time) {
		t = c.blocks[n-1].time
	}
	b := block{time: t}
	for i := 0; i < len(b.hash); i += 8 {
		big.NewInt(0).SetUint64(c.w.rng.Uint64()).FillBytes(b.hash[i : i+8])
	}
	c.blocks = append(c.blocks, b)
	waiting := c.pool
	c.pool = nil
	for _, tx := range waiting {
		if c.uses[tx.auth.Nonce] != nil || !tx.canceled && c.refuses(tx.auth, t) != "" {
			continue // reverted
		}
		tx.block = c.head()
		c.uses[tx.auth.Nonce] = tx
		c.log = append(c.log, tx)
		c.w.oracle.moved(tx)
	}
}

// refuses is why the token would not carry a out in a block at t, or empty.
func (c *chain) refuses(a canopytest.Authorization, t time.Time) string {
	switch {
	case c.uses[a.Nonce] != nil:
		return "used"
	case !a.Expires().After(t):
		return "expired"
	case c.signed[a.Digest(c.asset)] != string(a.Signature):
		return "signature"
	}
	return ""
}

// broadcast puts a among what waits. A chain that runs mines it in its next
// block, which comes at once for half of them.
func (c *chain) broadcast(a canopytest.Authorization, at once) *chainTx {
	c.minted++
	tx := &chainTx{n: c.minted, auth: a, block: -1}
	c.pool = append(c.pool, tx)
	if c.halted.IsZero() && at == nextBlock {
		c.mine(c.w.now)
	}
	return tx
}

type once bool

const (
	nextBlock once = true
	sometime  once = false
)

// advance brings the chain to the world's time. After a halt it catches up with
// blocks of old timestamps; after a long jump blocks are far apart.
func (c *chain) advance() {
	if !c.halted.IsZero() {
		if c.w.now.Before(c.halted) {
			return
		}
		c.halted = time.Time{}
		c.w.note("chain runs again at block %d", c.head())
		for t, n := c.blocks[c.head()].time.Add(blockTime), 0; n < 2*c.finality && t.Before(c.w.now); n++ {
			c.mine(t)
			t = t.Add(blockTime)
		}
	}
	last := c.blocks[c.head()].time
	gap := c.w.now.Sub(last)
	if gap < blockTime {
		return
	}
	step := blockTime
	if most := 3 * time.Duration(c.finality); gap/blockTime > most {
		step = gap / most
	}
	for t := last.Add(step); !t.After(c.w.now); t = t.Add(step) {
		c.mine(t)
	}
}

// reorg takes the newest n blocks back, and puts as many others in their place.
// What was in them waits again, or is forgotten where drop says so.
func (c *chain) reorg(n int, drop func() bool) {
	n = min(n, c.head()-c.final())
	if n <= 0 {
		return
	}
	first := len(c.blocks) - n
	times := make([]time.Time, 0, n)
	for _, b := range c.blocks[first:] {
		times = append(times, b.time)
	}
	c.blocks = c.blocks[:first]
	var back []*chainTx
	for len(c.log) > 0 && c.log[len(c.log)-1].block >= first {
		tx := c.log[len(c.log)-1]
		c.log = c.log[:len(c.log)-1]
		delete(c.uses, tx.auth.Nonce)
		tx.block = -1
		c.w.oracle.undone(tx)
		if !drop() {
			back = append(back, tx)
		}
	}
	for i := range back { // as they were sent
		c.pool = append(c.pool, back[len(back)-1-i])
	}
	for _, t := range times {
		c.mine(t)
	}
}

// dead reports whether nothing that the ledger had signed with this nonce can
// ever move any more: a final block is not before the end of its validity, and
// it was not used, or its use is final and was another.
func (c *chain) dead(nonce [32]byte, validBefore time.Time) bool {
	if tx := c.uses[nonce]; tx != nil && !tx.outside() {
		return false
	} else if tx != nil && tx.block <= c.final() {
		return true
	}
	return !c.finalTime().Before(validBefore)
}

// outside has the key used where the ledger does not know: a nonce is cancelled,
// or a thief takes money, by a nonce of a payment or by another.
func (c *chain) outside(r *record, cancel bool) {
	c.minted++
	tx := &chainTx{n: c.minted, block: -1, canceled: cancel, stolen: !cancel}
	before := payment.UnitsOf(uint64(c.w.now.Add(time.Hour).Unix()))
	tx.auth = canopytest.Authorization{
		Token: c.asset.Address, From: payer, To: canopytest.Address("thief"), Value: payment.UnitsOf(1_000_000),
		ValidBefore: before, Nonce: [32]byte{0: 0xfe, 1: byte(c.minted >> 16), 2: byte(c.minted >> 8), 3: byte(c.minted)},
	}
	if r != nil {
		tx.auth.Nonce = r.nonce
	}
	tx.auth.Signature = []byte("by a copy of the key")
	c.signed[tx.auth.Digest(c.asset)] = string(tx.auth.Signature)
	c.pool = append(c.pool, tx)
}

// txHash is a transaction's hash as receipts name it.
func (tx *chainTx) hash() [32]byte {
	h := [32]byte{0xca, 0x11}
	big.NewInt(int64(tx.n)).FillBytes(h[16:])
	return h
}
