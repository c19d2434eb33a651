package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

var _ ledger.ApproverStore = (*Store)(nil)

const approverColumns = `SELECT name, secret, created, rotated, revoked FROM approvers `

func approverOf(row []driver.Value) (*ledger.Approver, error) {
	var a ledger.Approver
	var secret []byte
	var created, rotated, revoked int64
	if err := scan(row, &a.Name, &secret, &created, &rotated, &revoked); err != nil {
		return nil, err
	}
	if len(secret) != len(a.Secret) {
		return nil, ErrDamaged
	}
	copy(a.Secret[:], secret)
	at := func(us int64) time.Time {
		if us == 0 {
			return time.Time{}
		}
		return fromMicro(us)
	}
	a.CreatedAt, a.RotatedAt, a.RevokedAt = at(created), at(rotated), at(revoked)
	return &a, nil
}

// Approver implements ledger.ApprovalTx.
func (t *tx) Approver(name string) (found *ledger.Approver, err error) {
	err = t.c.query(approverColumns+`WHERE folded = ?`, []driver.Value{ledger.FoldApprover(name)}, func(row []driver.Value) (err error) {
		found, err = approverOf(row)
		return err
	})
	if err == nil && found == nil {
		err = ledger.ErrNotFound
	}
	return found, err
}

func (s *Store) approver(ctx context.Context, act ledger.Act, kind, name string, secret payment.Hash, now time.Time) error {
	_, err := s.do(ctx, &job{step: func(t *tx) error {
		was, err := t.Approver(name)
		if err != nil && err != ledger.ErrNotFound {
			return err
		}
		seen, err := t.Seen()
		if err != nil {
			return err
		}
		seen, at := act.At(seen, now, s.env())
		a, err := act.After(was, name, secret, at)
		if err != nil {
			return err
		}
		if err := t.SetSeen(seen); err != nil {
			return err
		}
		micro := func(at time.Time) int64 {
			if at.IsZero() {
				return 0
			}
			return at.UnixMicro()
		}
		_, _, err = t.c.exec(`INSERT OR REPLACE INTO approvers (folded, name, secret, created, rotated, revoked) VALUES (?, ?, ?, ?, ?, ?)`,
			ledger.FoldApprover(name), a.Name, a.Secret[:], micro(a.CreatedAt), micro(a.RotatedAt), micro(a.RevokedAt))
		if err != nil {
			return err
		}
		return s.record(t, kind, "", a.Name, "")
	}})
	return err
}

// AddApprover implements ledger.ApproverStore.
func (s *Store) AddApprover(ctx context.Context, name string, secret payment.Hash, now time.Time) error {
	return s.approver(ctx, ledger.ActAdd, "approver add", name, secret, now)
}

// RotateApprover implements ledger.ApproverStore.
func (s *Store) RotateApprover(ctx context.Context, name string, secret payment.Hash, now time.Time) error {
	return s.approver(ctx, ledger.ActRotate, "approver rotate", name, secret, now)
}

// RevokeApprover implements ledger.ApproverStore.
func (s *Store) RevokeApprover(ctx context.Context, name string, now time.Time) error {
	return s.approver(ctx, ledger.ActRevoke, "approver revoke", name, payment.Hash{}, now)
}

// Approver implements ledger.ApproverStore.
func (s *Store) Approver(ctx context.Context, name string) (out ledger.Approver, err error) {
	err = s.read(ctx, func(t *tx) error {
		a, err := t.Approver(name)
		if err == nil {
			out = *a
		}
		return err
	})
	return out, err
}

// Approvers implements ledger.ApproverStore.
func (s *Store) Approvers(ctx context.Context) (out []ledger.Approver, err error) {
	err = s.read(ctx, func(t *tx) error {
		return t.c.query(approverColumns+`ORDER BY folded`, nil, func(row []driver.Value) error {
			a, err := approverOf(row)
			if err == nil {
				out = append(out, *a)
			}
			return err
		})
	})
	return out, err
}
