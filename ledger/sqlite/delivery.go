package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

var _ ledger.Deliveries = (*Store)(nil)

// What is due on a channel at an instant: pending approvals that it did not
// tell, and the outcome of those that it did.
const (
	dueFrom = `FROM approvals a INDEXED BY approvals_open LEFT JOIN deliveries d ON d.channel = ?1 AND d.approval = a.id
		WHERE a.status = 0 AND a.expires > ?2 AND coalesce(d.told, 0) = 0`
	endedFrom = `FROM deliveries d JOIN approvals a ON a.id = d.approval
		WHERE d.channel = ?1 AND d.told = 1 AND NOT (a.status = 0 AND a.expires > ?2)`
	ready = ` AND coalesce(d.next, 0) <= ?2`
)

// outbox calls row for what is due on channel at now, oldest approval first.
func (t *tx) outbox(channel string, now time.Time, which string, n int, row func(*ledger.Approval, ledger.Delivery, ledger.Undelivered) error) error {
	const columns = `a.id AS id, a.body AS body, coalesce(d.told, 0) AS told, coalesce(d.attempts, 0) AS attempts, d.next AS next, coalesce(d.failure, '') AS failure `
	sql := `SELECT id, body, told, attempts, coalesce(next, 0), failure FROM (SELECT ` + columns + dueFrom + which + ` UNION ALL SELECT ` + columns + endedFrom + which + `) ORDER BY id LIMIT ?3`
	return t.c.query(sql, []driver.Value{channel, now.UnixMicro(), int64(n)}, func(v []driver.Value) error {
		var id, failure string
		var body []byte
		var told, attempts, next int64
		if err := scan(v, &id, &body, &told, &attempts, &next, &failure); err != nil {
			return err
		}
		a, err := decodeApproval(id, body)
		if err != nil {
			return err
		}
		u := ledger.Undelivered{Approval: a.ID, Attempts: int(attempts), Failure: failure}
		if next != 0 {
			u.NextAt = time.UnixMicro(next).UTC()
		}
		return row(a, ledger.Delivery{Channel: channel, Approval: ledger.ApprovalAt(a, now), Told: ledger.Told(told), Attempts: int(attempts)}, u)
	})
}

// claimable is what may be claimed at now.
func (t *tx) claimable(channel string, now time.Time, n int) (out []ledger.Delivery, err error) {
	err = t.outbox(channel, now, ready, n, func(_ *ledger.Approval, d ledger.Delivery, _ ledger.Undelivered) error {
		out = append(out, d)
		return nil
	})
	return out, err
}

// ClaimDeliveries implements ledger.Deliveries. Where nothing is due it writes
// nothing.
func (s *Store) ClaimDeliveries(ctx context.Context, channel string, now time.Time, lease time.Duration, n int) (out []ledger.Delivery, err error) {
	if err := ledger.CheckChannel(channel); err != nil {
		return nil, err
	}
	claim := func(t *tx) error {
		seen, err := t.Seen()
		if err != nil {
			return err
		}
		now = later(now, seen.At)
		out, err = t.claimable(channel, now, n)
		return err
	}
	if err := s.snapshot(ctx, claim); err != nil || len(out) == 0 {
		return nil, err
	}
	committed, err := s.do(ctx, &job{step: func(t *tx) error {
		if err := claim(t); err != nil {
			return err
		}
		// Those that ended before anybody was told.
		_, _, err := t.c.exec(`DELETE FROM deliveries WHERE channel = ? AND told = 0 AND
			NOT EXISTS (SELECT 1 FROM approvals a WHERE a.id = approval AND a.status = 0 AND a.expires > ?)`, channel, now.UnixMicro())
		if err != nil {
			return err
		}
		for _, d := range out {
			_, _, err := t.c.exec(`INSERT INTO deliveries (channel, approval, told, attempts, next, failure) VALUES (?, ?, 0, 0, ?, '')
				ON CONFLICT (channel, approval) DO UPDATE SET next = excluded.next`, channel, string(d.Approval.ID), now.Add(lease).UnixMicro())
			if err != nil {
				return err
			}
		}
		return nil
	}})
	if !committed || err != nil {
		return nil, err
	}
	return out, nil
}

// EndDelivery implements ledger.Deliveries.
func (s *Store) EndDelivery(ctx context.Context, channel string, id payment.ApprovalID, told ledger.Told, next time.Time, failure string) error {
	_, err := s.do(ctx, &job{step: func(t *tx) error {
		var was int64
		ok, err := t.c.first(`SELECT told FROM deliveries WHERE channel = ? AND approval = ?`, []driver.Value{channel, string(id)}, &was)
		switch {
		case err != nil:
			return err
		case !ok:
			return ledger.ErrNotFound
		case told >= ledger.ToldOutcome:
			_, _, err = t.c.exec(`DELETE FROM deliveries WHERE channel = ? AND approval = ?`, channel, string(id))
		case int64(told) > was:
			_, _, err = t.c.exec(`UPDATE deliveries SET told = ?, attempts = 0, next = 0, failure = '' WHERE channel = ? AND approval = ?`, int64(told), channel, string(id))
		default:
			_, _, err = t.c.exec(`UPDATE deliveries SET attempts = attempts + 1, next = ?, failure = ? WHERE channel = ? AND approval = ?`,
				next.UnixMicro(), ledger.CutFailure(failure), channel, string(id))
		}
		return err
	}})
	return err
}

// Undelivered implements ledger.Deliveries.
func (s *Store) Undelivered(ctx context.Context, channel string, now time.Time) (out []ledger.Undelivered, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		seen, err := t.Seen()
		if err != nil {
			return err
		}
		return t.outbox(channel, later(now, seen.At), "", 10_000, func(_ *ledger.Approval, _ ledger.Delivery, u ledger.Undelivered) error {
			out = append(out, u)
			return nil
		})
	})
	return out, err
}
