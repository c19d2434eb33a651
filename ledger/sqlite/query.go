package sqlite

import (
	"context"
	"database/sql/driver"
	"iter"
	"math"
	"strings"

	"github.com/canopy-go/canopy/ledger"
)

// pageRows is how many payments an iteration reads at a time. Between pages no
// connection is held, so that a slow reader never keeps the log from being
// copied into the file.
const pageRows = 256

// Entries implements ledger.Store. Payments that are stored while it runs may
// be left out.
func (s *Store) Entries(ctx context.Context, q ledger.Query) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		left := q.Limit
		last := int64(math.MaxInt64)
		if q.Oldest {
			last = 0
		}
		if q.After != "" {
			err := s.read(ctx, func(t *tx) error {
				ok, err := t.c.first(`SELECT n FROM payments WHERE id = ?`, []driver.Value{string(q.After)}, &last)
				if err == nil && !ok {
					err = ledger.ErrNotFound
				}
				return err
			})
			if err != nil {
				yield(ledger.Entry{}, err)
				return
			}
		}
		for {
			size := pageRows
			if q.Limit > 0 {
				size = min(size, left)
			}
			var page []*paymentRow
			err := s.read(ctx, func(t *tx) (err error) {
				sql, args := query(q, last, size)
				page, err = t.all(sql, args...)
				return err
			})
			if err != nil {
				yield(ledger.Entry{}, err)
				return
			}
			for _, r := range page {
				if err := ctx.Err(); err != nil {
					yield(ledger.Entry{}, err)
					return
				}
				if !yield(ledger.Committed(r.e), nil) {
					return
				}
				last = r.n
			}
			if left -= len(page); len(page) < size || q.Limit > 0 && left == 0 {
				return
			}
		}
	}
}

// query is the statement for one page of q after the payment numbered last.
// Its text depends on which fields of q are set, never on their values.
func query(q ledger.Query, last int64, size int) (string, []driver.Value) {
	var b strings.Builder
	b.WriteString(`SELECT ` + entryColumns + ` FROM payments `)
	if onlyLive(q.States) {
		// Each of them has its slot: no other payment is looked at.
		b.WriteString(`INDEXED BY payments_slot WHERE slot IS NOT NULL AND `)
	} else {
		b.WriteString(`WHERE `)
	}
	args := []driver.Value{last}
	and := func(cond string, v driver.Value) {
		b.WriteString(cond)
		args = append(args, v)
	}
	if q.Oldest {
		b.WriteString(`n > ?`)
	} else {
		b.WriteString(`n < ?`)
	}
	if q.Agent != "" {
		and(` AND agent = ?`, q.Agent)
	}
	if q.Host != "" {
		and(` AND host = ?`, q.Host)
	}
	if !q.Since.IsZero() {
		and(` AND created >= ?`, q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		and(` AND created < ?`, q.Until.UnixMicro())
	}
	for i, st := range q.States {
		cond := `, ?`
		if i == 0 {
			cond = ` AND state IN (?`
		}
		and(cond, int64(st))
	}
	if len(q.States) > 0 {
		b.WriteString(`)`)
	}
	if q.Oldest {
		and(` ORDER BY n LIMIT ?`, int64(size))
	} else {
		and(` ORDER BY n DESC LIMIT ?`, int64(size))
	}
	return b.String(), args
}

func onlyLive(states []ledger.State) bool {
	for _, st := range states {
		if !st.Live() {
			return false
		}
	}
	return len(states) > 0
}
