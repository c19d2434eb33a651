package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

var _ ledger.Pinner = (*Store)(nil)

// Pin implements ledger.Pinner.
func (s *Store) Pin(ctx context.Context, p ledger.Pin) error {
	if err := ledger.CheckPin(p); err != nil {
		return err
	}
	_, err := s.do(ctx, &job{step: func(t *tx) error {
		seen, err := t.Seen()
		if err != nil {
			return err
		}
		at := later(s.clock.Now(), seen.At).UnixMicro()
		t.mem.pinned = &p.Policy
		_, _, err = t.c.exec(`INSERT INTO pins (at, policy, document, by, reason) VALUES (?, ?, ?, ?, ?)`, at, p.Policy[:], p.Document, p.By, p.Reason)
		return err
	}})
	return err
}

// Pinned implements ledger.Pinner.
func (s *Store) Pinned(ctx context.Context) (ledger.Pin, error) {
	all, err := s.pins(ctx, 1)
	if err != nil || len(all) == 0 || all[0].Policy.IsZero() {
		return ledger.Pin{}, err
	}
	return all[0], nil
}

// Pins implements ledger.Pinner.
func (s *Store) Pins(ctx context.Context) ([]ledger.Pin, error) { return s.pins(ctx, -1) }

// pins are the newest of them, all where n is negative.
func (s *Store) pins(ctx context.Context, n int64) (out []ledger.Pin, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		return t.c.query(`SELECT at, policy, document, by, reason FROM pins ORDER BY n DESC LIMIT ?`, []driver.Value{n}, func(row []driver.Value) error {
			var at int64
			var hash []byte
			var p ledger.Pin
			if err := scan(row, &at, &hash, &p.Document, &p.By, &p.Reason); err != nil {
				return err
			}
			p.At = time.UnixMicro(at).UTC()
			copy(p.Policy[:], hash)
			out = append(out, p)
			return nil
		})
	})
	return out, err
}

// PinnedPolicy implements ledger.ClockTx.
func (t *tx) PinnedPolicy() (payment.Hash, error) {
	if t.mem.pinned != nil {
		return *t.mem.pinned, nil
	}
	var hash []byte
	var pinned payment.Hash
	if _, err := t.c.first(`SELECT policy FROM pins ORDER BY n DESC LIMIT 1`, nil, &hash); err != nil {
		return pinned, err
	}
	copy(pinned[:], hash)
	t.mem.pinned = &pinned
	return pinned, nil
}
