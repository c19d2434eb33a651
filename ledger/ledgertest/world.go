package ledgertest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// noon is where the clock of every test begins.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

var (
	payer = payment.Address{19: 0xa1}
	usdc  = payment.Asset{
		Chain: payment.Base, Address: payment.Address{19: 0xcc}, Symbol: "USDC", Decimals: 6, Name: "USD Coin", Version: "2",
	}
)

// world is one test's ledger and clock.
type world struct {
	testing.TB
	T     *testing.T
	o     Opener
	clock *Clock
	s     ledger.Store
	ctx   context.Context

	serial int // makes paths that differ
}

func newWorld(t *testing.T, o Opener) *world {
	w := &world{TB: t, T: t, o: o, clock: NewClock(noon), ctx: t.Context()}
	w.s = w.open()
	return w
}

// open opens a further handle.
func (w *world) open() ledger.Store {
	w.Helper()
	s := w.o.Open(w, w.clock)
	w.Cleanup(func() { _ = s.Close() }) // it may be closed already
	return s
}

func (w *world) now() time.Time { return w.clock.Now() }

// with changes a request.
type with func(*ledger.Request)

// fetch is an allowed request of one dollar, without caps, key or chain.
func (w *world) fetch(opts ...with) ledger.Request {
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc,
		Recipients: []payment.Recipient{{Address: payment.Address{19: 0x77}, Amount: payment.UnitsOf(1_000_000)}},
		Amount:     payment.UnitsOf(1_000_000),
		Method:     "GET", Origin: "https://feed.example", Target: "/data",
		Validity: time.Minute,
	}
	r := ledger.Request{
		Payment: payment.Payment{ID: payment.NewID(w.now()), Agent: "trader", Terms: terms, Host: "feed.example", Port: 443},
		Verdict: policy.Verdict{
			Status: payment.Allowed, MaxValidity: time.Minute, DuplicateWindow: 10 * time.Minute, ApprovalTTL: 24 * time.Hour, MaxPending: 20,
		},
		Payer: payer, Now: w.now(), Began: w.now(), Validity: time.Minute,
		Slot: payment.Slot{Kind: payment.SlotEVM},
	}
	for _, o := range opts {
		o(&r)
	}
	r.Verdict.Cost = r.Payment.Terms.Cost()
	if r.Fingerprint.IsZero() {
		t := r.Payment.Terms
		if t.IsTransfer() {
			r.Fingerprint = sha256.Sum256(fmt.Append(nil, t.Asset.Chain, t.Asset.Address, t.Payee(), t.Amount))
		} else {
			r.Fingerprint = sha256.Sum256(fmt.Append(nil, t.Method, t.Origin, t.Target, t.BodyDigest))
		}
	}
	return r
}

// pay is an allowed direct transfer of one dollar.
func (w *world) pay(opts ...with) ledger.Request {
	return w.fetch(append([]with{func(r *ledger.Request) {
		t := &r.Payment.Terms
		t.Rail, t.Method, t.Origin, t.Target = "transfer", "", "", ""
		r.Payment.Host, r.Payment.Port = "", 0
	}}, opts...)...)
}

func usd(u payment.USD) with {
	return func(r *ledger.Request) {
		n := payment.UnitsOf(uint64(u))
		r.Payment.Terms.Amount = n
		r.Payment.Terms.Recipients = []payment.Recipient{{Address: r.Payment.Terms.Payee(), Amount: n}}
	}
}

func agent(name string) with   { return func(r *ledger.Request) { r.Payment.Agent = name } }
func key(k string) with        { return func(r *ledger.Request) { r.Key = k } }
func path(p string) with       { return func(r *ledger.Request) { r.Payment.Terms.Target = p } }
func shared(r *ledger.Request) { r.Verdict.Shared = true }
func watched() with            { return func(r *ledger.Request) { r.Watched = true } }
func began(at time.Time) with {
	return func(r *ledger.Request) { r.Began = at }
}

func host(h string) with {
	return func(r *ledger.Request) { r.Payment.Host, r.Payment.Terms.Origin = h, "https://"+h }
}

// payees makes the first the primary one, who gets all but a unit for each of
// the others.
func payees(list ...payment.Address) with {
	return func(r *ledger.Request) {
		t := &r.Payment.Terms
		rest, _ := t.Amount.Sub(payment.UnitsOf(uint64(len(list) - 1)))
		t.Recipients = []payment.Recipient{{Address: list[0], Amount: rest}}
		for _, a := range list[1:] {
			t.Recipients = append(t.Recipients, payment.Recipient{Address: a, Amount: payment.UnitsOf(1)})
		}
	}
}

// asks makes the verdict a pending one.
func asks() with {
	return func(r *ledger.Request) {
		r.Verdict.Status = payment.PendingApproval
		r.Verdict.Reasons = append(r.Verdict.Reasons, policy.Reason{
			Status: payment.PendingApproval, Code: "approve_above", Text: "Amount $7.50 exceeds approval threshold of $5",
		})
	}
}

func caps(limits ...policy.Limit) with {
	return func(r *ledger.Request) { r.Verdict.Limits = append(r.Verdict.Limits, limits...) }
}

func rolling(d time.Duration) policy.Window { return policy.Window{Kind: policy.Rolling, Length: d} }

var (
	day24 = rolling(24 * time.Hour)
	ever  = policy.Window{Kind: policy.Ever}
	ours  = policy.Scope{Kind: policy.ScopeAgent, Agent: "trader"}
)

// atMost is a cap on the sum of an agent's payments, as a document writes it.
func atMost(u payment.USD, w policy.Window) policy.Limit {
	return policy.Limit{Scope: ours, Window: w, USD: u, Text: text(u) + " / " + w.String()}
}

func text(u payment.USD) string {
	if u%payment.Dollar == 0 {
		return fmt.Sprintf("$%d", u/payment.Dollar)
	}
	return u.String()
}

// atMostCount is a cap on the number of an agent's payments.
func atMostCount(n int64, w policy.Window) policy.Limit {
	return policy.Limit{Scope: ours, Window: w, Counting: true, Count: n, Text: fmt.Sprintf("%d payments / %s", n, w)}
}

func scoped(l policy.Limit, s policy.Scope) policy.Limit {
	l.Scope = s
	return l
}

// reserve decides r, which must not fail or join.
func (w *world) reserve(r ledger.Request) ledger.Entry {
	w.Helper()
	e, _, err := w.s.Reserve(w.ctx, r)
	if err != nil {
		w.Fatalf("Reserve: %v", err)
	}
	return e
}

func (w *world) want(e ledger.Entry, s ledger.State) ledger.Entry {
	w.Helper()
	if e.State != s {
		w.Fatalf("payment %s is %s (%v), want %s", e.ID, e.State, codes(e.Reasons), s)
	}
	return e
}

func (w *world) allow(r ledger.Request) ledger.Entry {
	w.Helper()
	return w.want(w.reserve(r), ledger.Authorized)
}

func (w *world) ask(r ledger.Request) ledger.Entry {
	w.Helper()
	return w.want(w.reserve(r), ledger.PendingApproval)
}

// deny decides r, which must be denied with this code.
func (w *world) deny(r ledger.Request, code string) policy.Reason {
	w.Helper()
	return w.reason(w.want(w.reserve(r), ledger.Denied), code)
}

func (w *world) reason(e ledger.Entry, code string) policy.Reason {
	w.Helper()
	for _, r := range e.Reasons {
		if r.Code == code && r.Status == payment.Denied {
			return r
		}
	}
	w.Fatalf("payment %s has reasons %v, want %s", e.ID, codes(e.Reasons), code)
	return policy.Reason{}
}

func codes(reasons []policy.Reason) []string {
	out := []string{}
	for _, r := range reasons {
		out = append(out, r.Code)
	}
	return out
}

// join decides r, which must be answered by payment id.
func (w *world) join(r ledger.Request, id payment.ID, why ledger.Join) ledger.Entry {
	w.Helper()
	e, _, err := w.s.Reserve(w.ctx, r)
	joined, ok := errors.AsType[*ledger.JoinedError](err)
	if !ok {
		w.Fatalf("Reserve gave %s %s (%v), error %v; want payment %s to answer", e.State, e.ID, codes(e.Reasons), err, id)
	}
	if joined.ID != id || joined.Why != why || e.ID != id {
		w.Fatalf("Reserve was answered by %s (%v) with entry %s, want %s (%v)", joined.ID, joined.Why, e.ID, id, why)
	}
	return e
}

func (w *world) fails(r ledger.Request, want error) {
	w.Helper()
	e, uses, err := w.s.Reserve(w.ctx, r)
	if !errors.Is(err, want) || e.ID != "" || uses != nil {
		w.Fatalf("Reserve gave %s %s, error %v; want nothing and %v", e.State, e.ID, err, want)
	}
	if got, err := w.s.Entry(w.ctx, r.Payment.ID); !errors.Is(err, ledger.ErrNotFound) {
		w.Fatalf("after an error the ledger has %s %s (%v)", got.State, got.ID, err)
	}
}

// move advances e, with changes to the Change if any.
func (w *world) move(e ledger.Entry, to ledger.State, by ledger.Actor, opts ...func(*ledger.Change)) ledger.Entry {
	w.Helper()
	c := ledger.Change{ID: e.ID, Version: e.Version, To: to, By: by, Now: w.now()}
	for _, o := range opts {
		o(&c)
	}
	got, err := w.s.Advance(w.ctx, c)
	if err != nil {
		w.Fatalf("Advance %s from %s to %s by %s: %v", e.ID, e.State, to, by, err)
	}
	return got
}

func delivered(c *ledger.Change)                { c.HTTP, c.Delivered = 200, true }
func spentAt(at time.Time) func(*ledger.Change) { return func(c *ledger.Change) { c.SpentAt = at } }

func (w *world) entry(id payment.ID) ledger.Entry {
	w.Helper()
	e, err := w.s.Entry(w.ctx, id)
	if err != nil {
		w.Fatalf("Entry %s: %v", id, err)
	}
	return e
}

func (w *world) approval(id payment.ApprovalID) ledger.Approval {
	w.Helper()
	a, err := w.s.Approvals().Approval(w.ctx, id, w.now())
	if err != nil {
		w.Fatalf("Approval %s: %v", id, err)
	}
	return a
}

// decide answers e's approval as ana.
func (w *world) decide(e ledger.Entry, approve bool) ledger.Approval {
	w.Helper()
	a, err := w.s.Approvals().Decide(w.ctx, ledger.Decision{ID: e.ApprovalID, Approve: approve, By: "ana", Via: "cli", Now: w.now()})
	if err != nil {
		w.Fatalf("Decide %s: %v", e.ApprovalID, err)
	}
	return a
}

// use is what counts against l now.
func (w *world) use(l policy.Limit) policy.Use {
	w.Helper()
	uses, err := w.s.Use(w.ctx, []policy.Limit{l}, w.now())
	if err != nil || len(uses) != 1 {
		w.Fatalf("Use: %v, %v", uses, err)
	}
	return uses[0]
}

// uses demands what counts against an ever or other window of the agent.
func (w *world) uses(l policy.Limit, sum payment.USD, count int64) {
	w.Helper()
	if u := w.use(l); u.USD != sum || u.Count != count {
		w.Errorf("at %s %v counts %v in %d payments, want %v in %d", w.now().Format(time.RFC3339), l, u.USD, u.Count, sum, count)
	}
}

// verify demands that the ledger finds itself whole.
func (w *world) verify() {
	w.Helper()
	v, ok := w.s.(ledger.Verifier)
	if !ok {
		return
	}
	r, err := v.Verify(w.ctx)
	if err != nil || len(r.Problems) > 0 {
		w.Errorf("Verify: %v, %d problems: %v", err, len(r.Problems), r.Problems)
	}
}
