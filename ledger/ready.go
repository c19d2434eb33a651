package ledger

import (
	"context"
	"time"
)

// Prober is an optional power of a Store: it tells, without a commit, whether
// anything can be reserved at all.
type Prober interface {
	// Ready is the error that Reserve would return now for every payment:
	// ErrMissing, ErrClockSkew, ErrReadOnly or the store's own; nil where a
	// payment is judged by itself.
	Ready(ctx context.Context, now time.Time) error
}

// ReadyTx is Ready as far as clocks go.
func ReadyTx(tx Tx, env Env, now time.Time) error {
	seen, err := tx.Seen()
	if err != nil {
		return err
	}
	_, _, err = env.strict(&seen, now)
	return err
}

var _ Prober = (*Memory)(nil)

// Ready is that of Prober.
func (m *Memory) Ready(ctx context.Context, now time.Time) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	return ReadyTx(&m.tx, m.env(), now)
}
