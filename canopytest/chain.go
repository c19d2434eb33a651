package canopytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// ChainConfig says what a Chain is like. The zero value is Base with the tokens
// of the pinned table.
type ChainConfig struct {
	ID     payment.ChainID // default payment.Base
	Clock  *Clock          // default a clock that follows the system clock
	Assets []payment.Asset // tokens of ID beyond those of payment.KnownAssets

	// Finality is how many blocks must follow a block before it is final.
	// Default 8.
	Finality int

	// BlockTime is the time between blocks, whole seconds. Default 2 s.
	BlockTime time.Duration

	// Mining says when transactions are mined. Default Instant.
	Mining Mining

	// Tempo makes ID a Tempo network; payment.Tempo and payment.TempoTest are
	// always. TempoRules are its rules.
	Tempo      bool
	TempoRules TempoRules
}

// Mining says when a chain mines.
type Mining uint8

const (
	// Instant mines each settled transaction at once, in a block of its own,
	// and empty blocks as the clock moves.
	Instant Mining = iota
	// Interval mines all that waits whenever the clock passes a block time.
	Interval
	// Manual mines only by Mine: a chain that stands still whatever the clock
	// says.
	Manual
)

// Chain is a chain in memory: dollar tokens with balances, blocks, finality and
// reorganisations. An EVM chain has the rules of EIP-3009; a Tempo network has
// raw transactions with lanes, expiring nonces and fees in dollars. It is safe
// for concurrent use and starts no goroutines.
type Chain struct {
	id       payment.ChainID
	clock    *Clock
	assets   payment.Assets
	finality int
	interval time.Duration

	mu        sync.Mutex
	mining    Mining
	down      error
	nodes     nodes
	blocks    []Block // by number
	pool      []*transaction
	byHash    map[string]*transaction
	copies    map[[32]byte]uint64
	balances  map[holding]payment.Units
	used      map[slot]use
	transfers []Transfer
	uses      []AuthorizationUse
	tempo     tempoState
	carried   carriedState
	forks     uint64        // how often the chain was reorganised
	changed   chan struct{} // closed and replaced at each block
}

type holding struct{ token, account payment.Address }

type slot struct {
	token, from payment.Address
	nonce       [32]byte
}

type use struct{ block uint64 }

// NewChain returns a chain with its first block at the clock's time. It panics
// where c names an asset that is not usable or is of another chain.
func NewChain(c ChainConfig) *Chain {
	if c.ID == "" {
		c.ID = payment.Base
	}
	if c.Clock == nil {
		c.Clock = NewClock()
	}
	if c.Finality <= 0 {
		c.Finality = 8
	}
	c.BlockTime = max(c.BlockTime.Truncate(time.Second), 0)
	if c.BlockTime == 0 {
		c.BlockTime = 2 * time.Second
	}
	assets, err := payment.KnownAssets().With(c.Assets...)
	if err != nil {
		panic("canopytest: " + err.Error())
	}
	for _, a := range c.Assets {
		if a.Chain != c.ID {
			panic(fmt.Sprintf("canopytest: %s is not a token of %s", a, c.ID))
		}
	}
	chain := &Chain{
		id: c.ID, clock: c.Clock, assets: assets, finality: c.Finality, interval: c.BlockTime, mining: c.Mining,
		byHash: make(map[string]*transaction), copies: make(map[[32]byte]uint64),
		balances: make(map[holding]payment.Units), used: make(map[slot]use),
		changed: make(chan struct{}),
		carried: carriedState{
			baseFee: 1_000_000_000, tip: 1_000_000, coins: make(map[payment.Address]payment.Units), nonces: make(map[payment.Address]uint64),
		},
	}
	if c.Tempo || c.ID == payment.Tempo || c.ID == payment.TempoTest {
		if c.TempoRules.BaseFee == 0 {
			c.TempoRules.BaseFee = 20_000_000_000
		}
		number, _ := c.ID.Number()
		chain.tempo = tempoState{
			on: true, number: number, rules: c.TempoRules, lanes: make(map[lane][]uint64), replays: make(map[[32]byte]bool),
		}
	}
	chain.append(c.Clock.Now())
	return chain
}

// ID is the chain's id.
func (c *Chain) ID() payment.ChainID { return c.id }

// Clock is the clock that blocks are stamped with.
func (c *Chain) Clock() *Clock { return c.clock }

// Assets returns the chain's tokens that can be paid with, by symbol and
// address: on Tempo all, elsewhere those that take EIP-3009 authorizations.
func (c *Chain) Assets() []payment.Asset {
	if c.tempo.on {
		return c.assets.On(c.id)
	}
	return slices.DeleteFunc(c.assets.On(c.id), func(a payment.Asset) bool { return a.NoAuthorization })
}

// Dollar returns the token that Fund mints and that sellers ask for unless told
// otherwise: the chain's USDC, or else its first token. It panics on a chain
// that has none.
func (c *Chain) Dollar() payment.Asset {
	assets := c.Assets()
	if len(assets) == 0 {
		panic(fmt.Sprintf("canopytest: %s has no token that takes authorizations; name one in ChainConfig.Assets", c.id))
	}
	if i := slices.IndexFunc(assets, func(a payment.Asset) bool { return a.Symbol == "USDC" || a.Address == pathUSD }); i >= 0 {
		return assets[i]
	}
	return assets[0]
}

// Balance returns what account holds of asset at the latest block. It fails
// where the asset is another chain's, where ctx has ended, and while the chain
// is down.
func (c *Chain) Balance(ctx context.Context, asset payment.Asset, account payment.Address) (payment.Units, error) {
	if asset.Chain != c.id {
		return payment.Units{}, fmt.Errorf("canopytest: balance: %s is not on %s", asset, c.id)
	}
	if err := c.reading(ctx, "balance"); err != nil {
		return payment.Units{}, err
	}
	defer c.mu.Unlock()
	return c.balances[holding{asset.Address, account}], nil
}

// SetDown makes the reads of a client fail with err, as unreachable nodes do:
// Balance, Latest and all that is evidence. nil ends it. Sellers still settle,
// and a test's own questions are answered.
func (c *Chain) SetDown(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

// AuthorizationUsed reports whether the nonce of from was used or cancelled in
// a block up to and including number.
func (c *Chain) AuthorizationUsed(token, from payment.Address, nonce [32]byte, number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	u, ok := c.used[slot{token, from, nonce}]
	return ok && u.block <= number
}

// AuthorizationState reports whether the nonce of from was used or cancelled
// at the latest block: authorizationState of EIP-3009.
func (c *Chain) AuthorizationState(token, from payment.Address, nonce [32]byte) bool {
	return c.AuthorizationUsed(token, from, nonce, ^uint64(0))
}

// Transfers returns the Transfer records of the chain, oldest first, without
// those that Mint and Fund made. Fees are among them.
func (c *Chain) Transfers() []Transfer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return slices.DeleteFunc(slices.Clone(c.transfers), func(t Transfer) bool { return t.From.IsZero() })
}

// AuthorizationUses returns the AuthorizationUsed and AuthorizationCanceled
// records of the chain, oldest first.
func (c *Chain) AuthorizationUses() []AuthorizationUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return slices.Clone(c.uses)
}
