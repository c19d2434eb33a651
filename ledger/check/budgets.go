package check

import (
	"context"
	"fmt"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// budgets is I15 by budgets: however a piece of work is split, its parts spend no
// more than was set aside for all. Each limit is counted again at each
// authorization, as the caps are, and what is given is added up at the end.
type budgets map[payment.BudgetID]*budget

type budget struct {
	ledger.Budget
	spent payment.USD // under it and under all that was taken from it
	given payment.USD // to open ones, beyond what those spent
}

// budgets reads those of the ledger.
func (c *checking) readBudgets(ctx context.Context) error {
	purse, ok := c.store.(ledger.Budgeter)
	if !ok {
		return nil
	}
	const all = 1 << 30
	uses, err := purse.Budgets(ctx, ledger.BudgetQuery{Ended: all})
	if err != nil || len(uses) == 0 {
		return err
	}
	c.budgets = make(budgets, len(uses))
	for i := range uses {
		c.budgets[uses[i].ID] = &budget{Budget: uses[i].Budget}
	}
	return nil
}

// limits are those of the budgets of e, which it was authorized under.
func (b budgets) limits(c *checking, e *ledger.Entry) (out []policy.Limit) {
	for i, id := range e.Budgets {
		f := b[id]
		switch {
		case f == nil:
			c.found(e, "I15: its budget %s is not there", id)
			continue
		case i == 0 != (f.Parent == "") || i > 0 && f.Parent != e.Budgets[i-1]:
			c.found(e, "I15: its budget %s was not taken from the one before", id)
		case f.Agent != e.Agent:
			c.found(e, "I15: its budget %s is agent %s's", id, f.Agent)
		case !f.EndedAt.IsZero() && e.AuthorizedAt.After(f.EndedAt.Add(slack)):
			c.found(e, "I15: it was authorized at %s, and its budget %s ended at %s", stamp(e.AuthorizedAt), id, stamp(f.EndedAt))
		}
		f.spent, _ = f.spent.Add(e.Spent)
		out = append(out, policy.Limit{
			Scope: policy.Scope{Kind: policy.ScopeBudget, Name: string(id)}, Window: policy.Window{Kind: policy.Ever},
			USD: f.Limit, Text: fmt.Sprintf("%s of budget %s", f.Limit, f.Name),
		})
	}
	return out
}

// finish checks that no budget spent or gave more than it has.
func (b budgets) finish(c *checking) {
	for _, f := range b {
		if p := b[f.Parent]; p != nil && f.EndedAt.IsZero() {
			p.given, _ = p.given.Add(f.Limit - min(f.spent, f.Limit))
		}
	}
	for id, f := range b {
		if used, ok := f.spent.Add(f.given); !ok || used > f.Limit {
			c.add(fmt.Sprintf("%s: I15: %s is spent or held under it and %s given, of %s", id, f.spent, f.given, f.Limit))
		}
	}
}
