package canopytest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// ErrDisagree is what reads of evidence return while one of several nodes lies.
var ErrDisagree = errors.New("canopytest: the nodes disagree")

// Lie is a way in which one node of a Chain tells something else than the
// chain. With one source it is what is read; with more it makes them disagree.
type Lie uint8

// The lies. The zero Lie is the truth.
const (
	NoLie     Lie = iota
	LieUnused     // no slot was ever used
	LieUsed       // every slot was used
	LieFinal      // the latest block is final
	LieNoLogs     // nothing ever moved
	LieCancel     // every use was a cancellation; told beside the truth where there are more sources
	LiePayee      // everything went to somebody else; likewise
	LieAhead      // the latest block is an hour later than it is
	LieDates      // no block is after any time; of more sources the lowest block is taken
)

// nodes is how a chain is read.
type nodes struct {
	sources int
	lie     Lie
}

// SetNodes changes by how many nodes the chain is read, 1 at first, and whether
// one of them lies.
func (c *Chain) SetNodes(sources int, lie Lie) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = nodes{sources: sources, lie: lie}
}

// Sources is how many nodes agree on what is read.
func (c *Chain) Sources() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.nodes.sources, 1)
}

// reading begins a read: it fails where ctx has ended or the chain is down. The
// caller unlocks where it did not fail.
func (c *Chain) reading(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("canopytest: %s: %w", what, err)
	}
	c.mu.Lock()
	if down := c.down; down != nil {
		c.mu.Unlock()
		return fmt.Errorf("canopytest: %s: %w", what, down)
	}
	c.catchUp()
	return nil
}

// lies reports whether one of lies is told now; with several sources, which are
// compared, it is an error instead.
func (c *Chain) lies(lies ...Lie) (bool, error) {
	for _, l := range lies {
		if c.nodes.lie != l {
			continue
		}
		if c.nodes.sources > 1 {
			return false, ErrDisagree
		}
		return true, nil
	}
	return false, nil
}

// evidence is b as reads return it.
func (b Block) evidence() payment.Block {
	out := payment.Block{Number: b.Number, Time: b.Time}
	hash, err := hex.DecodeString(strings.TrimPrefix(b.Hash, "0x"))
	if err == nil {
		copy(out.Hash[:], hash)
	}
	return out
}

// Latest is the newest block, as nodes tell it.
func (c *Chain) Latest(ctx context.Context) (payment.Block, error) {
	if err := c.reading(ctx, "latest block"); err != nil {
		return payment.Block{}, err
	}
	defer c.mu.Unlock()
	b := c.head().evidence()
	if lie, _ := c.lies(LieAhead); lie {
		b.Time = b.Time.Add(time.Hour)
	}
	return b, nil
}

// Finalized is Final as nodes tell it.
func (c *Chain) Finalized(ctx context.Context) (payment.Block, error) {
	if err := c.reading(ctx, "finalized block"); err != nil {
		return payment.Block{}, err
	}
	defer c.mu.Unlock()
	lie, _ := c.lies(LieFinal) // of several, the lowest is taken
	if lie {
		return c.head().evidence(), nil
	}
	return c.blocks[c.final()].evidence(), nil
}

// Used tells for each slot whether it was used or cancelled up to block at.
func (c *Chain) Used(ctx context.Context, slots []payment.Slot, at payment.Block) ([]bool, error) {
	if err := c.reading(ctx, "used slots"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	lie, err := c.lies(LieUnused, LieUsed)
	if err != nil {
		return nil, fmt.Errorf("canopytest: used slots: %w", err)
	}
	out := make([]bool, len(slots))
	for i, s := range slots {
		switch {
		case s.Kind == payment.SlotEVM && s.Chain == c.id:
			u, ok := c.used[slot{s.Token, s.From, s.NonceID}]
			out[i] = ok && u.block <= at.Number
		case s.Kind == payment.SlotLane && s.Chain == c.id && c.tempo.on:
			out[i] = c.laneAt(s, at.Number) > s.Nonce
		default:
			return nil, fmt.Errorf("canopytest: %s is not a slot of %s, or is decided by its transfers", s, c.id)
		}
		if lie {
			out[i] = c.nodes.lie == LieUsed
		}
	}
	return out, nil
}

// BlockAt is the number of the last block that is not after t, and 0 where
// there is none: the lowest that a node gives.
func (c *Chain) BlockAt(ctx context.Context, t time.Time, at payment.Block) (uint64, error) {
	if err := c.reading(ctx, "block at a time"); err != nil {
		return 0, err
	}
	defer c.mu.Unlock()
	if lie, _ := c.lies(LieDates); lie {
		return at.Number, nil
	}
	n := min(at.Number, uint64(len(c.blocks)-1))
	for n > 0 && c.blocks[n].Time.After(t) {
		n--
	}
	return n, nil
}

// Uses returns the uses and cancellations of account's authorizations of asset
// in the blocks from first to at, and what they moved: all that any node shows.
// On Tempo they are the transactions of account, and whatever else took the
// token from it. What all nodes show is marked.
func (c *Chain) Uses(ctx context.Context, asset payment.Asset, account payment.Address, first uint64, at payment.Block) ([]payment.Settlement, error) {
	if err := c.reading(ctx, "uses of authorizations"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	lie, err := c.lies(LieNoLogs, LieCancel, LiePayee)
	if lie {
		out := c.settlements(asset.Address, account, first, at.Number, c.nodes.lie)
		mark(out, out)
		return out, nil
	}
	out := c.settlements(asset.Address, account, first, at.Number, NoLie)
	if err == nil {
		mark(out, out)
		return out, nil
	}
	other := c.settlements(asset.Address, account, first, at.Number, c.nodes.lie) // one of several lies
	mark(out, other)
	mark(other, out)
	return append(out, other...), nil
}

// mark says of each of uses whether it is among shown.
func mark(uses, shown []payment.Settlement) {
	for i, s := range uses {
		uses[i].ByAll = slices.ContainsFunc(shown, s.Equal)
	}
}

func (c *Chain) settlements(token, account payment.Address, first, last uint64, lie Lie) []payment.Settlement {
	out := c.tempoSettlements(token, account, first, last, lie)
	for _, u := range c.uses {
		if u.Token != token || u.From != account || u.Block.Number < first || u.Block.Number > last || lie == LieNoLogs {
			continue
		}
		s := payment.Settlement{
			Slot:   payment.Slot{Kind: payment.SlotEVM, Chain: c.id, Token: u.Token, From: u.From, NonceID: u.Nonce},
			TxHash: u.TxHash, Block: u.Block.Number, Time: u.Block.Time, Canceled: u.Canceled || lie == LieCancel,
		}
		for _, t := range c.transfers {
			if t.TxHash != u.TxHash || t.Token != u.Token || t.Nonce != u.Nonce || s.Canceled {
				continue
			}
			to := t.To
			if lie == LiePayee {
				to = Address("somebody else")
			}
			s.Moved = append(s.Moved, payment.Recipient{Address: to, Amount: t.Value})
		}
		out = append(out, s)
	}
	return out
}

// Confirm reports whether s is what all nodes show.
func (c *Chain) Confirm(ctx context.Context, s payment.Settlement) (bool, error) {
	if err := c.reading(ctx, "use of an authorization"); err != nil {
		return false, err
	}
	defer c.mu.Unlock()
	lie, err := c.lies(LieNoLogs, LieCancel, LiePayee)
	if err != nil {
		return false, fmt.Errorf("canopytest: use of %s: %w", s.Slot, err)
	}
	told := NoLie
	if lie {
		told = c.nodes.lie
	}
	token := s.Slot.Token
	if c.tempo.on {
		token = s.Token
	}
	for _, shown := range c.settlements(token, s.Slot.From, s.Block, s.Block, told) {
		if shown.Equal(s) {
			return true, nil
		}
	}
	return false, nil
}
