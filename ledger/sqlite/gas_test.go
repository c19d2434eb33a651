//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// carried is the n-th transfer, of n micro-dollars more than a dollar, that a
// transaction of the account's own carries for 7 of the 100 units of a day.
func carried(now time.Time, n uint64) ledger.Request {
	r := request(now, n, plain...)
	t := &r.Payment.Terms
	t.Method, t.Origin, t.Target = "", "", ""
	r.Payment.Host, r.Payment.Port, r.Key = "", 0, fmt.Sprint(n)
	r.Watched, r.Gas = true, &ledger.Gas{Bound: payment.UnitsOf(7), PerDay: payment.UnitsOf(100)}
	return r
}

// permit permits e a transaction that costs 7.
func permit(s *Store, e ledger.Entry) (ledger.Entry, error) {
	return s.Advance(context.Background(), ledger.Change{
		ID: e.ID, Version: e.Version, To: e.State, By: ledger.ByClient, Now: time.Now(),
		Carry: &payment.Carry{Nonce: 40, GasLimit: 7, MaxFee: 1},
	})
}

// gas makes as many payments as there is gas for, and tells the nonces of their
// transactions.
func (c child) gas(s *Store) error {
	wait()
	ctx := context.Background()
	var n atomic.Uint64
	won := make(chan uint64, 100)
	one := func() error {
		for {
			e, _, err := s.Reserve(ctx, carried(time.Now(), uint64(os.Getpid())<<32|n.Add(1)))
			if err != nil {
				return err
			}
			if e.State != ledger.Authorized {
				if e.Reasons[0].Code != ledger.CodeGasPerDay {
					return fmt.Errorf("the payment is denied: %v", e.Reasons)
				}
				return nil
			}
			if e, err = permit(s, e); err != nil {
				return err
			}
			won <- e.Carries[0].Nonce
		}
	}
	errs := make(chan error, c.Payers)
	for range c.Payers {
		go func() { errs <- one() }()
	}
	var err error
	for range c.Payers {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	close(won)
	for nonce := range won {
		fmt.Println(nonce)
	}
	fmt.Println("done")
	wait() // its payments stay its own until everybody is done
	return s.Close()
}

func (c child) carryAndDie(s *Store, armed *bool) error {
	e, _, err := s.Reserve(context.Background(), carried(time.Now(), 1))
	if err != nil {
		return err
	}
	*armed = true
	_, err = permit(s, e)
	return errors.Join(errors.New("it lives"), err)
}

// TestGasProcesses: eight processes race for the gas of a day, and for the
// account's nonces: 14 payments of 7 fit into 100, and each has its own.
func TestGasProcesses(t *testing.T) {
	const procs = 8
	path := newPath(t)
	s := open(t, path, Options{})
	var all []*process
	for range procs {
		p := start(t, child{Task: "gas", Path: path, Payers: 3})
		if got := p.line(); got != "ready" {
			t.Fatal(got)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.tell()
	}
	var nonces []string
	for _, p := range all {
		for {
			got := p.line()
			if got == "done" {
				break
			}
			if got == "" || strings.HasPrefix(got, "error") {
				t.Fatal(got)
			}
			nonces = append(nonces, got)
		}
	}
	slices.Sort(nonces)
	if n := len(nonces); n != 14 || len(slices.Compact(slices.Clone(nonces))) != 14 || nonces[0] != "40" || nonces[13] != "53" {
		t.Errorf("%d payments with the nonces %v", n, nonces)
	}
	e, _, err := s.Reserve(t.Context(), carried(time.Now(), 1))
	if err != nil || e.State != ledger.Denied {
		t.Errorf("one more: %s, %v", e.State, err)
	}
	for _, p := range all {
		if got := p.line(); got != "ready" {
			t.Fatal(got)
		}
		p.tell()
	}
	if r := verify(t, s); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
}

// TestCarryCrash kills a process before the commit that permits a transaction
// and after it: it is permitted, and counted, or it is not.
func TestCarryCrash(t *testing.T) {
	for name, at := range map[string]point{"before the commit": beforeCommit, "after it": afterCommit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, Options{})
			start(t, child{Task: "carry and die", Path: path, Point: at}).killed()
			if _, err := s.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			var all []ledger.Entry
			for e, err := range s.Entries(t.Context(), ledger.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, e)
			}
			if len(all) != 1 || all[0].State != ledger.InDoubt {
				t.Fatalf("%d payments", len(all))
			}
			e := all[0]
			if at == beforeCommit {
				if len(e.Carries) != 0 || e.CarryPermit.Slot() != "" {
					t.Errorf("%d transactions, permit %q", len(e.Carries), e.CarryPermit.Slot())
				}
				if e, err := permit(s, e); err != nil || e.Carries[0].Nonce != 40 {
					t.Errorf("another process goes on: %v, %v", e.Carries, err)
				}
			} else {
				if len(e.Carries) != 1 || e.CarryPermit.Slot() != payment.CarryKey(e.ID, 1) {
					t.Errorf("%d transactions, permit %q", len(e.Carries), e.CarryPermit.Slot())
				}
				next := pay(t, s, carried(time.Now(), 2))
				if next, err := permit(s, next); err != nil || next.Carries[0].Nonce != 40 {
					t.Errorf("the next payment: %v, %v, want the nonce that nodes name", next.Carries, err)
				}
				if third, err := permit(s, pay(t, s, carried(time.Now(), 3))); err != nil || third.Carries[0].Nonce != 41 {
					t.Errorf("the one after that: %v, %v, want a nonce of its own", third.Carries, err)
				}
			}
			if r := verify(t, s); len(r.Problems) > 0 {
				t.Error(r.Problems)
			}
		})
	}
}

// TestGasEdits: Verify finds a day's gas that is counted for other payments than
// those that can cost some, and transactions that nobody permitted.
func TestGasEdits(t *testing.T) {
	for name, tt := range map[string]struct {
		edit edit
		says string
	}{
		"row gone":  {edit{sql: `DELETE FROM gas`}, "its gas: it is counted: false"},
		"row added": {edit{sql: `INSERT INTO gas (n, chain, account, until) SELECT n, 'eip155:8453', x'', 0 FROM payments WHERE n NOT IN (SELECT n FROM gas)`}, "its gas: it is counted: true"},
		"until":     {edit{sql: `UPDATE gas SET until = until - 1`}, "its gas: it is counted for another"},
		"account":   {edit{sql: `UPDATE gas SET account = zeroblob(20)`}, "its gas: it is counted for another"},
		"chain":     {edit{sql: `UPDATE gas SET chain = 'eip155:1'`}, "its gas: it is counted for another"},
		"nobody's":  {edit{sql: `PRAGMA foreign_keys = OFF; UPDATE gas SET n = 99`}, "a payment that is not there"},
		"more gas":  {edit{payment: func(e *ledger.Entry) { e.Gas = payment.UnitsOf(8) }}, "another gas than its record"},
		"less gas":  {edit{payment: func(e *ledger.Entry) { e.Gas = payment.Units{} }}, "another gas than its record"},
		"dearer":    {edit{payment: func(e *ledger.Entry) { e.Carries = []payment.Carry{{Nonce: 40, GasLimit: 7, MaxFee: 2}} }}, "another gas than its record"},
		"one more": {edit{payment: func(e *ledger.Entry) {
			e.Carries = append(slices.Clone(e.Carries), payment.Carry{GasLimit: 1, MaxFee: 1})
		}}, "another gas than its record"},
		"one less":     {edit{payment: func(e *ledger.Entry) { e.Carries = nil }}, "another gas than its record"},
		"nonce":        {edit{payment: func(e *ledger.Entry) { e.Carries = []payment.Carry{{Nonce: 41, GasLimit: 7, MaxFee: 1}} }}, "another gas than its record"},
		"its data fee": {edit{payment: func(e *ledger.Entry) { e.Carries[0].DataFee = payment.UnitsOf(1) }}, "another gas than its record"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, Options{})
			e, err := permit(s, pay(t, s, carried(time.Now(), 1)))
			if err != nil {
				t.Fatal(err)
			}
			if tt.edit.payment != nil {
				change := tt.edit.payment
				tt.edit.payment = func(o *ledger.Entry) {
					if o.ID == e.ID {
						change(o)
					}
				}
			} else {
				pay(t, s, request(time.Now(), 2))
			}
			if r := verify(t, s); len(r.Problems) > 0 {
				t.Fatal(r.Problems)
			}
			tt.edit.make(t, path)
			found := verify(t, s).Problems
			if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, tt.says) }) {
				t.Errorf("Verify finds %v, want %q", found, tt.says)
			}
		})
	}
}

// TestMigrateGas: a ledger from before there was gas, with entries of the second
// layout, is what it was, and goes on with gas.
func TestMigrateGas(t *testing.T) {
	t.Parallel()
	path := fixture(t, "schema5")
	now := time.Date(2026, 3, 4, 12, 0, 1, 0, time.UTC)
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.pragma("user_version"); v != 5 || err != nil {
		t.Fatalf("the fixture is of schema %d, %v", v, err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, Options{Now: func() time.Time { return now }})
	states := map[ledger.State]int{}
	var last ledger.Entry
	for e, err := range s.Entries(t.Context(), ledger.Query{Oldest: true}) {
		if err != nil {
			t.Fatal(err)
		}
		lane := e.Slot.Kind == payment.SlotLane
		if !e.Gas.IsZero() || len(e.Carries) != 0 || e.Slot.IsZero() || lane != (e.Variants == 1) || lane != (e.Terms.FeeBound > 0) || e.Cost != e.Terms.Cost() {
			t.Errorf("%s: %+v", e.State, e)
		}
		states[e.State]++
		if e.State == ledger.InDoubt && e.Terms.IsTransfer() {
			last = e
		}
	}
	if states[ledger.InDoubt] != 6 || states[ledger.Settled] != 3 || len(states) != 6 {
		t.Errorf("%v", states)
	}
	c2 := ledger.Change{ID: last.ID, Version: last.Version, To: last.State, By: ledger.ByClient, Now: now, Carry: &payment.Carry{GasLimit: 1, MaxFee: 1}}
	if _, err := s.Advance(t.Context(), c2); !errors.Is(err, ledger.ErrIllegal) {
		t.Errorf("a transaction for a payment of then: %v", err)
	}
	pay(t, s, carried(now, 1000))
	if r := verify(t, s); len(r.Problems) > 0 || r.Payments != 22 {
		t.Errorf("%d payments, %v", r.Payments, r.Problems)
	}
}
