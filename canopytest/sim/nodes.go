package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy"
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
	lies
)

// nodes are a chain as a process sees it: what the nodes say, compared as the
// chain package compares it.
type nodes struct {
	p *proc
	w *world
}

var (
	_ canopy.Chain      = nodes{}
	_ canopy.Timekeeper = nodes{}
	_ canopy.Reconciler = nodes{}

	errNode     = errors.New("sim: the node does not answer")
	errDisagree = errors.New("sim: the nodes disagree")
)

func (n nodes) ID() payment.ChainID { return n.w.chain.asset.Chain }

func (n nodes) Sources() int { return min(2, len(n.w.nodes)) }

// ask hands over and returns the nodes that answer: at least need of them.
func (n nodes) ask(ctx context.Context, what string, need int) ([]*node, error) {
	n.w.yield(taskOf(ctx), what)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []*node
	for _, x := range n.w.nodes {
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
	u, _ := asset.Units(1_000_000 * payment.Dollar)
	return u, nil
}

// block is a block as x tells it.
func (n nodes) block(x *node, number int) payment.Block {
	c := n.w.chain
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
	low := n.block(some[0], n.w.chain.head()-some[0].behind)
	for _, x := range some[1:] {
		if b := n.block(x, n.w.chain.head()-x.behind); b.Number < low.Number {
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
		finals = append(finals, n.w.chain.final()-x.behind)
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
			tx := n.w.chain.uses[s.NonceID]
			is := tx != nil && uint64(tx.block) <= at.Number && x.lie != unused || x.lie == allUsed
			if i == 0 {
				out = append(out, is)
			} else if out[k] != is {
				return nil, errDisagree
			}
		}
	}
	return out, nil
}

func (n nodes) BlockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	if _, err := n.ask(ctx, "block at", 1); err != nil {
		return 0, err
	}
	number := int(at.Number)
	for step := 1; number > 0 && n.w.chain.blocks[number].time.After(t); step *= 2 {
		number = max(number-step, 0)
	}
	return uint64(number), nil
}

// uses are those in the blocks from first to last, as x tells them.
func (n nodes) uses(x *node, first, last uint64) []payment.Settlement {
	c := n.w.chain
	var out []payment.Settlement
	for i := len(c.log) - 1; i >= 0; i-- {
		tx := c.log[i]
		if uint64(tx.block) < first {
			break
		}
		if uint64(tx.block) > last || x.lie == omits || x.lie == unused {
			continue
		}
		a := tx.auth
		s := payment.Settlement{
			Slot:   payment.Slot{Kind: payment.SlotEVM, Chain: c.asset.Chain, Token: a.Token, From: a.From, NonceID: a.Nonce},
			TxHash: fmt.Sprintf("0x%x", tx.hash()), Block: uint64(tx.block), Time: c.blocks[tx.block].time,
			Moved: []payment.Recipient{{Address: a.To, Amount: a.Value}}, Canceled: tx.canceled,
		}
		if tx.canceled {
			s.Moved = nil
		}
		switch x.lie {
		case inflates:
			s.Canceled, s.Moved = false, []payment.Recipient{{Address: a.To, Amount: payment.UnitsOf(7)}}
		case cancels:
			s.Moved, s.Canceled = nil, true
		case early:
			s.Time = s.Time.Add(-time.Hour)
		}
		out = append(out, s)
	}
	return out
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

// turnNodes changes what the nodes are like.
func (w *world) turnNodes() {
	if len(w.nodes) == 0 {
		return
	}
	for _, x := range w.nodes {
		*x = node{down: w.chance(8), behind: []int{0, 0, 0, 2, 20}[w.rng.IntN(5)]}
	}
	if len(w.nodes) > 1 && w.chance(2) {
		x := w.nodes[w.rng.IntN(len(w.nodes))]
		x.down, x.lie = false, lie(w.rng.IntN(int(lies)))
		w.note("a node lies: %d", x.lie)
	}
}
