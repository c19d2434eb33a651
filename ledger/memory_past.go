package ledger

import (
	"context"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

var _ PastStore = (*Memory)(nil)

// Past is that of PastStore.
func (m *Memory) Past(ctx context.Context, s policy.Scope, t payment.Terms) (policy.Past, error) {
	if err := m.begin(ctx); err != nil {
		return policy.Past{}, err
	}
	defer m.mu.Unlock()
	return PastTx(s, &t, func(p Place) (*Entry, error) { return m.tx.lastIn(p), nil })
}

// remember files an authorized payment under its places.
func (t *memoryTx) remember(r *row) {
	for _, p := range r.e.Places() {
		file(t.places, p, r)
	}
}

// lastIn is the payment remembered in a place that was authorized last, or nil.
// Those at the end that were released are taken out: no release is taken back.
func (t *memoryTx) lastIn(p Place) *Entry {
	rows := t.places[p]
	if rows == nil {
		return nil
	}
	for n := len(*rows); n > 0; n-- {
		if e := (*rows)[n-1].e; e.Remembered() {
			return e
		}
		*rows = (*rows)[:n-1]
	}
	delete(t.places, p)
	return nil
}
