package check_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/check"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

const document = `
[org]
caps = ["$50 / day"]
[policy.default]
max_payment = "$10"
caps = ["$2 / 1h", "$1 / 30m per host", "5 payments / 30m"]
approve_above = "$0.50"
allow = ["*"]
`

var usdc = func() payment.Asset {
	for _, a := range payment.KnownAssets().On(payment.Base) {
		if a.Symbol == "USDC" {
			return a
		}
	}
	panic("no USDC")
}()

// world is a ledger that is filled by the real engine.
type world struct {
	testing.TB
	store ledger.Store
	rules *policy.Policy
	now   time.Time
	n     int
	under payment.BudgetID
}

func newWorld(t testing.TB) *world {
	t.Helper()
	rules, err := policy.Parse("test", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, rules: rules, now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	w.store = ledger.NewMemory(ledger.Options{Now: func() time.Time { return w.now }})
	return w
}

// reserve asks for one payment of so many cents to a host.
func (w *world) reserve(cents int64, host string) ledger.Entry {
	w.Helper()
	w.n++
	amount := payment.UnitsOf(uint64(cents) * 10_000)
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc, Amount: amount,
		Recipients: []payment.Recipient{{Address: payment.Address{9}, Amount: amount}},
		Method:     "GET", Origin: "https://" + host, Target: fmt.Sprintf("/%d", w.n), Validity: time.Minute,
	}
	p := payment.Payment{ID: payment.NewID(w.now), Agent: "bot", Terms: terms, Host: host, Port: 443}
	e, _, err := w.store.Reserve(context.Background(), ledger.Request{
		Payment: p, Verdict: w.rules.Evaluate(p, w.now, policy.History{}), Payer: payment.Address{1}, Fingerprint: terms.Hash(),
		Began: w.now, Now: w.now, Validity: time.Minute, Watched: true, Key: fmt.Sprint("key ", w.n), Budget: w.under,
		Slot: payment.Slot{Kind: payment.SlotEVM, Chain: usdc.Chain, Token: usdc.Address, From: payment.Address{1}},
	})
	if err != nil {
		w.Fatal(err)
	}
	return e
}

func (w *world) move(e ledger.Entry, to ledger.State, by ledger.Actor) ledger.Entry {
	w.Helper()
	next, err := w.store.Advance(context.Background(), ledger.Change{ID: e.ID, Version: e.Version, To: to, By: by, Now: w.now, SpentAt: w.now})
	if err != nil {
		w.Fatal(err)
	}
	return next
}

// run checks the ledger as bent makes of it.
func (w *world) run(o check.Options, bend func(*ledger.Entry)) []string {
	w.Helper()
	s := w.store
	if bend != nil {
		s = bent{s, bend}
	}
	r, err := check.Run(context.Background(), s, o)
	if err != nil {
		w.Fatal(err)
	}
	return r.Problems
}

func (w *world) wants(problems []string, want ...string) {
	w.Helper()
	all := strings.Join(problems, "\n")
	if len(want) == 0 && len(problems) > 0 {
		w.Errorf("problems:\n%s", all)
	}
	for _, s := range want {
		if !strings.Contains(all, s) {
			w.Errorf("no problem says %q; they are\n%s", s, all)
		}
	}
}

// fill makes payments that end in every way, and returns the last.
func (w *world) fill(n int) ledger.Entry {
	w.Helper()
	var last ledger.Entry
	for i := range n {
		w.now = w.now.Add(time.Duration(1+i%400) * time.Second)
		e := w.reserve(int64(1+i%60), fmt.Sprintf("host%d.example", i%5))
		if e.State == ledger.PendingApproval && i%2 == 0 {
			w.approve(e)
			continue
		}
		if e.State != ledger.Authorized {
			continue
		}
		last = e
		if i%97 == 0 {
			continue // it stays live
		}
		last = w.move(e, []ledger.State{ledger.Claimed, ledger.InDoubt}[i%2], ledger.ByClient)
		w.now = w.now.Add(time.Duration(1+i%90) * time.Second)
		if i%3 == 0 {
			w.now = w.now.Add(time.Minute)
			last = w.move(last, ledger.ExpiredUnused, ledger.ByChain)
		} else {
			last = w.move(last, ledger.Settled, ledger.ByChain)
		}
	}
	return last
}

func (w *world) approve(e ledger.Entry) {
	w.Helper()
	_, err := w.store.Approvals().Decide(context.Background(), ledger.Decision{ID: e.ApprovalID, Approve: true, By: "ana", Now: w.now})
	if err != nil {
		w.Fatal(err)
	}
}

func TestSoundLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(600)
	w.wants(w.run(check.Options{Policy: w.rules}, nil))
	w.wants(w.run(check.Options{Policy: w.rules, NoEvents: true}, nil))
	w.wants(w.run(check.Options{}, nil))
}

// A ledger whose every kind of fact is bent once is found out each time.
func TestFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.reserve(10, "a.example")
	b := w.reserve(10, "b.example")
	for _, tc := range []struct {
		want string
		bend func(*ledger.Entry)
	}{
		{"I6: its terms do not have the hash", func(e *ledger.Entry) { e.Terms.Target = "/other" }},
		{"counted as $0.01", func(e *ledger.Entry) { e.Cost = payment.Cent }},
		{"I10: it is valid for 1h", func(e *ledger.Entry) { e.ValidBefore = e.AuthorizedAt.Add(time.Hour) }},
		{"another validity than its record", func(e *ledger.Entry) { e.ValidBefore = e.AuthorizedAt.Add(time.Hour) }},
		{"I4: its slot is that of an earlier", func(e *ledger.Entry) { e.Slot = a.Slot }},
		{"I5: its key is that of an earlier", func(e *ledger.Entry) { e.Key = a.Key }},
		{"I9: ", func(e *ledger.Entry) { e.State = ledger.ExpiredUnused }},
		{"I3: it has a slot", func(e *ledger.Entry) { e.AuthorizedAt = time.Time{} }},
	} {
		t.Run(tc.want, func(t *testing.T) {
			w := *w
			w.TB = t
			w.wants(w.run(check.Options{}, func(e *ledger.Entry) {
				if e.ID == b.ID {
					tc.bend(e)
				}
			}), tc.want)
		})
	}
}

// Caps are counted again: a stricter document than the one that decided is
// broken in every kind of cap.
func TestCaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(300)
	for _, tc := range []struct{ from, to, want string }{
		{`"$2 / 1h"`, `"$1 / 1h"`, "over $1 / 1h"},
		{`"$1 / 30m per host"`, `"$0.20 / 30m per host"`, "over $0.20 / 30m per host"},
		{`"5 payments / 30m"`, `"2 payments / 30m"`, "over 2 payments / 30m"},
		{`"$50 / day"`, `"$3 / day"`, "over $3 / day"},
	} {
		t.Run(tc.to, func(t *testing.T) {
			strict, err := policy.Parse("test", []byte(strings.Replace(document, tc.from, tc.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			w := *w
			w.TB = t
			w.wants(w.run(check.Options{Policy: strict, NoEvents: true}, func(e *ledger.Entry) { e.Policy = strict.Hash() }), tc.want)
		})
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.move(w.reserve(10, "a.example"), ledger.Claimed, ledger.ByClient)
	w.now = w.now.Add(10 * time.Second)
	settled := w.move(a, ledger.Settled, ledger.ByChain)
	dead := w.move(w.move(w.reserve(10, "b.example"), ledger.InDoubt, ledger.ByClient), ledger.ExpiredUnused, ledger.ByChain)
	use := func(e ledger.Entry) payment.Settlement {
		return payment.Settlement{Slot: e.Slot, TxHash: "0x01", Time: e.AuthorizedAt, Moved: e.Terms.Recipients}
	}
	sign := func(e ledger.Entry, d time.Duration) check.Signature {
		return check.Signature{Slot: e.SlotKey(), At: e.AuthorizedAt.Add(d)}
	}
	other := use(settled)
	other.Slot.NonceID = [32]byte{7}
	less := use(settled)
	less.Moved = []payment.Recipient{{Address: payment.Address{9}, Amount: payment.UnitsOf(1)}}
	for _, tc := range []struct {
		name string
		o    check.Options
		want []string
	}{
		{"all is well", check.Options{Uses: []payment.Settlement{use(settled)}, Signatures: []check.Signature{sign(settled, 0), sign(dead, time.Second)}}, nil},
		{"moved after release", check.Options{Uses: []payment.Settlement{use(settled), use(dead)}}, []string{"I8: it is expired_unused"}},
		{"moved twice", check.Options{Uses: []payment.Settlement{use(settled), use(settled)}}, []string{"I5: it moved 2 times"}},
		{"moved otherwise", check.Options{Uses: []payment.Settlement{less}}, []string{"I6: 0x01 moved something else"}},
		{"unexplained", check.Options{Uses: []payment.Settlement{use(settled), other}}, []string{"I13: 0x01 used"}},
		{"never moved", check.Options{Uses: []payment.Settlement{use(dead)}}, []string{"I8: it is settled, and the chain shows nothing"}},
		{"signed first", check.Options{Signatures: []check.Signature{sign(settled, -time.Minute)}}, []string{"I3: it was signed"}},
		{"signed for nothing", check.Options{Signatures: []check.Signature{{Slot: "evm/x"}}}, []string{"I3: something was signed for evm/x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := *w
			w.TB = t
			tc.o.Policy = w.rules
			w.wants(w.run(tc.o, nil), tc.want...)
		})
	}
}

// A ledger that an earlier run saw goes on from there.
func TestPast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.reserve(10, "a.example")
	past := &check.Past{}
	before := w.store
	w.wants(w.run(check.Options{Past: past}, nil))
	a = w.move(a, ledger.Claimed, ledger.ByClient)
	w.reserve(20, "b.example")
	w.wants(w.run(check.Options{Past: past}, nil))
	w.wants(w.run(check.Options{Past: past}, nil))

	w.wants(w.run(check.Options{Past: past}, func(e *ledger.Entry) {
		if e.ID == a.ID {
			e.Version--
		}
	}), "it has 1 events, and had 2")
	w.store = rewritten{before, a.ID}
	w.wants(w.run(check.Options{Past: past}, nil), "I9: its event 2 is not what it was")
	w.store = before
	w.wants(w.run(check.Options{Past: past}, nil))
	w.store = ledger.NewMemory(ledger.Options{})
	w.wants(w.run(check.Options{Past: past}, nil), string(a.ID)+": I9: it is gone")
}

// rewritten is a store in which the last event of a payment is another.
type rewritten struct {
	ledger.Store
	id payment.ID
}

func (r rewritten) Events(ctx context.Context, id payment.ID) ([]ledger.Event, error) {
	events, err := r.Store.Events(ctx, id)
	if id == r.id {
		events[len(events)-1].Hash[0]++
	}
	return events, err
}

// A hold that nobody asked about, where the chains were asked up to some time.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.reserve(10, "a.example")
	end := e.ValidBefore
	w.wants(w.run(check.Options{Final: end.Add(-time.Second)}, nil))
	w.wants(w.run(check.Options{Final: end}, nil), "I12: it is authorized")
	w.wants(w.run(check.Options{Final: end}, func(e *ledger.Entry) { e.Watched = false }), "I9: ")
	e = w.move(e, ledger.InDoubt, ledger.ByClient)
	w.wants(w.run(check.Options{Final: end}, nil), "I12: it is in_doubt")
	w.move(e, ledger.ExpiredUnused, ledger.ByChain)
	w.wants(w.run(check.Options{Final: end}, nil))
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.reserve(10, "a.example")
	secret := []byte{0xde, 0xad, 0xbe, 0xef, 1}
	o := check.Options{Secrets: [][]byte{secret}}
	w.wants(w.run(o, nil))
	w.wants(w.run(o, func(e *ledger.Entry) { e.Echo = append([]byte("x"), secret...) }), "I16: it holds a secret")
	w.wants(w.run(o, func(e *ledger.Entry) { e.Note = "signed 0xDEADBEEF01" }), "I16: it holds a secret")
	if _, err := w.store.Advance(t.Context(), ledger.Change{ID: e.ID, Version: e.Version, To: ledger.InDoubt, By: ledger.ByClient, Now: w.now, Note: "deadbeef01"}); err != nil {
		t.Fatal(err)
	}
	w.wants(w.run(o, nil), "I16: it holds a secret")
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(300)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := check.Run(ctx, w.store, check.Options{}); err == nil {
		t.Error("a cancelled check has no error")
	}
}

// bent is a store whose payments are read otherwise than they are.
type bent struct {
	ledger.Store
	bend func(*ledger.Entry)
}

func (b bent) Entries(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		b.Store.Entries(ctx, q)(func(e ledger.Entry, err error) bool {
			if err == nil {
				b.bend(&e)
			}
			return yield(e, err)
		})
	}
}

func BenchmarkRun(b *testing.B) {
	w := newWorld(b)
	w.fill(20_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := check.Run(context.Background(), w.store, check.Options{Policy: w.rules}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20_000, "ns/payment")
	runtime.KeepAlive(w)
}

// Budgets are counted again, from what each had when the payments were made.
func TestBudgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	purse := w.store.(ledger.Budgeter)
	aside := func(parent payment.BudgetID, limit payment.USD) payment.BudgetID {
		b, err := purse.MakeBudget(t.Context(), ledger.NewBudget{ID: payment.NewBudgetID(w.now), Agent: "bot", Parent: parent, Name: "work", Limit: limit, Now: w.now})
		if err != nil {
			t.Fatal(err)
		}
		return b.ID
	}
	root := aside("", payment.Dollar)
	inner := aside(root, 50*payment.Cent)
	w.under = inner
	w.reserve(30, "a.example")
	last := w.reserve(20, "b.example")
	w.under = root
	outer := w.reserve(40, "c.example")
	for _, o := range []check.Options{{Policy: w.rules}, {}, {NoEvents: true}} {
		w.wants(w.run(o, nil))
	}
	cost := func(id payment.ID, cents int64) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			if e.ID == id {
				e.Cost, e.Spent = payment.USD(cents)*payment.Cent, payment.USD(cents)*payment.Cent
			}
		}
	}
	w.wants(w.run(check.Options{NoEvents: true}, cost(last.ID, 21)), "I15: with it $0.51 counted in budget:"+string(inner), "over $0.50 of budget work")
	w.wants(w.run(check.Options{NoEvents: true}, cost(outer.ID, 51)), "I15: with it $1.01 counted in budget:"+string(root))
	w.wants(w.run(check.Options{NoEvents: true}, func(e *ledger.Entry) { e.Budgets = []payment.BudgetID{inner} }), "was not taken from the one before")
	w.wants(w.run(check.Options{NoEvents: true}, func(e *ledger.Entry) { e.Budgets = []payment.BudgetID{"bgt_x"} }), "I15: its budget bgt_x is not there")
	if _, err := purse.EndBudget(t.Context(), inner, "done", w.now); err != nil {
		t.Fatal(err)
	}
	w.wants(w.run(check.Options{}, nil))
	w.wants(w.run(check.Options{NoEvents: true}, func(e *ledger.Entry) {
		e.AuthorizedAt = w.now.Add(time.Hour)
		e.ValidBefore = w.now.Add(time.Hour + time.Minute)
	}), "and its budget "+string(inner)+" ended at")

	// What is given is not spent by others.
	aside(root, 10*payment.Cent)
	w.wants(w.run(check.Options{NoEvents: true}, cost(outer.ID, 45)), "I15: $0.95 is spent or held under it and $0.10 given, of $1.00")
}

// Budgets and the rest of Budgeter are those of the ledger that is bent.
func (b bent) Budgets(ctx context.Context, q ledger.BudgetQuery) ([]ledger.BudgetUse, error) {
	if p, ok := b.Store.(ledger.Budgeter); ok {
		return p.Budgets(ctx, q)
	}
	return nil, nil
}

func (b bent) MakeBudget(context.Context, ledger.NewBudget) (ledger.Budget, error) {
	return ledger.Budget{}, errReadOnly
}

func (b bent) EndBudget(context.Context, payment.BudgetID, string, time.Time) (ledger.Budget, error) {
	return ledger.Budget{}, errReadOnly
}

func (b bent) JoinBudget(context.Context, string, string, payment.BudgetID, time.Time) (ledger.Budget, error) {
	return ledger.Budget{}, errReadOnly
}

var errReadOnly = errors.New("it is only read")
