package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/payment"
)

// Config is what a Chain is made of.
type Config struct {
	ID   payment.ChainID // required
	URLs []string        // of JSON-RPC nodes; at least one. Two that are run by different people are worth more than two of one

	// Transport sends the requests; one of the package's own where nil.
	Transport http.RoundTripper

	// Timeout bounds one request. Default 5 s.
	Timeout time.Duration

	// Clock is what waiting goes by. Default the system's.
	Clock clock.Clock
}

// Chain is one EVM chain as its nodes tell it. It is safe for concurrent use
// and holds no goroutine.
type Chain struct {
	id    payment.ChainID
	nodes []*node
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
	out := &Chain{id: c.ID}
	for i, raw := range c.URLs {
		n, err := newNode(raw, c.ID, hc, c.Clock, &out.sent)
		if err != nil {
			return nil, fmt.Errorf("chain: Config.URLs[%d]: %w", i, err)
		}
		for _, other := range out.nodes {
			if other.host == n.host && other.url == n.url {
				return nil, fmt.Errorf("chain: Config.URLs[%d] stands there twice: a node cannot confirm itself", i)
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

// all asks every node at once, and returns the answers of those that gave one.
// It is an error where fewer than Sources did.
func all[T any](ctx context.Context, c *Chain, ask func(context.Context, *node) (T, error)) ([]T, error) {
	answers := make([]T, len(c.nodes))
	errs := make([]error, len(c.nodes))
	var g errgroup.Group
	for i, n := range c.nodes {
		g.Go(func() error {
			answers[i], errs[i] = ask(ctx, n)
			return nil
		})
	}
	g.Wait()
	var out []T
	for i := range answers {
		if errs[i] == nil {
			out = append(out, answers[i])
		}
	}
	if len(out) < c.Sources() {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// agreed is what all nodes that answered say, which must be the same.
func agreed[T comparable](ctx context.Context, c *Chain, what string, ask func(context.Context, *node) (T, error)) (T, error) {
	answers, err := all(ctx, c, ask)
	var zero T
	if err != nil {
		return zero, fmt.Errorf("chain: %s: %w", what, err)
	}
	for _, a := range answers[1:] {
		if a != answers[0] {
			return zero, fmt.Errorf("chain: %s: %w", what, ErrDisagree)
		}
	}
	return answers[0], nil
}

// Balance is what account holds of asset at the latest block, by the first node
// that answers. It is a preference, never evidence.
func (c *Chain) Balance(ctx context.Context, asset payment.Asset, account payment.Address) (payment.Units, error) {
	if asset.Chain != c.id {
		return payment.Units{}, fmt.Errorf("chain: %s is not on %s", asset, c.id)
	}
	input := append(selector(balanceOf), word32(wordOf(account))...)
	var errs []error
	for _, n := range c.nodes {
		var out word
		err := n.one(ctx, "eth_call", &out, map[string]any{"to": asset.Address.Lower(), "data": data(input)}, "latest")
		if err == nil {
			return payment.UnitsFromBytes(out), nil
		}
		errs = append(errs, err)
	}
	return payment.Units{}, fmt.Errorf("chain: balance: %w", errors.Join(errs...))
}

// Latest is the newest block, by the first node that answers: for comparing
// clocks, never evidence.
func (c *Chain) Latest(ctx context.Context) (payment.Block, error) {
	var errs []error
	for _, n := range c.nodes {
		b, err := n.block(ctx, "latest")
		if err == nil {
			return b, nil
		}
		errs = append(errs, err)
	}
	return payment.Block{}, fmt.Errorf("chain: latest block: %w", errors.Join(errs...))
}

// Finalized is the newest block that every node calls final and that all have
// with one hash and time.
func (c *Chain) Finalized(ctx context.Context) (payment.Block, error) {
	heads, err := all(ctx, c, func(ctx context.Context, n *node) (payment.Block, error) { return n.block(ctx, "finalized") })
	if err != nil {
		return payment.Block{}, fmt.Errorf("chain: finalized block: %w", err)
	}
	lowest := heads[0]
	for _, b := range heads[1:] {
		if b.Number < lowest.Number {
			lowest = b
		}
	}
	return agreed(ctx, c, "finalized block", func(ctx context.Context, n *node) (payment.Block, error) {
		return n.block(ctx, quantity(lowest.Number))
	})
}

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
	if q, ok := at.(quantity); ok && b.Number != q {
		return payment.Block{}, fmt.Errorf("%w: %s gave block %d for %d", ErrAnswer, n.host, b.Number, q)
	}
	return payment.Block{Number: uint64(b.Number), Hash: payment.Hash(b.Hash), Time: time.Unix(int64(b.Timestamp), 0).UTC()}, nil
}
