package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

var _ ledger.Budgeter = (*Store)(nil)

// budgetVersion stands first in the body of a budget.
const budgetVersion = 1

func besideBudget(b *ledger.Budget) func(*writer) {
	return func(w *writer) {
		w.string(string(b.ID))
		w.string(string(b.Parent))
		w.string(b.Agent)
		w.time(b.EndedAt)
	}
}

func encodeBudget(b *ledger.Budget) []byte {
	w := &writer{make([]byte, 0, 256)}
	w.uint(budgetVersion)
	w.string(string(b.Root))
	w.string(b.Name)
	w.int(int64(b.Limit))
	w.string(b.Owner)
	w.hash(b.Secret)
	w.string(b.By)
	w.time(b.CreatedAt)
	w.time(b.ExpiresAt)
	w.fixed(b.Path[:])
	w.string(b.Why)
	return w.seal(besideBudget(b))
}

const budgetColumns = `SELECT id, parent, agent, ended, body FROM budgets `

func budgetOf(row []driver.Value) (*ledger.Budget, error) {
	b := &ledger.Budget{}
	var id, parent string
	var body []byte
	if err := scan([]driver.Value{row[0], row[1], row[2], row[4]}, &id, &parent, &b.Agent, &body); err != nil {
		return nil, err
	}
	b.ID, b.Parent = payment.BudgetID(id), payment.BudgetID(parent)
	if row[3] != nil {
		var ended int64
		if err := scan(row[3:4], &ended); err != nil {
			return nil, err
		}
		b.EndedAt = fromMicro(ended)
	}
	r := unseal(body, besideBudget(b))
	if r.uint() != budgetVersion {
		r.fail()
	}
	b.Root = payment.BudgetID(r.string())
	b.Name = r.string()
	b.Limit = payment.USD(r.int())
	b.Owner = r.string()
	b.Secret = r.hash()
	b.By = r.string()
	b.CreatedAt = r.time()
	b.ExpiresAt = r.time()
	r.fixed(b.Path[:])
	b.Why = r.string()
	return b, r.end()
}

// budgets are those that a query over budgetColumns finds.
func (t *tx) budgets(sql string, args ...driver.Value) (out []*ledger.Budget, err error) {
	err = t.c.query(budgetColumns+sql, args, func(row []driver.Value) error {
		b, err := budgetOf(row)
		out = append(out, b)
		return err
	})
	return out, t.c.fail(err)
}

// Budget implements ledger.BudgetTx.
func (t *tx) Budget(id payment.BudgetID) (*ledger.Budget, error) {
	if b := t.mem.budgets[id]; b != nil {
		return b, nil
	}
	found, err := t.budgets(`WHERE id = ?`, string(id))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ledger.ErrNotFound
	}
	t.mem.budgets[id] = found[0]
	return found[0], nil
}

// OpenBudgets implements ledger.BudgetTx.
func (t *tx) OpenBudgets(parent payment.BudgetID, agent string) ([]*ledger.Budget, error) {
	return t.budgets(`INDEXED BY budgets_open WHERE parent = ? AND agent = ? AND ended IS NULL ORDER BY n`, string(parent), agent)
}

// PutBudget implements ledger.BudgetTx.
func (t *tx) PutBudget(b *ledger.Budget) error {
	var ended driver.Value
	if !b.EndedAt.IsZero() {
		ended = b.EndedAt.UnixMicro()
	}
	_, _, err := t.c.exec(`INSERT INTO budgets (id, parent, agent, ended, body) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET ended = excluded.ended, body = excluded.body`,
		string(b.ID), string(b.Parent), b.Agent, ended, encodeBudget(b))
	if err == nil {
		t.mem.budgets[b.ID] = b
	}
	return err
}

// workOf are the rows of works that an entry has.
func workOf(e *ledger.Entry) (out []string) {
	if e.AuthorizedAt.IsZero() {
		return nil
	}
	if e.Run != "" && len(e.Budgets) == 0 {
		return []string{e.Run}
	}
	for _, id := range e.Budgets { // the run is the first
		out = append(out, string(id))
	}
	return out
}

// putWorks makes the payment numbered n found by its run and its budgets.
func (t *tx) putWorks(n int64, was, is *ledger.Entry) error {
	before, after := workOf(was), workOf(is)
	if slices.Equal(before, after) {
		return nil
	}
	for _, w := range before {
		if _, _, err := t.c.exec(`DELETE FROM works WHERE work = ? AND n = ?`, w, n); err != nil {
			return err
		}
	}
	for _, w := range after {
		if _, _, err := t.c.exec(`INSERT INTO works (work, n) VALUES (?, ?)`, w, n); err != nil {
			return err
		}
	}
	return nil
}

// budget runs a step about one budget. What it found to have ended is kept
// whatever it answers.
func (s *Store) budget(ctx context.Context, step func(*tx) (*ledger.Budget, error)) (out ledger.Budget, err error) {
	_, err = s.do(ctx, &job{kind: reserve, step: func(t *tx) error {
		b, err := step(t)
		if err == nil {
			out = *b
		}
		return err
	}})
	if err != nil {
		return ledger.Budget{}, err
	}
	return out, nil
}

// MakeBudget implements ledger.Budgeter.
func (s *Store) MakeBudget(ctx context.Context, n ledger.NewBudget) (ledger.Budget, error) {
	return s.budget(ctx, func(t *tx) (*ledger.Budget, error) {
		if err := s.usable(t); err != nil {
			return nil, err
		}
		b, err := ledger.MakeBudgetTx(t, n, s.env())
		if err == nil && n.Granted {
			err = s.record(t, "budget grant", n.Agent, n.By, string(n.ID))
		}
		return b, err
	})
}

// EndBudget implements ledger.Budgeter.
func (s *Store) EndBudget(ctx context.Context, id payment.BudgetID, why string, now time.Time) (ledger.Budget, error) {
	return s.budget(ctx, func(t *tx) (*ledger.Budget, error) { return ledger.EndBudgetTx(t, id, why, now, s.env()) })
}

// JoinBudget implements ledger.Budgeter.
func (s *Store) JoinBudget(ctx context.Context, agent, token string, within payment.BudgetID, now time.Time) (ledger.Budget, error) {
	return s.budget(ctx, func(t *tx) (*ledger.Budget, error) { return ledger.JoinBudgetTx(t, agent, token, within, now, s.env()) })
}

// Budgets implements ledger.Budgeter. It is a step that may write: who has
// ended is judged while the lock is held.
func (s *Store) Budgets(ctx context.Context, q ledger.BudgetQuery) (out []ledger.BudgetUse, err error) {
	_, err = s.do(ctx, &job{step: func(t *tx) error {
		whose, args := ``, []driver.Value{}
		if q.Agent != "" {
			whose, args = ` AND agent = ?`, append(args, q.Agent)
		}
		open, err := t.budgets(`WHERE ended IS NULL`+whose+` ORDER BY n`, args...)
		if err != nil {
			return err
		}
		if open, err = ledger.LapseBudgetsTx(t, open, q.Now, s.env()); err != nil {
			return err
		}
		open = slices.DeleteFunc(open, func(b *ledger.Budget) bool { return !b.EndedAt.IsZero() })
		var all []*ledger.Budget
		if q.Ended > 0 {
			if all, err = t.budgets(`WHERE ended IS NOT NULL`+whose+` ORDER BY n DESC LIMIT ?`, append(args, int64(q.Ended))...); err != nil {
				return err
			}
			slices.Reverse(all)
		}
		out, err = ledger.BudgetUsesTx(t, append(all, open...), q.Now, s.env())
		return err
	}})
	return out, err
}

// verifyBudgets holds each budget against its record, and the rows of works
// against each other's ends.
func (t *tx) verifyBudgets(v *ledger.Verification) error {
	return t.c.query(budgetColumns+`ORDER BY n`, nil, func(row []driver.Value) error {
		b, err := budgetOf(row)
		if err != nil {
			v.Problem("budget %v: %v", row[0], err)
			return nil
		}
		v.Budget(b)
		return nil
	})
}

var errNotFoundByWork = errors.New("not by all of them")

// verifyWorks looks for a payment under its run and its budgets, and tells how
// many those are.
func (t *tx) verifyWorks(r *paymentRow) (n int64, err error) {
	works := workOf(r.e)
	for _, w := range works {
		found, e := t.c.first(`SELECT n FROM works WHERE work = ? AND n = ?`, []driver.Value{w, r.n}, new(int64))
		if e != nil {
			return int64(len(works)), e
		}
		if found {
			n++
		}
	}
	if n != int64(len(works)) {
		err = errNotFoundByWork
	}
	return int64(len(works)), err
}
