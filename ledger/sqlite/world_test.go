//go:build linux || darwin

package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var (
	account = payment.Address{19: 0xa1}
	usdc    = payment.Asset{
		Chain: payment.Base, Address: payment.Address{19: 0xcc}, Symbol: "USDC", Decimals: 6, Name: "USD Coin", Version: "2",
	}
	day   = policy.Window{Kind: policy.Rolling, Length: 24 * time.Hour}
	hour  = policy.Window{Kind: policy.Rolling, Length: time.Hour}
	ours  = policy.Scope{Kind: policy.ScopeAgent, Agent: "trader"}
	org   = policy.Scope{Kind: policy.ScopeOrg}
	plain = []policy.Limit{
		{Scope: org, Window: day, USD: 1 << 50, Text: "org"},
		{Scope: ours, Window: day, USD: 1 << 50, Text: "agent"},
		{Scope: ours, Window: hour, Counting: true, Count: 1 << 40, Text: "count"},
	}
)

// request is an allowed fetch of a dollar, the n-th of its kind.
func request(now time.Time, n uint64, limits ...policy.Limit) ledger.Request {
	terms := payment.Terms{
		Rail: "x402", Scheme: "exact", Asset: usdc,
		Recipients: []payment.Recipient{{Address: payment.Address{19: 0x77}, Amount: payment.UnitsOf(1_000_000)}},
		Amount:     payment.UnitsOf(1_000_000),
		Method:     "GET", Origin: "https://feed.example", Target: "/data/" + fmt.Sprint(n),
		Validity: time.Minute,
	}
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], n)
	return ledger.Request{
		Payment: payment.Payment{ID: payment.NewID(now), Agent: "trader", Terms: terms, Host: "feed.example", Port: 443},
		Verdict: policy.Verdict{
			Status: payment.Allowed, Cost: terms.Cost(), Limits: limits, MaxValidity: time.Minute, DuplicateWindow: 10 * time.Minute,
			ApprovalTTL: 24 * time.Hour, MaxPending: 20,
		},
		Payer: account, Now: now, Began: now, Validity: time.Minute,
		Slot: payment.Slot{Kind: payment.SlotEVM}, Fingerprint: sha256.Sum256(seed[:]),
		Offer: payment.Offer{Echo: []byte(`{"scheme":"exact","network":"eip155:8453"}`)},
	}
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger", "canopy.db") }

func open(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func pay(t testing.TB, s *Store, r ledger.Request) ledger.Entry {
	t.Helper()
	e, _, err := s.Reserve(context.Background(), r)
	if err != nil {
		t.Fatalf("Reserve: %v", err)
	}
	if e.State != ledger.Authorized {
		t.Fatalf("Reserve: payment is %s: %+v", e.State, e.Reasons)
	}
	return e
}

func claim(t testing.TB, s *Store, e ledger.Entry) ledger.Entry {
	t.Helper()
	e, err := s.Advance(context.Background(), claimed(e))
	if err != nil {
		t.Fatalf("Advance: %v", err)
	}
	return e
}

func claimed(e ledger.Entry) ledger.Change {
	return ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Claimed, By: ledger.ByClient, Now: time.Now(), Sent: 1, HTTP: 200, Delivered: true,
		Receipt: &payment.Receipt{Claim: payment.ClaimPaid, TxHash: "0x" + fmt.Sprintf("%064x", 7), Amount: e.Terms.Amount}}
}

func verify(t testing.TB, s *Store) ledger.Report {
	t.Helper()
	r, err := s.Verify(context.Background())
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	return r
}

func TestPayAndReopen(t *testing.T) {
	path := newPath(t)
	s := open(t, path, Options{})
	e := pay(t, s, request(time.Now(), 1, plain...))
	e = claim(t, s, e)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, Options{})
	got, err := s.Entry(t.Context(), e.ID)
	if err != nil || got.Head != e.Head || got.State != ledger.Claimed {
		t.Fatalf("Entry after reopening: %+v, %v", got, err)
	}
	u, err := s.Use(t.Context(), plain, time.Now())
	if err != nil || u[0].USD != 1_000_000 || u[2].Count != 1 {
		t.Fatalf("Use after reopening: %+v, %v", u, err)
	}
	if r := verify(t, s); r.Payments != 1 || r.Events != 2 || len(r.Problems) > 0 {
		t.Fatalf("Verify: %+v", r)
	}
}

// TestPaths: any name of a file will do, and nothing else.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"canopy.db", "a b?c#d%41&mode=memory.db", ":memory:", "file:x?mode=memory", "-", "\u00e9.db", "sub/dir/x"} {
		s := open(t, filepath.Join(dir, name), Options{})
		pay(t, s, request(time.Now(), 1))
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, path := range []string{"", ".", "..", dir + "/", dir + "/new/"} {
		if s, err := Open(path, Options{}); err == nil {
			s.Close()
			t.Errorf("%q was opened", path)
		}
	}
}

// TestEmpty: a file that a crash left empty becomes the ledger it was to be.
func TestEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "canopy.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pay(t, open(t, path, Options{}), request(time.Now(), 1))
}

// TestClosed: a closed ledger says so to every call, and may be closed again.
func TestClosed(t *testing.T) {
	s := open(t, newPath(t), Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Reserve(t.Context(), request(time.Now(), 1)); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("Reserve: %v", err)
	}
	if _, _, err := s.Frozen(t.Context(), "trader"); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("Frozen: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

// TestLog: the log is copied into the file before it grows long.
func TestLog(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	path := newPath(t)
	s := open(t, path, Options{})
	for i := range uint64(1500) {
		pay(t, s, request(time.Now(), i, plain...))
	}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() > 2*walPages*pageSize {
		t.Errorf("the log: %v, %v", log.Size(), err)
	}
	file, err := os.Stat(path)
	if err != nil || file.Size() < 100*pageSize {
		t.Errorf("the file: %v, %v", file.Size(), err)
	}
}
