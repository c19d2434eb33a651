package canopy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Reconciliation is what Reconcile did.
type Reconciliation struct {
	Looked    int // holds on chains that can be asked, and proofs, of every agent and account on the ledger
	Recovered int // payments of processes that are gone, now in doubt
	Settled   int
	Released  int // expired unused
	Cancelled int
	Operator  int // put before an operator, and every agent frozen
	Waiting   int // nothing final is known yet
	Unwatched int // holds on chains that nobody can ask
	Proofs    int // proofs that ended: they are on no chain, and moved nothing

	Changed []Result // the payments that moved

	// Foreign are uses of our key that the ledger does not count: each once, by
	// the token that it moved where it moved any. Known is how many more there
	// are that an earlier round told of and acted on, and that are looked at
	// again only because not all nodes show what came before them.
	Foreign []payment.Settlement
	Known   int
	Late    []LateUse // whose those of Foreign are that a payment of this ledger made after its release

	// Problems are chains that could not be asked and records that could not
	// be written: what they concern waits for the next round.
	Problems []error
}

// moved reports whether the round ended any hold.
func (r Reconciliation) moved() bool { return r.Settled+r.Released+r.Cancelled > 0 }

// Reconcile ends holds by the word of the chains of the treasury, on finalized
// evidence only: a payment is settled where its transfer is there, released
// where its slot is unused at a block that is not before the end of its
// validity, cancelled where its slot was cancelled, and put before an operator,
// with every agent frozen, where its slot moved something else. Proofs, which are
// on no chain, end with their validity. It also looks for uses of our key that this
// ledger never signed (Config.ForeignUse).
//
// It never signs, needs no key, may run in several processes at once, and may
// be killed at any point: each payment moves by a compare-and-set of its own.
// An error means that the ledger could not be read, or that ctx ended; what was
// done until then stands in the Reconciliation.
func (c *Client) Reconcile(ctx context.Context) (Reconciliation, error) {
	return c.reconcile(ctx, false)
}

// reconcile is Reconcile; where it is quiet, nobody is told of what it finds.
func (c *Client) reconcile(ctx context.Context, quiet bool) (Reconciliation, error) {
	r := &round{c: c, quiet: quiet, acted: map[useOf]bool{}, told: map[useOf]bool{}, again: map[useOf]bool{}}
	err := r.run(ctx)
	return r.out, err
}

// ReconcileEvery reconciles now, and again d after the end of each round, until
// ctx ends, whose error it returns. A d of 0 is 30 seconds. Rounds that fail are
// logged, and told to each where it is not nil. ledger.ErrClosed ends it too.
func (c *Client) ReconcileEvery(ctx context.Context, d time.Duration, each func(Reconciliation, error)) error {
	if d <= 0 {
		d = 30 * time.Second
	}
	for {
		r, err := c.Reconcile(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if each != nil {
			each(r, err)
		}
		if errors.Is(err, ledger.ErrClosed) {
			return err
		}
		c.logRound(ctx, r, err)
		if err := clock.Sleep(ctx, c.cfg.Clock, d); err != nil {
			return err
		}
	}
}

func (c *Client) logRound(ctx context.Context, r Reconciliation, err error) {
	for _, p := range append(r.Problems[:len(r.Problems):len(r.Problems)], err) {
		if p != nil {
			c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "reconciliation has a problem", slog.String("error", p.Error()))
		}
	}
}

// round is one Reconcile.
type round struct {
	c     *Client
	quiet bool // within a call: nobody reads out
	out   Reconciliation
	found []finding      // and not recorded yet
	acted map[useOf]bool // frozen for, in this round
	told  map[useOf]bool // in this round
	again map[useOf]bool // told by an earlier one
}

func (r *round) run(ctx context.Context) error {
	if rec, ok := r.c.cfg.Store.(ledger.Recoverer); ok {
		n, err := rec.Recover(ctx)
		if r.out.Recovered = n; err != nil {
			r.problem(fmt.Errorf("recovering payments of processes that are gone: %w", err))
		}
	}
	live, proofs, err := r.holds(ctx)
	if err != nil {
		return fmt.Errorf("canopy: reconcile: reading the ledger: %w", err)
	}
	r.proofs(ctx, proofs)
	for _, ch := range r.c.cfg.Treasury.Chains {
		rec, ok := ch.(Reconciler)
		if !ok {
			continue
		}
		if err := safely(func() error { return r.chain(ctx, ch.ID(), rec, live[ch.ID()]) }); err != nil {
			r.problem(fmt.Errorf("%s: %w", ch.ID().Name(), err))
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("canopy: reconcile: %w", err)
	}
	return nil
}

func (r *round) problem(err error) { r.out.Problems = append(r.out.Problems, err) }

// holds are the payments that a chain can say something about, by chain, and the
// proofs, about which none can.
func (r *round) holds(ctx context.Context) (out map[ChainID][]ledger.Entry, proofs []ledger.Entry, err error) {
	out = map[ChainID][]ledger.Entry{}
	q := ledger.Query{States: []ledger.State{ledger.Authorized, ledger.InDoubt, ledger.Claimed}, Oldest: true}
	for e, err := range r.c.cfg.Store.Entries(ctx, q) {
		switch {
		case err != nil:
			return nil, nil, err
		case e.Slot.Kind == payment.SlotProof:
			proofs = append(proofs, e)
			r.out.Looked++
		case r.c.watched(e.Slot):
			out[e.Slot.Chain] = append(out[e.Slot.Chain], e)
			r.out.Looked++
		default:
			r.out.Unwatched++
		}
	}
	return out, proofs, nil
}

// proofs ends those whose validity did, whatever came back. What is live is
// authorized, in doubt or claimed.
func (r *round) proofs(ctx context.Context, proofs []ledger.Entry) {
	for _, e := range proofs {
		if e.State == ledger.Authorized || r.c.cfg.Now().Before(e.ValidBefore) {
			r.out.Waiting++
			continue
		}
		r.find(e, ledger.Change{To: ledger.Settled, By: ledger.ByRecovery}, &r.out.Proofs)
	}
	r.record(ctx, 0)
}

// slotBatch is how many slots are asked about at once.
const slotBatch = 1000

// chain settles or releases entries, which are all of one chain.
func (r *round) chain(ctx context.Context, id ChainID, rec Reconciler, entries []ledger.Entry) error {
	at, err := rec.Finalized(ctx)
	if err != nil {
		r.out.Waiting += len(entries)
		return err
	}
	used := map[account][]ledger.Entry{}
	for len(entries) > 0 {
		some := entries[:min(len(entries), slotBatch)]
		if err := r.ask(ctx, rec, at, some, used); err != nil {
			r.out.Waiting += len(entries)
			return err
		}
		entries = entries[len(some):]
	}
	return r.sweep(ctx, id, rec, at, used)
}

// account is where slots of one token and payer are.
type account struct {
	asset Asset
	payer Address
}

// ask releases what can never move, and puts what was used into used.
func (r *round) ask(ctx context.Context, rec Reconciler, at payment.Block, entries []ledger.Entry, used map[account][]ledger.Entry) error {
	slots := make([]payment.Slot, 0, len(entries))
	for i := range entries {
		if entries[i].Slot.Kind != payment.SlotExpiring {
			slots = append(slots, entries[i].Slot)
		}
	}
	var is []bool
	if len(slots) > 0 {
		var err error
		if is, err = rec.Used(ctx, slots, at); err != nil {
			return err
		}
	}
	if len(is) != len(slots) {
		return fmt.Errorf("it told of %d slots, and was asked of %d", len(is), len(slots))
	}
	for _, e := range entries {
		isUsed := true // of an expiring nonce only its transfers tell
		if e.Slot.Kind != payment.SlotExpiring {
			isUsed, is = is[0], is[1:]
		}
		dead := isDead(e, at)
		switch {
		case e.State == ledger.Authorized && !dead:
			r.out.Waiting++ // its process sees to it
		case isUsed:
			k := account{e.Terms.Asset, e.Slot.From}
			used[k] = append(used[k], e)
		case dead:
			r.find(e, ledger.Change{To: ledger.ExpiredUnused}, &r.out.Released)
		default:
			r.out.Waiting++
		}
	}
	r.record(ctx, rec.Sources())
	return nil
}

// isDead reports whether e's bytes can move nothing after block at.
func isDead(e ledger.Entry, at payment.Block) bool { return !at.Time.Before(e.ValidBefore) }

// finding is what the chain shows of a payment.
type finding struct {
	e     ledger.Entry
	ch    ledger.Change
	count *int // what it adds to
}

func (r *round) find(e ledger.Entry, ch ledger.Change, count *int) {
	r.found = append(r.found, finding{e, ch, count})
}

// fewFindings are recorded one by one; of more, writers record that many at
// once, since a store lets them share a commit.
const (
	fewFindings = 16
	writers     = 64
)

// record writes down what was found, by the word of so many nodes.
func (r *round) record(ctx context.Context, nodes int) {
	found := r.found
	r.found = nil
	errs := make([]error, len(found))
	one := func(i int) { found[i].e, errs[i] = r.c.evidence(ctx, nodes, found[i].e, found[i].ch) }
	if len(found) <= fewFindings {
		for i := range found {
			one(i)
		}
	} else {
		var g errgroup.Group
		g.SetLimit(clock.Width(r.c.cfg.Clock, writers))
		for i := range found {
			g.Go(func() error { one(i); return nil })
		}
		g.Wait() // errors are in errs
	}
	for i, f := range found {
		switch err := errs[i]; {
		case errors.Is(err, ledger.ErrStale), errors.Is(err, ledger.ErrIllegal):
			r.out.Waiting++ // somebody else moved it: the next round looks again
		case err != nil:
			r.out.Waiting++
			r.problem(fmt.Errorf("payment %s: %w", f.e.ID, err))
		default:
			*f.count++
			r.out.Changed = append(r.out.Changed, resultOf(f.e))
			r.c.log(ctx, levelInfo, "payment ", &f.e, slog.String("tx", f.e.Receipt.TxHash), slog.Bool("assumed", f.e.Assumed))
		}
	}
}

// evidence records what the chain shows of e, by the word of so many nodes.
func (c *Client) evidence(ctx context.Context, nodes int, e ledger.Entry, ch ledger.Change) (ledger.Entry, error) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, recordTime)
	defer cancel()
	if e.State == ledger.Authorized {
		// Its bytes are dead by the chain's clock, and nobody recorded an
		// outcome.
		next, err := c.cfg.Store.Advance(ctx, ledger.Change{
			ID: e.ID, Version: e.Version, To: ledger.InDoubt, By: ledger.ByRecovery, Now: c.cfg.Now(),
			Note: "its validity ended before an outcome was recorded",
		})
		if err != nil {
			return e, err
		}
		e = next
	}
	ch.ID, ch.Version, ch.Now = e.ID, e.Version, c.cfg.Now()
	if ch.By != ledger.ByRecovery {
		ch.By, ch.Who = ledger.ByChain, fmt.Sprintf("nodes: %d", nodes)
		ch.Assumed = nodes < 2 && (ch.To == ledger.ExpiredUnused || ch.To == ledger.Cancelled)
	}
	next, err := c.cfg.Store.Advance(ctx, ch)
	if err != nil {
		return e, err
	}
	return next, nil
}

// freezeAll stops every agent on the ledger for a reason that only a person can
// judge.
func (r *round) freezeAll(ctx context.Context, why string) error {
	f, ok := r.c.cfg.Store.(ledger.Freezer)
	if !ok {
		return errors.New("the store has no switch to freeze with")
	}
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), r.c.cfg.Clock, recordTime)
	defer cancel()
	r.c.cfg.Logger.LogAttrs(ctx, levelError, "every agent is frozen", slog.String("why", why))
	return f.Freeze(ctx, "", "canopy", why)
}
