package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

type approvals struct{ s *Store }

// Approvals implements ledger.Store.
func (s *Store) Approvals() ledger.Approvals { return approvals{s} }

// Approval implements ledger.Approvals.
func (p approvals) Approval(ctx context.Context, id payment.ApprovalID, now time.Time) (out ledger.Approval, err error) {
	err = p.s.snapshot(ctx, func(t *tx) error {
		a, err := t.Approval(id)
		if err != nil {
			return err
		}
		seen, err := t.Seen()
		out = ledger.ApprovalAt(a, later(now, seen.At))
		return err
	})
	return out, err
}

// List implements ledger.Approvals.
func (p approvals) List(ctx context.Context, agent string, pending bool, now time.Time) (out []ledger.Approval, err error) {
	err = p.s.snapshot(ctx, func(t *tx) error {
		seen, err := t.Seen()
		if err != nil {
			return err
		}
		now = later(now, seen.At)
		sql := `SELECT id, body FROM approvals WHERE (? = '' OR agent = ?) ORDER BY n DESC`
		if pending {
			sql = `SELECT id, body FROM approvals INDEXED BY approvals_open WHERE (? = '' OR agent = ?) AND status = 0 ORDER BY n DESC`
		}
		return t.c.query(sql, []driver.Value{agent, agent}, func(row []driver.Value) error {
			var id string
			var body []byte
			if err := scan(row, &id, &body); err != nil {
				return err
			}
			a, err := decodeApproval(id, body)
			if err != nil {
				return err
			}
			if c := ledger.ApprovalAt(a, now); !pending || c.Status == ledger.ApprovalPending {
				out = append(out, c)
			}
			return nil
		})
	})
	return out, err
}

// Decide implements ledger.Approvals.
func (p approvals) Decide(ctx context.Context, d ledger.Decision) (ledger.Approval, error) {
	var a *ledger.Approval
	var seen ledger.Seen
	committed, err := p.s.do(ctx, &job{step: func(t *tx) (err error) {
		if a, err = ledger.DecideTx(t, d, p.s.env()); err == nil || a != nil {
			if now, e := t.Seen(); e == nil {
				seen = now
			}
		}
		return err
	}})
	if !committed || a == nil {
		return ledger.Approval{}, err
	}
	return ledger.ApprovalAt(a, seen.At), err
}

func later(t, other time.Time) time.Time {
	if other.After(t) {
		return other
	}
	return t
}

var _ ledger.Overrider = (*Store)(nil)

// Override implements ledger.Overrider.
func (s *Store) Override(ctx context.Context, o ledger.Override) (ledger.Approval, error) {
	var a *ledger.Approval
	committed, err := s.do(ctx, &job{kind: reserve, step: func(t *tx) (err error) {
		if err := s.usable(t); err != nil {
			return err
		}
		a, err = ledger.OverrideTx(t, o, s.env())
		return err
	}})
	if !committed || err != nil || a == nil {
		return ledger.Approval{}, err
	}
	return ledger.ApprovalAt(a, a.CreatedAt), nil
}
