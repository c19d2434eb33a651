package main

import (
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/story"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// teller tells payments in plain words.
func (a *app) teller() *story.Teller {
	return &story.Teller{Now: a.now, Asks: a.asks, Command: a.command}
}

// whatNext tells what will happen to e, and when.
func (a *app) whatNext(e ledger.Entry) string { return a.teller().Next(e) }

// stateWords is a state for people.
func stateWords(s ledger.State) string { return story.State(s) }

// askable are the chains that name an rpc, by which their nodes are asked.
func askable(f *config.File) map[payment.ChainID]bool {
	out := map[payment.ChainID]bool{}
	for _, c := range f.Chains {
		out[c.ID] = out[c.ID] || len(c.RPC)+len(c.RPCEnv) > 0
	}
	return out
}
