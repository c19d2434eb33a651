package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/chain"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/payment"
)

// reachTime bounds what asking one chain may take.
const reachTime = 10 * time.Second

// reach asks every chain how it stands, and what the account holds there.
func (a *app) reach(ctx context.Context, chains []canopy.Chain, f *config.File, account payment.Address) []shape.ChainState {
	out := make([]shape.ChainState, len(chains))
	each(ctx, len(chains), func(ctx context.Context, i int) { out[i] = a.reachOne(ctx, chains[i], f, account) })
	return out
}

// each does something about n chains at once, within reachTime.
func each(ctx context.Context, n int, f func(ctx context.Context, i int)) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(ctx, i) })
	}
	all.Wait()
}

// unreached is a node that does not answer, or not as one of its chain.
type unreached struct {
	config.Node
	err error
}

// wrong reports whether it answers, and for another chain.
func (u unreached) wrong() bool { return errors.Is(u.err, chain.ErrWrongChain) }

// reachNodes asks every node by itself, and returns those that failed.
func (a *app) reachNodes(ctx context.Context, nodes []config.Node) []unreached {
	errs := make([]error, len(nodes))
	each(ctx, len(nodes), func(ctx context.Context, i int) {
		if k, ok := nodes[i].Chain.(canopy.Timekeeper); ok {
			_, errs[i] = k.Latest(ctx)
		}
	})
	var out []unreached
	for i, err := range errs {
		if err != nil {
			out = append(out, unreached{nodes[i], err})
		}
	}
	return out
}

func (a *app) reachOne(ctx context.Context, c canopy.Chain, f *config.File, account payment.Address) shape.ChainState {
	out := shape.ChainState{Name: c.ID().Name(), Nodes: 1}
	if n, ok := c.ID().Number(); ok {
		out.ChainID = n
	}
	failed := func(err error) shape.ChainState {
		out.Error = show(err.Error(), 400)
		return out
	}
	if k, ok := c.(canopy.Timekeeper); ok {
		b, err := k.Latest(ctx)
		if err != nil {
			return failed(err)
		}
		out.Latest = shape.BlockOf(b)
	}
	if r, ok := c.(canopy.Reconciler); ok {
		out.Nodes = r.Sources()
		b, err := r.Finalized(ctx)
		if err != nil {
			return failed(err)
		}
		out.Finalized = shape.BlockOf(b)
	}
	balances, err := held(ctx, c, f, account)
	if err != nil {
		return failed(err)
	}
	out.Balances = balances
	out.OK = true
	return out
}

// held is what account has of each token that it can pay with on c. A token
// that is not there, as on a network of one's own, is left out where another is.
func held(ctx context.Context, c canopy.Chain, f *config.File, account payment.Address) ([]shape.Held, error) {
	if account.IsZero() {
		return nil, nil
	}
	var out []shape.Held
	var absent error
	for _, asset := range f.Payable(c.ID()) {
		units, err := c.Balance(ctx, asset, account)
		switch {
		case errors.Is(err, chain.ErrAnswer):
			absent = err
			continue
		case err != nil:
			return nil, err
		}
		usd, _ := asset.Value(units)
		out = append(out, shape.Held{Symbol: asset.Symbol, Token: asset.Address, USD: usd})
	}
	if len(out) == 0 {
		return nil, absent
	}
	return out, nil
}

// chainFields tells people how the chains stand, as pairs for fields.
func chainFields(chains []shape.ChainState) []string {
	var out []string
	for _, c := range chains {
		words := []string{fmt.Sprintf("%d nodes agree", c.Nodes)}
		if c.Nodes == 1 {
			words[0] = "one node, whose word releases money (assumed)"
		}
		if c.Latest != nil {
			words = append(words, fmt.Sprintf("block %d, %s old", c.Latest.Number, short(time.Since(c.Latest.At.Time).Round(time.Second))))
		}
		if c.Finalized != nil {
			words = append(words, "final up to "+short(time.Since(c.Finalized.At.Time).Round(time.Second))+" ago")
		}
		var holds []string
		for _, h := range c.Balances {
			holds = append(holds, fmt.Sprintf("%s of %s", h.USD, h.Symbol))
		}
		if len(holds) > 0 {
			words = append(words, "holds "+strings.Join(holds, ", "))
		}
		text := strings.Join(words, "; ")
		if c.Error != "" {
			text = "NOT REACHED: " + c.Error
		}
		out = append(out, show(c.Name, 40), text)
	}
	return out
}
