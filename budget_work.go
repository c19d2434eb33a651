package canopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Errors about budgets.
var (
	ErrBudget      = ledger.ErrBudget      // not one of this agent on this ledger, or not part of the one that binds
	ErrBudgetEnded = ledger.ErrBudgetEnded // it pays nothing more
	ErrBudgetToken = ledger.ErrBudgetToken // the token of no budget of this agent on this ledger
)

// BudgetShortError says that less is left of a budget than was asked of it.
type BudgetShortError = ledger.BudgetShortError

// BudgetID names a budget.
type BudgetID = payment.BudgetID

// BudgetToken is what another process joins a budget by that was granted. None
// of its methods but Reveal shows it.
type BudgetToken string

// Reveal is the token itself.
func (t BudgetToken) Reveal() string { return string(t) }

// String hides the token.
func (t BudgetToken) String() string { return "canopy_budget_[redacted]" }

// GoString hides the token.
func (t BudgetToken) GoString() string { return t.String() }

// Format hides the token under every verb.
func (t BudgetToken) Format(f fmt.State, _ rune) { io.WriteString(f, t.String()) }

// LogValue hides the token.
func (t BudgetToken) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText hides the token, in JSON too.
func (t BudgetToken) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// WithBudget sets dollars aside for the work under the context that it returns:
// what Fetch, RoundTrip and Pay pay under it counts in this budget and in all
// that it was taken from, in the same commit as the caps, and is denied with
// budget_exceeded where there is no room. A budget under a context that has one
// is taken from that: it is a *BudgetShortError where less is left, and what is
// given is not free there until the new one ends. The caps hold beside it.
//
// The budget ends when the CancelFunc is called, which returns once that is
// recorded and ends the context, or when ctx ends, or the budget that it was
// taken from, or this process. Then it pays nothing more (budget_ended), and what
// it did not spend is free again at once. A payment that was authorized before
// goes on. The name is for people: one line, 1 to 100 bytes.
//
// It takes one commit to begin and one to end. ErrBudgetEnded where the budget of
// ctx has ended.
func (c *Client) WithBudget(ctx context.Context, name string, usd USD) (context.Context, context.CancelFunc, error) {
	fail := func(err error) (context.Context, context.CancelFunc, error) {
		return ctx, func() {}, fmt.Errorf("canopy: budget %s: %w", clip(name), err)
	}
	purse, err := c.purse()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fail(err)
	}
	w, err := c.work(ctx)
	if err != nil {
		return fail(err)
	}
	now := c.cfg.Now()
	detached, done := clock.WithTimeout(context.WithoutCancel(ctx), c.cfg.Clock, recordTime)
	defer done()
	b, err := purse.MakeBudget(detached, ledger.NewBudget{
		ID: payment.NewBudgetID(now), Agent: c.cfg.Agent, Parent: w.budget, Within: w.within, Name: name, Limit: usd, Now: now,
	})
	if err != nil {
		return fail(err)
	}
	h := &heldBudget{id: b.ID, root: b.Root, parent: heldOf(ctx), c: c, purse: purse}
	inner, stop := context.WithCancel(context.WithValue(ctx, budgetKey{}, h))
	h.ctx = inner
	unwatch := context.AfterFunc(inner, func() { h.finish("its context has ended") })
	return inner, func() {
		h.finish("cancelled") // where it fails, the next call under the context tries again
		unwatch()
		stop()
	}, nil
}

// JoinBudget returns a context whose payments count in the budget that a token
// was granted for. Of it, budgets can be taken by WithBudget, and never more than
// it has. Where ctx has a budget, or the client one by its Config, the token's
// must be part of that: ErrBudget. ErrBudgetToken where the token is of none of
// this agent's budgets on this ledger; ErrBudgetEnded where it is, and has ended.
func (c *Client) JoinBudget(ctx context.Context, token BudgetToken) (context.Context, error) {
	purse, err := c.purse()
	if err != nil {
		return ctx, fmt.Errorf("canopy: join: %w", err)
	}
	w, err := c.work(ctx)
	if err != nil {
		return ctx, fmt.Errorf("canopy: join: %w", err)
	}
	b, err := purse.JoinBudget(ctx, c.cfg.Agent, token.Reveal(), w.budget, c.cfg.Now())
	if err != nil {
		return ctx, fmt.Errorf("canopy: join: %w", err)
	}
	return context.WithValue(ctx, budgetKey{}, &heldBudget{id: b.ID, root: b.Root, parent: heldOf(ctx)}), nil
}

func (c *Client) purse() (ledger.Budgeter, error) {
	if p, ok := c.cfg.Store.(ledger.Budgeter); ok {
		return p, nil
	}
	return nil, errors.New("this ledger keeps no budgets")
}

// budgetKey is what a context has its budget under: nobody else can put one
// there, or read it.
type budgetKey struct{}

// heldBudget is the budget of a context.
type heldBudget struct {
	id, root BudgetID
	parent   *heldBudget // of the context that it was made under, or nil

	// Of one that WithBudget made: what ends it.
	c     *Client
	purse ledger.Budgeter
	ctx   context.Context

	ended atomic.Bool // and that is recorded
}

func heldOf(ctx context.Context) *heldBudget {
	h, _ := ctx.Value(budgetKey{}).(*heldBudget)
	return h
}

// finish records that h has ended. Who comes second finds it recorded.
func (h *heldBudget) finish(why string) error {
	if h.ended.Load() {
		return nil
	}
	detached, done := clock.WithTimeout(context.WithoutCancel(h.ctx), h.c.cfg.Clock, recordTime)
	defer done()
	if _, err := h.purse.EndBudget(detached, h.id, why, h.c.cfg.Now()); err != nil {
		h.c.cfg.Logger.LogAttrs(detached, slog.LevelWarn, "the end of a budget was not recorded: it ends with this process",
			slog.String("budget", string(h.id)), slog.String("error", err.Error()))
		return err
	}
	h.ended.Store(true)
	return nil
}

// work is what a payment is made for.
type work struct {
	run    string   // the outermost budget, else the client
	budget BudgetID // empty for none
	within BudgetID // what Config.BudgetToken binds the client to; empty for nothing
}

// work is that of ctx. What has ended here by its context is recorded first, so
// that the ledger refuses it.
func (c *Client) work(ctx context.Context) (work, error) {
	w := work{run: c.run}
	if c.cfg.BudgetToken != "" {
		base, err := c.joined(ctx)
		if err != nil {
			return w, err
		}
		w = work{run: string(base.Root), budget: base.ID, within: base.ID}
	}
	h := heldOf(ctx)
	if h == nil {
		return w, nil
	}
	for o := h; o != nil; o = o.parent {
		if o.ctx == nil || o.ctx.Err() == nil {
			continue
		}
		if err := o.finish("its context has ended"); err != nil {
			return w, fmt.Errorf("recording the end of a budget: %w", err)
		}
	}
	w.run, w.budget = string(h.root), h.id
	return w, nil
}

// joined is the budget of Config.BudgetToken; it is asked for until it is known.
func (c *Client) joined(ctx context.Context) (*ledger.Budget, error) {
	if b := c.base.Load(); b != nil {
		return b, nil
	}
	purse, err := c.purse()
	if err != nil {
		return nil, err
	}
	b, err := purse.JoinBudget(ctx, c.cfg.Agent, c.cfg.BudgetToken.Reveal(), "", c.cfg.Now())
	if err != nil {
		return nil, fmt.Errorf("Config.BudgetToken: %w", err)
	}
	c.base.Store(&b)
	return &b, nil
}

// resumed is ctx with the budget that a payment was asked for under, where ctx
// has none.
func resumed(ctx context.Context, e *ledger.Entry) context.Context {
	n := len(e.Budgets)
	if n == 0 || heldOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, &heldBudget{id: e.Budgets[n-1], root: e.Budgets[0]})
}

// underBudget is v with what the ledger would say of the budget of ctx.
func (c *Client) underBudget(ctx context.Context, v policy.Verdict, now time.Time) (policy.Verdict, error) {
	w, err := c.work(ctx)
	if err != nil || w.budget == "" {
		return v, err
	}
	purse, err := c.purse()
	if err != nil {
		return v, err
	}
	all, err := purse.Budgets(ctx, ledger.BudgetQuery{Agent: c.cfg.Agent, Ended: endedShown, Now: now})
	if err != nil {
		return v, err
	}
	for _, u := range all {
		switch {
		case u.ID != w.budget:
		case !u.EndedAt.IsZero():
			r := u.Ended()
			v.Status, v.Reasons = Denied, append(v.Reasons, r)
			return v, nil
		default:
			use := u.Use()
			v.Limits = append(v.Limits[:len(v.Limits):len(v.Limits)], use.Limit)
			return v.Apply([]policy.Use{use}), nil
		}
	}
	return v, fmt.Errorf("%w: %s", ErrBudget, w.budget)
}
