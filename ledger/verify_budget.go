package ledger

import (
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

// budgetFound is a budget, and what the payments tell of it.
type budgetFound struct {
	Budget
	spent payment.USD // under it and under all that was taken from it
	given payment.USD // to open budgets, beyond what those spent
}

// ackSlack is how far an operator who acknowledges clocks may set the ledger's
// time back: instants of other rows may be ahead by so much.
const ackSlack = 2 * MaxSkew

// Budget takes a budget. Each must come once, before the payments, and after
// the one that it was taken from.
func (v *Verification) Budget(b *Budget) {
	if v.budget[b.ID] != nil {
		v.Problem("budget %s stands twice", b.ID)
		return
	}
	f := &budgetFound{Budget: *b}
	v.budget[b.ID] = f
	parent, root := payment.Hash{}, b.ID
	if b.Parent != "" {
		p := v.budget[b.Parent]
		if p == nil {
			v.Problem("budget %s: the one that it was taken from, %s, is missing", b.ID, b.Parent)
			return
		}
		parent, root = p.Path, p.Root
		switch {
		case p.Agent != b.Agent:
			v.Problem("budget %s: it was taken from one of another agent", b.ID)
		case b.EndedAt.IsZero() && !p.EndedAt.IsZero():
			v.Problem("budget %s: it is open, and the one that it was taken from has ended", b.ID)
		}
	}
	if b.path(parent) != b.Path || b.Root != root {
		v.Problem("budget %s: its record does not have its hash", b.ID)
	}
}

// inBudgets holds a payment against the budgets that it counts in.
func (v *Verification) inBudgets(e *Entry) {
	if len(e.Budgets) == 0 {
		if !e.Path.IsZero() {
			v.Problem("%s: it has the path of a budget, and no budget", e.ID)
		}
		return
	}
	if e.Run != string(e.Budgets[0]) {
		v.Problem("%s: its run is not its outermost budget", e.ID)
	}
	var path []payment.BudgetID
	for id := e.Budgets[len(e.Budgets)-1]; id != "" && len(path) <= MaxBudgetDepth; {
		f := v.budget[id]
		if f == nil {
			v.Problem("%s: its budget %s is missing", e.ID, id)
			return
		}
		if len(path) == 0 && (f.Path != e.Path || f.Agent != e.Agent) {
			v.Problem("%s: its budget %s is another than it was made under", e.ID, id)
		}
		if at := e.AuthorizedAt; !at.IsZero() {
			f.authorized(v, e.ID, at)
			f.spent, _ = f.spent.Add(e.Spent)
		}
		path = append(path, id)
		id = f.Parent
	}
	slices.Reverse(path)
	if !slices.Equal(path, e.Budgets) {
		v.Problem("%s: its budgets are not one in the other", e.ID)
	}
}

// authorized checks that a payment was authorized while f was open.
func (f *budgetFound) authorized(v *Verification, id payment.ID, at time.Time) {
	after := func(end time.Time) bool { return !end.IsZero() && at.After(end.Add(ackSlack)) }
	if at.Add(ackSlack).Before(f.CreatedAt) || after(f.EndedAt) || after(f.ExpiresAt) {
		v.Problem("%s: it was authorized while its budget %s was not open", id, f.ID)
	}
}

// sumBudgets checks that no budget spent or gave more than it has.
func (v *Verification) sumBudgets() {
	for _, f := range v.budget {
		if p := v.budget[f.Parent]; p != nil && f.EndedAt.IsZero() {
			p.given, _ = p.given.Add(f.Limit - min(f.spent, f.Limit))
		}
	}
	for _, f := range v.budget {
		if used, ok := f.spent.Add(f.given); !ok || used > f.Limit {
			v.Problem("budget %s: %s is spent or held and %s given, of %s", f.ID, f.spent, f.given, f.Limit)
		}
	}
	clear(v.budget)
}
