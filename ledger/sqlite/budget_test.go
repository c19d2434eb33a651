//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// aside takes a budget from parent, in the store's own process.
func aside(s *Store, parent payment.BudgetID, limit payment.USD) (payment.BudgetID, error) {
	b, err := s.MakeBudget(context.Background(), ledger.NewBudget{
		ID: payment.NewBudgetID(time.Now()), Agent: "trader", Parent: parent, Name: "work", Limit: limit, Now: time.Now(),
	})
	return b.ID, err
}

// buy is a payment of a dollar under a budget.
func buy(n uint64, id payment.BudgetID) ledger.Request {
	r := request(time.Now(), n)
	r.Budget = id
	return r
}

// asideAndDie takes $6 from the budget, gives $2 of it away, pays a dollar and
// is killed.
func (c child) asideAndDie(s *Store) error {
	id, err := aside(s, c.Budget, 6*payment.Dollar)
	if err != nil {
		return err
	}
	if _, err := aside(s, id, 2*payment.Dollar); err != nil {
		return err
	}
	e, _, err := s.Reserve(context.Background(), buy(uint64(os.Getpid()), id))
	if err != nil || e.State != ledger.Authorized {
		return fmt.Errorf("%s: %w", e.State, err)
	}
	fmt.Println(id)
	wait()
	die()
	return nil
}

// divide takes budgets of a dollar from the one, and pays from it and from them,
// until nothing is left.
func (c child) divide(s *Store) error {
	wait()
	won := 0
	for i := uint64(0); ; i++ {
		id := c.Budget
		if i%2 == 0 {
			var err error
			id, err = aside(s, c.Budget, payment.Dollar)
			if _, short := errors.AsType[*ledger.BudgetShortError](err); short {
				break
			}
			if err != nil {
				return err
			}
		}
		e, _, err := s.Reserve(context.Background(), buy(uint64(os.Getpid())<<32|i, id))
		switch {
		case err != nil:
			return err
		case e.State == ledger.Authorized:
			won++
		case id != c.Budget:
			return fmt.Errorf("a budget that nobody else spends pays nothing: %v", e.Reasons)
		}
	}
	fmt.Println(won)
	wait() // its budgets stay its own until everybody is done
	return s.Close()
}

func leftOf(t *testing.T, s *Store, id payment.BudgetID) ledger.BudgetUse {
	t.Helper()
	all, err := s.Budgets(t.Context(), ledger.BudgetQuery{Agent: "trader", Ended: 1000, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.ID == id {
			return u
		}
	}
	t.Fatalf("no budget %s", id)
	return ledger.BudgetUse{}
}

// TestBudgetOwnerKilled: the budgets of a process that was killed end at the
// first step that meets them, and give back what they did not spend.
func TestBudgetOwnerKilled(t *testing.T) {
	path := newPath(t)
	s := open(t, path, Options{})
	root, err := aside(s, "", 10*payment.Dollar)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, child{Task: "aside and die", Path: path, Budget: root})
	id := payment.BudgetID(p.line())
	if p.line() != "ready" {
		t.Fatal("the child is not ready")
	}
	if u := leftOf(t, s, root); u.Left != 4*payment.Dollar || u.Spent != payment.Dollar || u.Given != 5*payment.Dollar {
		t.Errorf("before: %s left, %s spent, %s given", u.Left, u.Spent, u.Given)
	}
	if _, err := aside(s, root, 5*payment.Dollar); err == nil {
		t.Error("money of a process that is alive was given to another")
	}
	p.tell()
	p.killed()
	if e, _, err := s.Reserve(t.Context(), buy(1, id)); err != nil || e.State != ledger.Denied || e.Reasons[0].Code != ledger.CodeBudgetEnded || !strings.Contains(e.Reasons[0].Text, "its process is gone") {
		t.Errorf("a payment under it: %s, %v, %v", e.State, e.Reasons, err)
	}
	if _, err := aside(s, root, 9*payment.Dollar); err != nil {
		t.Errorf("what it did not spend: %v", err)
	}
	if u := leftOf(t, s, root); u.Left != 0 || u.Spent != payment.Dollar {
		t.Errorf("after: %s left, %s spent", u.Left, u.Spent)
	}
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// TestBudgetProcesses: processes that divide one budget between them pay exactly
// what it has.
func TestBudgetProcesses(t *testing.T) {
	const procs, room = 6, 60
	path := newPath(t)
	s := open(t, path, Options{})
	root, err := aside(s, "", room*payment.Dollar)
	if err != nil {
		t.Fatal(err)
	}
	var all []*process
	for range procs {
		p := start(t, child{Task: "divide", Path: path, Budget: root})
		if got := p.line(); got != "ready" {
			t.Fatal(got)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.tell()
	}
	total := 0
	for _, p := range all {
		n := 0
		if _, err := fmt.Sscan(p.line(), &n); err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if u := leftOf(t, s, root); total != room || u.Spent != room*payment.Dollar || u.Left != 0 || u.Payments != room {
		t.Errorf("%d payments of a dollar under a budget of $%d, which has spent %s", total, room, u.Spent)
	}
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// TestBudgetEdits: whoever edits a budget, or what a payment is found by, is
// found out.
func TestBudgetEdits(t *testing.T) {
	path := newPath(t)
	s := open(t, path, Options{})
	root, err := aside(s, "", 10*payment.Dollar)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := aside(s, root, 5*payment.Dollar)
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := s.Reserve(t.Context(), buy(1, inner))
	if err != nil || e.State != ledger.Authorized {
		t.Fatal(e.State, err)
	}
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	rewrite := func(id payment.BudgetID, change func(*ledger.Budget)) func(*tx) error {
		return func(t *tx) error {
			b, err := t.Budget(id)
			if err != nil {
				return err
			}
			n := *b
			change(&n)
			return t.PutBudget(&n)
		}
	}
	sql := func(text string) func(*tx) error {
		return func(t *tx) error { _, _, err := t.c.exec(text); return err }
	}
	for _, tt := range []struct {
		name, want string
		do         func(*tx) error
	}{
		{"a higher limit", "does not have its hash", rewrite(inner, func(b *ledger.Budget) { b.Limit *= 2 })},
		{"another owner", "does not have its hash", rewrite(inner, func(b *ledger.Budget) { b.Owner = "" })},
		{"a longer time", "does not have its hash", rewrite(root, func(b *ledger.Budget) { b.ExpiresAt = time.Now().Add(time.Hour) })},
		{"another root", "does not have its hash", rewrite(inner, func(b *ledger.Budget) { b.Root = b.ID })},
		{"open under one that ended", "is open, and the one that it was taken from has ended", rewrite(root, func(b *ledger.Budget) { b.EndedAt = time.Now() })},
		{"ended before it paid", "while its budget", rewrite(inner, func(b *ledger.Budget) { b.EndedAt = b.CreatedAt.Add(-2 * time.Hour) })},
		{"a byte of a budget", "not as it was written", sql(`UPDATE budgets SET body = CAST(body || x'00' AS BLOB)`)},
		{"a parent taken away", "not as it was written", sql(`UPDATE budgets SET parent = ''`)},
		{"no budget", "is missing", sql(`DELETE FROM budgets WHERE parent <> ''`)},
		{"not found by its budget", "not found by its run", sql(`DELETE FROM works`)},
		{"found by another", "runs and budgets", sql(`INSERT INTO works (work, n) VALUES ('other', 1)`)},
		{"another run", "does not follow from its record", sql(`UPDATE payments SET run = 'x'`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var problems []string
			stop := errors.New("undo it")
			_, err := s.do(t.Context(), &job{step: func(x *tx) error {
				if err := tt.do(x); err != nil {
					return err
				}
				seen, err := x.Seen()
				if err != nil {
					return err
				}
				marks, err := x.Marks()
				if err != nil {
					return err
				}
				v := ledger.NewVerification(seen, marks)
				if err := errors.Join(x.verifyBudgets(v), x.verifyPayments(t.Context(), v)); err != nil {
					return err
				}
				problems = v.Report().Problems
				x.c.fail(stop)
				return stop
			}})
			if !errors.Is(err, stop) {
				t.Fatal(err)
			}
			if all := strings.Join(problems, "\n"); !strings.Contains(all, tt.want) {
				t.Errorf("found %q, want %q", all, tt.want)
			}
		})
	}
	s2 := open(t, path, Options{})
	if r := verify(t, s2); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}
