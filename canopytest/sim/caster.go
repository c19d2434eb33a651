package main

import (
	"context"
	"strings"

	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
)

// caster is the node that a process broadcasts transactions by. It loses some,
// before and after they are in the pool, calls some by another name, and now and
// then tells of a block that is none.
type caster struct {
	c     *chain
	speak *charges
}

var _ mpp.Node = caster{}

func (n caster) Broadcast(ctx context.Context, raw []byte) (string, error) {
	w, t := n.c.w, taskOf(ctx)
	w.yield(t, "broadcast")
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if w.chance(w.setup.rate(30)) {
		w.note("%s: what was broadcast is lost", t)
		return "", errReset
	}
	s := &spend{chain: n.c}
	if !s.carry(raw) {
		w.breaks("I6: %s broadcasts what nobody can read", t)
		return "", errReset
	}
	w.oracle.broadcast(t, s)
	hash := s.tx.Hash()
	if w.chance(w.setup.rate(12)) {
		w.note("%s: the node takes it and forgets it", t)
		return hash, nil
	}
	at := nextBlock
	if w.chance(3) {
		at = sometime
	}
	n.c.broadcast(s, at)
	w.yield(t, "broadcast done")
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case w.chance(w.setup.rate(60)):
		w.note("%s: the answer to the broadcast is lost", t)
		return "", errReset
	case w.chance(w.setup.rate(200)):
		return "0x" + strings.Repeat("ab", 32), nil
	}
	return hash, nil
}

func (n caster) Receipt(ctx context.Context, hash string) (found, ok bool, at payment.Block, err error) {
	w, t := n.c.w, taskOf(ctx)
	w.yield(t, "mined?")
	switch {
	case ctx.Err() != nil:
		return false, false, at, ctx.Err()
	case w.chance(w.setup.rate(40)):
		return false, false, at, errNode
	case w.chance(w.setup.rate(200)):
		w.note("%s: the node tells of a block that is none", t)
		return true, w.chance(2), payment.Block{Time: w.now}, nil
	}
	r := w.oracle.byTx[hash]
	if r == nil || r.tx == nil || r.tx.name != hash {
		return false, false, at, nil
	}
	b := n.c.blocks[r.tx.block]
	return true, !r.tx.failed, payment.Block{Number: uint64(r.tx.block), Hash: b.hash, Time: b.time}, nil
}
