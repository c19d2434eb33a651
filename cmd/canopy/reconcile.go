package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

func (a *app) reconcileCommand() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "Ask the chains what became of payments, and end their holds",
		Long: `Reconcile asks the nodes of [[chain]] what became of every payment that is held:
it is settled where its transfer is there and final, and released where the
chain shows that it can never move any more. It never signs, needs no password,
and may be ended at any point. What cannot be known yet waits.

It also looks for uses of the key that this ledger never signed; with
foreign_use = "freeze" these stop every agent. With --every it also delivers what
webhooks have to tell.`,
		Example: `  canopy reconcile
  canopy reconcile --every 30s`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if every != 0 && every < time.Second {
				return usage(c, errors.New("--every is at least 1s"))
			}
			f, err := a.load()
			if err != nil {
				return err
			}
			v, err := a.view(c.Context(), f)
			if err != nil {
				return err
			}
			defer v.Close()
			a.asks = askable(f)
			if len(v.Chains()) == 0 {
				a.note("No [[chain]] names an rpc: there is nobody to ask. What was authorized counts as spent, unless canopy ledger resolve says otherwise.")
			}
			if every == 0 {
				r, err := v.Reconcile(c.Context())
				if err != nil {
					return err
				}
				if len(r.Problems) > 0 {
					a.code = codeFailed
				}
				if err := a.printRound(r); err != nil || a.json || r.Waiting+r.Unwatched == 0 {
					return err
				}
				return a.printHeld(c.Context(), v.Store, len(r.Problems) > 0)
			}
			wait := a.deliverBeside(c.Context(), f, v.Store)
			err = v.ReconcileEvery(c.Context(), every, func(r canopy.Reconciliation, err error) {
				if err != nil {
					a.note("problem: %s", show(err.Error(), 500))
				} else if a.json || len(r.Changed)+len(r.Foreign)+len(r.Problems)+r.Recovered > 0 {
					a.printRound(r)
				}
			})
			if c.Context().Err() != nil {
				wait()
				return nil // told to end
			}
			return err
		},
	}
	lengthVar(c.Flags(), &every, "every", "", "go on for ever, with `SECONDS`, or such as 5m, between rounds")
	return c
}

func (a *app) printRound(r canopy.Reconciliation) error {
	why, frozen := a.everybodyFrozen()
	if a.json {
		out := shape.ReconciliationOf(r)
		if frozen {
			why = show(why, 500)
			out.Frozen = &why
		}
		return a.printJSON(out)
	}
	for _, p := range r.Changed {
		line := ""
		switch p.State {
		case ledger.Settled:
			line = "settled: the chain shows the transfer " + p.TxHash
			if p.Amount == 0 {
				line = "ended: a proof, which moved nothing and counts as one payment"
			}
		case ledger.ExpiredUnused:
			line = "released: it never moved and cannot any more"
		case ledger.Cancelled:
			line = "cancelled: its authorization was used up by a cancellation"
			if p.Spent > 0 {
				line = "cancelled: its transaction " + p.TxHash + " failed, and only its fee counts"
			}
		case ledger.NeedsOperator:
			line = "NEEDS AN OPERATOR: its authorization moved something else; every agent is frozen"
		}
		total, _ := p.Amount.Add(p.Fee)
		if p.Spent > 0 {
			total = p.Spent
		}
		a.printf("%s  %s  %s\n", p.PaymentID, total, line)
	}
	for _, s := range r.Foreign {
		if l, ok := r.LateUse(s); ok {
			how := "it had been released by the word of the chain's nodes"
			if l.ReleasedBy == ledger.ByOperator {
				how = "an operator had called it unused"
			}
			a.printf("LATE TRANSFER of payment %s by %s in block %d: %s, and it moved its money all the same. No cap counts it: lower the caps by it while it would count.\n",
				l.PaymentID, s.TxHash, s.Block, how)
			continue
		}
		a.printf("FOREIGN USE of the key %s by %s in block %d: not signed by this ledger\n", s.Slot.From, s.TxHash, s.Block)
	}
	if r.Known > 0 {
		a.printf("%s of the key that an earlier round told of: looked at again, since not all nodes show what came before.\n", count(int64(r.Known), "foreign use"))
	}
	for _, p := range r.Problems {
		a.printf("problem: %s\n", show(p.Error(), 500))
	}
	if frozen {
		a.printf("EVERYBODY on this ledger is frozen: %s\n  Look into it first. Once it is explained: %s\n", show(why, 500), a.command("unfreeze --all --reason TEXT"))
	}
	if r.Recovered > 0 {
		a.printf("%d payments of processes that ended are now in doubt.\n", r.Recovered)
	}
	switch {
	case r.Looked == 0 && r.Unwatched == 0:
		a.printf("No payment is held.\n")
	default:
		a.printf("Held payments looked at: %d. Settled %d, released %d, cancelled %d, for an operator %d, waiting %d.\n",
			r.Looked, r.Settled, r.Released, r.Cancelled, r.Operator, r.Waiting)
		if r.Proofs > 0 {
			a.printf("Proofs that ended: %d.\n", r.Proofs)
		}
		if r.Unwatched > 0 {
			a.printf("On chains without an rpc: %d.\n", r.Unwatched)
		}
	}
	return nil
}

// mostHeld payments are told of one by one.
const mostHeld = 10

// printHeld tells of each payment that is still held what it is and what comes
// next; unasked says that a chain could not be asked.
func (a *app) printHeld(ctx context.Context, s ledger.Store, unasked bool) error {
	n := 0
	for e, err := range s.Entries(ctx, ledger.Query{States: []ledger.State{ledger.Authorized, ledger.InDoubt, ledger.Claimed, ledger.NeedsOperator}}) {
		if err != nil {
			return err
		}
		if n++; n > mostHeld {
			continue
		}
		why := ""
		if e.Note != "" && e.State != ledger.Claimed { // else it is of before
			why = " (" + show(e.Note, 200) + ")"
		}
		a.printf("%s  %s  %s%s: %s\n    %s\n", e.ID, e.Cost, stateWords(e.State), why, show(what(e.Terms), 300), a.whatNext(e))
	}
	if n > mostHeld {
		a.printf("And %d more: canopy ledger list --state in_doubt --state claimed\n", n-mostHeld)
	}
	if unasked {
		a.note("A chain could not be asked, so nothing was lost and nothing was given back. Run canopy reconcile again once it can be reached.")
	}
	return nil
}
