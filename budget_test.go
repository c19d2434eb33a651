package canopy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/canopytest"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// The cap with the least remaining is shown, with what is spent and held.
func TestBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, setup{policy: `
[org]
caps = ["$3 / 24h"]
[policy.default]
caps  = ["$1 / 24h", "$0.80 / 7d", "5 payments / 1h", "$0.10 / 24h per host"]
allow = ["*"]
`})
		b, err := w.client.Budget(w.context())
		if err != nil || !b.HasCap || b.Text != "$0.80 / 7d" || b.Remaining != 80*payment.Cent || b.Spent != 0 || b.Period != 7*24*time.Hour || !b.ResetsAt.IsZero() {
			t.Errorf("budget %+v, %v", b, err)
		}
		if len(b.Caps) != 4 { // of agent and org scope
			t.Errorf("caps %+v", b.Caps)
		}
		_, url := w.sells(dime)
		start := w.clock.Now()
		w.bought(w.get(url))
		b, err = w.client.Budget(w.context())
		if err != nil || b.Spent != dime || b.Remaining != 70*payment.Cent || b.Held != dime {
			t.Errorf("budget %+v, %v", b, err)
		}
		w.clock.Advance(2 * time.Minute) // its validity is over, nothing is held
		if b, err = w.client.Budget(w.context()); err != nil || b.Spent != dime || b.Held != 0 || b.ResetsAt.Before(start.Add(7*24*time.Hour)) {
			t.Errorf("budget %+v, %v", b, err)
		}
		w.clock.Advance(8 * 24 * time.Hour)
		if b, err = w.client.Budget(w.context()); err != nil || b.Spent != 0 {
			t.Errorf("budget %+v, %v", b, err)
		}
	})
}

func TestBudgetWithoutCaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{policy: capped("none")})
	if b, err := w.client.Budget(w.context()); err != nil || b.HasCap || b.Remaining != 0 {
		t.Errorf("budget %+v, %v", b, err)
	}
}

// Every wrong answer of the store is an error, and nothing is signed: I11.
func TestStoreThatFails(t *testing.T) {
	for name, broken := range map[string]brokenStore{"reserve": {reserve: true}, "use": {use: true}, "frozen": {frozen: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, setup{store: func(s ledger.Store) ledger.Store { broken.Memory = s.(*ledger.Memory); return broken }})
				_, url := w.serve("127.0.0.1:8402", canopytest.SellerConfig{Routes: []canopytest.Route{{Pattern: "GET /goods", Price: dime, Also: []canopytest.Accept{{Price: 2 * dime}}}}})
				if g := w.get(url + "/goods"); !errors.Is(g.err, errStore) {
					t.Errorf("got %v", g.err)
				}
				w.signed(0)
				_, err := w.client.Budget(w.context())
				_, perr := w.client.Ping(w.context())
				_, cerr := w.client.CheckURL(w.context(), url+"/goods")
				if broken.use != (err != nil) || broken.frozen != (perr != nil) || !broken.reserve && cerr == nil {
					t.Errorf("budget %v, ping %v, check %v", err, perr, cerr)
				}
			})
		})
	}
}

var errStore = errors.New("the store is gone")

type brokenStore struct {
	*ledger.Memory
	reserve, use, frozen bool
}

func (s brokenStore) Reserve(ctx context.Context, r ledger.Request) (ledger.Entry, []policy.Use, error) {
	if s.reserve {
		return ledger.Entry{}, nil, errStore
	}
	return s.Memory.Reserve(ctx, r)
}

func (s brokenStore) Use(ctx context.Context, l []policy.Limit, now time.Time) ([]policy.Use, error) {
	if s.use {
		return nil, errStore
	}
	return s.Memory.Use(ctx, l, now)
}

func (s brokenStore) Frozen(ctx context.Context, agent string) (bool, string, error) {
	if s.frozen {
		return false, "", errStore
	}
	return s.Memory.Frozen(ctx, agent)
}

// Preview refuses what is no transfer, or what no rail carries out.
func TestPreviewRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	to := canopytest.Address("payee")
	for name, transfer := range map[string]canopy.Transfer{
		"no amount": {To: to}, "negative": {To: to, Amount: -1}, "too much": {To: to, Amount: payment.MaxUSD}, "to nobody": {Amount: dime}, "no rail": {To: to, Amount: dime, Chain: "eip155:42431"},
	} {
		if r, err := w.client.Preview(w.context(), transfer); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Preview judges as a payment would be, and stores nothing.
func TestPreview(t *testing.T) {
	for name, tc := range map[string]struct {
		amount payment.USD
		to     payment.Address
		before func(w *world)
		status canopy.Status
		code   string
	}{
		"allowed":      {dime, canopytest.Address("payee"), nil, canopy.Allowed, ""},
		"pending":      {report, canopytest.Address("payee"), nil, canopy.PendingApproval, "approval_threshold"},
		"denied":       {11 * payment.Dollar, canopytest.Address("payee"), nil, canopy.Denied, "max_payment"},
		"frozen":       {dime, canopytest.Address("payee"), func(w *world) { must(w.t, w.client.Freeze(w.context(), "lunch")) }, canopy.Denied, "frozen"},
		"to the token": {dime, dollar().Address, nil, canopy.Denied, "bad_terms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTransfers(t, setup{}, canopytest.FacilitatorConfig{}).world
			if tc.before != nil {
				tc.before(w)
			}
			r, err := w.client.Preview(w.context(), canopy.Transfer{To: tc.to, Amount: tc.amount})
			if err != nil || r.Status != tc.status || r.Code != tc.code || !r.DryRun || r.Amount != tc.amount || r.Recipient != tc.to || r.Chain != payment.Base {
				t.Errorf("preview %+v, %v", r, err)
			}
			w.signed(0)
			w.counted(0)
		})
	}
}

// dollar is USDC on Base.
func dollar() payment.Asset { return canopytest.NewChain(canopytest.ChainConfig{}).Dollar() }
