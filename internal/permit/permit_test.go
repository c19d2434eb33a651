package permit_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canopy-go/canopy/internal/permit"
)

func TestUse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	a, b := [32]byte{1}, [32]byte{2}
	p := permit.Mint("evm/x", now.Add(time.Minute))
	if p.Slot() != "evm/x" || !p.Deadline().Equal(now.Add(time.Minute)) {
		t.Errorf("permit is for %s until %s", p.Slot(), p.Deadline())
	}
	if err := p.Use(a, now.Add(time.Minute)); !errors.Is(err, permit.ErrExpired) {
		t.Errorf("at its deadline: %v", err)
	}
	if err := p.Use(a, now); err != nil {
		t.Errorf("the first use: %v", err)
	}
	copied := p
	if err := copied.Use(a, now); err != nil {
		t.Errorf("the same digest again: %v", err)
	}
	if err := copied.Use(b, now); !errors.Is(err, permit.ErrUsed) {
		t.Errorf("another digest on a copy: %v", err)
	}
	for name, none := range map[string]permit.Permit{"zero": {}, "without a slot": permit.Mint("", now.Add(time.Hour))} {
		if err := none.Use(a, now); !errors.Is(err, permit.ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := fmt.Sprintf("%v", permit.Permit{}); strings.Contains(s, "evm") {
		t.Error(s)
	}
}

func TestOneDigestWins(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	p := permit.Mint("evm/x", now.Add(time.Minute))
	var wg sync.WaitGroup
	won := make(chan byte, 64)
	for i := range byte(64) {
		wg.Go(func() {
			if p.Use([32]byte{i}, now) == nil {
				won <- i
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d digests were permitted", len(won))
	}
}
