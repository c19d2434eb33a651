package ledger

import (
	"context"
	"time"

	"github.com/canopy-go/canopy/payment"
)

var _ Budgeter = (*Memory)(nil)

// budgetBook is what a Memory keeps of budgets.
type budgetBook struct {
	all   map[payment.BudgetID]*Budget
	order []payment.BudgetID
	open  map[budgetPlace][]payment.BudgetID
}

// budgetPlace is whose budgets, and what they were taken from.
type budgetPlace struct {
	parent payment.BudgetID
	agent  string
}

func (k *budgetBook) init() {
	k.all = map[payment.BudgetID]*Budget{}
	k.open = map[budgetPlace][]payment.BudgetID{}
}

// Budget is that of BudgetTx.
func (t *memoryTx) Budget(id payment.BudgetID) (*Budget, error) {
	if b, ok := t.budgets.all[id]; ok {
		return b, nil
	}
	return nil, ErrNotFound
}

// OpenBudgets is that of BudgetTx.
func (t *memoryTx) OpenBudgets(parent payment.BudgetID, agent string) (out []*Budget, err error) {
	for _, id := range t.budgets.open[budgetPlace{parent, agent}] {
		out = append(out, t.budgets.all[id])
	}
	return out, nil
}

// PutBudget is that of BudgetTx.
func (t *memoryTx) PutBudget(b *Budget) error {
	k := &t.budgets
	at := budgetPlace{b.Parent, b.Agent}
	if _, ok := k.all[b.ID]; !ok {
		k.order = append(k.order, b.ID)
		k.open[at] = append(k.open[at], b.ID)
	}
	k.all[b.ID] = b
	if b.EndedAt.IsZero() {
		return nil
	}
	left := make([]payment.BudgetID, 0, len(k.open[at]))
	for _, id := range k.open[at] {
		if id != b.ID {
			left = append(left, id)
		}
	}
	if k.open[at] = left; len(left) == 0 {
		delete(k.open, at)
	}
	return nil
}

// MakeBudget is that of Budgeter.
func (m *Memory) MakeBudget(ctx context.Context, n NewBudget) (Budget, error) {
	return m.budget(ctx, func() (*Budget, error) { return MakeBudgetTx(&m.tx, n, m.env()) })
}

// EndBudget is that of Budgeter.
func (m *Memory) EndBudget(ctx context.Context, id payment.BudgetID, why string, now time.Time) (Budget, error) {
	return m.budget(ctx, func() (*Budget, error) { return EndBudgetTx(&m.tx, id, why, now, m.env()) })
}

// JoinBudget is that of Budgeter.
func (m *Memory) JoinBudget(ctx context.Context, agent, token string, within payment.BudgetID, now time.Time) (Budget, error) {
	return m.budget(ctx, func() (*Budget, error) { return JoinBudgetTx(&m.tx, agent, token, within, now, m.env()) })
}

func (m *Memory) budget(ctx context.Context, step func() (*Budget, error)) (Budget, error) {
	if err := m.begin(ctx); err != nil {
		return Budget{}, err
	}
	defer m.mu.Unlock()
	b, err := step()
	if err != nil {
		return Budget{}, err
	}
	return *b, nil
}

// Budgets is that of Budgeter.
func (m *Memory) Budgets(ctx context.Context, q BudgetQuery) ([]BudgetUse, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var all, open []*Budget
	for _, id := range m.tx.budgets.order {
		if b := m.tx.budgets.all[id]; q.Agent == "" || b.Agent == q.Agent {
			all = append(all, b)
		}
	}
	all, err := LapseBudgetsTx(&m.tx, all, q.Now, m.env())
	if err != nil {
		return nil, err
	}
	var ended []*Budget
	for _, b := range all {
		if b.EndedAt.IsZero() {
			open = append(open, b)
		} else {
			ended = append(ended, b)
		}
	}
	ended = ended[max(0, len(ended)-q.Ended):]
	return BudgetUsesTx(&m.tx, append(ended[:len(ended):len(ended)], open...), q.Now, m.env())
}
