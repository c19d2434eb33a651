package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// chain is a simulated chain: one dollar token with the rules of EIP-3009, or a
// Tempo network with lanes, expiring nonces and fees in its dollar. Its blocks
// come late or all at once, and those above the final one are taken back.
type chain struct {
	w        *world
	asset    payment.Asset
	tempo    bool
	nodes    []*node
	finality int
	blocks   []block
	pool     []*chainTx // broadcast, not mined
	log      []*chainTx // mined, by block
	halted   time.Time  // no block before it; zero where it runs
	poor     time.Time  // until then the account has less than it pays
	looked   time.Time  // when a sweep began to look for uses from elsewhere, by its clock
	minted   int        // transactions so far
	lied     int        // the last step at which a node told of other fees or outcomes

	uses    map[[32]byte]*chainTx   // of EIP-3009
	lanes   map[[32]byte][]*chainTx // by key; the next nonce is how many there are
	replays map[string]*chainTx     // of the expiring nonce, by signature
}

type block struct {
	time time.Time
	hash [32]byte
}

// chainTx is one use of a slot that was broadcast: what a payment signed, or
// something that the key's holder made outside of the ledger.
type chainTx struct {
	n        int
	r        *record // whose it is; nil for what is from outside
	spend    *spend  // likewise
	slot     payment.Slot
	moved    []payment.Recipient
	name     string // its hash, where Tempo's is known
	block    int    // -1 while it waits
	canceled bool   // by the key's holder, outside of the ledger
	stolen   bool   // signed with the key outside of the ledger
	told     bool   // every agent was frozen for it
	failed   bool   // it used its slot up, paid its fee, and moved nothing
	fee      payment.Units
}

// outside reports whether the ledger had no part in it.
func (tx *chainTx) outside() bool { return tx.r == nil }

const (
	blockTime  = 2 * time.Second
	poolMargin = 3 * time.Second // of validBefore, where a node of Tempo takes a transaction

	expiringSpan = 31 * time.Second // how far ahead that of an expiring nonce may be
)

func newChain(w *world, asset payment.Asset, tempo bool, nodes int) *chain {
	c := &chain{
		w: w, asset: asset, tempo: tempo, finality: 8,
		uses: map[[32]byte]*chainTx{}, lanes: map[[32]byte][]*chainTx{}, replays: map[string]*chainTx{},
	}
	for range nodes {
		c.nodes = append(c.nodes, &node{})
	}
	c.mine(w.now)
	return c
}

// String is the chain as the trace names it.
func (c *chain) String() string { return c.asset.Chain.Name() }

// chain is the chain with that ID, or nil.
func (w *world) chain(id payment.ChainID) *chain {
	for _, c := range w.chains {
		if c.asset.Chain == id {
			return c
		}
	}
	return nil
}

func (c *chain) head() int { return len(c.blocks) - 1 }

// final is the newest block that cannot be taken back.
func (c *chain) final() int { return max(c.head()-c.finality, 0) }

func (c *chain) finalTime() time.Time { return c.blocks[c.final()].time }

// isFinal reports whether tx is in a block that cannot be taken back.
func (c *chain) isFinal(tx *chainTx) bool { return tx != nil && tx.block >= 0 && tx.block <= c.final() }

// mine appends a block stamped t, or as its parent where that is later, with
// what waits and may settle in it.
func (c *chain) mine(t time.Time) {
	t = t.UTC().Truncate(time.Second)
	if n := len(c.blocks); n > 0 && t.Before(c.blocks[n-1].time) {
		t = c.blocks[n-1].time
	}
	b := block{time: t}
	for i := 0; i < len(b.hash); i += 8 {
		binary.BigEndian.PutUint64(b.hash[i:], c.w.rng.Uint64())
	}
	c.blocks = append(c.blocks, b)
	waiting := c.pool
	c.pool = nil
	for _, tx := range waiting {
		switch c.ready(tx, t) {
		case stay:
			c.pool = append(c.pool, tx)
		case include:
			c.include(tx)
		}
	}
}

// readiness is what a block does with a transaction that waits.
type readiness uint8

const (
	drop readiness = iota
	stay
	include
)

// ready decides about tx in a block at t.
func (c *chain) ready(tx *chainTx, t time.Time) readiness {
	if tx.spend != nil && !tx.spend.expires().After(t) {
		return drop
	}
	switch tx.slot.Kind {
	case payment.SlotLane:
		switch next := uint64(len(c.lanes[tx.slot.NonceID])); {
		case next > tx.slot.Nonce:
			return drop
		case next < tx.slot.Nonce:
			return stay
		}
	case payment.SlotExpiring:
		if c.replays[tx.spend.sig] != nil {
			return drop
		}
	default:
		if c.uses[tx.slot.NonceID] != nil || tx.spend != nil && t.Before(c.poor) {
			return drop // reverted
		}
	}
	return include
}

// include puts tx into the head block.
func (c *chain) include(tx *chainTx) {
	tx.block, tx.failed, tx.fee = c.head(), false, payment.Units{}
	switch tx.slot.Kind {
	case payment.SlotLane:
		c.lanes[tx.slot.NonceID] = append(c.lanes[tx.slot.NonceID], tx)
	case payment.SlotExpiring:
		c.replays[tx.spend.sig] = tx
	default:
		c.uses[tx.slot.NonceID] = tx
	}
	if tx.spend != nil && tx.spend.tx != nil {
		c.charge(tx)
	}
	c.log = append(c.log, tx)
	c.w.oracle.moved(tx)
}

// charge has tx pay its fee, and perhaps fail.
func (c *chain) charge(tx *chainTx) {
	t := tx.spend.tx
	gas := min(43_463+c.w.rng.Uint64N(560_000), t.Gas)
	if c.w.chance(40) {
		gas, tx.failed = t.Gas, true // out of gas
	}
	tx.failed = tx.failed || c.blocks[tx.block].time.Before(c.poor) || c.w.chance(40)
	if t.Sponsored {
		return
	}
	price := payment.UnitsOf(20_000_000_000 + c.w.rng.Uint64N(4_000_000_000))
	if t.MaxFee.Cmp(price) < 0 {
		price = t.MaxFee
	}
	tx.fee, _ = feeOf(gas, price)
}

// undo takes tx out of what is used.
func (c *chain) undo(tx *chainTx) {
	switch tx.slot.Kind {
	case payment.SlotLane:
		c.lanes[tx.slot.NonceID] = c.lanes[tx.slot.NonceID][:tx.slot.Nonce]
	case payment.SlotExpiring:
		delete(c.replays, tx.spend.sig)
	default:
		delete(c.uses, tx.slot.NonceID)
	}
	tx.block = -1
}

// laneAt is the next nonce of a lane after a block.
func (c *chain) laneAt(key [32]byte, number int) uint64 {
	n := uint64(0)
	for _, tx := range c.lanes[key] {
		if tx.block <= number {
			n++
		}
	}
	return n
}

// use is what used r's slot, in the chain as it stands, or nil.
func (c *chain) use(r *record) *chainTx {
	switch r.slot.Kind {
	case payment.SlotLane:
		if list := c.lanes[r.slot.NonceID]; uint64(len(list)) > r.slot.Nonce {
			return list[r.slot.Nonce]
		}
		return nil
	case payment.SlotExpiring:
		return r.tx
	}
	return c.uses[r.slot.NonceID]
}

// broadcast puts s among what waits. A chain that runs mines it in its next
// block, which comes at once for half of them. What the key did not sign, no
// chain takes.
func (c *chain) broadcast(s *spend, at once) *chainTx {
	c.minted++
	r := c.w.oracle.bySig[s.sig]
	if r == nil || s.tx == nil && s.auth == nil || c.tempo && !s.expires().After(c.w.now.Add(poolMargin)) {
		return nil
	}
	if s.tx != nil && s.tx.Expiring() && s.expires().After(c.w.now.Add(expiringSpan)) {
		return nil // too far ahead
	}
	tx := &chainTx{n: c.minted, r: r, spend: s, slot: s.slot(), moved: s.moves(), block: -1}
	if s.tx != nil && !s.tx.Sponsored {
		tx.name = s.tx.Hash()
	}
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
		c.w.note("%s runs again at block %d", c, c.head())
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
		c.undo(tx)
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

// dead reports whether nothing that the ledger had signed for r can ever take
// money any more: a final block is not before the end of its validity, and its
// slot was not used, or its use is final and was another.
func (c *chain) dead(r *record) bool {
	switch tx := c.use(r); {
	case tx != nil && tx.r == r && (!tx.failed || !tx.fee.IsZero()):
		return false
	case c.isFinal(tx):
		return true
	}
	return !c.finalTime().Before(r.validBefore)
}

// outside has the key used where the ledger does not know: a nonce is cancelled,
// or a thief takes money, by the slot of a payment or by another.
func (c *chain) outside(r *record, cancel bool) {
	c.minted++
	tx := &chainTx{n: c.minted, block: -1, canceled: cancel && !c.tempo, stolen: !cancel || c.tempo}
	tx.slot = payment.Slot{
		Kind: payment.SlotEVM, Chain: c.asset.Chain, Token: c.asset.Address, From: payer,
		NonceID: [32]byte{0: 0xfe, 1: byte(c.minted >> 16), 2: byte(c.minted >> 8), 3: byte(c.minted)},
	}
	if c.tempo {
		tx.slot.Kind, tx.slot.Token = payment.SlotLane, payment.Address{}
	}
	if r != nil {
		tx.slot = r.slot
	}
	if tx.stolen {
		tx.moved = []payment.Recipient{{Address: canopytest.Address("thief"), Amount: payment.UnitsOf(1_000_000)}}
	}
	c.pool = append(c.pool, tx)
}

// hash is a transaction's hash as receipts name it.
func (tx *chainTx) hash() string {
	if tx.name != "" {
		return tx.name
	}
	return fmt.Sprintf("0x%s%050x", "ca11cafe000000", tx.n)
}
