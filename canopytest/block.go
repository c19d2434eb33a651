package canopytest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/internal/keccak"
	"github.com/canopy-go/canopy/payment"
)

// Block is a block of a chain.
type Block struct {
	Number uint64
	Hash   string // 0x and hex
	Time   time.Time
	Txs    []string // hashes, in order
}

// Transfer is a Transfer record of a token.
type Transfer struct {
	Token    payment.Address
	From, To payment.Address
	Value    payment.Units
	Nonce    [32]byte // of the authorization that moved it; zero for an ordinary transfer
	Memo     [32]byte // on Tempo, where it has one
	HasMemo  bool
	Fee      bool // on Tempo: what the transaction cost
	TxHash   string
	Block    Block
}

// AuthorizationUse is an AuthorizationUsed record of a token, or
// AuthorizationCanceled where Canceled is set.
type AuthorizationUse struct {
	Token    payment.Address
	From     payment.Address
	Nonce    [32]byte
	Canceled bool
	TxHash   string
	Block    Block
}

// ErrFinal is what Reorg returns for a block that is final.
var ErrFinal = errors.New("canopytest: the block is final")

// mostEmpty is how many empty blocks a long jump of the clock leaves; beyond
// them it is as if the chain had halted and caught up.
const mostEmpty = 256

// Head is the latest block.
func (c *Chain) Head() Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.head()
}

// Final is the latest block that no reorganisation can take back.
func (c *Chain) Final() Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.blocks[c.final()]
}

func (c *Chain) head() Block { return c.blocks[len(c.blocks)-1] }

func (c *Chain) final() int { return max(len(c.blocks)-1-c.finality, 0) }

// SetMining changes when transactions are mined. Manual halts the chain; going
// back from it lets the chain catch up with the clock.
func (c *Chain) SetMining(m Mining) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	c.mining = m
}

// Mine mines a block of all that waits, stamped with the clock's time.
func (c *Chain) Mine() Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.mine(c.clock.Now())
}

// Finalize mines what waits and as many empty blocks as make it final.
func (c *Chain) Finalize() Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	b := c.mine(c.clock.Now())
	for range c.finality {
		c.mine(c.clock.Now())
	}
	return b
}

// Reorg drops the latest n blocks. Their transactions wait again, in order, to
// be mined in other blocks or taken away by Drop. It is ErrFinal, and nothing
// is dropped, where one of the blocks is final.
func (c *Chain) Reorg(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	keep := len(c.blocks) - n
	if n < 0 || keep <= c.final() {
		return fmt.Errorf("%w: %d blocks cannot be dropped", ErrFinal, n)
	}
	dropped := c.blocks[keep:]
	c.blocks = slices.Clone(c.blocks[:keep])
	for len(c.transfers) > 0 && c.transfers[len(c.transfers)-1].Block.Number >= uint64(keep) {
		t := c.transfers[len(c.transfers)-1]
		c.transfers = c.transfers[:len(c.transfers)-1]
		c.move(t.Token, t.To, t.From, t.Value)
	}
	for len(c.uses) > 0 && c.uses[len(c.uses)-1].Block.Number >= uint64(keep) {
		u := c.uses[len(c.uses)-1]
		c.uses = c.uses[:len(c.uses)-1]
		delete(c.used, slot{u.Token, u.From, u.Nonce})
	}
	c.takeBack(uint64(keep))
	var back []*transaction
	for _, b := range dropped {
		for _, hash := range b.Txs {
			tx := c.byHash[hash]
			if tx.carried != nil {
				c.takeBackCarried(tx)
			}
			tx.mined, tx.err = false, nil
			back = append(back, tx)
		}
	}
	c.pool = append(back, c.pool...)
	c.forks++
	c.wake()
	return nil
}

// catchUp mines the blocks that the clock has passed. A Manual chain has none.
func (c *Chain) catchUp() {
	if c.mining == Manual {
		return
	}
	now := c.clock.Now()
	for next := c.head().Time.Add(c.interval); !next.After(now); next = next.Add(c.interval) {
		c.mine(next)
		if gap := now.Sub(next) / c.interval; gap > mostEmpty {
			next = next.Add((gap - mostEmpty) * c.interval)
		}
	}
}

// mine appends a block at t of all that waits. A transaction that the rules
// refuse is in the block too, reverted. On Tempo one may have to wait on, or can
// never land.
func (c *Chain) mine(t time.Time) Block {
	number := c.append(t)
	for again := true; again; {
		again = false
		pool := c.pool
		c.pool = nil
		for _, tx := range pool {
			switch c.ready(tx, pool) {
			case wait:
				c.pool = append(c.pool, tx)
			case include:
				tx.mined, tx.block = true, number
				tx.err = c.apply(tx)
				c.blocks[number].Txs = append(c.blocks[number].Txs, tx.hash)
				again = true
			}
		}
	}
	c.wake()
	return c.blocks[number]
}

// append adds an empty block at t, or at the time of its parent where the clock
// went back, and returns its number.
func (c *Chain) append(t time.Time) uint64 {
	t = t.UTC().Truncate(time.Second)
	var parent string
	if len(c.blocks) > 0 {
		parent = c.head().Hash
		if last := c.head().Time; t.Before(last) {
			t = last
		}
	}
	number := uint64(len(c.blocks))
	seed := binary.BigEndian.AppendUint64([]byte("canopytest block "+string(c.id)+parent), number)
	seed = binary.BigEndian.AppendUint64(seed, uint64(t.Unix()))
	for _, tx := range c.pool {
		seed = append(seed, tx.hash...)
	}
	sum := keccak.Sum256(binary.BigEndian.AppendUint64(seed, c.forks))
	c.blocks = append(c.blocks, Block{Number: number, Hash: "0x" + hex.EncodeToString(sum[:]), Time: t})
	return number
}

func (c *Chain) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}
