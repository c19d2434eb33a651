package sqlite

import (
	"database/sql/driver"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// scoped returns the FROM and WHERE clauses that find the payments that count
// in a scope after a point, with their parameters: one, or for a payee two
// that find different ones. The largest integer stands for open payments, so
// that they are after every point.
func scoped(s policy.Scope, after ledger.Point) ([]string, [][]driver.Value) {
	const past = ` AND (p.counts, p.id) > (?, ?)`
	until, id, payee := after.Until.UnixMicro(), string(after.ID), s.Payee[:]
	one := func(sql string, args ...driver.Value) ([]string, [][]driver.Value) {
		return []string{sql}, [][]driver.Value{args}
	}
	switch {
	case s.Kind == policy.ScopeOrg:
		return one(`FROM payments p INDEXED BY payments_counts WHERE p.counts IS NOT NULL`+past, until, id)
	case s.Kind == policy.ScopeAgent && s.Shared:
		return one(`FROM payments p INDEXED BY payments_counts WHERE p.counts IS NOT NULL AND p.shared = 1`+past, until, id)
	case s.Kind == policy.ScopeAgent:
		return one(`FROM payments p INDEXED BY payments_agent WHERE p.agent = ? AND p.counts >= ?`+past, s.Agent, until, until, id)
	case s.Kind == policy.ScopeHost && s.Shared:
		return one(`FROM payments p INDEXED BY payments_shared WHERE p.shared = 1 AND p.host = ? AND p.counts >= ?`+past, s.Host, until, until, id)
	case s.Kind == policy.ScopeHost:
		return one(`FROM payments p INDEXED BY payments_host WHERE p.agent = ? AND p.host = ? AND p.counts >= ?`+past, s.Agent, s.Host, until, until, id)
	}
	switch s.Kind {
	case policy.ScopeBudget:
		return one(`FROM works w CROSS JOIN payments p ON p.n = w.n WHERE w.work = ? AND p.counts >= ?`+past, s.Name, until, until, id)
	case policy.ScopeRun:
		const run = `FROM works w CROSS JOIN payments p ON p.n = w.n WHERE w.work = ? AND p.counts >= ?` + past
		if s.Shared {
			return one(run+` AND p.shared = 1`, s.Name, until, until, id)
		}
		return one(run+` AND p.agent = ?`, s.Name, until, until, id, s.Agent)
	}
	// The index splits has the payments that name the payee, but not first.
	const primary = `FROM payments p INDEXED BY payments_payee WHERE p.payee = ? AND p.counts >= ?`
	const further = `FROM splits s CROSS JOIN payments p ON p.n = s.n WHERE s.payee = ? AND p.counts >= ?`
	args := []driver.Value{payee, until, until, id}
	whose := ` AND p.shared = 1`
	if !s.Shared {
		whose, args = ` AND p.agent = ?`, append(args, s.Agent)
	}
	return []string{primary + past + whose, further + past + whose}, [][]driver.Value{args, args}
}

// Tally implements ledger.CountTx.
func (t *tx) Tally(s policy.Scope, after ledger.Point, now time.Time) (ledger.Tally, error) {
	// Halves are added up apart: no sum of 31 bits overflows.
	const sums = `SELECT count(*), sum(cost >> 32), sum(cost & 0xffffffff), sum(iif(held, cost >> 32, 0)), sum(iif(held, cost & 0xffffffff, 0))
		FROM (SELECT p.cost AS cost, p.state IN (6, 7, 8, 12) AND p.counts >= ? AS held `
	var all ledger.Tally
	froms, args := scoped(s, after)
	for i, from := range froms {
		var count, high, low, heldHigh, heldLow int64
		_, err := t.c.first(sums+from+`)`, append([]driver.Value{now.UnixMicro()}, args[i]...), &count, &high, &low, &heldHigh, &heldLow)
		if err != nil {
			return ledger.Tally{}, err
		}
		all.Count += count
		all.USD, _ = all.USD.Add(join(high, low))
		all.Held, _ = all.Held.Add(join(heldHigh, heldLow))
	}
	return all, nil
}

// join is high * 2^32 + low, and payment.MaxUSD where that is too much.
func join(high, low int64) payment.USD {
	high += low >> 32
	if high >= 1<<31 {
		return payment.MaxUSD
	}
	return payment.USD(high<<32 | low&0xffffffff)
}

// Oldest implements ledger.CountTx.
func (t *tx) Oldest(s policy.Scope, after ledger.Point) (time.Time, error) {
	var oldest time.Time
	froms, args := scoped(s, after)
	for i, from := range froms {
		var until int64
		ok, err := t.c.first(`SELECT p.counts `+from+` AND p.counts < ? ORDER BY p.counts LIMIT 1`,
			append(args[i][:len(args[i]):len(args[i])], int64(openUntil)), &until)
		if err != nil {
			return time.Time{}, err
		}
		if at := fromMicro(until); ok && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest, nil
}
