package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var _ ledger.Budgeter = (*store)(nil)

// purse is a budget as the simulator itself counts it.
type purse struct {
	n        int
	id       payment.BudgetID
	parent   *purse
	children []*purse
	agent    string
	limit    payment.USD
	owner    *proc     // nil where an operator granted it
	expires  time.Time // by the ledger; zero for never
	ended    bool      // as recorded
	paid     []*record // under it, and not under one that was taken from it

	// What its program holds, or whoever has the token.
	ctx    context.Context
	cancel context.CancelFunc
	task   *atomic.Pointer[task] // that may hand over while it is ended
	token  canopy.BudgetToken
}

func (b *purse) String() string {
	if b == nil {
		return "no budget"
	}
	return fmt.Sprintf("budget %d", b.n)
}

// over reports whether b has ended, recorded or not.
func (b *purse) over(now time.Time) bool {
	for ; b != nil; b = b.parent {
		if b.ended || b.owner != nil && b.owner.dead || !b.expires.IsZero() && !now.Before(b.expires) {
			return true
		}
	}
	return false
}

// spent is what counts under b and under all that was taken from it.
func (b *purse) spent() (sum payment.USD) {
	for _, r := range b.paid {
		if _, _, counts := r.counted(); counts {
			sum += r.counts
		}
	}
	for _, c := range b.children {
		sum += c.spent()
	}
	return sum
}

// used is what b cannot give or spend: what it spent itself, all of what open
// budgets were given, and what those that ended spent.
func (b *purse) used(now time.Time) (sum payment.USD) {
	for _, r := range b.paid {
		if _, _, counts := r.counted(); counts {
			sum += r.counts
		}
	}
	for _, c := range b.children {
		if c.over(now) {
			sum += c.spent()
		} else {
			sum += c.limit
		}
	}
	return sum
}

// sure reports whether b, by any clock that the ledger may go by, has ended or has
// not.
func (b *purse) sure(w *world) bool {
	const apart = 2 * time.Minute // of clocks
	for ; b != nil; b = b.parent {
		if !b.expires.IsZero() && (w.now.Sub(b.expires).Abs() < apart || w.machine.Abs() > apart) {
			return false
		}
	}
	return true
}

// summed reports whether what b gave is sure too.
func (b *purse) summed(w *world) bool {
	return b.sure(w) && !slices.ContainsFunc(b.children, func(c *purse) bool { return !c.sure(w) })
}

// aside sees a budget being made, at the instant of its commit.
func (o *oracle) aside(n *ledger.NewBudget, b ledger.Budget, err error) {
	w, parent := o.w, o.purses[n.Parent]
	now := w.now
	var short *ledger.BudgetShortError
	switch {
	case parent != nil && !parent.summed(w):
	case errors.As(err, &short) && !parent.over(now) && parent.limit-parent.used(now) >= n.Limit:
		w.breaks("I12: %s has %s left, and %s was refused", parent, parent.limit-parent.used(now), n.Limit)
	case errors.Is(err, ledger.ErrBudgetEnded) && !parent.over(now):
		w.breaks("I12: %s is told to have ended, and has not", parent)
	case err == nil && parent.over(now):
		w.breaks("I15: a budget is taken from %s, which has ended", parent)
	case err == nil && parent != nil && parent.used(now)+n.Limit > parent.limit:
		w.breaks("I15: %s is taken from %s, which has %s left", n.Limit, parent, parent.limit-parent.used(now))
	}
	if err != nil {
		w.note("a budget of %s of %s is refused", n.Limit, parent)
		return
	}
	p := &purse{n: len(o.purses) + 1, id: b.ID, parent: parent, agent: b.Agent, limit: b.Limit, owner: w.owners[b.Owner], expires: b.ExpiresAt}
	o.purses[p.id] = p
	o.open = append(o.open, p)
	if parent != nil {
		parent.children = append(parent.children, p)
	}
	w.note("%s of %s is taken from %s", p, p.limit, parent)
}

// budgets is I15 at the commit that authorized r: each of its budgets is open and
// has enough.
func (o *oracle) budgets(q *ledger.Request, r *record) {
	w, b := o.w, o.purses[q.Budget]
	if q.Budget == "" {
		return
	}
	now := w.now
	if b == nil {
		w.breaks("I15: %s is authorized under a budget that was never made", r)
		return
	}
	if b.over(now) && b.sure(w) {
		w.breaks("I15: %s is authorized under %s, which has ended", r, b)
	}
	b.paid = append(b.paid, r)
	for p := b; p != nil; p = p.parent {
		if used := p.used(now); used > p.limit && p.summed(w) {
			w.breaks("I15: with %s %s of %s is spent or given, of %s", r, used, p, p.limit)
		}
		if spent := p.spent(); spent > p.limit {
			w.breaks("I15: with %s %s is spent under %s, of %s", r, spent, p, p.limit)
		}
	}
}

// refusedBudget judges a denial by a budget.
func (o *oracle) refusedBudget(q *ledger.Request, e ledger.Entry) {
	w, b, now := o.w, o.purses[q.Budget], o.w.now
	has := func(code string) bool {
		return slices.ContainsFunc(e.Reasons, func(r policy.Reason) bool { return r.Code == code })
	}
	full := false
	for p := b; p != nil; p = p.parent {
		full = full || !p.summed(w) || p.used(now)+e.Cost > p.limit
	}
	switch {
	case b == nil || !b.sure(w):
	case has(ledger.CodeBudgetEnded) && !b.over(now):
		w.breaks("I12: a payment is denied since %s has ended, and it has not", b)
	case has(policy.CodeBudgetExceeded) && !full && !b.over(now):
		w.breaks("I12: a payment of %s is denied for %s, and none is full", e.Cost, b)
	}
}

// somePurse is an open budget of an agent, or one that ended lately, or nil.
func (w *world) somePurse(agent string, use func(*purse) bool) *purse {
	o := w.oracle
	if n := len(o.open); n > 64 {
		o.open = slices.Delete(o.open, 0, n-48)
	}
	var fit []*purse
	for _, p := range o.open {
		if p.agent == agent && use(p) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[w.rng.IntN(len(fit))]
}

// underCtx is the context of a task with the budget of another. What it does not
// find in the task's it looks up there.
type underCtx struct {
	context.Context
	held context.Context
}

func (c underCtx) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.held.Value(key)
}

// heldCtx is what a budget is made under: it never ends by itself, and hands over
// for whatever task holds it now.
type heldCtx struct {
	context.Context
	task *atomic.Pointer[task]
}

func (c heldCtx) Value(key any) any {
	switch key.(type) {
	case taskKey:
		return c.task.Load()
	case holderKey:
		return c.task
	}
	return c.Context.Value(key)
}

type holderKey struct{}

// budget has a program set money aside, take it from what it has, or end what it
// holds.
func (w *world) budget(p *proc) {
	mine := func(b *purse) bool { return b.owner == p && b.cancel != nil && !b.ended }
	if b := w.somePurse(p.agent, mine); b != nil && w.chance(3) {
		w.spawn(p, "end budget", func(t *task) {
			b.task.Store(t)
			b.cancel()
			b.task.Store(nil)
			w.note("%s: %s was ended by its program", t, b)
		})
		return
	}
	parent := w.somePurse(p.agent, func(b *purse) bool { return b.owner == p && b.ctx != nil })
	if w.chance(3) {
		parent = nil
	}
	limit := []payment.USD{0, 8, 20, 35, 60, 100}[w.rng.IntN(6)] * payment.Cent
	w.spawn(p, "budget", func(t *task) {
		under := context.Background()
		if parent != nil {
			under = context.WithoutCancel(parent.ctx)
		}
		holder := &atomic.Pointer[task]{}
		holder.Store(t)
		ctx, cancel, err := p.client.WithBudget(heldCtx{under, holder}, "work", limit)
		holder.Store(nil)
		t.enter()
		if err != nil {
			w.note("%s: no budget", t)
			return
		}
		b := w.oracle.purses[w.oracle.last]
		b.ctx, b.cancel, b.task = ctx, cancel, holder
	})
}

// operator is an operator's hold on the ledger: it knows who is alive.
func (w *world) operator() *ledger.Memory { return w.book.Share(w.clock(), "operator", w.alive) }

// grant has an operator give a token for a part of a budget, or end one.
func (w *world) grant() {
	agent := w.setup.agents[w.rng.IntN(len(w.setup.agents))]
	now := w.now.Add(w.machine)
	if b := w.somePurse(agent, func(b *purse) bool { return !b.ended }); b != nil && w.chance(5) {
		got, err := w.operator().EndBudget(context.Background(), b.id, "an operator", now)
		w.oracle.check(err)
		w.oracle.endedBudget(got)
		return
	}
	n := ledger.NewBudget{Agent: agent, Name: "grant", By: "ana", Limit: payment.USD(w.rng.IntN(40)) * payment.Cent, Now: now}
	if w.chance(3) {
		n.ExpiresAt = now.Add(time.Duration(1+w.rng.IntN(600)) * time.Second)
	}
	if b := w.somePurse(agent, func(*purse) bool { return true }); b != nil && !w.chance(4) {
		n.Parent = b.id
	}
	b, token, err := ledger.GrantBudget(context.Background(), w.operator(), n)
	w.oracle.aside(&n, b, err)
	if err == nil {
		w.oracle.purses[b.ID].token = canopy.BudgetToken(token)
	}
}

// under is the context of a call: of the task alone, or with a budget of its
// program, or with one that it has the token of.
func (w *world) under(t *task, b *purse) context.Context {
	switch {
	case b == nil:
		return t.ctx
	case b.ctx != nil && b.owner == t.p:
		return underCtx{t.ctx, b.ctx}
	}
	ctx, err := t.p.client.JoinBudget(t.ctx, b.token)
	t.enter()
	now := w.now
	switch {
	case err == nil:
		return ctx
	case errors.Is(err, canopy.ErrBudgetEnded) && b.sure(w) && !b.over(now):
		w.breaks("I12: %s cannot be joined since it has ended, and it has not", b)
	case errors.Is(err, canopy.ErrBudgetToken):
		w.breaks("I12: the token of %s is not known", b)
	}
	return nil
}

// purseFor is the budget that a call of p is made under; mostly none.
func (w *world) purseFor(p *proc) *purse {
	if !w.chance(3) {
		return nil
	}
	return w.somePurse(p.agent, func(b *purse) bool { return b.token != "" || b.owner == p && b.ctx != nil })
}

func (o *oracle) endedBudget(b ledger.Budget) {
	if p := o.purses[b.ID]; p != nil && !p.ended {
		p.ended = true
		o.w.note("%s has ended: %s", p, b.Why)
	}
}

// MakeBudget is that of ledger.Budgeter.
func (s *store) MakeBudget(ctx context.Context, n ledger.NewBudget) (b ledger.Budget, err error) {
	failed := s.write(ctx, "make budget", func() error {
		b, err = s.base.MakeBudget(context.Background(), n)
		s.w.oracle.aside(&n, b, err)
		s.w.oracle.last = b.ID
		return err
	})
	if failed != nil {
		return ledger.Budget{}, failed
	}
	s.w.oracle.last = b.ID
	return b, nil
}

// EndBudget is that of ledger.Budgeter. It does nothing where no task runs: the
// end of a context is not played.
func (s *store) EndBudget(ctx context.Context, id payment.BudgetID, why string, now time.Time) (b ledger.Budget, err error) {
	if taskOf(ctx) == nil {
		return b, errDisk
	}
	failed := s.write(ctx, "end budget", func() error {
		b, err = s.base.EndBudget(context.Background(), id, why, now)
		if err == nil {
			s.w.oracle.endedBudget(b)
		}
		return err
	})
	if h, ok := ctx.Value(holderKey{}).(*atomic.Pointer[task]); ok {
		h.Store(nil)
	}
	return b, failed
}

// JoinBudget is that of ledger.Budgeter.
func (s *store) JoinBudget(ctx context.Context, agent, token string, within payment.BudgetID, now time.Time) (ledger.Budget, error) {
	if err := s.read(ctx, "join budget"); err != nil {
		return ledger.Budget{}, err
	}
	return s.base.JoinBudget(context.Background(), agent, token, within, now)
}

// Budgets is that of ledger.Budgeter.
func (s *store) Budgets(ctx context.Context, q ledger.BudgetQuery) ([]ledger.BudgetUse, error) {
	if err := s.read(ctx, "budgets"); err != nil {
		return nil, err
	}
	return s.base.Budgets(context.Background(), q)
}
