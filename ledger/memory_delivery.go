package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/canopy-go/canopy/payment"
)

var _ Deliveries = (*Memory)(nil)

// delivery is how far one has come. It is kept until nothing more is due.
type delivery struct {
	told     Told
	attempts int
	next     time.Time
	failure  string
}

// outbox is what is due on channel at now, oldest approval first, claimed or not.
func (t *memoryTx) outbox(channel string, now time.Time) []*Approval {
	var out []*Approval
	begun := t.deliveries[channel]
	for _, pending := range t.pending {
		for id, a := range pending {
			if begun[id] == nil && a.at(now).Status == ApprovalPending {
				out = append(out, a)
			}
		}
	}
	for id, d := range begun {
		a := t.approvals[id]
		switch pending := a.at(now).Status == ApprovalPending; {
		case pending == (d.told == ToldNothing):
			out = append(out, a)
		case !pending:
			delete(begun, id) // it ended before anybody was told
		}
	}
	slices.SortFunc(out, func(a, b *Approval) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// ClaimDeliveries is that of Deliveries.
func (m *Memory) ClaimDeliveries(ctx context.Context, channel string, now time.Time, lease time.Duration, n int) ([]Delivery, error) {
	if err := CheckChannel(channel); err != nil {
		return nil, err
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	now = latest(now, m.tx.seen.At)
	if m.tx.deliveries[channel] == nil {
		m.tx.deliveries[channel] = map[payment.ApprovalID]*delivery{}
	}
	begun := m.tx.deliveries[channel]
	var out []Delivery
	for _, a := range m.tx.outbox(channel, now) {
		if len(out) >= n {
			break
		}
		d := begun[a.ID]
		if d == nil {
			d = &delivery{}
			begun[a.ID] = d
		}
		if d.next.After(now) {
			continue
		}
		d.next = now.Add(lease)
		out = append(out, Delivery{Channel: channel, Approval: ApprovalAt(a, now), Told: d.told, Attempts: d.attempts})
	}
	return out, nil
}

// EndDelivery is that of Deliveries.
func (m *Memory) EndDelivery(ctx context.Context, channel string, id payment.ApprovalID, told Told, next time.Time, failure string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	d := m.tx.deliveries[channel][id]
	switch {
	case d == nil:
		return ErrNotFound
	case told >= ToldOutcome:
		delete(m.tx.deliveries[channel], id)
	case told > d.told:
		*d = delivery{told: told}
	default:
		d.attempts++
		d.next, d.failure = next, CutFailure(failure)
	}
	return nil
}

// Undelivered is that of Deliveries.
func (m *Memory) Undelivered(ctx context.Context, channel string, now time.Time) ([]Undelivered, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var out []Undelivered
	begun := maps.Clone(m.tx.deliveries[channel])
	for _, a := range m.tx.outbox(channel, latest(now, m.tx.seen.At)) {
		u := Undelivered{Approval: a.ID}
		if d := begun[a.ID]; d != nil {
			u.Attempts, u.NextAt, u.Failure = d.attempts, d.next, d.failure
		}
		out = append(out, u)
	}
	return out, nil
}
