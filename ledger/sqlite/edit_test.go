//go:build linux || darwin

package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// edit is what somebody changes by hand who knows the layout: sums and columns
// follow from what the records say then.
type edit struct {
	payment  func(*ledger.Entry)
	approval func(*ledger.Approval)
	sql      string
}

func (d edit) make(t *testing.T, path string) {
	t.Helper()
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	tx := &tx{c, newMemory()}
	if d.payment != nil {
		page, err := tx.all(`SELECT ` + entryColumns + ` FROM payments ORDER BY n`)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			before := derive(r.e)
			d.payment(r.e)
			sql, args := update(before, derive(r.e))
			if _, _, err := c.exec(sql, append(args, int64(r.e.State), r.e.Version, int64(r.e.Spent), encodeEntry(r.e), r.n)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d.approval != nil {
		list, err := approvals{&Store{path: path, idle: make(chan *conn, 1)}}.List(t.Context(), "", false, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			d.approval(&a)
			if err := tx.PutApproval(&a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.script(d.sql); err != nil {
		t.Fatal(err)
	}
}

// edited is a ledger with a payment to two payees under a key, one that a
// person allowed, and one that waits for a person.
func edited(t *testing.T) *Store {
	t.Helper()
	s := open(t, newPath(t), Options{})
	r := request(time.Now(), 1, plain...)
	half := payment.UnitsOf(500_000)
	r.Payment.Terms.Recipients = []payment.Recipient{{Address: payment.Address{1}, Amount: half}, {Address: payment.Address{2}, Amount: half}}
	r.Key = "order-1"
	claim(t, s, pay(t, s, r))
	ask := func(n uint64) ledger.Request {
		r := request(time.Now(), n, plain...)
		r.Verdict.Status = payment.PendingApproval
		return r
	}
	for n := range uint64(2) {
		e, _, err := s.Reserve(t.Context(), ask(2+n))
		if err != nil || e.State != ledger.PendingApproval {
			t.Fatal(e.State, err)
		}
		if n == 0 {
			if _, err := s.Approvals().Decide(t.Context(), ledger.Decision{ID: e.ApprovalID, Approve: true, By: "ana", Via: "cli", Now: time.Now()}); err != nil {
				t.Fatal(err)
			}
			pay(t, s, ask(2))
		}
	}
	return s
}

// TestEditsByHand: Verify finds each, though the sums are right.
func TestEditsByHand(t *testing.T) {
	for name, d := range map[string]edit{
		"nothing": {},
		"key": {payment: func(e *ledger.Entry) {
			if e.Key != "" {
				e.Key += "x"
			}
		}},
		"no key":          {payment: func(e *ledger.Entry) { e.Key = "" }},
		"payer":           {payment: func(e *ledger.Entry) { e.Payer[0]++ }},
		"window":          {payment: func(e *ledger.Entry) { e.DuplicateWindow = 0 }},
		"protocol":        {payment: func(e *ledger.Entry) { e.Protocol++ }},
		"resend":          {payment: func(e *ledger.Entry) { e.Resend = !e.Resend }},
		"echo":            {payment: func(e *ledger.Entry) { e.Echo = append(slices.Clone(e.Echo), ' ') }},
		"realm":           {payment: func(e *ledger.Entry) { e.Realm = "another" }},
		"purpose":         {payment: func(e *ledger.Entry) { e.Purpose = "another" }},
		"policy":          {payment: func(e *ledger.Entry) { e.Policy[0]++ }},
		"approval of it":  {payment: func(e *ledger.Entry) { e.ApprovalID = "" }},
		"terms asked":     {approval: func(a *ledger.Approval) { a.Terms.Target = "/other"; a.TermsHash = a.Terms.Hash() }},
		"cost asked":      {approval: func(a *ledger.Approval) { a.Cost-- }},
		"agent asking":    {approval: func(a *ledger.Approval) { a.Agent = "other" }},
		"payment asked":   {approval: func(a *ledger.Approval) { a.Payment = payment.NewID(time.Now()) }},
		"purpose asked":   {approval: func(a *ledger.Approval) { a.Purpose = "another" }},
		"expiry":          {approval: func(a *ledger.Approval) { a.ExpiresAt = a.ExpiresAt.Add(time.Hour) }},
		"granted":         {approval: func(a *ledger.Approval) { a.Status = ledger.ApprovalGranted }},
		"unspent":         {approval: func(a *ledger.Approval) { a.UsedAt = time.Time{} }},
		"who decided":     {approval: func(a *ledger.Approval) { a.By = "ben" }},
		"lost approvals":  {sql: `DELETE FROM approvals`},
		"lost splits":     {sql: `DELETE FROM splits`},
		"further split":   {sql: `INSERT INTO splits (payee, n) SELECT x'03', n FROM payments LIMIT 1`},
		"sum of a day":    {sql: `UPDATE spending SET micros = micros - 1`},
		"lost sums":       {sql: `DELETE FROM spending`},
		"lost places":     {sql: `DELETE FROM places`},
		"a place moved":   {sql: `UPDATE places SET at = at - 1 WHERE n = 1`},
		"further place":   {sql: `INSERT INTO places SELECT x'00', at, n FROM places LIMIT 1`},
		"further sum":     {sql: `INSERT INTO spending VALUES (1, 'trader', '', 1, 0, 1)`},
		"counter":         {sql: `UPDATE counters SET usd = usd - 1`},
		"mark ahead":      {sql: `UPDATE marks SET until = (SELECT max(counts) FROM payments), id = '~', next = 0; UPDATE counters SET usd = 0, count = 0`},
		"mark's kinds":    {sql: `UPDATE marks SET kinds = 0; UPDATE counters SET usd = 0, count = 0`},
		"mark's period":   {sql: `UPDATE marks SET ends = 253370764800000000`},
		"counter's limbo": {sql: `DELETE FROM marks`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := edited(t)
			d.make(t, s.path)
			problems := verify(t, s).Problems
			if found := len(problems) > 0; found != (name != "nothing") {
				t.Errorf("Verify: %q", problems)
			}
		})
	}
}

// TestMarkAhead: marks and counters that were changed by hand lift no cap.
func TestMarkAhead(t *testing.T) {
	month := policy.Window{Kind: policy.Month}
	for name, tt := range map[string]struct {
		w     policy.Window
		sql   string
		stays bool // until a payment is made: a denial mends no counter
	}{
		"rolling":      {day, `UPDATE marks SET until = (SELECT max(counts) FROM payments), id = '~', next = 0`, false},
		"calendar":     {month, `UPDATE marks SET until = (SELECT max(counts) FROM payments), id = '~', next = 0`, false},
		"next period":  {month, `UPDATE marks SET until = ends, ends = 253370764800000000`, false},
		"for ever":     {policy.Window{Kind: policy.Ever}, `UPDATE marks SET until = 253370764800000000`, false},
		"kinds":        {day, `UPDATE marks SET kinds = 0`, true},
		"no such mark": {day, `DELETE FROM marks`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newPath(t), Options{})
			l := policy.Limit{Scope: org, Window: tt.w, USD: 2 * payment.Dollar, Text: "$2"}
			claim(t, s, pay(t, s, request(time.Now(), 1, l)))
			claim(t, s, pay(t, s, request(time.Now(), 2, l)))
			edit{sql: tt.sql + `; UPDATE counters SET usd = 0, count = 0`}.make(t, s.path)
			if len(verify(t, s).Problems) == 0 {
				t.Errorf("Verify finds nothing")
			}
			if u, err := s.Use(t.Context(), []policy.Limit{l}, time.Now()); err != nil || u[0].USD != 2*payment.Dollar {
				t.Errorf("%s are used, %v", u[0].USD, err)
			}
			for n := uint64(3); n < 5; n++ {
				if e, _, err := s.Reserve(t.Context(), request(time.Now(), n, l)); err != nil || e.State != ledger.Denied {
					t.Errorf("payment %d over the cap: %s, %v", n, e.State, err)
				}
			}
			if problems := verify(t, s).Problems; len(problems) > 0 != tt.stays {
				t.Errorf("afterwards Verify finds %q", problems)
			}
		})
	}
}

// TestUnreadablePage: a run of payments that cannot be read, as long as any page,
// hides none of those after it.
func TestUnreadablePage(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), Options{})
	const lost, left = 2 * pageRows, 3
	var first payment.ID
	if _, err := s.do(t.Context(), &job{kind: reserve, step: func(x *tx) error {
		for n := range uint64(lost + left) {
			r := request(time.Now(), n)
			e, _, err := ledger.ReserveTx(x, &r, s.env())
			if err != nil {
				return err
			}
			if n == 0 {
				first = e.ID
			}
		}
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, s); len(r.Problems) > 0 || r.Payments != lost+left || r.Events != lost+left {
		t.Fatalf("before: %d payments, %d events, %q", r.Payments, r.Events, r.Problems)
	}
	edit{sql: fmt.Sprintf(`UPDATE payments SET body = x'00' WHERE n <= %d`, lost)}.make(t, s.path)
	r := verify(t, s)
	if r.Payments != left || r.Events != left {
		t.Errorf("%d payments and %d events were verified of those after", r.Payments, r.Events)
	}
	if len(r.Problems) == 0 || !strings.Contains(r.Problems[0], string(first)) {
		t.Errorf("Verify does not name the first that it cannot read: %q", r.Problems)
	}
}

// TestEndedSlots: the slot of a payment that ended is looked for where those are
// remembered, and a payment's further payees beside it.
func TestEndedSlots(t *testing.T) {
	for name, sql := range map[string]string{
		"nothing":  ``,
		"lost":     `DELETE FROM slots WHERE n = 2`,
		"another":  `UPDATE slots SET slot = zeroblob(16) WHERE n = 2`,
		"shorter":  `UPDATE slots SET slot = substr(slot, 1, 15) WHERE n = 2`,
		"longer":   `UPDATE slots SET slot = CAST(slot || x'00' AS BLOB) WHERE n = 2`,
		"payee":    `UPDATE payments SET payee = zeroblob(20) WHERE n = 2`,
		"payees":   `UPDATE payments SET others = NULL WHERE n = 2`,
		"of a few": `DELETE FROM slots WHERE n > 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newPath(t), Options{})
			var last payment.ID
			for n := range uint64(3) {
				r := request(time.Now(), n)
				half := payment.UnitsOf(500_000)
				r.Payment.Terms.Recipients = []payment.Recipient{{Address: payment.Address{1}, Amount: half}, {Address: payment.Address{2}, Amount: half}}
				r.Watched = true
				e := claim(t, s, pay(t, s, r))
				if n == 1 {
					last = e.ID
				}
				if _, err := s.Advance(t.Context(), ledger.Change{ID: e.ID, Version: e.Version, To: ledger.Settled, By: ledger.ByChain, SpentAt: time.Now(), Now: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
			edit{sql: sql}.make(t, s.path)
			problems := verify(t, s).Problems
			if sql == "" {
				if len(problems) > 0 {
					t.Errorf("Verify: %q", problems)
				}
			} else if len(problems) == 0 || !strings.Contains(problems[0], string(last)) {
				t.Errorf("Verify does not name payment %s: %q", last, problems)
			}
		})
	}
}
