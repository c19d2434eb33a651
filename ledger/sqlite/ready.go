package sqlite

import (
	"context"
	"time"

	"github.com/canopy-go/canopy/ledger"
)

var _ ledger.Prober = (*Store)(nil)

// Ready implements ledger.Prober.
func (s *Store) Ready(ctx context.Context, now time.Time) error {
	return s.snapshot(ctx, func(t *tx) error {
		if err := s.usable(t); err != nil {
			return err
		}
		return ledger.ReadyTx(t, s.env(), now)
	})
}
