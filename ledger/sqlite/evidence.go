package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

var (
	_ ledger.SlotFinder = (*Store)(nil)
	_ ledger.Cursors    = (*Store)(nil)
	_ ledger.Recoverer  = (*Store)(nil)
)

// FindSlots implements ledger.SlotFinder.
func (s *Store) FindSlots(ctx context.Context, slots []payment.Slot) ([]payment.ID, error) {
	out := make([]payment.ID, len(slots))
	err := s.snapshot(ctx, func(t *tx) error {
		for i, slot := range slots {
			if err := ctx.Err(); err != nil {
				return err
			}
			key := slotKey(slot.String())
			var id string
			found, err := t.c.first(`SELECT id FROM payments WHERE slot = ?`, []driver.Value{key}, &id)
			if err == nil && !found {
				_, err = t.c.first(`SELECT id FROM slots JOIN payments USING (n) WHERE slots.slot = ?`, []driver.Value{key}, &id)
			}
			if err != nil {
				return err
			}
			out[i] = payment.ID(id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Cursor implements ledger.Cursors.
func (s *Store) Cursor(ctx context.Context, name string) (at uint64, ok bool, err error) {
	err = s.read(ctx, func(t *tx) error {
		var n int64
		ok, err = t.c.first(`SELECT at FROM cursors WHERE name = ?`, []driver.Value{name}, &n)
		at = uint64(n)
		return err
	})
	return at, ok, err
}

// MoveCursor implements ledger.Cursors.
func (s *Store) MoveCursor(ctx context.Context, name string, at uint64) error {
	if err := ledger.CheckCursor(name, at); err != nil {
		return err
	}
	_, err := s.do(ctx, &job{step: func(t *tx) error {
		_, _, err := t.c.exec(`INSERT INTO cursors (name, at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET at = max(at, excluded.at)`, name, int64(at))
		return err
	}})
	return err
}

// Recover implements ledger.Recoverer. Where only this process has payments in
// flight it writes nothing.
func (s *Store) Recover(ctx context.Context) (n int, err error) {
	others := false
	err = s.read(ctx, func(t *tx) error {
		owners, err := t.Owners()
		for _, o := range owners {
			others = others || o != s.owner.id
		}
		return err
	})
	if err != nil || !others {
		return 0, err
	}
	_, err = s.do(ctx, &job{step: func(t *tx) (err error) {
		n, err = ledger.RecoverTx(t, s.env())
		return err
	}})
	return n, err
}

// ended remembers whose a slot was.
func (t *tx) ended(slot driver.Value, n int64) error {
	_, _, err := t.c.exec(`INSERT INTO slots (slot, n) VALUES (?, ?) ON CONFLICT (slot) DO UPDATE SET n = excluded.n`, blob(slot), n)
	return err
}

// fillSlots brings a ledger of schema 1 up: it remembers the slots of payments
// that had ended.
func fillSlots(c *conn) error {
	t := &tx{c, newMemory()}
	for last := int64(0); ; {
		page, err := t.all(`SELECT `+entryColumns+` FROM payments WHERE n > ? ORDER BY n LIMIT 256`, last)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			if last = r.n; r.e.Slot.IsZero() || r.e.HoldsSlot() {
				continue
			}
			if err := t.ended(string(slotKey(r.e.SlotKey())), r.n); err != nil {
				return err
			}
		}
		t.mem.trim()
	}
}
