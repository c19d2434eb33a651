package canopy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// under sets a budget aside, or fails the test.
func (w *world) under(ctx context.Context, name string, usd payment.USD) (context.Context, context.CancelFunc) {
	w.t.Helper()
	ctx, cancel, err := w.client.WithBudget(ctx, name, usd)
	must(w.t, err)
	w.t.Cleanup(cancel)
	return ctx, cancel
}

// buys fetches url under ctx.
func (w *world) buys(ctx context.Context, url string) got {
	w.t.Helper()
	resp, err := w.client.Fetch(ctx, w.request(http.MethodGet, url, nil))
	return w.read(resp, err)
}

// node is the budget of that name in the tree, or fails the test.
func (w *world) nodeOf(ctx context.Context, name string) canopy.BudgetNode {
	w.t.Helper()
	b, err := w.client.Budget(ctx)
	must(w.t, err)
	var find func([]*canopy.BudgetNode) *canopy.BudgetNode
	find = func(list []*canopy.BudgetNode) *canopy.BudgetNode {
		for _, n := range list {
			if n.Name == name {
				return n
			}
			if c := find(n.Children); c != nil {
				return c
			}
		}
		return nil
	}
	n := find(b.Budgets)
	if n == nil {
		w.t.Fatalf("no budget %s in the tree", name)
	}
	return *n
}

func (w *world) leftOf(ctx context.Context, name string, left, spent payment.USD) {
	w.t.Helper()
	if n := w.nodeOf(ctx, name); n.Left != left || n.Spent != spent {
		w.t.Errorf("%s has %s left of %s and spent %s, want %s and %s", name, n.Left, n.Limit, n.Spent, left, spent)
	}
}

// A budget counts what is fetched and paid under its context, and the ones in it
// are taken from what is left.
func TestWithBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime)
		ctx, cancel := w.under(w.context(), "research", 35*payment.Cent)
		w.bought(w.buys(ctx, url+"1"))
		w.leftOf(ctx, "research", 25*payment.Cent, dime)

		// A RoundTripper counts the same.
		req := w.request(http.MethodGet, url+"2", nil).WithContext(ctx)
		resp, err := w.client.RoundTrip(req)
		w.bought(w.read(resp, err))

		inner, done := w.under(ctx, "reader", 12*payment.Cent)
		w.leftOf(ctx, "research", 3*payment.Cent, 2*dime)
		if n := w.nodeOf(ctx, "research"); n.Given != 12*payment.Cent || len(n.Children) != 1 || n.Children[0].Name != "reader" {
			t.Errorf("the tree is %+v", n)
		}
		_, _, err = w.client.WithBudget(ctx, "another", 4*payment.Cent)
		if short := as[*canopy.BudgetShortError](t, err); short.Left != 3*payment.Cent || !strings.Contains(err.Error(), "budget research has $0.03 left, and $0.04 was asked") {
			t.Errorf("too much of a budget: %v", err)
		}
		w.bought(w.buys(inner, url+"3"))
		d := w.denied(w.buys(inner, url+"4"), policy.CodeBudgetExceeded)
		if want := "Budget exceeded: $0.10 + $0.10 > $0.12 of budget reader"; d.Result.Reason != want {
			t.Errorf("the reason is %q, want %q", d.Result.Reason, want)
		}
		w.denied(w.buys(ctx, url+"5"), policy.CodeBudgetExceeded)

		// What checks says the same, and reserves nothing.
		check, err := w.client.CheckURL(inner, url+"6")
		if err != nil || check.Status != canopy.Denied || check.Code != policy.CodeBudgetExceeded {
			t.Errorf("check: %+v, %v", check, err)
		}
		if check, err = w.client.CheckURL(w.context(), url+"6"); err != nil || check.Status != canopy.Allowed {
			t.Errorf("check outside: %+v, %v", check, err)
		}

		// What ends gives back at once, and pays nothing more.
		done()
		if inner.Err() == nil {
			t.Error("the context of a budget that was cancelled goes on")
		}
		w.leftOf(ctx, "research", 5*payment.Cent, 3*dime)
		d = w.denied(w.buys(context.WithoutCancel(inner), url+"7"), ledger.CodeBudgetEnded)
		if !strings.Contains(d.Result.Reason, "reader has ended: cancelled") {
			t.Errorf("the reason is %q", d.Result.Reason)
		}
		if _, _, err := w.client.WithBudget(context.WithoutCancel(inner), "late", 1); !errors.Is(err, canopy.ErrBudgetEnded) {
			t.Errorf("a budget of one that has ended: %v", err)
		}
		r, err := w.client.Preview(context.WithoutCancel(inner), canopy.Transfer{To: canopytest.Address("payee"), Amount: 1})
		if err != nil || r.Code != ledger.CodeBudgetEnded {
			t.Errorf("preview: %+v, %v", r, err)
		}
		w.bought(w.buys(w.context(), url+"8")) // without a budget
		cancel()
		b, err := w.client.Budget(w.context())
		if err != nil || len(b.Budgets) != 0 {
			t.Errorf("the tree is %+v, %v", b.Budgets, err)
		}
		w.signed(4)
		w.counted(4 * dime)
		verifyLedger(t, w)
	})
}

func verifyLedger(t *testing.T, w *world) {
	t.Helper()
	r, err := w.store.(ledger.Verifier).Verify(t.Context())
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("Verify: %v, %v", r.Problems, err)
	}
}

// A budget ends at the end of its context, and with the one it was taken from,
// also for a context that outlives it.
func TestBudgetContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		_, url := w.sells(dime)
		root, end := w.under(w.context(), "root", 100*payment.Cent)
		short, stop := context.WithTimeout(root, time.Minute)
		defer stop()
		brief, _ := w.under(short, "brief", 60*payment.Cent)
		deep, _ := w.under(brief, "deep", 30*payment.Cent)
		w.bought(w.buys(deep, url+"1"))
		w.leftOf(root, "root", 40*payment.Cent, dime)
		w.clock.Advance(2 * time.Minute)
		time.Sleep(2 * time.Minute) // the context is over
		synctest.Wait()
		w.leftOf(root, "root", 90*payment.Cent, dime)
		for _, ctx := range []context.Context{brief, deep} {
			w.denied(w.buys(context.WithoutCancel(ctx), url+"2"), ledger.CodeBudgetEnded)
		}
		late, _ := w.under(root, "late", payment.Cent)
		end()
		w.denied(w.buys(context.WithoutCancel(late), url+"3"), ledger.CodeBudgetEnded)
		w.denied(w.buys(context.WithoutCancel(root), url+"3"), ledger.CodeBudgetEnded)
		w.signed(1)
		verifyLedger(t, w)
	})
}

// The end of a context is not waited for: a payment that begins after it is
// refused, though nobody has recorded it yet.
func TestBudgetEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	_, url := w.sells(dime)
	for i := range 50 {
		ctx, stop := context.WithCancel(w.context())
		inner, _ := w.under(ctx, "work", dime)
		stop()
		w.denied(w.buys(context.WithoutCancel(inner), fmt.Sprint(url, i)), ledger.CodeBudgetEnded)
	}
	w.signed(0)
}

// A payment that was authorized before the end goes on, and stays counted in the
// parent.
func TestBudgetEndsMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{})
		root, _ := w.under(w.context(), "root", payment.Dollar)
		_, url := w.sells(dime)
		var end context.CancelFunc
		w.wire.Before = func(req *http.Request) error {
			if req.Header.Get("PAYMENT-SIGNATURE") != "" && end != nil {
				go end() // while the signed request is on its way
				synctest.Wait()
			}
			return nil
		}
		var inner context.Context
		inner, end = w.under(root, "inner", dime)
		w.bought(w.buys(context.WithoutCancel(inner), url+"1"))
		w.denied(w.buys(context.WithoutCancel(inner), url+"2"), ledger.CodeBudgetEnded)
		w.leftOf(root, "root", 90*payment.Cent, dime)
		w.signed(1)
	})
}

// Siblings, their parent and others race for one budget, and get exactly that.
func TestBudgetRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	_, url := w.sells(dime)
	root, _ := w.under(w.context(), "root", 100*payment.Cent)
	var mu sync.Mutex
	paid := 0
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			ctx := root
			if i%2 == 0 {
				inner, _, err := w.client.WithBudget(root, fmt.Sprint("part ", i), dime)
				if err != nil {
					as[*canopy.BudgetShortError](t, err)
					return
				}
				ctx = inner
			}
			resp, err := w.client.Fetch(ctx, w.request(http.MethodGet, fmt.Sprint(url, i), nil))
			if err != nil {
				as[*canopy.DeniedError](t, err)
				return
			}
			resp.Body.Close()
			mu.Lock()
			paid++
			mu.Unlock()
		})
	}
	wg.Wait()
	if paid != 10 {
		t.Errorf("%d payments of $0.10 were made of $1", paid)
	}
	w.leftOf(root, "root", 0, 100*payment.Cent)
	verifyLedger(t, w)
}

// What a person approved is carried out by Resume under the budget that it was
// asked for under, and not once that has ended.
func TestBudgetResume(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{})
		root, cancel := w.under(w.context(), "root", 8*payment.Dollar)
		r, err := w.client.Pay(root, canopy.Transfer{To: canopytest.Address("payee"), Amount: 6 * payment.Dollar})
		if err != nil || r.Status != canopy.PendingApproval {
			t.Fatalf("Pay: %+v, %v", r, err)
		}
		w.rule(r.ApprovalID, true)
		if ended {
			cancel()
		}
		r, err = w.client.Resume(w.context(), r.PaymentID)
		switch {
		case ended && (err != nil || r.Status != canopy.Denied || r.Code != ledger.CodeBudgetEnded):
			t.Errorf("Resume after the end: %+v, %v", r, err)
		case !ended && (err != nil || r.Status != canopy.Allowed):
			t.Errorf("Resume: %+v, %v", r, err)
		case !ended:
			w.leftOf(root, "root", 2*payment.Dollar, 6*payment.Dollar)
		}
	}
}

// A cap per run counts each client by itself, and what is under one outermost
// budget together.
func TestCapPerRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: `
[policy.default]
caps  = ["$20 / 24h", "$0.20 / ever per run"]
allow = ["*"]
`})
		_, url := w.sells(dime)
		w.bought(w.get(url + "1"))
		w.bought(w.get(url + "2"))
		d := w.denied(w.get(url+"3"), policy.CodeCapExceeded)
		if want := "Spend cap exceeded: $0.20 + $0.10 > $0.20 / ever per run"; d.Result.Reason != want {
			t.Errorf("the reason is %q, want %q", d.Result.Reason, want)
		}
		root, _ := w.under(w.context(), "root", payment.Dollar)
		inner, _ := w.under(root, "inner", 50*payment.Cent)
		w.bought(w.buys(inner, url+"4"))
		w.bought(w.buys(root, url+"5"))
		w.denied(w.buys(inner, url+"6"), policy.CodeCapExceeded)
		if check, err := w.client.CheckURL(inner, url+"7"); err != nil || check.Code != policy.CodeCapExceeded {
			t.Errorf("check: %+v, %v", check, err)
		}
		again, err := canopy.New(w.cfg)
		must(t, err)
		w.client = again
		w.bought(w.get(url + "8"))
		w.signed(5)
		verifyLedger(t, w)
	})
}

// granted makes a budget as an operator does.
func (w *world) granted(n ledger.NewBudget) canopy.BudgetToken {
	w.t.Helper()
	n.By, n.Now = "ana", w.clock.Now()
	if n.Agent == "" {
		n.Agent = "tester"
	}
	_, token, err := ledger.GrantBudget(w.context(), w.store.(ledger.Budgeter), n)
	must(w.t, err)
	return canopy.BudgetToken(token)
}

// Another client works under a budget by its token, which it can make narrower
// and never wider.
func TestBudgetToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	_, url := w.sells(dime)
	root, end := w.under(w.context(), "root", payment.Dollar)
	token := w.granted(ledger.NewBudget{Parent: w.nodeOf(root, "root").ID, Name: "helper", Limit: 25 * payment.Cent})
	w.leftOf(root, "root", 75*payment.Cent, 0)

	helper := *w
	cfg := w.cfg
	cfg.BudgetToken = token
	var err error
	helper.client, err = canopy.New(cfg)
	must(t, err)
	w.bought(helper.buys(w.context(), url+"1"))
	inner, _ := helper.under(w.context(), "part", 12*payment.Cent)
	w.bought(helper.buys(inner, url+"2"))
	w.denied(helper.buys(inner, url+"3"), policy.CodeBudgetExceeded)
	w.denied(helper.buys(w.context(), url+"4"), policy.CodeBudgetExceeded)
	if _, _, err := helper.client.WithBudget(w.context(), "more", 4*payment.Cent); err == nil {
		t.Error("more was taken from a budget than it has")
	}
	// It sees its own part of the tree, and uses no budget that is none of it.
	b, err := helper.client.Budget(w.context())
	if err != nil || len(b.Budgets) != 1 || b.Budgets[0].Name != "helper" || !b.Budgets[0].Granted || b.Budgets[0].By != "ana" {
		t.Errorf("the tree is %+v, %v", b.Budgets, err)
	}
	if g := helper.buys(root, url+"5"); !errors.Is(g.err, canopy.ErrBudget) {
		t.Errorf("the wider budget of a context: %v", g.err)
	}
	if _, _, err := helper.client.WithBudget(root, "wider", 50*payment.Cent); !errors.Is(err, canopy.ErrBudget) {
		t.Errorf("a budget of the wider one: %v", err)
	}

	// A context can be bound as well, and what is in it already binds.
	other := w.granted(ledger.NewBudget{Name: "other", Limit: payment.Dollar})
	joined, err := w.client.JoinBudget(w.context(), other)
	must(t, err)
	w.bought(w.buys(joined, url+"6"))
	if _, err := w.client.JoinBudget(root, other); !errors.Is(err, canopy.ErrBudget) {
		t.Errorf("another budget under a context that has one: %v", err)
	}
	if _, err := w.client.JoinBudget(joined, token); !errors.Is(err, canopy.ErrBudget) {
		t.Errorf("another budget under a context that has one: %v", err)
	}
	if _, err := helper.client.JoinBudget(w.context(), other); !errors.Is(err, canopy.ErrBudget) {
		t.Errorf("another budget than the client's: %v", err)
	}
	if _, err := w.client.JoinBudget(root, token); err != nil {
		t.Errorf("a part of the budget of a context: %v", err)
	}

	// Of no use to others.
	for name, c := range map[string]struct {
		agent string
		token canopy.BudgetToken
		store ledger.Store
	}{
		"forged":         {token: token + "x"},
		"empty secret":   {token: canopy.BudgetToken(ledger.BudgetToken(w.nodeOf(root, "root").ID, ""))},
		"another ledger": {token: token, store: ledger.NewMemory(ledger.Options{Now: w.clock.Now})},
		"another agent":  {token: token, agent: "eve"},
	} {
		cfg := w.cfg
		cfg.BudgetToken = c.token
		if c.agent != "" {
			cfg.Agent = c.agent
		}
		if c.store != nil {
			cfg.Store = c.store
		}
		client, err := canopy.New(cfg)
		must(t, err)
		_, err = client.Fetch(w.context(), w.request(http.MethodGet, url+"7", nil))
		if !errors.Is(err, canopy.ErrBudgetToken) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), token.Reveal()) {
			t.Errorf("%s: the error tells the token", name)
		}
	}
	if g := w.buys(root, url+"8"); g.err != nil {
		t.Errorf("the budget of the context of another client: %v", g.err)
	}

	end()
	w.denied(helper.buys(w.context(), url+"9"), ledger.CodeBudgetEnded)
	if _, err := w.client.JoinBudget(w.context(), token); !errors.Is(err, canopy.ErrBudgetEnded) {
		t.Errorf("a token whose budget has ended: %v", err)
	}
	if cannot, err := helper.client.CannotPay(w.context()); err != nil || len(cannot) != 1 || cannot[0].Code != ledger.CodeBudgetEnded {
		t.Errorf("it cannot pay: %v, %v", cannot, err)
	}
	if cannot, err := w.client.CannotPay(w.context()); err != nil || len(cannot) != 0 {
		t.Errorf("the other can pay: %v, %v", cannot, err)
	}
	if _, _, err := w.client.WithBudget(root, "late", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a budget under a context that has ended: %v", err)
	}
	brief := w.granted(ledger.NewBudget{Name: "brief", Limit: dime, ExpiresAt: w.clock.Now().Add(time.Minute)})
	w.clock.Advance(time.Minute)
	if _, err := w.client.JoinBudget(w.context(), brief); !errors.Is(err, canopy.ErrBudgetEnded) || !strings.Contains(err.Error(), "its time is over") {
		t.Errorf("a token whose time is over: %v", err)
	}
	w.signed(4)
	verifyLedger(t, w)
}

// A token does not print itself.
func TestBudgetTokenHides(t *testing.T) {
	t.Parallel()
	const secret = "canopy_budget_01J_topsecret"
	token := canopy.BudgetToken(secret)
	asJSON, err := json.Marshal(canopy.Config{BudgetToken: token}.BudgetToken)
	must(t, err)
	for _, s := range []string{fmt.Sprint(token), fmt.Sprintf("%s %v %+v %#v %q %x", token, token, token, token, token, token), string(asJSON), token.LogValue().String()} {
		if strings.Contains(s, "topsecret") || strings.Contains(s, fmt.Sprintf("%x", "topsecret")) {
			t.Errorf("printed as %s", s)
		}
	}
	if token.Reveal() != secret {
		t.Error("Reveal does not tell it")
	}
}

// A store without budgets says so, and a name that could mislead is refused.
func TestBudgetRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for _, name := range []string{"", "a\nb", "a\u202eb", strings.Repeat("a", 200)} {
		if _, _, err := w.client.WithBudget(w.context(), name, dime); err == nil {
			t.Errorf("a budget is called %q", name)
		}
	}
	if _, _, err := w.client.WithBudget(w.context(), "n", -1); err == nil {
		t.Error("a budget of less than nothing")
	}
	cfg := w.cfg
	cfg.Store = struct{ ledger.Store }{w.store}
	bare, err := canopy.New(cfg)
	must(t, err)
	ctx, cancel, err := bare.WithBudget(w.context(), "n", dime)
	if err == nil || ctx == nil || cancel == nil {
		t.Errorf("a store that keeps no budgets: %v", err)
	}
	cancel()
}

// A ledger whose disk fails makes no budget, and refuses the payments of one
// whose end it could not record.
func TestBudgetDiskFails(t *testing.T) {
	t.Parallel()
	store := &endless{}
	w := newWorld(t, setup{store: func(s ledger.Store) ledger.Store { store.Memory = s.(*ledger.Memory); return store }})
	_, url := w.sells(dime)
	ctx, stop := context.WithCancel(w.context())
	inner, _ := w.under(ctx, "work", payment.Dollar)
	store.setFails(true)
	stop()
	g := w.buys(context.WithoutCancel(inner), url)
	if !errors.Is(g.err, errStore) {
		t.Errorf("the end could not be recorded: %v", g.err)
	}
	store.setFails(false)
	w.denied(w.buys(context.WithoutCancel(inner), url), ledger.CodeBudgetEnded)
	w.signed(0)
}

// endless is a store that cannot record the end of a budget.
type endless struct {
	*ledger.Memory
	mu    sync.Mutex
	fails bool
}

func (s *endless) setFails(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = on
}

func (s *endless) EndBudget(ctx context.Context, id payment.BudgetID, why string, now time.Time) (ledger.Budget, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return ledger.Budget{}, errStore
	}
	return s.Memory.EndBudget(ctx, id, why, now)
}

// The same on a file: what one client of a ledger sets aside, another one sees.
func TestBudgetOnDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "canopy.db")
	w := newWorld(t, setup{config: func(w *world, c *canopy.Config) {
		s, err := sqlite.Open(path, sqlite.Options{Now: w.clock.Now})
		must(t, err)
		t.Cleanup(func() { s.Close() })
		w.store, c.Store = s, s
	}})
	_, url := w.sells(dime)
	root, _ := w.under(w.context(), "root", 25*payment.Cent)
	w.bought(w.buys(root, url+"1"))
	store, err := sqlite.Open(path, sqlite.Options{Now: w.clock.Now})
	must(t, err)
	defer store.Close()
	other := *w
	cfg := w.cfg
	cfg.Store = store
	other.client, err = canopy.New(cfg)
	must(t, err)
	w.bought(other.buys(root, url+"2"))
	w.denied(other.buys(root, url+"3"), policy.CodeBudgetExceeded)
	other.leftOf(w.context(), "root", 5*payment.Cent, 2*dime)
	verifyLedger(t, w)
}
