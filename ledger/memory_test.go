package ledger_test

import (
	"testing"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/ledgertest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t *testing.T) ledgertest.Opener {
		var first *ledger.Memory
		return ledgertest.Opener{
			Open: func(t testing.TB, c *ledgertest.Clock) ledger.Store {
				if first == nil {
					first = ledger.NewMemory(ledger.Options{Now: c.Now, Elapsed: c.Elapsed, Boot: "boot"})
					return first
				}
				return first.Handle()
			},
			Shared: true,
			Kill:   func(t testing.TB, s ledger.Store) { s.(*ledger.Memory).Kill() },
		}
	})
}
