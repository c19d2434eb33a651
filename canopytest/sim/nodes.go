package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/payment"
)

// node is one RPC node: it may be down, behind, or lie. At most one lies.
type node struct {
	down   bool
	behind int // blocks
	lie    lie
}

type lie uint8

const (
	truth    lie = iota
	unused       // nothing was ever used
	allUsed      // everything was
	ahead        // the final block is that of tomorrow
	omits        // uses are left out
	inflates     // uses moved other money
	cancels      // uses were cancellations
	early        // blocks are older than they are
	lowers       // fees are lower than they are
	raises       // fees are higher than they are
	swaps        // what failed did not, and the other way round
	lies
)

// counts reports whether l tells something that counts, of fees and outcomes,
// before others contradict it.
func (l lie) counts() bool { return l == raises || l == swaps }

// nodes are a chain as a process sees it: what the nodes say, compared as the
// chain package compares it.
type nodes struct {
	w *world
	c *chain
}

var (
	_ canopy.Chain      = nodes{}
	_ canopy.Timekeeper = nodes{}
	_ canopy.Reconciler = nodes{}

	errNode     = errors.New("sim: the node does not answer")
	errDisagree = errors.New("sim: the nodes disagree")
)

func (n nodes) ID() payment.ChainID { return n.c.asset.Chain }

func (n nodes) Sources() int { return min(2, len(n.c.nodes)) }

// ask hands over and returns the nodes that answer: at least need of them.
func (n nodes) ask(ctx context.Context, what string, need int) ([]*node, error) {
	n.w.yield(taskOf(ctx), what)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []*node
	for _, x := range n.c.nodes {
		if !x.down {
			out = append(out, x)
		}
	}
	if len(out) < need || len(out) == 0 {
		return nil, errNode
	}
	return out, nil
}

func (n nodes) Balance(ctx context.Context, asset payment.Asset, account payment.Address) (payment.Units, error) {
	some, err := n.ask(ctx, "balance", 1)
	if err != nil {
		return payment.Units{}, err
	}
	if some[0].lie == unused && n.w.chance(20) {
		return payment.Units{}, nil
	}
	if n.w.now.Before(n.c.poor) && n.w.chance(2) { // some nodes know
		return payment.UnitsOf(10_000), nil
	}
	u, _ := asset.Units(1_000_000 * payment.Dollar)
	return u, nil
}

// block is a block as x tells it.
func (n nodes) block(x *node, number int) payment.Block {
	c := n.c
	number = max(min(number, c.head()), 0)
	b := payment.Block{Number: uint64(number), Hash: payment.Hash(c.blocks[number].hash), Time: c.blocks[number].time}
	if x.lie == ahead {
		b.Time, b.Hash = b.Time.Add(24*time.Hour), payment.Hash{1}
	}
	return b
}

func (n nodes) Latest(ctx context.Context) (payment.Block, error) {
	some, err := n.ask(ctx, "latest", 1)
	if err != nil {
		return payment.Block{}, err
	}
	low := n.block(some[0], n.c.head()-some[0].behind)
	for _, x := range some[1:] {
		if b := n.block(x, n.c.head()-x.behind); b.Number < low.Number {
			low = b
		}
	}
	return low, nil
}

func (n nodes) Finalized(ctx context.Context) (payment.Block, error) {
	some, err := n.ask(ctx, "finalized", n.Sources())
	if err != nil {
		return payment.Block{}, err
	}
	var finals []int
	for _, x := range some {
		finals = append(finals, n.c.final()-x.behind)
	}
	slices.Sort(finals)
	number := finals[len(finals)-n.Sources()]
	b := n.block(some[0], number)
	for _, x := range some[1:] {
		if n.block(x, number) != b {
			return payment.Block{}, errDisagree
		}
	}
	return b, nil
}

func (n nodes) Used(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	some, err := n.ask(ctx, "used", n.Sources())
	if err != nil {
		return nil, err
	}
	var out []bool
	for i, x := range some {
		for k, s := range slots {
			is := n.used(s, int(at.Number)) && x.lie != unused || x.lie == allUsed
			if i == 0 {
				out = append(out, is)
			} else if out[k] != is {
				return nil, errDisagree
			}
		}
	}
	return out, nil
}

// used reports whether s was used up to a block.
func (n nodes) used(s payment.Slot, number int) bool {
	if s.Kind == payment.SlotLane {
		return n.c.laneAt(s.NonceID, number) > s.Nonce
	}
	tx := n.c.uses[s.NonceID]
	return tx != nil && tx.block <= number
}

func (n nodes) BlockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	if _, err := n.ask(ctx, "block at", 1); err != nil {
		return 0, err
	}
	number := int(at.Number)
	for step := 1; number > 0 && n.c.blocks[number].time.After(t); step *= 2 {
		number = max(number-step, 0)
	}
	return uint64(number), nil
}

// uses are those in the blocks from first to last, as x tells them.
func (n nodes) uses(x *node, first, last uint64) []payment.Settlement {
	c := n.c
	var out []payment.Settlement
	for i := len(c.log) - 1; i >= 0; i-- {
		tx := c.log[i]
		if uint64(tx.block) < first {
			break
		}
		if uint64(tx.block) > last || x.lie == omits || x.lie == unused {
			continue
		}
		if tx.failed && tx.slot.Kind == payment.SlotExpiring && x.lie != swaps {
			continue // nothing left the account
		}
		out = append(out, n.shown(x, tx))
	}
	return out
}

// shown is tx as x tells it.
func (n nodes) shown(x *node, tx *chainTx) payment.Settlement {
	s := payment.Settlement{
		Slot: tx.slot, TxHash: tx.hash(), Block: uint64(tx.block), Time: n.c.blocks[tx.block].time,
		Moved: tx.moved, Canceled: tx.canceled, Failed: tx.failed, Fee: tx.fee,
	}
	if n.c.tempo {
		s.Token = n.c.asset.Address
	}
	if x.lie == swaps && tx.spend != nil && tx.spend.tx != nil {
		s.Failed = !s.Failed
	}
	if s.Failed || s.Canceled {
		s.Moved = nil
	}
	switch x.lie {
	case inflates:
		s.Canceled, s.Failed, s.Moved = false, false, []payment.Recipient{{Address: canopytest.Address("thief"), Amount: payment.UnitsOf(7)}}
	case cancels:
		s.Moved, s.Canceled, s.Failed = nil, true, false
	case early:
		s.Time = s.Time.Add(-time.Hour)
	case lowers:
		s.Fee = payment.Units{}
	case raises:
		if !s.Fee.IsZero() {
			s.Fee, _ = s.Fee.Add(payment.UnitsOf(4_321))
		}
	}
	return s
}

func (n nodes) Uses(ctx context.Context, asset payment.Asset, account payment.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	some, err := n.ask(ctx, "uses", n.Sources())
	if err != nil {
		return nil, err
	}
	var out []payment.Settlement
	for _, x := range some {
		for _, s := range n.uses(x, first, at.Number) {
			if !slices.ContainsFunc(out, s.Equal) {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

func (n nodes) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	some, err := n.ask(ctx, "confirm", n.Sources())
	if err != nil {
		return false, err
	}
	shows := func(x *node) bool {
		for _, u := range n.uses(x, s.Block, s.Block) {
			if u.Equal(s) {
				return true
			}
		}
		return false
	}
	is := shows(some[0])
	for _, x := range some[1:] {
		if shows(x) != is {
			return false, errDisagree
		}
	}
	return is, nil
}

// turn changes what the nodes are like.
func (c *chain) turn() {
	w := c.w
	if len(c.nodes) == 0 {
		return
	}
	for _, x := range c.nodes {
		if x.lie.counts() {
			c.lied = w.step
		}
		*x = node{down: w.chance(8), behind: []int{0, 0, 0, 2, 20}[w.rng.IntN(5)]}
	}
	if len(c.nodes) > 1 && w.chance(2) {
		x := c.nodes[w.rng.IntN(len(c.nodes))]
		x.down, x.lie = false, lie(w.rng.IntN(int(lies)))
		if w.chance(3) { // what one node alone could make count for less
			x.lie = []lie{omits, cancels, early, lowers}[w.rng.IntN(4)]
		}
		w.note("a node of %s lies: %d", c, x.lie)
	}
}

// liedSince reports whether a node told of other fees or outcomes at that step
// or later.
func (c *chain) liedSince(step int) bool {
	return c.lied >= step || slices.ContainsFunc(c.nodes, func(x *node) bool { return x.lie.counts() })
}
