package sqlite

import (
	"context"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

var _ ledger.Prober = (*Store)(nil)

// Ready implements ledger.Prober.
func (s *Store) Ready(ctx context.Context, now time.Time) error {
	return s.snapshot(ctx, s.usable)
}
