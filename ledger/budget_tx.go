package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// BudgetTx reads and writes budgets. What goes in or comes out is never changed
// afterwards by either side.
type BudgetTx interface {
	// Budget is one, ended or not, or ErrNotFound. Index: the primary key.
	Budget(id payment.BudgetID) (*Budget, error)

	// OpenBudgets are those that were taken from parent and whose EndedAt is
	// zero, oldest first; with parent "", the outermost ones of the agent. Index:
	// (parent, agent) of open ones.
	OpenBudgets(parent payment.BudgetID, agent string) ([]*Budget, error)

	// PutBudget stores a new budget or replaces the one of its ID.
	PutBudget(b *Budget) error
}

// over tells why b has ended by now, whether or not that was recorded; empty
// while it is open. Its parent is not asked.
func (b *Budget) over(now time.Time, env Env) string {
	switch {
	case !b.EndedAt.IsZero():
		return b.Why
	case !b.ExpiresAt.IsZero() && !now.Before(b.ExpiresAt):
		return "its time is over"
	case b.Owner != "" && b.Owner != env.Owner && (env.Alive == nil || !env.Alive(b.Owner)):
		return "its process is gone"
	}
	return ""
}

// endBudget records that b ended, and with it all that was taken from it.
func endBudget(tx Tx, b *Budget, why string, now time.Time) (*Budget, error) {
	if !b.EndedAt.IsZero() {
		return b, nil
	}
	n := *b
	n.EndedAt, n.Why = latest(now, b.CreatedAt), why
	if err := tx.PutBudget(&n); err != nil {
		return nil, err
	}
	children, err := tx.OpenBudgets(b.ID, b.Agent)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		if _, err := endBudget(tx, c, "its parent has ended", now); err != nil {
			return nil, err
		}
	}
	return &n, nil
}

// openBudgets are the open budgets taken from parent. Those that were found to
// have ended are recorded as such.
func openBudgets(tx Tx, parent payment.BudgetID, agent string, now time.Time, env Env) ([]*Budget, error) {
	all, err := tx.OpenBudgets(parent, agent)
	if err != nil {
		return nil, err
	}
	open := all[:0:0]
	for _, b := range all {
		if why := b.over(now, env); why == "" {
			open = append(open, b)
		} else if _, err := endBudget(tx, b, why, now); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// pathTo are the budgets from the outermost one to id. The first of them that
// has ended is recorded as such, with all that was taken from it.
func pathTo(tx Tx, id payment.BudgetID, agent string, now time.Time, env Env) ([]*Budget, error) {
	var path []*Budget
	for next := id; next != ""; {
		b, err := tx.Budget(next)
		switch {
		case errors.Is(err, ErrNotFound), err == nil && b.Agent != agent:
			return nil, fmt.Errorf("%w: %s", ErrBudget, clip(string(id)))
		case err != nil:
			return nil, err
		case len(path) == MaxBudgetDepth:
			return nil, fmt.Errorf("ledger: budget %s is nested deeper than %d", id, MaxBudgetDepth)
		}
		path = append(path, b)
		next = b.Parent
	}
	slices.Reverse(path)
	for i, b := range path {
		why := b.over(now, env)
		if why == "" || !b.EndedAt.IsZero() {
			continue
		}
		if _, err := endBudget(tx, b, why, now); err != nil {
			return nil, err
		}
		for j := i; j < len(path); j++ {
			var err error
			if path[j], err = tx.Budget(path[j].ID); err != nil {
				return nil, err
			}
		}
	}
	return path, nil
}

// within refuses a path that does not pass through id.
func within(path []*Budget, id payment.BudgetID) error {
	if id != "" && !slices.ContainsFunc(path, func(b *Budget) bool { return b.ID == id }) {
		return fmt.Errorf("%w: it is not part of %s", ErrBudget, clip(string(id)))
	}
	return nil
}

// spentUnder is what counts under b: spent and held, and in how many payments.
func (c *counting) spentUnder(b *Budget) (Counter, error) {
	return c.exact(NewCounterKey(budgetScope(b), foreverWindow), Point{})
}

func budgetScope(b *Budget) policy.Scope {
	return policy.Scope{Kind: policy.ScopeBudget, Name: string(b.ID)}
}

var foreverWindow = policy.Window{Kind: policy.Ever}

// given is what the open budgets taken from b may still spend.
func (c *counting) given(b *Budget, env Env) (payment.USD, error) {
	children, err := openBudgets(c.tx, b.ID, b.Agent, c.now, env)
	if err != nil {
		return 0, err
	}
	var sum payment.USD
	for _, o := range children {
		n, err := c.spentUnder(o)
		if err != nil {
			return 0, err
		}
		sum, _ = sum.Add(o.Limit - min(n.USD, o.Limit))
	}
	return sum, nil
}

// left is what b has left for payments of its own and for budgets to be taken
// from it.
func (c *counting) left(b *Budget, env Env) (payment.USD, error) {
	n, err := c.spentUnder(b)
	if err != nil {
		return 0, err
	}
	given, err := c.given(b, env)
	if err != nil {
		return 0, err
	}
	return b.free(n.USD, given), nil
}

// free is what b has left of its limit.
func (b *Budget) free(spent, given payment.USD) payment.USD {
	used, _ := spent.Add(given)
	return b.Limit - min(used, b.Limit)
}

// budgetLimits are the limits of a payment under path, the innermost first: of
// that what it has not given to others, and of each other the whole.
func (c *counting) budgetLimits(path []*Budget, env Env) ([]policy.Limit, error) {
	limits := make([]policy.Limit, len(path))
	for i, b := range path {
		var given payment.USD
		if i == len(path)-1 {
			var err error
			if given, err = c.given(b, env); err != nil {
				return nil, err
			}
		}
		limits[len(path)-1-i] = b.limit(given)
	}
	return limits, nil
}

// work finds the run and the budgets of the payment.
func (s *reserving) work() error {
	r := s.r
	if r.Budget == "" {
		if err := within(nil, r.Within); err != nil {
			return err
		}
		if slices.ContainsFunc(s.verdict.Limits, func(l policy.Limit) bool { return l.Scope.Kind == policy.ScopeRun }) {
			s.facts.Run = r.Payment.Run
		}
		return nil
	}
	path, err := pathTo(s.tx, r.Budget, r.Payment.Agent, s.now, s.env)
	if err == nil {
		err = within(path, r.Within)
	}
	if err != nil {
		return err
	}
	s.budgets = path
	s.facts.Run = string(path[0].ID)
	for _, b := range path {
		s.facts.Budgets = append(s.facts.Budgets, b.ID)
	}
	return nil
}

// budgetEnded denies where a budget of the payment has ended.
func (s *reserving) budgetEnded() {
	for _, b := range s.budgets {
		if !b.EndedAt.IsZero() {
			r := b.Ended()
			r.Cost = s.verdict.Cost
			s.verdict.Status, s.verdict.Reasons = payment.Denied, append(s.verdict.Reasons, r)
			return
		}
	}
}

// budgetLimits adds the limits of the payment's budgets to those of the verdict.
func (s *reserving) budgetLimits() error {
	limits, err := s.count.budgetLimits(s.budgets, s.env)
	s.verdict.Limits = append(slices.Clip(s.verdict.Limits), limits...)
	return err
}

// begin is what every step about budgets begins with: the ledger's time, and
// what counts.
func (env Env) begin(tx Tx, caller time.Time) (*counting, Seen, error) {
	seen, err := tx.Seen()
	if err != nil {
		return nil, seen, err
	}
	c := &counting{}
	c.now, _ = env.lenient(seen, caller)
	c.tx = tx
	c.marks, err = tx.Marks()
	return c, seen, err
}

func (c *counting) saw(seen Seen) error {
	if !c.now.After(seen.At) {
		return nil
	}
	seen.At = c.now
	return c.tx.SetSeen(seen)
}

// MakeBudgetTx is Budgeter.MakeBudget in one step.
func MakeBudgetTx(tx Tx, n NewBudget, env Env) (*Budget, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	c, seen, err := env.begin(tx, n.Now)
	if err != nil {
		return nil, err
	}
	var path []*Budget
	if n.Parent != "" {
		if path, err = pathTo(tx, n.Parent, n.Agent, c.now, env); err != nil {
			return nil, err
		}
	}
	if err := within(path, n.Within); err != nil {
		return nil, err
	}
	b := &Budget{
		ID: n.ID, Parent: n.Parent, Name: n.Name, Agent: n.Agent, Limit: n.Limit, Owner: env.Owner,
		CreatedAt: c.now, ExpiresAt: instantOrZero(n.ExpiresAt),
	}
	if n.Granted {
		b.Owner, b.Secret, b.By = "", n.Secret, n.By
	}
	if !b.ExpiresAt.IsZero() && !b.ExpiresAt.After(c.now) {
		return nil, fmt.Errorf("ledger: budget %s would end at %s, and it is %s", n.Name, b.ExpiresAt.Format(time.RFC3339), c.now.Format(time.RFC3339))
	}
	if err := b.fits(c, path, env); err != nil {
		return nil, err
	}
	if len(path) > 0 {
		b.Root, b.Path = path[0].ID, b.path(path[len(path)-1].Path)
	} else {
		b.Root, b.Path = b.ID, b.path(payment.Hash{})
	}
	if _, err := tx.Budget(b.ID); !errors.Is(err, ErrNotFound) {
		return nil, errors.Join(ErrTaken, err)
	}
	if err := tx.PutBudget(b); err != nil {
		return nil, err
	}
	return b, c.saw(seen)
}

func instantOrZero(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return instant(t)
}

func (n *NewBudget) check() error {
	switch {
	case !n.ID.Valid():
		return fmt.Errorf("ledger: %q is not the ID of a budget", clip(string(n.ID)))
	case n.Agent == "":
		return errors.New("ledger: the budget names no agent")
	case n.Limit < 0 || n.Limit == payment.MaxUSD:
		return fmt.Errorf("ledger: %s is not the limit of a budget", n.Limit)
	case n.Granted == n.Secret.IsZero() || n.Granted != (n.By != ""):
		return errors.New("ledger: a budget that is granted has a token and somebody who grants it, and no other has")
	}
	return CheckBudgetName(n.Name)
}

// fits refuses b where its parent, the last of path, has too little left for it
// or too many others.
func (b *Budget) fits(c *counting, path []*Budget, env Env) error {
	siblings, err := openBudgets(c.tx, b.Parent, b.Agent, c.now, env)
	switch {
	case err != nil:
		return err
	case len(siblings) >= MaxBudgetChildren:
		return fmt.Errorf("ledger: %d budgets are open beside it: end some first", len(siblings))
	case len(path) == MaxBudgetDepth:
		return fmt.Errorf("ledger: budgets nest %d deep at most", MaxBudgetDepth)
	}
	for _, p := range path {
		if !p.EndedAt.IsZero() {
			return fmt.Errorf("%w: %s: %s", ErrBudgetEnded, p.Name, p.Why)
		}
	}
	if len(path) == 0 {
		return nil
	}
	parent := path[len(path)-1]
	left, err := c.left(parent, env)
	if err == nil && b.Limit > left {
		err = &BudgetShortError{Name: parent.Name, Left: left, Asked: b.Limit}
	}
	return err
}

// EndBudgetTx is Budgeter.EndBudget in one step.
func EndBudgetTx(tx Tx, id payment.BudgetID, why string, now time.Time, env Env) (*Budget, error) {
	c, seen, err := env.begin(tx, now)
	if err != nil {
		return nil, err
	}
	b, err := tx.Budget(id)
	if err != nil {
		return nil, err
	}
	if b, err = endBudget(tx, b, why, c.now); err != nil {
		return nil, err
	}
	return b, c.saw(seen)
}

// JoinBudgetTx is Budgeter.JoinBudget in one step.
func JoinBudgetTx(tx Tx, agent, token string, in payment.BudgetID, now time.Time, env Env) (*Budget, error) {
	c, seen, err := env.begin(tx, now)
	if err != nil {
		return nil, err
	}
	id, ok := budgetOf(token)
	b := &Budget{}
	if ok {
		if b, err = tx.Budget(id); errors.Is(err, ErrNotFound) {
			b, err = &Budget{}, nil
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !b.holds(token) || !ok:
		return nil, ErrBudgetToken
	case b.Agent != agent:
		return nil, fmt.Errorf("%w: it is agent %s's", ErrBudgetToken, b.Agent)
	}
	path, err := pathTo(tx, id, agent, c.now, env)
	if err == nil {
		err = within(path, in)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range path {
		if !p.EndedAt.IsZero() {
			return nil, errors.Join(fmt.Errorf("%w: %s: %s", ErrBudgetEnded, p.Name, p.Why), c.saw(seen))
		}
	}
	return b, c.saw(seen)
}

// BudgetUsesTx tells what is left of budgets, in the order of all. It writes
// nothing.
func BudgetUsesTx(tx Tx, all []*Budget, now time.Time, env Env) ([]BudgetUse, error) {
	c, _, err := env.begin(tx, now)
	if err != nil {
		return nil, err
	}
	at := make(map[payment.BudgetID]int, len(all))
	out := make([]BudgetUse, len(all))
	for i, b := range all {
		n, err := c.spentUnder(b)
		if err != nil {
			return nil, err
		}
		held, err := tx.Tally(budgetScope(b), Point{Until: c.now}, c.now)
		if err != nil {
			return nil, err
		}
		out[i] = BudgetUse{Budget: *b, Spent: n.USD, Held: held.Held, Payments: n.Count}
		at[b.ID] = i
	}
	for i := range out {
		u := &out[i]
		if p, ok := at[u.Parent]; ok && u.EndedAt.IsZero() {
			out[p].Given, _ = out[p].Given.Add(u.Limit - min(u.Spent, u.Limit))
		}
	}
	for i := range out {
		if u := &out[i]; u.EndedAt.IsZero() {
			u.Left = u.free(u.Spent, u.Given)
		}
	}
	return out, nil
}

// LapseBudgetsTx records which of the open budgets of all have ended by now. What
// it returns is all, as they stand.
func LapseBudgetsTx(tx Tx, all []*Budget, now time.Time, env Env) ([]*Budget, error) {
	c, seen, err := env.begin(tx, now)
	if err != nil {
		return nil, err
	}
	ended := false
	for _, b := range all {
		if why := b.over(c.now, env); why != "" && b.EndedAt.IsZero() {
			ended = true
			if _, err := endBudget(tx, b, why, c.now); err != nil {
				return nil, err
			}
		}
	}
	if !ended {
		return all, nil
	}
	out := make([]*Budget, len(all))
	for i, b := range all {
		if out[i], err = tx.Budget(b.ID); err != nil {
			return nil, err
		}
	}
	return out, c.saw(seen)
}
