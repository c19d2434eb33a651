package canopy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// sweepStep is how many blocks it takes until it is recorded how far a sweep came.
const sweepStep = 50_000

// searchMargins are how far before its authorization a use is looked for.
var searchMargins = []time.Duration{2 * time.Minute, time.Hour, 30 * time.Hour}

// sweep reads what the accounts' authorizations were used for: it settles the
// payments in used, and finds uses that the ledger does not know.
func (r *round) sweep(ctx context.Context, id ChainID, rec Reconciler, at payment.Block, used map[account][]ledger.Entry) error {
	accounts := r.ours(id)
	for k := range used {
		if !slices.Contains(accounts, k) {
			accounts = append(accounts, k)
		}
	}
	for _, k := range accounts {
		if err := r.account(ctx, rec, at, k, used[k]); err != nil {
			r.problem(fmt.Errorf("%s of %s: %w", k.asset, k.payer, err))
		}
	}
	return ctx.Err()
}

// ours are the client's own account, once for each token that its rails pay
// with on the chain.
func (r *round) ours(id ChainID) []account {
	var out []account
	if r.c.Address() == (Address{}) {
		return nil
	}
	for _, rail := range r.c.cfg.Rails {
		a, ok := rail.(interface{ Assets() []Asset })
		if !ok {
			continue
		}
		for _, asset := range a.Assets() {
			if k := (account{asset, r.c.Address()}); asset.Chain == id && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// account settles entries, whose slots were used, and looks at all other uses
// since the last round.
func (r *round) account(ctx context.Context, rec Reconciler, at payment.Block, k account, entries []ledger.Entry) error {
	from, err := r.lookedAt(ctx, k)
	if err != nil {
		r.out.Waiting += len(entries)
		return err
	}
	if len(entries) > 0 {
		first, uses, bySlot, err := r.search(ctx, rec, at, k, entries)
		if err != nil {
			r.out.Waiting += len(entries)
			return err
		}
		for _, e := range entries {
			r.settle(ctx, rec, at, e, bySlot[e.Slot])
		}
		r.record(ctx, rec.Sources())
		if from.known && first <= from.next {
			err := r.foreign(ctx, rec, k, &from, uses, at)
			return from.problems(err)
		}
	}
	if !from.known {
		return r.firstLook(ctx, k, at)
	}
	return from.problems(r.onward(ctx, rec, at, k, &from))
}

// onward looks at all uses from where the last round ended.
func (r *round) onward(ctx context.Context, rec Reconciler, at payment.Block, k account, from *looked) error {
	for from.next <= at.Number {
		to := at
		to.Number = min(at.Number, from.next+sweepStep-1)
		uses, err := rec.Uses(ctx, k.asset, k.payer, from.next, to)
		if err != nil {
			return err
		}
		if err := r.foreign(ctx, rec, k, from, uses, to); err != nil {
			return err
		}
		from.next = to.Number + 1
	}
	return nil
}

// search reads the uses of entries' slots, from block first on, in the chain's
// order. The search begins shortly before the first of them was authorized, and
// goes further back where a use is not there: a chain that halted may catch up
// with blocks whose times are hours old. Each look adds to what was found.
func (r *round) search(ctx context.Context, rec Reconciler, at payment.Block, k account, entries []ledger.Entry) (
	first uint64, uses []payment.Settlement, bySlot map[payment.Slot][]payment.Settlement, err error,
) {
	to := at // the last block that was not read
	for _, margin := range searchMargins {
		begin, err := rec.BlockAt(ctx, earliest(entries).Add(-margin), at)
		if err != nil {
			return 0, nil, nil, err
		}
		if begin = min(begin, at.Number); begin <= to.Number {
			earlier, err := rec.Uses(ctx, k.asset, k.payer, begin, to)
			if err != nil {
				return 0, nil, nil, err
			}
			uses, first = append(earlier, uses...), begin
			to.Number = max(begin, 1) - 1
		}
		bySlot = make(map[payment.Slot][]payment.Settlement, len(uses))
		for _, s := range uses {
			bySlot[s.Slot] = append(bySlot[s.Slot], s)
		}
		all := true
		for i := range entries {
			e := &entries[i]
			waits := e.Slot.Kind == payment.SlotExpiring && !isDead(*e, at)
			all = all && (waits || len(bySlot[e.Slot]) > 0)
		}
		if all || first == 0 {
			break
		}
	}
	return first, uses, bySlot, nil
}

// earliest is when the first of entries was authorized.
func earliest(entries []ledger.Entry) time.Time {
	first := entries[0].AuthorizedAt
	for _, e := range entries[1:] {
		if e.AuthorizedAt.Before(first) {
			first = e.AuthorizedAt
		}
	}
	return first
}

// settle moves e, whose slot was used, by what its use moved, as nodes show it. A
// cancellation, and a use that does not carry out the terms, need the word of
// every node. On an expiring nonce what nodes show alone tells of a use.
func (r *round) settle(ctx context.Context, rec Reconciler, at payment.Block, e ledger.Entry, shown []payment.Settlement) {
	switch {
	case len(shown) > 0:
	case e.Slot.Kind == payment.SlotExpiring && isDead(e, at):
		// No node shows a transfer, and all blocks that could have one were read.
		r.find(e, ledger.Change{To: ledger.ExpiredUnused}, &r.out.Released)
		return
	case e.Slot.Kind == payment.SlotExpiring:
		r.out.Waiting++
		return
	default:
		r.out.Waiting++
		r.problem(fmt.Errorf("payment %s: its slot is used, and no node shows by what", e.ID))
		return
	}
	s := shown[max(slices.IndexFunc(shown, func(s payment.Settlement) bool { return s.CarriesOut(e.Terms) }), 0)]
	if s.CarriesOut(e.Terms) {
		fee, ok := paidFee(e, shown)
		if !ok {
			r.disagrees(ctx, rec, e, s)
			return
		}
		receipt := e.Receipt
		receipt.TxHash, receipt.Block = s.TxHash, s.Time
		ch := ledger.Change{To: ledger.Settled, Receipt: &receipt, SpentAt: s.Time, Fee: fee}
		if rec.Sources() > 1 || !s.Time.Before(e.ValidBefore) {
			// One node's word for an earlier time would end the count too soon,
			// and no token lets a later one be: it counts to the end of its validity.
			ch.SpentAt = time.Time{}
		}
		r.find(e, ch, &r.out.Settled)
		return
	}
	r.disagrees(ctx, rec, e, s)
}

// paidFee is what e's fee was, the highest that a node shows, or nil where terms
// have none, and false where it is more than was agreed.
func paidFee(e ledger.Entry, shown []payment.Settlement) (*USD, bool) {
	if e.Terms.FeeBound == 0 {
		return nil, true
	}
	fee := USD(0)
	for _, s := range shown {
		v, ok := e.Terms.Asset.Value(s.Fee)
		if !ok || v > e.Terms.FeeBound {
			return nil, false
		}
		fee = max(fee, v)
	}
	return &fee, true
}

// disagrees acts on s, a use of e's slot that does not carry out its terms.
func (r *round) disagrees(ctx context.Context, rec Reconciler, e ledger.Entry, s payment.Settlement) {
	if ok, err := rec.Confirm(ctx, s); err != nil || !ok {
		r.out.Waiting++
		r.problem(fmt.Errorf("payment %s: one node shows that %s used its slot otherwise than agreed, and others do not: %w", e.ID, s.TxHash, orDisagree(err)))
		return
	}
	switch fee, ok := paidFee(e, []payment.Settlement{s}); {
	case s.Canceled:
		r.find(e, ledger.Change{To: ledger.Cancelled, Note: "cancelled by " + s.TxHash}, &r.out.Cancelled)
		return
	case s.Failed && len(s.Moved) == 0 && ok:
		receipt := e.Receipt
		receipt.TxHash, receipt.Block = s.TxHash, s.Time
		r.find(e, ledger.Change{
			To: ledger.Cancelled, Receipt: &receipt, Fee: fee, SpentAt: s.Time,
			Note: "its transaction " + s.TxHash + " failed on the chain: it moved nothing, and paid its fee",
		}, &r.out.Cancelled)
		return
	}
	// Freeze first: whoever is killed in between finds the payment again.
	why := fmt.Sprintf("payment %s: %s used its slot and did not move what was agreed", e.ID, s.TxHash)
	if err := r.freezeAll(ctx, why); err != nil {
		r.problem(fmt.Errorf("payment %s: freezing: %w", e.ID, err))
	}
	r.find(e, ledger.Change{To: ledger.NeedsOperator, Note: "its slot was used by " + s.TxHash + ", which did not move what was agreed"}, &r.out.Operator)
}

func orDisagree(err error) error {
	if err == nil {
		return errors.New("not confirmed")
	}
	return err
}
