package canopy_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/sqlite"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// A clock that disagrees with the ledger's, and no key, stand in the way of
// every payment.
func TestCannotPay(t *testing.T) {
	t.Parallel()
	p, err := policy.New(policy.Config{Tables: map[string]policy.Table{"default": {Caps: []string{"$1 / 24h"}, Allow: []string{"*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Now()
	now := func() time.Time { return noon }
	onDisk, err := sqlite.Open(filepath.Join(t.TempDir(), "canopy.db"), sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { onDisk.Close() })
	for name, store := range map[string]ledger.Store{"memory": ledger.NewMemory(ledger.Options{Now: now}), "sqlite": onDisk} {
		for late, want := range map[time.Duration][]string{0: {"no_signer", "no_rail"}, time.Minute: {"no_signer", "no_rail", "clock_skew"}} {
			c, err := canopy.New(canopy.Config{Policy: p, Store: store, Now: func() time.Time { return noon.Add(late) }})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.CannotPay(t.Context())
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s, %v: %v, %v", name, late, got, err)
			}
			for i, r := range got {
				if r.Code != want[i] || r.Status != canopy.Denied || r.Text == "" {
					t.Errorf("%s, %v: %+v, want %s", name, late, r, want[i])
				}
			}
		}
	}
}

// Another policy that is pinned, and hours, stand in the way too.
func TestCannotPayByThisPolicy(t *testing.T) {
	t.Parallel()
	saturday := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return saturday }
	p, err := policy.Parse("t", []byte("[policy.default]\ncaps = [\"$1 / 24h\"]\nallow = [\"*\"]\nhours = \"Mon-Fri\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	store := ledger.NewMemory(ledger.Options{Now: now})
	if err := store.Pin(t.Context(), ledger.Pin{Policy: payment.Hash{1}, By: "ana"}); err != nil {
		t.Fatal(err)
	}
	c, err := canopy.New(canopy.Config{Policy: p, Store: store, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.CannotPay(t.Context())
	var codes []string
	for _, r := range got {
		codes = append(codes, r.Code)
	}
	if err != nil || !slices.Equal(codes, []string{policy.CodeOutsideHours, ledger.CodePolicyNotPinned, "no_signer", "no_rail"}) {
		t.Errorf("%v, %v", codes, err)
	}
}
