package ledger

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

var _ ApproverStore = (*Memory)(nil)

// Approver is that of ApprovalTx.
func (t *memoryTx) Approver(name string) (*Approver, error) {
	if a, ok := t.approvers[FoldApprover(name)]; ok {
		return a, nil
	}
	return nil, ErrNotFound
}

func (m *Memory) act(ctx context.Context, act Act, name string, secret payment.Hash, now time.Time) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	seen, at := act.At(m.tx.seen, now, m.env())
	a, err := act.After(m.tx.approvers[FoldApprover(name)], name, secret, at)
	if err == nil {
		m.tx.approvers[FoldApprover(name)], m.tx.seen = &a, seen
	}
	return err
}

// AddApprover is that of ApproverStore.
func (m *Memory) AddApprover(ctx context.Context, name string, secret payment.Hash, now time.Time) error {
	return m.act(ctx, ActAdd, name, secret, now)
}

// RotateApprover is that of ApproverStore.
func (m *Memory) RotateApprover(ctx context.Context, name string, secret payment.Hash, now time.Time) error {
	return m.act(ctx, ActRotate, name, secret, now)
}

// RevokeApprover is that of ApproverStore.
func (m *Memory) RevokeApprover(ctx context.Context, name string, now time.Time) error {
	return m.act(ctx, ActRevoke, name, payment.Hash{}, now)
}

// Approver is that of ApproverStore.
func (m *Memory) Approver(ctx context.Context, name string) (Approver, error) {
	if err := m.begin(ctx); err != nil {
		return Approver{}, err
	}
	defer m.mu.Unlock()
	a, err := m.tx.Approver(name)
	if err != nil {
		return Approver{}, err
	}
	return *a, nil
}

// Approvers is that of ApproverStore.
func (m *Memory) Approvers(ctx context.Context) ([]Approver, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var out []Approver
	for _, fold := range slices.Sorted(maps.Keys(m.tx.approvers)) {
		out = append(out, *m.tx.approvers[fold])
	}
	return out, nil
}
