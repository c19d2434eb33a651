package dashboard

import (
	"context"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// budgetView is a budget with those that were taken from it.
type budgetView struct {
	Name, Agent              string
	Limit, Spent, Held, Left string
	Given                    string // to those taken from it; empty for none
	Payments                 string
	By                       string // who granted it
	Ended, Why               string
	Expires                  moment
	Parts                    []*budgetView

	At     [3]int // of the bar's 1000 parts: where what is held, given and free begin
	Widths [3]int // spent, held, given
}

// Bounds of what is told of budgets.
const (
	endedShown   = 10
	budgetsShown = 200
)

// budgets is the forest of the open budgets, and the last that ended; more is how
// many there are beyond.
func (p *Page) budgets(ctx context.Context, agent string) (forest []*budgetView, more int, err error) {
	b, ok := p.cfg.Store.(ledger.Budgeter)
	if !ok {
		return nil, 0, nil
	}
	all, err := b.Budgets(ctx, ledger.BudgetQuery{Agent: agent, Ended: endedShown, Now: p.cfg.Now()})
	if err != nil {
		return nil, 0, err
	}
	if len(all) > budgetsShown {
		all, more = all[:budgetsShown], len(all)-budgetsShown
	}
	at := map[payment.BudgetID]*budgetView{}
	for _, u := range all {
		at[u.ID] = p.budgetOf(u)
	}
	for _, u := range all {
		if parent := at[u.Parent]; u.Parent != "" && parent != nil {
			parent.Parts = append(parent.Parts, at[u.ID])
		} else {
			forest = append(forest, at[u.ID])
		}
	}
	return forest, more, nil
}

func (p *Page) budgetOf(u ledger.BudgetUse) *budgetView {
	v := &budgetView{
		Name: clean(u.Name, 100), Agent: clean(u.Agent, 100), Limit: u.Limit.String(), Spent: u.Spent.String(), Left: u.Left.String(),
		Payments: number(u.Payments, "payment"), By: clean(u.By, 100), Expires: p.moment(u.ExpiresAt),
	}
	if !u.EndedAt.IsZero() {
		v.Ended, v.Why, v.Expires = p.moment(u.EndedAt).Away, clean(u.Why, 200), moment{}
	}
	if u.Held > 0 {
		v.Held = u.Held.String()
	}
	if u.Given > 0 {
		v.Given = u.Given.String()
	}
	spent := parts(int64(u.Spent-min(u.Held, u.Spent)), int64(u.Limit))
	held := min(parts(int64(u.Held), int64(u.Limit)), 1000-spent)
	given := min(parts(int64(u.Given), int64(u.Limit)), 1000-spent-held)
	v.Widths, v.At = [3]int{spent, held, given}, [3]int{spent, spent + held, spent + held + given}
	return v
}
