package ledger

import (
	"context"
	"fmt"

	"github.com/canopy-go/canopy/payment"
)

// What reconciliation asks of a Store are optional powers. Every store of this
// module has them.

// SlotFinder tells which payment a slot is, or was, of.
type SlotFinder interface {
	// FindSlots returns for each slot the payment that it was committed to, the
	// latest one where there were several, whatever became of it; empty where
	// this ledger never committed it.
	FindSlots(ctx context.Context, slots []payment.Slot) ([]payment.ID, error)
}

// Cursors remembers how far something outside was read.
type Cursors interface {
	// Cursor is where the cursor of that name stands, and false where it was
	// never moved.
	Cursor(ctx context.Context, name string) (at uint64, ok bool, err error)

	// MoveCursor moves it forward, durably. A cursor that is further already
	// stays where it is. at is less than 2^63.
	MoveCursor(ctx context.Context, name string, at uint64) error
}

// Recoverer puts payments in doubt whose process is gone, as a Reserve does.
type Recoverer interface {
	// Recover tells how many there were.
	Recover(ctx context.Context) (int, error)
}

const maxCursor = 1 << 10 // bytes of a name

// CheckCursor refuses what no store should keep.
func CheckCursor(name string, at uint64) error {
	switch {
	case name == "" || len(name) > maxCursor:
		return fmt.Errorf("ledger: a cursor's name has 1 to %d bytes", maxCursor)
	case at >= 1<<63:
		return fmt.Errorf("ledger: the cursor %s cannot be at %d", clip(name), at)
	}
	return nil
}

var (
	_ SlotFinder = (*Memory)(nil)
	_ Cursors    = (*Memory)(nil)
	_ Recoverer  = (*Memory)(nil)
)

// FindSlots is that of SlotFinder.
func (m *Memory) FindSlots(ctx context.Context, slots []payment.Slot) ([]payment.ID, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := make([]payment.ID, len(slots))
	for i, s := range slots {
		key := s.String()
		if r, ok := m.tx.slots[key]; ok {
			out[i] = r.e.ID
		} else {
			out[i] = m.tx.ended[key]
		}
	}
	return out, nil
}

// Cursor is that of Cursors.
func (m *Memory) Cursor(ctx context.Context, name string) (uint64, bool, error) {
	if err := m.begin(ctx); err != nil {
		return 0, false, err
	}
	defer m.mu.Unlock()
	at, ok := m.tx.cursors[name]
	return at, ok, nil
}

// MoveCursor is that of Cursors.
func (m *Memory) MoveCursor(ctx context.Context, name string, at uint64) error {
	if err := CheckCursor(name, at); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.tx.cursors[name] = max(at, m.tx.cursors[name])
	return nil
}

// Recover is that of Recoverer.
func (m *Memory) Recover(ctx context.Context) (int, error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	return RecoverTx(&m.tx, m.env())
}
