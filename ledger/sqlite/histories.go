package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// Histories calls yield with every payment, oldest first, and with its events
// where wants says so, until yield is false. What it passes is yield's to keep;
// the permits are left out. A payment and its events are of one state of the
// ledger; between payments the ledger may go on.
func (s *Store) Histories(ctx context.Context, wants func(*ledger.Entry) bool, yield func(*ledger.Entry, []ledger.Event) bool) error {
	for last := int64(0); ; {
		var page []*paymentRow
		var events [][]ledger.Event
		err := s.snapshot(ctx, func(t *tx) (err error) {
			page, err = t.all(`SELECT `+entryColumns+` FROM payments WHERE n > ? ORDER BY n LIMIT ?`, last, int64(pageRows))
			if err == nil {
				events, err = t.eventsOf(page, wants)
			}
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].n
		for i, r := range page {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(r.e, events[i]) {
				return nil
			}
		}
	}
}

// eventsOf reads the events of a page of payments, in one go where all of them
// are wanted.
func (t *tx) eventsOf(page []*paymentRow, wants func(*ledger.Entry) bool) ([][]ledger.Event, error) {
	out := make([][]ledger.Event, len(page))
	all := true
	for _, r := range page {
		all = all && wants(r.e)
	}
	if len(page) == 0 {
		return out, nil
	}
	if !all {
		for i, r := range page {
			if !wants(r.e) {
				continue
			}
			var err error
			if out[i], err = t.events(r); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	i := 0
	var prev payment.Hash
	err := t.c.query(`SELECT seq, at, was, became, by, data, hash, n FROM events WHERE n BETWEEN ? AND ? ORDER BY n, seq`,
		[]driver.Value{page[0].n, page[len(page)-1].n}, func(row []driver.Value) error {
			var n int64
			if err := scan(row[7:], &n); err != nil {
				return err
			}
			for i < len(page) && page[i].n < n {
				i, prev = i+1, payment.Hash{}
			}
			if i == len(page) || page[i].n != n {
				return fmt.Errorf("sqlite: events of payment %d, which is not there: %w", n, ErrDamaged)
			}
			ev, err := eventOf(row, page[i].e.ID, prev)
			out[i], prev = append(out[i], ev), ev.Hash
			return err
		})
	return out, err
}

// eventOf is the event in a row that begins with its sequence.
func eventOf(row []driver.Value, id payment.ID, prev payment.Hash) (ledger.Event, error) {
	var at, was, became, by int64
	var hash []byte
	ev := ledger.Event{Payment: id, Prev: prev}
	if err := scan(row[:7], &ev.Seq, &at, &was, &became, &by, &ev.Data, &hash); err != nil {
		return ev, err
	}
	ev.At, ev.From, ev.To, ev.By = fromMicro(at), ledger.State(was), ledger.State(became), ledger.Actor(by)
	copy(ev.Hash[:], hash)
	return ev, nil
}
