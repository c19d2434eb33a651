package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/payment"
)

// reachTime bounds what asking one chain may take.
const reachTime = 10 * time.Second

// reach asks every chain how it stands, and what the account holds there.
func (a *app) reach(ctx context.Context, chains []canopy.Chain, assets payment.Assets, account payment.Address) []shape.ChainState {
	out := make([]shape.ChainState, len(chains))
	for i, c := range chains {
		bounded, cancel := context.WithTimeout(ctx, reachTime)
		out[i] = a.reachOne(bounded, c, assets, account)
		cancel()
	}
	return out
}

func (a *app) reachOne(ctx context.Context, c canopy.Chain, assets payment.Assets, account payment.Address) shape.ChainState {
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
	for _, asset := range assets.On(c.ID()) {
		if account.IsZero() || asset.NoAuthorization {
			continue
		}
		held, err := c.Balance(ctx, asset, account)
		if err != nil {
			return failed(err)
		}
		usd, _ := asset.Value(held)
		out.Balances = append(out.Balances, shape.Held{Symbol: asset.Symbol, Token: asset.Address, USD: usd})
	}
	out.OK = true
	return out
}

// printChains tells people how the chains stand.
func (a *app) printChains(chains []shape.ChainState) {
	for _, c := range chains {
		words := []string{fmt.Sprintf("%d node(s) agree", c.Nodes)}
		if c.Nodes == 1 {
			words[0] = "one node, whose word releases money (assumed)"
		}
		if c.Latest != nil {
			words = append(words, fmt.Sprintf("block %d, %s old", c.Latest.Number, short(time.Since(c.Latest.At.Time).Round(time.Second))))
		}
		if c.Finalized != nil {
			words = append(words, "final up to "+short(time.Since(c.Finalized.At.Time).Round(time.Second))+" ago")
		}
		for _, h := range c.Balances {
			words = append(words, fmt.Sprintf("holds %s of %s", h.USD, h.Symbol))
		}
		text := strings.Join(words, "; ")
		if c.Error != "" {
			text = "NOT REACHED: " + c.Error
		}
		a.printf("%-12s %s\n", show(c.Name, 40), text)
	}
}
