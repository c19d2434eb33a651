package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/payment"
)

// Config is what a Chain is made of.
type Config struct {
	ID   payment.ChainID // required
	URLs []string        // of JSON-RPC nodes; at least one, and none in two spellings. Two that are run by different people are worth more than two of one

	// Tempo says that the chain has the nonces and the fees of Tempo. It is
	// always so of payment.Tempo and payment.TempoTest.
	Tempo bool

	// Transport sends the requests; one of the package's own where nil.
	Transport http.RoundTripper

	// Timeout bounds one request. Default 5 s.
	Timeout time.Duration

	// Clock is what waiting goes by. Default the system's.
	Clock clock.Clock
}

// URLError tells what is wrong with one of Config.URLs, and does not repeat it.
type URLError struct {
	Index int
	Err   error
}

// Error names the URL by its place.
func (e *URLError) Error() string { return fmt.Sprintf("chain: Config.URLs[%d]: %v", e.Index, e.Err) }

// Unwrap is the cause.
func (e *URLError) Unwrap() error { return e.Err }

// Chain is one EVM chain, or one of Tempo, as its nodes tell it. It is safe for concurrent use
// and holds no goroutine.
type Chain struct {
	id    payment.ChainID
	tempo bool
	nodes []*node
	clock clock.Clock
	sent  atomic.Int64
}

// New returns a chain. It does no I/O. Its errors name the field, and no URL,
// since those hold keys.
func New(c Config) (*Chain, error) {
	if _, err := payment.ParseChainID(string(c.ID)); err != nil {
		return nil, fmt.Errorf("chain: Config.ID: %w", err)
	}
	if len(c.URLs) == 0 {
		return nil, errors.New("chain: Config.URLs is empty")
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	hc := &http.Client{
		Transport: c.Transport, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	out := &Chain{id: c.ID, clock: c.Clock, tempo: c.Tempo || c.ID == payment.Tempo || c.ID == payment.TempoTest}
	for i, raw := range c.URLs {
		n, err := newNode(raw, c.ID, hc, c.Clock, &out.sent)
		if err != nil {
			return nil, &URLError{i, err}
		}
		for _, other := range out.nodes {
			if other.place == n.place {
				return nil, &URLError{i, errors.New("stands there twice: a node cannot confirm itself")}
			}
		}
		out.nodes = append(out.nodes, n)
	}
	return out, nil
}

// ID is the chain's id.
func (c *Chain) ID() payment.ChainID { return c.id }

// Sources is how many nodes have to say the same before it is believed: two, or
// one where only one is configured.
func (c *Chain) Sources() int { return min(2, len(c.nodes)) }

// Traffic is how many bytes of requests and answers went to and from nodes.
func (c *Chain) Traffic() int64 { return c.sent.Load() }

// Balance is what account holds of asset at the latest block, by whichever node
// answers first. It is a preference, never evidence.
func (c *Chain) Balance(ctx context.Context, asset payment.Asset, account payment.Address) (payment.Units, error) {
	if asset.Chain != c.id {
		return payment.Units{}, fmt.Errorf("chain: %s is not on %s", asset, c.id)
	}
	input := append(selector(balanceOf), word32(wordOf(account))...)
	out, err := fastest(ctx, c, func(ctx context.Context, n *node) (out word, err error) {
		err = n.one(ctx, "eth_call", &out, map[string]any{"to": asset.Address.Lower(), "data": data(input)}, "latest")
		return out, err
	})
	if err != nil {
		return payment.Units{}, fmt.Errorf("chain: balance: %w", err)
	}
	return payment.UnitsFromBytes(out), nil
}

// Latest is the newest block: the lowest of those that the nodes name, so that
// one of them alone cannot claim that time has passed. It is for comparing
// clocks, never evidence.
func (c *Chain) Latest(ctx context.Context) (payment.Block, error) {
	heads, err := all(ctx, c, 1, func(ctx context.Context, n *node) (payment.Block, error) { return n.block(ctx, "latest") })
	if err != nil {
		return payment.Block{}, fmt.Errorf("chain: latest block: %w", err)
	}
	return lowest(heads), nil
}

func lowest(blocks []payment.Block) payment.Block {
	low := blocks[0]
	for _, b := range blocks[1:] {
		if b.Number < low.Number {
			low = b
		}
	}
	return low
}

// Finalized is the newest block that Sources nodes call final, and that no node
// has with another hash or time: one node that claims too much, or one of three
// that stands still, does not move it.
func (c *Chain) Finalized(ctx context.Context) (payment.Block, error) {
	heads, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) (payment.Block, error) { return n.block(ctx, "finalized") })
	if err != nil {
		return payment.Block{}, fmt.Errorf("chain: finalized block: %w", err)
	}
	slices.SortFunc(heads, func(a, b payment.Block) int { return cmp.Compare(b.Number, a.Number) })
	at := heads[c.Sources()-1]
	if !slices.ContainsFunc(heads, func(b payment.Block) bool { return b != at }) {
		return at, nil
	}
	same, err := all(ctx, c, c.Sources(), func(ctx context.Context, n *node) (payment.Block, error) {
		return n.block(ctx, quantity(at.Number))
	})
	if err != nil {
		return payment.Block{}, fmt.Errorf("chain: finalized block: %w", err)
	}
	for _, b := range same {
		if b != same[0] {
			return payment.Block{}, fmt.Errorf("chain: finalized block: %w", ErrDisagree)
		}
	}
	return same[0], nil
}

// maxTime is the end of the year 9999: no block's time is later.
const maxTime = 253402300799

// block reads the header of the block with that tag or number.
func (n *node) block(ctx context.Context, at any) (payment.Block, error) {
	var b *struct {
		Number    quantity `json:"number"`
		Hash      word     `json:"hash"`
		Timestamp quantity `json:"timestamp"`
	}
	if err := n.one(ctx, "eth_getBlockByNumber", &b, at, false); err != nil {
		return payment.Block{}, err
	}
	if b == nil {
		return payment.Block{}, fmt.Errorf("%w: %s does not have block %v", ErrAnswer, n.host, at)
	}
	if b.Timestamp > maxTime {
		return payment.Block{}, fmt.Errorf("%w: %s gave block %d an impossible time", ErrAnswer, n.host, b.Number)
	}
	if q, ok := at.(quantity); ok && b.Number != q {
		return payment.Block{}, fmt.Errorf("%w: %s gave block %d for %d", ErrAnswer, n.host, b.Number, q)
	}
	return payment.Block{Number: uint64(b.Number), Hash: payment.Hash(b.Hash), Time: time.Unix(int64(b.Timestamp), 0).UTC()}, nil
}
