package canopy

import (
	"context"
	"fmt"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Budget is what the policy's caps leave this agent now.
type Budget struct {
	Caps []policy.Use // every cap of agent or org scope that denies, in the policy's order: those in shadow are not among them

	// The USD cap with the least remaining; of two, the one with the shorter
	// window. HasCap is false, and the rest zero, where there is none.
	HasCap    bool
	Cap       USD
	Spent     USD // spent and held
	Held      USD // the part of Spent that is held
	Remaining USD
	Window    policy.Window
	Text      string        // the cap as the document wrote it
	Period    time.Duration // of a rolling window; 0 for calendar windows and ever
	// Budgets are those of WithBudget and those that an operator granted: of the
	// work of the context where it has one, else all open ones of the agent.
	Budgets []*BudgetNode

	ResetsAt time.Time // when the oldest counted spend ages out or the window ends; zero where nothing will change it
}

// Budget reads what counts against the agent's caps, and reserves nothing.
func (c *Client) Budget(ctx context.Context) (Budget, error) {
	now := c.cfg.Now()
	v := c.cfg.Policy.Evaluate(payment.Payment{Agent: c.cfg.Agent}, now, policy.History{})
	uses, err := c.cfg.Store.Use(ctx, binding(v.Limits), now)
	if err != nil {
		return Budget{}, fmt.Errorf("canopy: budget: %w", err)
	}
	b := Budget{Caps: uses}
	if b.Budgets, err = c.tree(ctx); err != nil {
		return Budget{}, fmt.Errorf("canopy: budget: %w", err)
	}
	for _, u := range uses {
		if u.Limit.Counting {
			continue
		}
		left, _ := u.Limit.USD.Sub(min(u.USD, u.Limit.USD))
		if b.HasCap && (left > b.Remaining || left == b.Remaining && !shorter(u.Limit.Window, b.Window)) {
			continue
		}
		b.HasCap, b.Cap, b.Spent, b.Held, b.Remaining = true, u.Limit.USD, u.USD, u.Held, left
		b.Window, b.Text, b.ResetsAt, b.Period = u.Limit.Window, u.Limit.Text, u.ResetsAt, 0
		if u.Limit.Window.Kind == policy.Rolling {
			b.Period = u.Limit.Window.Length
		}
	}
	return b, nil
}

// binding are the caps of the agent and of all: the others bound nothing.
func binding(all []policy.Limit) []policy.Limit {
	var limits []policy.Limit
	for _, l := range all {
		caps := l.Scope.Kind == policy.ScopeAgent || l.Scope.Kind == policy.ScopeOrg
		if caps && !l.Asks && !l.Shadow {
			limits = append(limits, l)
		}
	}
	return limits
}

// shorter reports whether a is a shorter window than b.
func shorter(a, b policy.Window) bool { return span(a) < span(b) }

func span(w policy.Window) time.Duration {
	const day = 24 * time.Hour
	switch w.Kind {
	case policy.Rolling:
		return w.Length
	case policy.Day:
		return day
	case policy.Week:
		return 7 * day
	case policy.Month:
		return 31 * day
	}
	return 1<<63 - 1
}
