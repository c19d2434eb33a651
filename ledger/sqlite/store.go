package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Reserve implements ledger.Store.
func (s *Store) Reserve(ctx context.Context, r ledger.Request) (ledger.Entry, []policy.Use, error) {
	var e *ledger.Entry
	var uses []policy.Use
	committed, err := s.do(ctx, &job{kind: reserve, step: func(t *tx) (err error) {
		e, uses = nil, nil
		if err := s.usable(t); err != nil {
			return err
		}
		e, uses, err = ledger.ReserveTx(t, &r, s.env())
		return err
	}})
	if !committed || e == nil {
		return ledger.Entry{}, nil, err
	}
	return ledger.Committed(e), uses, err
}

// Advance implements ledger.Store.
func (s *Store) Advance(ctx context.Context, c ledger.Change) (ledger.Entry, error) {
	var e *ledger.Entry
	k := advance
	if c.Variant != nil {
		k = reserve // a permission, and no outcome
	}
	committed, err := s.do(ctx, &job{kind: k, step: func(t *tx) (err error) {
		if c.Variant != nil {
			if err := s.usable(t); err != nil {
				return err
			}
		}
		e, err = ledger.AdvanceTx(t, &c, s.env())
		return err
	}})
	if !committed || err != nil {
		return ledger.Entry{}, err
	}
	return ledger.Committed(e), nil
}

// Use implements ledger.Store.
func (s *Store) Use(ctx context.Context, limits []policy.Limit, now time.Time) ([]policy.Use, error) {
	var uses []policy.Use
	err := s.snapshot(ctx, func(t *tx) (err error) {
		uses, err = ledger.UseTx(t, limits, now)
		return err
	})
	return uses, err
}

// Freeze implements ledger.Freezer.
func (s *Store) Freeze(ctx context.Context, agent, by, reason string) error {
	return s.act(ctx, "freeze", agent, by, reason, func(t *tx, all map[string]string) error {
		all[agent] = reason
		_, _, err := t.c.exec(`INSERT INTO freezes (agent, reason) VALUES (?, ?) ON CONFLICT (agent) DO UPDATE SET reason = excluded.reason`, agent, reason)
		return err
	})
}

// Unfreeze implements ledger.Freezer.
func (s *Store) Unfreeze(ctx context.Context, agent, by, reason string) error {
	return s.act(ctx, "unfreeze", agent, by, reason, func(t *tx, all map[string]string) error {
		delete(all, agent)
		_, _, err := t.c.exec(`DELETE FROM freezes WHERE agent = ?`, agent)
		return err
	})
}

func (s *Store) act(ctx context.Context, kind, agent, by, reason string, change func(*tx, map[string]string) error) error {
	_, err := s.do(ctx, &job{step: func(t *tx) error {
		all, err := t.readFreezes()
		if err != nil {
			return err
		}
		if err := change(t, all); err != nil {
			return err
		}
		return s.record(t, kind, agent, by, reason)
	}})
	return err
}

func (s *Store) record(t *tx, kind, agent, by, reason string) error {
	_, _, err := t.c.exec(`INSERT INTO acts (at, kind, agent, by, reason) VALUES (?, ?, ?, ?, ?)`,
		s.clock.Now().UnixMicro(), kind, agent, by, reason)
	return err
}

// Frozen implements ledger.Freezer.
func (s *Store) Frozen(ctx context.Context, agent string) (frozen bool, reason string, err error) {
	err = s.read(ctx, func(t *tx) error {
		frozen, reason, err = t.Frozen(agent)
		return err
	})
	return frozen, reason, err
}

// Freezes implements ledger.Freezer.
func (s *Store) Freezes(ctx context.Context) (all map[string]string, err error) {
	err = s.read(ctx, func(t *tx) error {
		all, err = t.readFreezes()
		return err
	})
	return all, err
}

// Ack implements ledger.Acker. It also makes this ledger the one that StateDir
// remembers.
func (s *Store) Ack(ctx context.Context, by, reason string) error {
	var v mark
	_, err := s.do(ctx, &job{
		step: func(t *tx) error {
			if err := ledger.AckTx(t, s.env()); err != nil {
				return err
			}
			m, err := t.readMeta()
			if err != nil {
				return err
			}
			m.serial++
			m.marked, t.mem.dirtyMeta = m.events, true
			v = s.mark(m)
			return s.record(t, "ack", "", by, reason)
		},
		after: func() error {
			if s.marker == nil {
				return nil
			}
			if err := s.marker.write(v); err != nil {
				return err
			}
			s.missing.Store(nil)
			return nil
		},
	})
	return err
}

// reader takes a connection for reading; give it back with release.
func (s *Store) reader(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ledger.ErrClosed
	}
	select {
	case c := <-s.idle:
		return c, nil
	default:
	}
	c, err := connect(s.path)
	if err != nil {
		return nil, s.opening(err)
	}
	if err := c.script("PRAGMA query_only = ON"); err != nil {
		return nil, errors.Join(s.opening(err), c.close())
	}
	return c, nil
}

func (s *Store) release(c *conn) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.closed && c.failed == nil {
		select {
		case s.idle <- c:
			return
		default:
		}
	}
	_ = c.close() // nothing was written through it
}

// read runs f over what is committed. Each statement of f may see later
// commits than the one before.
func (s *Store) read(ctx context.Context, f func(*tx) error) error {
	c, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer s.release(c)
	return f(&tx{c, newMemory()})
}

// snapshot runs f over one state of the ledger.
func (s *Store) snapshot(ctx context.Context, f func(*tx) error) error {
	return s.read(ctx, func(t *tx) error {
		if _, _, err := t.c.exec(`BEGIN`); err != nil {
			return err
		}
		err := f(t)
		if _, _, e := t.c.exec(`COMMIT`); err == nil {
			err = e
		}
		return err
	})
}

// Entry implements ledger.Store.
func (s *Store) Entry(ctx context.Context, id payment.ID) (out ledger.Entry, err error) {
	err = s.read(ctx, func(t *tx) error {
		e, err := t.Entry(id)
		if err == nil {
			out = ledger.Committed(e)
		}
		return err
	})
	return out, err
}

// Events implements ledger.Store.
func (s *Store) Events(ctx context.Context, id payment.ID) (out []ledger.Event, err error) {
	err = s.read(ctx, func(t *tx) error {
		r, err := t.row(id)
		if err != nil {
			return err
		}
		if r == nil {
			return ledger.ErrNotFound
		}
		out, err = t.events(r)
		return err
	})
	return out, err
}

func (t *tx) events(r *paymentRow) ([]ledger.Event, error) {
	var out []ledger.Event
	var prev payment.Hash
	err := t.c.query(`SELECT seq, at, was, became, by, data, hash FROM events WHERE n = ? ORDER BY seq`, []driver.Value{r.n},
		func(row []driver.Value) error {
			ev, err := eventOf(row, r.e.ID, prev)
			out, prev = append(out, ev), ev.Hash
			return err
		})
	return out, err
}
