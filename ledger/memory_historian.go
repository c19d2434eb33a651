package ledger

import (
	"context"
	"slices"

	"github.com/canopy-go/canopy/payment"
)

var _ Historian = (*Memory)(nil)

// Spending is that of Historian. It reads the payments of the days.
func (m *Memory) Spending(ctx context.Context, q SpendingQuery) ([]Spending, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	first, last := q.SpendingDays()
	type key struct {
		day         int64
		agent, host string
	}
	sums := map[key]*Spending{}
	from, _ := slices.BinarySearchFunc(m.tx.order, first, func(r *row, day int64) int {
		if SpendingDay(r.e.CreatedAt) < day {
			return -1
		}
		return 1
	})
	for _, r := range m.tx.order[from:] {
		e := r.e
		day := SpendingDay(e.CreatedAt)
		if day > last {
			break
		}
		if _, _, counts := e.CountedUntil(); !counts || q.Agent != "" && e.Agent != q.Agent {
			continue
		}
		k, s := key{}, Spending{}
		if q.Days {
			k.day, s.Day = day, DayOf(day)
		}
		if q.Agents {
			k.agent, s.Agent = e.Agent, e.Agent
		}
		if q.Hosts {
			k.host, s.Host = e.Host, e.Host
		}
		if sums[k] == nil {
			sums[k] = &s
		}
		sums[k].USD, _ = sums[k].USD.Add(e.Spent)
		sums[k].Count++
	}
	out := make([]Spending, 0, len(sums))
	for _, s := range sums {
		out = append(out, *s)
	}
	return sortSpending(out, q.Limit), nil
}

// PaidHost is that of Historian.
func (m *Memory) PaidHost(ctx context.Context, agent, host string, limit int) ([]Entry, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return paid(m.tx.hosts[host], agent, limit), nil
}

// PaidPayee is that of Historian.
func (m *Memory) PaidPayee(ctx context.Context, payee payment.Address, limit int) ([]Entry, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return paid(m.tx.payees[payee], "", limit), nil
}

// paid are those of rows that count, of one agent or of all.
func paid(rows *[]*row, agent string, limit int) []Entry {
	if rows == nil {
		return nil
	}
	var found []*Entry
	for _, r := range *rows {
		if _, _, counts := r.e.CountedUntil(); counts && (agent == "" || r.e.Agent == agent) {
			found = append(found, r.e)
		}
	}
	slices.SortFunc(found, func(a, b *Entry) int { return LongestFirst(a, b) })
	var out []Entry
	for _, e := range found[:min(limit, len(found))] {
		out = append(out, Committed(e))
	}
	return out
}

// LongestFirst orders payments that count by when they stop to: those without
// an end first, then the latest.
func LongestFirst(a, b *Entry) int {
	at, aOpen, _ := a.CountedUntil()
	bt, bOpen, _ := b.CountedUntil()
	switch {
	case aOpen && bOpen:
		return 0
	case aOpen:
		return -1
	case bOpen:
		return 1
	}
	return bt.Compare(at)
}
