package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Verify implements ledger.Verifier. It reads the whole ledger as it stands
// when it begins: the file's structure, every chain, every derived column and
// every counter.
func (s *Store) Verify(ctx context.Context) (ledger.Report, error) {
	var report ledger.Report
	file := make(chan fileCheck, 1)
	go func() { file <- s.verifyFile(ctx) }()
	found := sync.OnceValue(func() fileCheck { return <-file })
	err := s.snapshot(ctx, func(t *tx) error {
		marks, err := t.Marks()
		if err != nil {
			return err
		}
		seen, err := t.Seen()
		if err != nil {
			return err
		}
		v := ledger.NewVerification(seen, marks)
		for _, m := range marks {
			if m.Kinds>>(policy.ScopeBudget+1) != 0 {
				v.Problem("the mark of %s has scopes that are none", m.Window)
			}
		}
		if err := t.verifyLanes(v); err != nil {
			return err
		}
		if err := t.verifyBudgets(v); err != nil {
			return err
		}
		if err := t.verifyPayments(ctx, v); err != nil {
			return err
		}
		if err := t.verifySharedKeys(v); err != nil {
			return err
		}
		if err := t.verifyApprovals(v); err != nil {
			return err
		}
		if err := t.verifyCounters(v); err != nil {
			return err
		}
		for _, p := range found().problems {
			v.Problem("the file: %s", p)
		}
		report = v.Report()
		m, err := t.readMeta()
		if err == nil && m.events != report.Events {
			v.Problem("the ledger counts %d events and has %d", m.events, report.Events)
			report = v.Report()
		}
		return err
	})
	if e := found().err; err == nil { // it is waited for whatever happened
		err = e
	}
	return report, err
}

// fileCheck is what SQLite says of a file.
type fileCheck struct {
	problems []string
	err      error
}

// fileCache is how much of a file is kept in memory, in KiB, while each index is
// held against its table: what they have in the order of a hash is read again
// and again.
const fileCache = 8 << 10

// verifyFile has SQLite check its trees, and each index against its table, on a
// connection of its own beside what else is verified.
func (s *Store) verifyFile(ctx context.Context) (c fileCheck) {
	c.err = s.read(ctx, func(t *tx) (err error) {
		cache, err := t.c.pragma("cache_size")
		if err == nil {
			err = t.c.script(fmt.Sprintf("PRAGMA cache_size = %d", -fileCache))
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.c.script(fmt.Sprintf("PRAGMA cache_size = %d", cache))) }()
		for _, sql := range []string{`PRAGMA integrity_check(20)`, `PRAGMA foreign_key_check`} {
			err := t.c.query(sql, nil, func(row []driver.Value) error {
				if s, _ := row[0].(string); s != "ok" {
					c.problems = append(c.problems, fmt.Sprint(row))
				}
				return nil
			})
			if err != nil && code(err) != codeCorrupt {
				return err
			}
			if err != nil {
				c.problems = append(c.problems, err.Error())
			}
		}
		return nil
	})
	return c
}

// verifySharedKeys finds keys that stand for a payment of another agent, or for
// none.
func (t *tx) verifySharedKeys(v *ledger.Verification) error {
	return t.c.query(`SELECT s.agent FROM shared_keys s LEFT JOIN payments p ON p.n = s.n WHERE p.agent IS NULL OR p.agent <> s.agent LIMIT 100`, nil,
		func(row []driver.Value) error {
			v.Problem("a key of %q stands for a payment that is not its agent's", row[0])
			return nil
		})
}

func (t *tx) verifyLanes(v *ledger.Verification) error {
	return t.c.query(`SELECT l.chain, l.account, l.key, l.nonce, ifnull(p.id, '') FROM lanes l LEFT JOIN payments p ON p.n = l.n`, nil,
		func(row []driver.Value) error {
			var chain, id string
			var account, key []byte
			var nonce int64
			if err := scan(row, &chain, &account, &key, &nonce, &id); err != nil {
				v.Problem("a lane: %v", err)
				return nil
			}
			l := ledger.Lane{Chain: payment.ChainID(chain), Nonce: uint64(nonce), Payment: payment.ID(id)}
			if len(account) != len(l.From) || len(key) != len(l.Key) || nonce < 0 {
				v.Problem("a lane of payment %s has a name that is none", id)
				return nil
			}
			copy(l.From[:], account)
			copy(l.Key[:], key)
			v.Lane(l)
			return nil
		})
}

func (t *tx) verifyApprovals(v *ledger.Verification) error {
	return t.c.query(`SELECT id, agent, status, expires, body FROM approvals`, nil, func(row []driver.Value) error {
		var id, agent string
		var status, expires int64
		var body []byte
		err := scan(row, &id, &agent, &status, &expires, &body)
		var a *ledger.Approval
		if err == nil {
			a, err = decodeApproval(id, body)
		}
		switch {
		case err != nil:
			v.Problem("approval %v: %v", row[0], err)
		case a.Agent != agent || int64(a.Status) != status || a.ExpiresAt.UnixMicro() != expires:
			v.Problem("approval %s: what it is found by does not follow from its record", id)
		default:
			v.Approval(a)
		}
		return nil
	})
}

func (t *tx) verifyCounters(v *ledger.Verification) error {
	return t.c.query(`SELECT win, scope, usd, count FROM counters`, nil, func(row []driver.Value) error {
		var win, scope []byte
		var usd, count int64
		if err := scan(row, &win, &scope, &usd, &count); err != nil {
			v.Problem("a counter: %v", err)
			return nil
		}
		w, err := parseWindow(win)
		s, err2 := parseScope(scope)
		if err != nil || err2 != nil {
			v.Problem("a counter has a key that is none")
			return nil
		}
		v.Counter(ledger.CounterKey{Scope: s, Window: w}, ledger.Counter{USD: payment.USD(usd), Count: count})
		return nil
	})
}
