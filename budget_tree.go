package canopy

import (
	"context"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

// BudgetNode is a budget of WithBudget, or one that an operator granted, as it
// stands now.
type BudgetNode struct {
	ID   BudgetID
	Name string

	Limit    USD
	Spent    USD // spent and held, under it and under all that was taken from it
	Held     USD // the part of Spent that is held
	Given    USD // what open budgets that were taken from it may still spend
	Left     USD // what is free; 0 once it has ended
	Payments int64

	Granted bool   // to whom has its token; it ends with no process
	By      string // who granted it

	CreatedAt time.Time
	ExpiresAt time.Time // zero for never
	EndedAt   time.Time // zero while it is open
	Why       string    // it ended

	Children []*BudgetNode // taken from it, oldest first
}

// endedShown is how many budgets that have ended are shown, in open ones.
const endedShown = 200

// tree is the budgets of the agent: of the work of ctx where it has one, and all
// that are open otherwise. Those that have ended stand in the open ones that
// they were taken from.
func (c *Client) tree(ctx context.Context) ([]*BudgetNode, error) {
	purse, ok := c.cfg.Store.(ledger.Budgeter)
	if !ok {
		return nil, nil
	}
	w, err := c.work(ctx)
	if err != nil {
		return nil, err
	}
	all, err := purse.Budgets(ctx, ledger.BudgetQuery{Agent: c.cfg.Agent, Ended: endedShown, Now: c.cfg.Now()})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b ledger.BudgetUse) int { return a.CreatedAt.Compare(b.CreatedAt) })
	top := w.within
	if top == "" && w.budget != "" {
		top = BudgetID(w.run)
	}
	nodes := make(map[BudgetID]*BudgetNode, len(all))
	for i := range all {
		nodes[all[i].ID] = nodeOf(&all[i])
	}
	var roots []*BudgetNode
	for i := range all {
		u := &all[i]
		n := nodes[u.ID]
		if p := nodes[u.Parent]; p != nil {
			p.Children = append(p.Children, n)
		}
		if u.ID == top || top == "" && u.Parent == "" && u.EndedAt.IsZero() {
			roots = append(roots, n)
		}
	}
	return roots, nil
}

func nodeOf(u *ledger.BudgetUse) *BudgetNode {
	return &BudgetNode{
		ID: u.ID, Name: u.Name, Limit: u.Limit, Spent: u.Spent, Held: u.Held, Given: u.Given, Left: u.Left, Payments: u.Payments,
		Granted: !u.Secret.IsZero(), By: u.By, CreatedAt: u.CreatedAt, ExpiresAt: u.ExpiresAt, EndedAt: u.EndedAt, Why: u.Why,
	}
}
