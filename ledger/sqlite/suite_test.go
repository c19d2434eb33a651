//go:build linux || darwin

package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/ledger/ledgertest"
)

func TestStore(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Opener {
		path := filepath.Join(t.TempDir(), "canopy.db")
		return ledgertest.Opener{
			Shared:  true,
			Durable: true,
			Open: func(t testing.TB, c *ledgertest.Clock) ledger.Store {
				t.Helper()
				s, err := Open(path, Options{Now: c.Now, Elapsed: c.Elapsed, Boot: "boot"})
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Kill: func(t testing.TB, s ledger.Store) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
