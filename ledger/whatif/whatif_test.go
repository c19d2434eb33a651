package whatif_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/whatif"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// past is a ledger whose payments one policy decided.
type past struct {
	testing.TB
	now   time.Time
	p     *policy.Policy
	store *ledger.Memory
	n     int
}

func parse(t testing.TB, doc string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("t", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newPast(t *testing.T, doc string) *past {
	t.Helper()
	w := &past{TB: t, now: noon, p: parse(t, doc)}
	w.store = ledger.NewMemory(ledger.Options{Now: func() time.Time { return w.now }})
	return w
}

// pay decides one payment of some millionths of a dollar and, where it is
// allowed, ends it in a state.
func (w *past) pay(agent, host string, usd payment.USD, ends ledger.State) ledger.Entry {
	w.Helper()
	w.n++
	usdc := payment.KnownAssets().On(payment.Base)[0]
	amount := payment.UnitsOf(uint64(usd))
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc, Amount: amount,
		Recipients: []payment.Recipient{{Address: payment.Address{9}, Amount: amount}},
		Method:     "GET", Origin: "https://" + host, Target: fmt.Sprint("/", w.n), Validity: time.Minute,
	}
	p := payment.Payment{ID: payment.NewID(w.now), Agent: agent, Terms: terms, Host: host, Port: 443}
	e, _, err := w.store.Reserve(w.Context(), ledger.Request{
		Payment: p, Verdict: w.p.Evaluate(p, w.now, policy.History{}), Payer: payment.Address{1}, Fingerprint: terms.Hash(),
		Began: w.now, Now: w.now, Validity: time.Minute, Watched: true,
		Slot: payment.Slot{Kind: payment.SlotEVM, Chain: usdc.Chain, Token: usdc.Address, From: payment.Address{1}},
	})
	if err != nil {
		w.Fatal(err)
	}
	if e.State == ledger.Authorized {
		e = w.end(e, ends)
	}
	return e
}

func (w *past) end(e ledger.Entry, ends ledger.State) ledger.Entry {
	w.Helper()
	steps := map[ledger.State][]ledger.Change{
		ledger.Settled: {{To: ledger.Claimed, By: ledger.ByClient, Delivered: true}, {To: ledger.Settled, By: ledger.ByChain, SpentAt: w.now}},
		ledger.Claimed: {{To: ledger.Claimed, By: ledger.ByClient, Delivered: true}},
		ledger.InDoubt: {{To: ledger.InDoubt, By: ledger.ByClient}},
		ledger.ExpiredUnused: {
			{To: ledger.InDoubt, By: ledger.ByClient}, {To: ledger.ExpiredUnused, By: ledger.ByChain},
		},
	}
	for _, c := range steps[ends] {
		c.ID, c.Version, c.Now = e.ID, e.Version, w.now
		var err error
		if e, err = w.store.Advance(w.Context(), c); err != nil {
			w.Fatal(err)
		}
	}
	return e
}

func (w *past) run(doc string, o whatif.Options) whatif.Report {
	w.Helper()
	r, err := whatif.Run(w.Context(), w.store, parse(w.TB, doc), o)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

const doc = `
[org]
caps = ["$9 / 24h"]
[policy.default]
max_payment = "$2"
approve_above = "$1.50"
caps = ["$3 / 1h", "$7 / day", "6 payments / 2h", "$2 / 1h per host", "$60 / ever"]
allow = ["host:*.example"]
[policy.trader]
from = "default"
max_payment = "$4"
caps = ["$5 / 24h per payee", "$25 / week"]
`

// The policy that decided would decide the same again: every status of long
// random histories, with caps of every kind full again and again.
func TestSamePolicy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newPast(t, doc)
		var statuses [3]int
		for range 150 {
			w.now = w.now.Add(time.Duration(r.IntN(180)) * time.Minute)
			e := w.pay([]string{"trader", "a", "b"}[r.IntN(3)], []string{"x.example", "y.example", "z.example", "evil.test"}[r.IntN(4)],
				payment.USD(r.IntN(2_500_000)+1), []ledger.State{ledger.InDoubt, ledger.Claimed, ledger.Settled}[min(r.IntN(30), 2)])
			switch e.State {
			case ledger.Denied:
				statuses[payment.Denied]++
			case ledger.PendingApproval:
				statuses[payment.PendingApproval]++
			default:
				statuses[payment.Allowed]++
			}
		}
		got := w.run(doc, whatif.Options{})
		if len(got.Changed) > 0 || got.Payments != 150 || got.Others != 0 {
			t.Fatalf("seed %d: %d of %d changed, the first %+v", seed, len(got.Changed), got.Payments, got.Changed[:min(1, len(got.Changed))])
		}
		for _, m := range got.Moves {
			if m.Was != m.Now || m.Payments != statuses[m.Was] {
				t.Errorf("seed %d: move %+v, want %d", seed, m, statuses[m.Was])
			}
		}
		if statuses[0] < 3 || statuses[1] < 3 || statuses[2] < 3 {
			t.Errorf("seed %d decided %v: too little of something", seed, statuses)
		}
	}
}

// A lower cap denies what it would have been full for, and what it denies does
// not fill it.
func TestLowerCap(t *testing.T) {
	t.Parallel()
	w := newPast(t, doc)
	var ids []payment.ID
	for range 3 {
		ids = append(ids, w.pay("a", "x.example", 600_000, ledger.Settled).ID)
		w.now = w.now.Add(30 * time.Minute)
	}
	ids = append(ids, w.pay("a", "y.example", 400_000, ledger.Settled).ID)
	w.pay("a", "evil.test", 1, ledger.Settled)
	got := w.run(`[policy.default]
max_payment = "$2"
caps = ["$1 / 24h"]
allow = ["host:*.example"]
`, whatif.Options{})
	want := []whatif.Move{
		{Was: payment.Allowed, Now: payment.Allowed, Payments: 2, USD: 1_000_000},
		{Was: payment.Allowed, Now: payment.Denied, Payments: 2, USD: 1_200_000},
		{Was: payment.Denied, Now: payment.Denied, Payments: 1, USD: 1},
	}
	if fmt.Sprint(got.Moves) != fmt.Sprint(want) {
		t.Errorf("moves %+v, want %+v", got.Moves, want)
	}
	if len(got.Changed) != 2 || got.Changed[0].ID != ids[1] || got.Changed[1].ID != ids[2] || got.Changed[0].Reasons[0].Code != policy.CodeCapExceeded ||
		got.Changed[0].Reasons[0].Used != 600_000 {
		t.Errorf("changed: %+v", got.Changed)
	}
	if len(got.Days) != 1 || got.Days[0].Was != 2_200_000 || got.Days[0].Now != 1_000_000 || !got.Days[0].Date.Equal(noon.Truncate(24*time.Hour)) {
		t.Errorf("days: %+v", got.Days)
	}
}

// What was spent before the time that is asked about fills the caps, and what
// was released does not.
func TestSince(t *testing.T) {
	t.Parallel()
	w := newPast(t, doc)
	w.pay("a", "x.example", 900_000, ledger.Settled)
	w.pay("a", "y.example", 900_000, ledger.ExpiredUnused)
	w.now = w.now.Add(2 * time.Hour)
	since := w.now
	w.pay("a", "x.example", 500_000, ledger.Settled)
	w.now = w.now.Add(2 * time.Hour)
	until := w.now
	w.pay("a", "x.example", 500_000, ledger.Settled)
	const tight = "[policy.default]\nmax_payment = \"$2\"\ncaps = [\"$1.30 / 24h\"]\nallow = [\"*\"]\n"
	got := w.run(tight, whatif.Options{Since: since, Until: until})
	if got.Payments != 1 || len(got.Changed) != 1 || got.Changed[0].Reasons[0].Used != 900_000 {
		t.Errorf("%+v", got)
	}
	if got := w.run(tight, whatif.Options{Since: until, Agent: "b"}); got.Payments != 0 || len(got.Changed) != 0 {
		t.Errorf("another agent: %+v", got)
	}
}

// What a person approved counts where it was paid, and what would be asked of
// one that was allowed is told as such.
func TestAsked(t *testing.T) {
	t.Parallel()
	w := newPast(t, doc)
	e := w.pay("a", "x.example", 1_800_000, ledger.Settled)
	if e.State != ledger.PendingApproval {
		t.Fatal(e.State)
	}
	w.pay("a", "y.example", 1_900_000, ledger.Settled) // nobody answers
	w.now = w.now.Add(time.Minute)
	if _, err := w.store.Approvals().Decide(t.Context(), ledger.Decision{ID: e.ApprovalID, Approve: true, By: "ana", Via: "cli", Now: w.now}); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Minute)
	r := ledger.Request{
		Payment: payment.Payment{ID: payment.NewID(w.now), Agent: "a", Terms: e.Terms, Host: e.Host, Port: 443}, Payer: payment.Address{1},
		Fingerprint: e.Fingerprint, Began: w.now, Now: w.now, Validity: time.Minute, Slot: payment.Slot{Kind: payment.SlotEVM}, Watched: true,
	}
	r.Verdict = w.p.Evaluate(r.Payment, w.now, policy.History{})
	paid, _, err := w.store.Reserve(t.Context(), r)
	if err != nil || paid.ID != e.ID || paid.State != ledger.Authorized {
		t.Fatal(paid.State, err)
	}
	w.end(paid, ledger.Settled)
	w.now = w.now.Add(time.Minute)
	w.pay("a", "y.example", 500_000, ledger.Settled)
	got := w.run(`[policy.default]
max_payment = "$1.85"
approve_above = "$0.10"
caps = ["$2.30 / 24h"]
allow = ["*"]
`, whatif.Options{})
	want := []whatif.Move{
		{Was: payment.Allowed, Now: payment.PendingApproval, Payments: 1, USD: 500_000},
		{Was: payment.PendingApproval, Now: payment.PendingApproval, Payments: 1, USD: 1_800_000},
		{Was: payment.PendingApproval, Now: payment.Denied, Payments: 1, USD: 1_900_000},
	}
	if fmt.Sprint(got.Moves) != fmt.Sprint(want) || got.Days[0].Was != 2_300_000 || got.Days[0].Now != 2_300_000 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Rules that ask what was paid before see what the other policy let through.
func TestPast(t *testing.T) {
	t.Parallel()
	w := newPast(t, doc)
	for _, p := range []struct {
		host string
		usd  payment.USD
	}{{"x.example", 100_000}, {"y.example", 100_000}, {"x.example", 200_000}, {"x.example", 1_000_000}} {
		w.n = 0 // the same path
		w.pay("a", p.host, p.usd, ledger.Settled)
		w.now = w.now.Add(2 * time.Hour)
	}
	head := "[policy.default]\nmax_payment = \"$2\"\ncaps = [\"$9 / 24h\"]\nallow = [\"*\"]\n"
	got := w.run(head+"new_payee = \"approve\"\nprice_jump = \"3x\"\n", whatif.Options{})
	var codes []string
	for _, c := range got.Changed {
		codes = append(codes, c.Reasons[0].Code)
	}
	if fmt.Sprint(codes) != "[new_payee new_payee price_jump]" || got.Payments != 4 {
		t.Errorf("%v: %+v", codes, got)
	}
	// Denied, a payee is never known.
	if got := w.run(head+"new_payee = \"deny\"\n", whatif.Options{}); len(got.Changed) != 4 || got.Days[0].Now != 0 {
		t.Errorf("%+v", got)
	}
}

// What was refused for reasons that are no policy's stays refused.
func TestOthers(t *testing.T) {
	t.Parallel()
	w := newPast(t, doc)
	if err := w.store.Freeze(t.Context(), "", "ana", "stop"); err != nil {
		t.Fatal(err)
	}
	w.pay("a", "x.example", 100, ledger.Settled)
	got := w.run("[policy.default]\ncaps = [\"$1 / 24h\"]\nallow = [\"*\"]\n", whatif.Options{})
	if got.Others != 1 || got.Payments != 0 || len(got.Changed) != 0 || len(got.Days) != 0 {
		t.Errorf("%+v", got)
	}
	if _, err := whatif.Run(t.Context(), w.store, nil, whatif.Options{}); err == nil {
		t.Errorf("no policy is no error")
	}
}

func BenchmarkRun(b *testing.B) {
	p, err := policy.Parse("t", []byte(doc))
	if err != nil {
		b.Fatal(err)
	}
	w := &past{TB: b, now: noon, p: p}
	w.store = ledger.NewMemory(ledger.Options{Now: func() time.Time { return w.now }})
	for i := range 20_000 {
		w.now = w.now.Add(10 * time.Minute)
		w.pay("trader", "x.example", payment.USD(i%1000+1), ledger.Settled)
	}
	for b.Loop() {
		if r, err := whatif.Run(b.Context(), w.store, p, whatif.Options{}); err != nil || r.Payments != 20_000 {
			b.Fatal(r.Payments, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20_000, "ns/payment")
}
