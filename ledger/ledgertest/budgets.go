package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// purse is the power of a store to keep budgets.
func (w *world) purse(s ledger.Store) ledger.Budgeter {
	w.Helper()
	b, ok := s.(ledger.Budgeter)
	if !ok {
		w.Fatalf("the store is no ledger.Budgeter")
	}
	return b
}

// aside is a budget of the trader to be taken from parent.
func (w *world) aside(parent payment.BudgetID, name string, limit payment.USD, opts ...func(*ledger.NewBudget)) ledger.NewBudget {
	n := ledger.NewBudget{ID: payment.NewBudgetID(w.now()), Agent: "trader", Parent: parent, Name: name, Limit: limit, Now: w.now()}
	for _, o := range opts {
		o(&n)
	}
	return n
}

func (w *world) made(parent payment.BudgetID, name string, limit payment.USD, opts ...func(*ledger.NewBudget)) payment.BudgetID {
	w.Helper()
	b, err := w.purse(w.s).MakeBudget(w.ctx, w.aside(parent, name, limit, opts...))
	if err != nil {
		w.Fatalf("MakeBudget %s: %v", name, err)
	}
	return b.ID
}

// short demands that parent has only left.
func (w *world) short(parent payment.BudgetID, asked, left payment.USD) {
	w.Helper()
	_, err := w.purse(w.s).MakeBudget(w.ctx, w.aside(parent, "more", asked))
	short, ok := errors.AsType[*ledger.BudgetShortError](err)
	if !ok || short.Left != left || short.Asked != asked || !strings.Contains(err.Error(), left.String()+" left") {
		w.Errorf("MakeBudget of %s gave %v, want an error that tells %s left", asked, err, left)
	}
}

func (w *world) endBudget(id payment.BudgetID) {
	w.Helper()
	if _, err := w.purse(w.s).EndBudget(w.ctx, id, "cancelled", w.now()); err != nil {
		w.Fatalf("EndBudget: %v", err)
	}
}

// left demands what a budget has left, and what counts against it.
func (w *world) left(id payment.BudgetID, left, spent, held payment.USD) {
	w.Helper()
	all, err := w.purse(w.s).Budgets(w.ctx, ledger.BudgetQuery{Agent: "trader", Ended: 1000, Now: w.now()})
	if err != nil {
		w.Fatalf("Budgets: %v", err)
	}
	for _, u := range all {
		if u.ID == id {
			if u.Left != left || u.Spent != spent || u.Held != held {
				w.Errorf("budget %s has %s left, %s spent and of it %s held, want %s, %s and %s", u.Name, u.Left, u.Spent, u.Held, left, spent, held)
			}
			return
		}
	}
	w.Errorf("there is no budget %s", id)
}

func under(id payment.BudgetID) with { return func(r *ledger.Request) { r.Budget = id } }
func inRun(run string) with          { return func(r *ledger.Request) { r.Payment.Run = run } }

// buy is a request of its own under a budget.
func (w *world) buy(id payment.BudgetID, cost payment.USD, opts ...with) ledger.Request {
	w.serial++
	return w.fetch(append([]with{usd(cost), path(fmt.Sprint("/budget/", w.serial)), under(id)}, opts...)...)
}

// testBudgets takes budgets from budgets, spends them and ends them.
func testBudgets(w *world) {
	const dollar = payment.Dollar
	root := w.made("", "research", 10*dollar)
	w.left(root, 10*dollar, 0, 0)
	w.allow(w.buy(root, 2*dollar))
	a := w.made(root, "reader", 5*dollar)
	w.left(root, 3*dollar, 2*dollar, 2*dollar)
	w.short(root, 3*dollar+1, 3*dollar)
	leaf := w.made(a, "page", 4*dollar)
	w.short(a, 2*dollar, dollar)

	e := w.allow(w.buy(leaf, 3*dollar, watched()))
	if e.Run != string(root) || !slices.Equal(e.Budgets, []payment.BudgetID{root, a, leaf}) || e.Path.IsZero() {
		w.Errorf("the payment is of run %q, budgets %v, path %s", e.Run, e.Budgets, e.Path)
	}
	w.left(leaf, dollar, 3*dollar, 3*dollar)
	w.left(a, dollar, 3*dollar, 3*dollar) // what it gave is the leaf's
	w.left(root, 3*dollar, 5*dollar, 5*dollar)

	// Each has its own limit, and a parent not what it gave.
	r := w.deny(w.buy(leaf, dollar+1), policy.CodeBudgetExceeded)
	if want := "Budget exceeded: $3.00 + $1.000001 > $4.00 of budget page"; r.Text != want || r.Limit != 4*dollar || r.Used != 3*dollar || r.Scope != "budget:"+string(leaf) {
		w.Errorf("the reason is %q (%+v), want %q", r.Text, r, want)
	}
	w.deny(w.buy(a, dollar+1), policy.CodeBudgetExceeded)
	w.deny(w.buy(root, 3*dollar+1), policy.CodeBudgetExceeded)
	w.allow(w.buy(a, dollar))
	w.left(a, 0, 4*dollar, 4*dollar)

	// A person is not asked about what has no room, and the caps go on.
	w.deny(w.buy(leaf, 2*dollar, asks()), policy.CodeBudgetExceeded)
	w.deny(w.buy(leaf, dollar, caps(atMost(6*dollar, day24))), policy.CodeCapExceeded)

	// What ends gives back what it did not spend; its hold stays until the chain
	// tells.
	w.endBudget(a)
	w.left(root, 4*dollar, 6*dollar, 6*dollar)
	w.left(leaf, 0, 3*dollar, 3*dollar)
	for _, id := range []payment.BudgetID{a, leaf} {
		if r := w.deny(w.buy(id, 1), ledger.CodeBudgetEnded); !strings.Contains(r.Text, "reader has ended: cancelled") {
			w.Errorf("the reason is %q", r.Text)
		}
	}
	if _, err := w.purse(w.s).MakeBudget(w.ctx, w.aside(leaf, "late", 1)); !errors.Is(err, ledger.ErrBudgetEnded) {
		w.Errorf("a budget of one that has ended: %v", err)
	}
	w.clock.Advance(2 * time.Minute)
	e = w.move(e, ledger.InDoubt, ledger.ByClient)
	w.move(e, ledger.ExpiredUnused, ledger.ByChain)
	w.left(root, 7*dollar, 3*dollar, 0)
	w.left(leaf, 0, 0, 0)
	w.allow(w.buy(root, 7*dollar))
	w.deny(w.buy(root, 1), policy.CodeBudgetExceeded)
	w.endBudget(root)
	w.deny(w.buy(root, 1), ledger.CodeBudgetEnded)

	// To end what has ended changes nothing.
	b, err := w.purse(w.s).EndBudget(w.ctx, a, "again", w.now())
	if err != nil || b.Why != "cancelled" {
		w.Errorf("EndBudget again: %+v, %v", b, err)
	}
	if _, err := w.purse(w.s).EndBudget(w.ctx, payment.NewBudgetID(w.now()), "x", w.now()); !errors.Is(err, ledger.ErrNotFound) {
		w.Errorf("EndBudget of none: %v", err)
	}
	w.verify()
}

// testBudgetRules refuses what is no budget of the payment.
func testBudgetRules(w *world) {
	const dollar = payment.Dollar
	root := w.made("", "mine", dollar)
	child := w.made(root, "part", dollar)
	other := w.made("", "other", dollar)
	w.fails(w.buy(payment.NewBudgetID(w.now()), 1), ledger.ErrBudget)
	w.fails(w.buy("' OR 1=1 --", 1), ledger.ErrBudget)
	w.fails(w.buy(root, 1, agent("eve")), ledger.ErrBudget)
	inside := func(id payment.BudgetID) with { return func(r *ledger.Request) { r.Within = id } }
	w.allow(w.buy(child, 1, inside(root)))
	w.allow(w.buy(child, 1, inside(child)))
	w.fails(w.buy(root, 1, inside(child)), ledger.ErrBudget)
	w.fails(w.buy(other, 1, inside(root)), ledger.ErrBudget)
	w.fails(w.buy("", 1, inside(root)), ledger.ErrBudget)
	// A caller's own word on what a budget leaves counts for nothing.
	forged := policy.Limit{Scope: policy.Scope{Kind: policy.ScopeBudget, Name: string(child)}, Window: ever, USD: 100 * dollar}
	if _, _, err := w.s.Reserve(w.ctx, w.buy(child, 2*dollar, caps(forged))); err == nil {
		w.Errorf("a limit of a budget that the caller made was accepted")
	}
	for what, n := range map[string]ledger.NewBudget{
		"no name":           w.aside("", "", 1),
		"two lines":         w.aside("", "a\nb", 1),
		"bidi":              w.aside("", "a\u202eb", 1),
		"too long":          w.aside("", strings.Repeat("a", 101), 1),
		"negative":          w.aside("", "n", -1),
		"another agent":     w.aside(root, "n", 1, func(n *ledger.NewBudget) { n.Agent = "eve" }),
		"no agent":          w.aside("", "n", 1, func(n *ledger.NewBudget) { n.Agent = "" }),
		"no id":             w.aside("", "n", 1, func(n *ledger.NewBudget) { n.ID = "x" }),
		"an id again":       w.aside("", "n", 1, func(n *ledger.NewBudget) { n.ID = root }),
		"not within":        w.aside(other, "n", 1, func(n *ledger.NewBudget) { n.Within = root }),
		"within, outermost": w.aside("", "n", 1, func(n *ledger.NewBudget) { n.Within = root }),
		"over already":      w.aside("", "n", 1, func(n *ledger.NewBudget) { n.ExpiresAt = w.now() }),
		"a token alone":     w.aside("", "n", 1, func(n *ledger.NewBudget) { n.Secret = payment.Hash{1} }),
		"a grant alone":     w.aside("", "n", 1, func(n *ledger.NewBudget) { n.Granted = true }),
	} {
		if b, err := w.purse(w.s).MakeBudget(w.ctx, n); err == nil {
			w.Errorf("%s: a budget was made: %+v", what, b)
		}
	}
	// $0 is a real limit.
	nothing := w.made(root, "nothing", 0)
	w.deny(w.buy(nothing, 1), policy.CodeBudgetExceeded)
	for i, id := 0, root; ; i++ {
		b, err := w.purse(w.s).MakeBudget(w.ctx, w.aside(id, "deeper", 0))
		if err != nil {
			if i != ledger.MaxBudgetDepth-1 {
				w.Errorf("after %d budgets: %v", i, err)
			}
			break
		}
		id = b.ID
	}
	w.verify()
}

// testBudgetApproval: what a person approved is counted where it is carried out,
// and not once that has ended.
func testBudgetApproval(w *world) {
	const dollar = payment.Dollar
	root := w.made("", "work", 3*dollar)
	r := w.buy(root, 2*dollar, asks())
	e := w.ask(r)
	w.left(root, 3*dollar, 0, 0)
	w.decide(e, true)
	w.allow(w.buy(root, 2*dollar))
	again := func() ledger.Request { r.Now, r.Began = w.now(), w.now(); return r }
	w.reason(w.want(w.reserve(again()), ledger.Approved), policy.CodeBudgetExceeded)
	other := w.made("", "more", 2*dollar)
	r.Budget = other
	if got := w.allow(again()); got.ID != e.ID || !slices.Equal(got.Budgets, []payment.BudgetID{other}) {
		w.Errorf("%s is carried out under %v", got.ID, got.Budgets)
	}
	w.left(other, 0, 2*dollar, 2*dollar)

	third := w.made("", "third", 5*dollar)
	r = w.buy(third, 2*dollar, asks())
	e = w.ask(r)
	w.decide(e, true)
	w.endBudget(third)
	w.reason(w.want(w.reserve(again()), ledger.Approved), ledger.CodeBudgetEnded)
	w.verify()
}

// testRuns counts by run where a cap asks for it.
func testRuns(w *world) {
	const dollar = payment.Dollar
	per := func(run string, win policy.Window) with {
		return func(r *ledger.Request) {
			r.Payment.Run = run
			caps(scoped(atMost(2*dollar, win), policy.Scope{Kind: policy.ScopeRun, Agent: "trader", Name: run}))(r)
		}
	}
	hour := rolling(time.Hour)
	w.allow(w.buy("", dollar, inRun("one"))) // no cap asked for it: it is of no run
	w.allow(w.buy("", dollar, per("one", hour)))
	w.allow(w.buy("", dollar, per("one", hour)))
	w.deny(w.buy("", 1, per("one", hour)), policy.CodeCapExceeded)
	w.allow(w.buy("", 2*dollar, per("two", hour)))
	// A cap that is new starts from what the ledger holds of the run.
	w.deny(w.buy("", 1, per("two", ever)), policy.CodeCapExceeded)
	w.clock.Advance(2 * time.Hour)
	w.allow(w.buy("", 2*dollar, per("one", hour)))
	w.deny(w.buy("", 1, per("one", ever)), policy.CodeCapExceeded)
	// The run of a budget is the outermost one.
	root := w.made("", "root", 10*dollar)
	child := w.made(root, "child", 5*dollar)
	w.allow(w.buy(child, 2*dollar, per(string(root), ever)))
	w.deny(w.buy(root, 1, per(string(root), ever)), policy.CodeCapExceeded)
	if _, _, err := w.s.Reserve(w.ctx, w.buy(child, 1, per("one", ever))); err == nil {
		w.Errorf("a payment under a budget was judged in another run")
	}
	for _, tt := range []struct {
		scope policy.Scope
		sum   payment.USD
	}{
		{policy.Scope{Kind: policy.ScopeRun, Agent: "trader", Name: "one"}, 4},
		{policy.Scope{Kind: policy.ScopeRun, Agent: "trader", Name: "two"}, 2},
		{policy.Scope{Kind: policy.ScopeRun, Agent: "eve", Name: "two"}, 0},
		{policy.Scope{Kind: policy.ScopeRun, Agent: "trader", Name: string(root)}, 2},
		{policy.Scope{Kind: policy.ScopeRun, Agent: "default", Shared: true, Name: "one"}, 0},
		{policy.Scope{Kind: policy.ScopeRun, Agent: "trader"}, 0},
		{policy.Scope{Kind: policy.ScopeBudget, Name: string(child)}, 2},
	} {
		if u := w.use(scoped(atMost(0, ever), tt.scope)); u.USD != tt.sum*dollar {
			w.Errorf("%s counts %v, want %v", tt.scope.Key(), u.USD, tt.sum*dollar)
		}
	}
	w.verify()
}

// testBudgetOwner: the budgets of a process that is gone end, and what they did
// not spend goes back at once.
func testBudgetOwner(w *world) {
	if w.o.Kill == nil || !w.o.Shared {
		w.T.Skip("the store's process cannot be killed")
	}
	const dollar = payment.Dollar
	root := w.made("", "root", 10*dollar)
	other := w.open()
	b, err := w.purse(other).MakeBudget(w.ctx, w.aside(root, "helper", 6*dollar))
	if err != nil {
		w.Fatalf("MakeBudget: %v", err)
	}
	inner, err := w.purse(other).MakeBudget(w.ctx, w.aside(b.ID, "inner", 2*dollar))
	if err != nil {
		w.Fatalf("MakeBudget: %v", err)
	}
	if e, _, err := other.Reserve(w.ctx, w.buy(b.ID, dollar)); err != nil || e.State != ledger.Authorized {
		w.Fatalf("Reserve: %s, %v", e.State, err)
	}
	w.allow(w.buy(b.ID, dollar)) // another process may pay under it while it is alive
	w.left(root, 4*dollar, 2*dollar, 2*dollar)
	w.deny(w.buy(root, 4*dollar+1), policy.CodeBudgetExceeded)

	w.o.Kill(w, other)
	w.allow(w.buy(root, 8*dollar)) // the first step that meets it finds that it has ended
	for _, id := range []payment.BudgetID{b.ID, inner.ID} {
		if r := w.deny(w.buy(id, 1), ledger.CodeBudgetEnded); !strings.Contains(r.Text, "its process is gone") {
			w.Errorf("the reason is %q", r.Text)
		}
	}
	w.left(root, 0, 10*dollar, 10*dollar)
	w.verify()
}

// testBudgetGrants joins budgets by tokens.
func testBudgetGrants(w *world) {
	const dollar = payment.Dollar
	root := w.made("", "root", 10*dollar)
	grant := func(parent payment.BudgetID, limit payment.USD, opts ...func(*ledger.NewBudget)) (payment.BudgetID, string) {
		n := w.aside(parent, "granted", limit, opts...)
		token := ledger.BudgetToken(n.ID, "secret"+fmt.Sprint(w.serial))
		w.serial++
		n.Granted, n.By, n.Secret = true, "ana", ledger.HashBudgetToken(token)
		b, err := w.purse(w.s).MakeBudget(w.ctx, n)
		if err != nil || b.Owner != "" || b.By != "ana" {
			w.Fatalf("MakeBudget: %+v, %v", b, err)
		}
		return b.ID, token
	}
	join := func(agent, token string, want error) payment.BudgetID {
		w.Helper()
		b, err := w.purse(w.s).JoinBudget(w.ctx, agent, token, "", w.now())
		if !errors.Is(err, want) || (err == nil) != (b.ID != "") {
			w.Errorf("JoinBudget gave %s, %v; want %v", b.ID, err, want)
		}
		return b.ID
	}
	id, token := grant(root, 4*dollar)
	if got := join("trader", token, nil); got != id {
		w.Errorf("joined %s, want %s", got, id)
	}
	join("eve", token, ledger.ErrBudgetToken)
	for within, want := range map[payment.BudgetID]error{root: nil, id: nil, w.made("", "another", 1): ledger.ErrBudget, "x": ledger.ErrBudget} {
		if b, err := w.purse(w.s).JoinBudget(w.ctx, "trader", token, within, w.now()); !errors.Is(err, want) || err == nil && b.Root != root {
			w.Errorf("JoinBudget within %s gave %+v, %v; want %v", within, b, err, want)
		}
	}
	own, _ := grant("", dollar)
	for _, forged := range []string{
		"", "x", token + "x", token[:len(token)-1], ledger.BudgetToken(root, "secret0"), ledger.BudgetToken(own, "secret0"),
		ledger.BudgetToken(payment.NewBudgetID(w.now()), "secret0"), strings.Repeat("canopy_budget_", 40), ledger.BudgetToken(root, ""),
	} {
		join("trader", forged, ledger.ErrBudgetToken)
	}
	w.allow(w.buy(id, dollar))
	w.left(root, 6*dollar, dollar, dollar)

	// It ends by its time, by an operator, or with its parent.
	short, shortToken := grant(root, dollar, func(n *ledger.NewBudget) { n.ExpiresAt = w.now().Add(time.Hour) })
	inner := w.made(short, "inner", dollar/2)
	w.allow(w.buy(inner, 1))
	w.clock.Advance(time.Hour - 1)
	w.allow(w.buy(inner, 1))
	w.clock.Advance(time.Second)
	w.deny(w.buy(inner, 1), ledger.CodeBudgetEnded)
	join("trader", shortToken, ledger.ErrBudgetEnded)
	w.left(root, 6*dollar-2, dollar+2, 1)
	w.endBudget(id)
	join("trader", token, ledger.ErrBudgetEnded)
	w.left(root, 9*dollar-2, dollar+2, 1)
	_, last := grant(root, dollar)
	w.endBudget(root)
	join("trader", last, ledger.ErrBudgetEnded)
	w.verify()
}

// testBudgetLasts: a grant outlives the process that made it, and a ledger that
// is opened again.
func testBudgetLasts(w *world) {
	if !w.o.Durable {
		w.T.Skip("the store is forgotten")
	}
	n := w.aside("", "kept", 2*payment.Dollar, func(n *ledger.NewBudget) {
		n.Granted, n.By, n.Secret = true, "ana", ledger.HashBudgetToken("t")
	})
	if _, err := w.purse(w.s).MakeBudget(w.ctx, n); err != nil {
		w.Fatalf("MakeBudget: %v", err)
	}
	mine := w.made(n.ID, "mine", payment.Dollar)
	e := w.allow(w.buy(mine, payment.Dollar))
	if err := w.s.Close(); err != nil {
		w.Fatalf("Close: %v", err)
	}
	w.s = w.open()
	w.left(n.ID, payment.Dollar, payment.Dollar, payment.Dollar)
	if got := w.entry(e.ID); !slices.Equal(got.Budgets, e.Budgets) || got.Run != e.Run || got.Path != e.Path {
		w.Errorf("the payment is of %v, run %s", got.Budgets, got.Run)
	}
	w.deny(w.buy(mine, 0), ledger.CodeBudgetEnded)
	w.allow(w.buy(n.ID, payment.Dollar))
	w.deny(w.buy(n.ID, 1), policy.CodeBudgetExceeded)
	w.verify()
}

// testBudgetRace: siblings, their children and their parent race for one sum,
// and get exactly that.
func testBudgetRace(w *world) {
	const dollar = payment.Dollar
	root := w.made("", "root", 20*dollar)
	stores := []ledger.Store{w.s}
	if w.o.Shared {
		stores = append(stores, w.open(), w.open())
	}
	var given, paid atomic.Int64
	w.together(48, func(i int) {
		s := stores[i%len(stores)]
		id := root
		if i%3 > 0 {
			b, err := w.purse(s).MakeBudget(w.ctx, w.aside(root, "part", dollar))
			if _, short := errors.AsType[*ledger.BudgetShortError](err); short {
				return
			}
			if err != nil {
				w.Errorf("MakeBudget: %v", err)
				return
			}
			given.Add(1)
			id = b.ID
		}
		r := w.fetch(path(fmt.Sprint("/race/", i)), under(id))
		switch e, _, err := s.Reserve(w.ctx, r); {
		case err != nil:
			w.Errorf("Reserve: %v", err)
		case e.State == ledger.Authorized:
			paid.Add(1)
		case id != root:
			w.Errorf("a budget that nobody else spends pays nothing: %v", codes(e.Reasons))
		}
	})
	if paid.Load() != 20 {
		w.Errorf("%d payments of $1 were made of $20, with %d given", paid.Load(), given.Load())
	}
	w.left(root, 0, 20*dollar, 20*dollar)
	w.verify()
}

// modelBudget and modelBuy are a naive ledger of budgets.
type modelBudget struct {
	id     payment.BudgetID
	parent *modelBudget
	limit  payment.USD
	ended  bool
}

type modelBuy struct {
	e    ledger.Entry
	of   *modelBudget
	cost payment.USD
}

type modelPurse struct {
	all    []*modelBudget
	bought []*modelBuy
}

func (b *modelBudget) isIn(a *modelBudget) bool {
	for ; b != nil; b = b.parent {
		if b == a {
			return true
		}
	}
	return false
}

func (b *modelBudget) over() bool {
	for ; b != nil; b = b.parent {
		if b.ended {
			return true
		}
	}
	return false
}

func (m *modelPurse) spent(b *modelBudget) (sum payment.USD) {
	for _, p := range m.bought {
		if p.of.isIn(b) {
			sum += p.cost
		}
	}
	return sum
}

// left is what b did not spend itself and did not give: an open child has all of
// its limit, and one that has ended what it spent.
func (m *modelPurse) left(b *modelBudget) payment.USD {
	if b.over() {
		return 0
	}
	left := b.limit
	for _, p := range m.bought {
		if p.of == b {
			left -= p.cost
		}
	}
	for _, c := range m.all {
		switch {
		case c.parent != b:
		case c.over():
			left -= m.spent(c)
		default:
			left -= c.limit
		}
	}
	return left
}

// testBudgetModel plays random histories of budgets against a model that counts
// everything from scratch.
func testBudgetModel(w *world) {
	rapid.Check(w.T, func(t *rapid.T) {
		m := &modelPurse{}
		some := func() *modelBudget {
			if len(m.all) == 0 {
				return nil
			}
			return pick(t, "budget", m.all...)
		}
		amount := func() payment.USD { return payment.USD(rapid.IntRange(0, 6).Draw(t, "amount")) * payment.Dollar / 2 }
		pay := func(*rapid.T) {
			b := some()
			if b == nil {
				return
			}
			cost, left := amount()+1, m.left(b)
			e := w.reserve(w.buy(b.id, cost, watched()))
			switch {
			case b.over():
				w.reason(w.want(e, ledger.Denied), ledger.CodeBudgetEnded)
			case cost > left:
				w.reason(w.want(e, ledger.Denied), policy.CodeBudgetExceeded)
			default:
				m.bought = append(m.bought, &modelBuy{w.want(e, ledger.Authorized), b, cost})
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				for _, b := range m.all {
					spent := m.spent(b)
					w.left(b.id, m.left(b), spent, spent)
				}
			},
			"make": func(*rapid.T) {
				p, limit := some(), amount()
				n := w.aside("", "b", limit)
				if p == nil || rapid.IntRange(0, 4).Draw(t, "outermost") == 0 {
					p = nil
				} else {
					n.Parent = p.id
				}
				_, err := w.purse(w.s).MakeBudget(w.ctx, n)
				short, isShort := errors.AsType[*ledger.BudgetShortError](err)
				switch {
				case p != nil && p.over():
					if !errors.Is(err, ledger.ErrBudgetEnded) {
						t.Fatalf("a budget of one that has ended: %v", err)
					}
				case p != nil && limit > m.left(p):
					if !isShort || short.Left != m.left(p) {
						t.Fatalf("a budget of %s of one with %s left: %v", limit, m.left(p), err)
					}
				case err != nil:
					t.Fatalf("MakeBudget: %v", err)
				default:
					m.all = append(m.all, &modelBudget{id: n.ID, parent: p, limit: limit})
				}
			},
			"pay": pay, "pay more": pay,
			"release": func(*rapid.T) {
				if len(m.bought) == 0 {
					return
				}
				i := rapid.IntRange(0, len(m.bought)-1).Draw(t, "payment")
				p := m.bought[i]
				e := w.move(p.e, ledger.InDoubt, ledger.ByClient)
				w.move(e, ledger.ExpiredUnused, ledger.ByChain)
				m.bought = slices.Delete(m.bought, i, i+1)
			},
			"end": func(*rapid.T) {
				if b := some(); b != nil {
					w.endBudget(b.id)
					b.ended = true
				}
			},
		})
		for _, b := range m.all { // the next history begins anew
			w.endBudget(b.id)
		}
	})
	w.verify()
}
