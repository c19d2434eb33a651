package ledger

import (
	"context"
	"slices"

	"github.com/canopy-go/canopy/payment"
)

var _ Pinner = (*Memory)(nil)

// Pin is that of Pinner.
func (m *Memory) Pin(ctx context.Context, p Pin) error {
	if err := CheckPin(p); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	p.At = latest(instant(m.clock.Now()), m.tx.seen.At)
	m.tx.pins = append(m.tx.pins, p)
	return nil
}

// Pinned is that of Pinner.
func (m *Memory) Pinned(ctx context.Context) (Pin, error) {
	if err := m.begin(ctx); err != nil {
		return Pin{}, err
	}
	defer m.mu.Unlock()
	if n := len(m.tx.pins); n > 0 && !m.tx.pins[n-1].Policy.IsZero() {
		return m.tx.pins[n-1], nil
	}
	return Pin{}, nil
}

// Pins is that of Pinner.
func (m *Memory) Pins(ctx context.Context) ([]Pin, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := slices.Clone(m.tx.pins)
	slices.Reverse(out)
	return out, nil
}

// PinnedPolicy is that of ClockTx.
func (t *memoryTx) PinnedPolicy() (payment.Hash, error) {
	if n := len(t.pins); n > 0 {
		return t.pins[n-1].Policy, nil
	}
	return payment.Hash{}, nil
}
