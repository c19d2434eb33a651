package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/canopy-go/canopy/payment"
)

// Uses returns every use of an authorization of account, of the token of asset,
// in the blocks from first to at, with what each moved: ours and any that this
// ledger never made, in the chain's order. It is all that any node shows, so that
// none can leave one out, and an error where fewer than Sources tell. What nodes
// show differently stands there more than once; Confirm tells what all agree on,
// and ByAll what to ask about first.
//
// All nodes are asked for the uses, and one, another each time, for what they
// moved too; the others are where they show a use that it does not, or it shows
// one that moved nothing.
//
// On a Tempo chain uses are all ways in which the token left the account, and
// all that used up a nonce of it; every node is asked for all of them.
func (c *Chain) Uses(ctx context.Context, asset payment.Asset, account payment.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	if asset.Chain != c.id {
		return nil, fmt.Errorf("chain: %s is not on %s", asset, c.id)
	}
	if c.tempo {
		answers, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) ([]payment.Settlement, error) {
			return n.spendings(ctx, asset.Address, account, first, at.Number)
		})
		if err != nil {
			return nil, fmt.Errorf("chain: uses of the account: %w", err)
		}
		var nodes []witness
		for _, uses := range answers {
			nodes = append(nodes, witness{shows: bySlot(uses), whole: true})
		}
		return union(answers, nodes), nil
	}
	whole := c.nodes[rand.IntN(len(c.nodes))]
	answers, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) (told, error) {
		uses, err := n.uses(ctx, asset.Address, account, first, at.Number, n == whole)
		return told{n, uses}, err
	})
	if err == nil {
		var out []payment.Settlement
		if out, err = c.complete(ctx, answers, whole, asset.Address, account, first, at.Number); err == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("chain: uses of authorizations: %w", err)
}

// told is the uses that a node tells of.
type told struct {
	node *node
	uses []payment.Settlement
}

// complete is the union of what nodes told, with what each use moved. Only whole
// was asked for that: where it has not answered, another one is.
func (c *Chain) complete(ctx context.Context, answers []told, whole *node, token, account payment.Address, first, last uint64) ([]payment.Settlement, error) {
	var errs []error
	full := func(n *node, first, last uint64) ([]payment.Settlement, bool) {
		uses, err := n.uses(ctx, token, account, first, last, true)
		if err != nil {
			errs = append(errs, err)
		}
		return uses, err == nil
	}
	i := slices.IndexFunc(answers, func(t told) bool { return t.node == whole })
	for i < 0 && len(answers) > 0 {
		uses, ok := full(answers[0].node, first, last)
		if ok {
			i, answers[0].uses = 0, uses
		} else {
			answers = answers[1:]
		}
	}
	if i < 0 {
		return nil, errors.Join(errs...)
	}
	said := [][]payment.Settlement{answers[i].uses}
	nodes := []witness{{shows: bySlot(answers[i].uses), whole: true}}
	for j, t := range answers {
		if j == i {
			continue
		}
		w := witness{shows: bySlot(t.uses)}
		w.from, w.to = contested(answers[i].uses, t.uses)
		if w.from <= w.to {
			more, ok := full(t.node, w.from, w.to)
			if !ok {
				continue
			}
			said, w.again = append(said, more), bySlot(more)
		}
		nodes = append(nodes, w)
	}
	if len(nodes) < c.Sources() {
		return nil, errors.Join(errs...)
	}
	return union(said, nodes), nil
}

// shown are the uses that a node shows, by their slots.
type shown map[payment.Slot][]payment.Settlement

func bySlot(uses []payment.Settlement) shown {
	out := make(shown, len(uses))
	for _, s := range uses {
		out[s.Slot] = append(out[s.Slot], s)
	}
	return out
}

func (x shown) has(s payment.Settlement) bool { return slices.ContainsFunc(x[s.Slot], s.Equal) }

// witness is what one node shows.
type witness struct {
	shows shown
	whole bool // shows is with what was moved

	from, to uint64 // the blocks that the node was asked about again; none where from is above to
	again    shown  // what it shows of them, with what was moved
}

// has reports whether the node shows s, as far as it was asked.
func (w witness) has(s payment.Settlement) bool {
	switch {
	case w.again != nil && s.Block >= w.from && s.Block <= w.to:
		return w.again.has(s)
	case !w.whole:
		s.Moved = nil
	}
	return w.shows.has(s)
}

// contested is the range of blocks in which more, told without what was moved,
// shows uses that full does not, or full some that moved nothing. It is empty
// where from is above to.
func contested(full, more []payment.Settlement) (from, to uint64) {
	from = 1
	add := func(block uint64) {
		if from > to {
			from, to = block, block
		}
		from, to = min(from, block), max(to, block)
	}
	bare := make(shown, len(full))
	for _, s := range full {
		if !s.Canceled && len(s.Moved) == 0 {
			add(s.Block)
		}
		s.Moved = nil
		bare[s.Slot] = append(bare[s.Slot], s)
	}
	for _, s := range more {
		if !bare.has(s) {
			add(s.Block)
		}
	}
	return from, to
}

// union is what any of answers has, each of which is in the chain's order, with
// a mark on what all nodes show.
func union(answers [][]payment.Settlement, nodes []witness) []payment.Settlement {
	out := answers[0]
	known := bySlot(out)
	for _, more := range answers[1:] {
		for _, s := range more {
			if !known.has(s) {
				known[s.Slot] = append(known[s.Slot], s)
				out = append(out, s)
			}
		}
	}
	for i, s := range out {
		out[i].ByAll = !slices.ContainsFunc(nodes, func(w witness) bool { return !w.has(s) })
	}
	slices.SortStableFunc(out, func(a, b payment.Settlement) int { return cmp.Compare(a.Block, b.Block) })
	return out
}

// Confirm reports whether s, which Uses returned, is what every node shows. It
// is false where none does, and an error where they do not agree or too few
// answer.
func (c *Chain) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	token, from := s.Token, s.Slot.From
	if s.Slot.Kind == payment.SlotEVM {
		token = s.Slot.Token
	}
	if s.Slot.Chain != c.id || !c.tempo && s.Slot.Kind != payment.SlotEVM || token.IsZero() || from.IsZero() {
		return false, fmt.Errorf("chain: %s is not what %s shows uses of", s.Slot, c.id)
	}
	answers, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) (bool, error) {
		var found []payment.Settlement
		var err error
		if c.tempo {
			found, err = n.spendings(ctx, token, from, s.Block, s.Block)
		} else {
			found, err = n.uses(ctx, token, from, s.Block, s.Block, true)
		}
		return slices.ContainsFunc(found, s.Equal), err
	})
	if err != nil {
		return false, fmt.Errorf("chain: use of %s: %w", s.Slot, err)
	}
	for _, a := range answers[1:] {
		if a != answers[0] {
			return false, fmt.Errorf("chain: use of %s: %w", s.Slot, ErrDisagree)
		}
	}
	return answers[0], nil
}

// uses tells of uses by the word of one node, and of what they moved only where
// full.
func (n *node) uses(ctx context.Context, token, account payment.Address, first, last uint64, full bool) ([]payment.Settlement, error) {
	q := question{[]payment.Address{token}, []word{authorizationLog, cancelLog}, account}
	if full {
		q.events = append(q.events, transferLog)
	}
	logs, err := n.search(ctx, q, first, last)
	if err != nil {
		return nil, err
	}
	return pair(payment.Slot{Kind: payment.SlotEVM, Chain: n.chain, Token: token, From: account}, logs), nil
}

// pair puts to each use of an authorization the transfer that followed it in
// its transaction, before the next use: a token logs them in that order.
func pair(slot payment.Slot, logs []log) []payment.Settlement {
	var out []payment.Settlement
	var tx word
	open := false
	for _, l := range logs {
		if l.Tx != tx {
			tx, open = l.Tx, false
		}
		switch l.Topics[0] {
		case authorizationLog, cancelLog:
			if open = len(l.Topics) == 3; !open {
				continue
			}
			slot.NonceID = l.Topics[2]
			s := payment.Settlement{Slot: slot, TxHash: l.Tx.String(), Block: uint64(l.Block), Time: l.time(), Canceled: l.Topics[0] == cancelLog}
			open = !s.Canceled
			out = append(out, s)
		case transferLog:
			if !open || len(l.Topics) != 3 || len(l.Data) != 32 {
				continue
			}
			if to, ok := l.Topics[2].address(); ok {
				s := &out[len(out)-1]
				s.Moved = append(s.Moved, payment.Recipient{Address: to, Amount: payment.UnitsFromBytes([32]byte(l.Data))})
				open = false
			}
		}
	}
	return out
}
