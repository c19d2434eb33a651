//go:build linux || darwin

package sqlite

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Every look that a step takes goes by an index, and never past a whole table.
func TestPlans(t *testing.T) {
	s := open(t, newPath(t), Options{})
	plan := func(sql string) string {
		t.Helper()
		c, err := s.reader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.release(c)
		args := make([]driver.Value, strings.Count(sql, "?"))
		for i := range args {
			args[i] = int64(0)
		}
		var out []string
		err = c.query("EXPLAIN QUERY PLAN "+sql, args, func(row []driver.Value) error {
			out = append(out, row[3].(string))
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return strings.Join(out, "; ")
	}
	var looks []string
	for _, k := range []policy.ScopeKind{policy.ScopeOrg, policy.ScopeAgent, policy.ScopeHost, policy.ScopePayee, policy.ScopeRun, policy.ScopeBudget} {
		for _, shared := range []bool{false, true} {
			froms, _ := scoped(policy.Scope{Kind: k, Shared: shared}, ledger.Point{})
			for _, from := range froms {
				looks = append(looks, "SELECT p.cost "+from, "SELECT p.counts "+from+" AND p.counts < ? ORDER BY p.counts LIMIT 1")
			}
		}
	}
	for _, sql := range looks {
		if got := plan(sql); !strings.Contains(got, "SEARCH") || strings.Contains(got, "SCAN") {
			t.Errorf("%s\n\t%s", sql, got)
		}
	}
	// The statements of the methods, as they were prepared.
	tx := &tx{s.w, newMemory()}
	tx.Entry("")
	tx.Keyed("", "") // both looks: it finds nothing
	tx.SlotHolder("")
	tx.Unresolved("", payment.Hash{}, s.clock.Now())
	tx.LastTransfer("", payment.Hash{})
	tx.Owned("")
	tx.Owners()
	tx.Approval("")
	tx.Pending("", s.clock.Now())
	tx.Due(ledger.Point{}, 1)
	tx.Counter(ledger.CounterKey{})
	tx.Lanes("", payment.Address{})
	tx.GasUsers("", payment.Address{}, s.clock.Now())
	tx.SlotEver("") // both looks
	tx.claimable("", s.clock.Now(), 1)
	tx.Approver("")
	tx.paidHost("", "", 1)
	tx.paidPayee(payment.Address{}, 1)
	tx.lastIn(ledger.Place{})
	if s.w.failed != nil {
		t.Fatal(s.w.failed)
	}
	for sql := range s.w.stmts {
		if !strings.HasPrefix(sql, "SELECT") || strings.Contains(sql, "FROM meta") || strings.Contains(sql, "FROM marks") || strings.Contains(sql, "sqlite_schema") {
			continue
		}
		got := plan(sql)
		if strings.Contains(sql, "FROM deliveries") { // among those that wait, which are few
			got = strings.Replace(got, "SCAN a USING INDEX approvals_open", "SEARCH", 1)
		}
		t.Logf("%.60s: %s", sql, got)
		if !strings.Contains(got, "SEARCH") || strings.Contains(got, "SCAN") ||
			strings.Contains(got, "TEMP B-TREE") && !strings.Contains(sql, "answers >") && !strings.Contains(sql, "deliveries") {
			t.Errorf("%s\n\t%s", sql, got)
		}
	}
}
